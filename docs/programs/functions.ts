// #region server
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import { z } from "zod"

const greet = Tool.async(
  Tool.make("greet", { description: "Greets a person by name.", input: z.object({ name: z.string() }) }),
  async ({ name }) => `Hello, ${name}!`
)

export const Greeter = McpServer.layer({ name: "greeter", version: "1.0.0" }, greet)
// #endregion
