/** `@modelcontextprotocol/server` 2: one factory for both revisions, as in its documentation. */
import { McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import * as z from "zod"

serveStdio(() => {
  const server = new McpServer({ name: "sdk-v2", version: "1.0.0" })
  server.registerTool(
    "greet",
    { description: "Greets a person by name", inputSchema: z.object({ name: z.string() }) },
    ({ name }) => ({ content: [{ type: "text", text: `Hello, ${name}!` }] })
  )
  return server
})
