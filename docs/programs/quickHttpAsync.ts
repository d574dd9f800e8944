// #region server
import { AsyncServer } from "@skein/server/AsyncServer"
import { z } from "zod"

new AsyncServer({ name: "hello", version: "1.0.0" })
  .tool(
    "greet",
    { description: "Greets a person by name.", input: z.object({ name: z.string() }) },
    async ({ name }) => `Hello, ${name}!`
  )
  .runHttp({ port: 3000 })
// #endregion
