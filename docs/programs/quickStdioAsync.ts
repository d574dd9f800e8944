// #region server
import { AsyncServer } from "skein"
import { z } from "zod"

new AsyncServer({ name: "hello", version: "1.0.0" })
  .tool(
    "greet",
    { description: "Greets a person by name.", input: z.object({ name: z.string() }) },
    async ({ name }) => `Hello, ${name}!`
  )
  .runStdio()
// #endregion
