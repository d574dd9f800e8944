// #region server
import { AsyncServer } from "skein"
import { z } from "zod"

export const greeter = new AsyncServer({ name: "greeter", version: "1.0.0" })
  .tool(
    "greet",
    { description: "Greets a person by name.", input: z.object({ name: z.string() }) },
    ({ name }) => `Hello, ${name}!`
  )
  .tool("whoami", {}, (_, { principal }) => principal?.id ?? "nobody")
// #endregion
