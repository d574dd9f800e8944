/** The operations of a pet shop's API as tools, from its OpenAPI document. Over stdio. */
import { AsyncServer } from "skein"
import { openApi } from "skein/openapi"

const baseUrl = process.env["PETS_URL"] ?? "https://pets.example/v1"

new AsyncServer({ name: "pets", version: "1.0.0" })
  .use(openApi(new URL("pets.json", import.meta.url), { baseUrl }))
  .runStdio()
