/** The operations of a pet shop's API as tools, from its OpenAPI document. Over stdio. */
import * as OpenApi from "@skein/openapi/OpenApi"
import * as McpServer from "@skein/server/McpServer"
import * as Stdio from "@skein/server/Stdio"

const baseUrl = process.env["PETS_URL"] ?? "https://pets.example/v1"
const pets = OpenApi.layer(new URL("pets.json", import.meta.url), { baseUrl })

Stdio.runMain(McpServer.layer({ name: "pets", version: "1.0.0" }, pets))
