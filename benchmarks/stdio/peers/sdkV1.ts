/** `@modelcontextprotocol/sdk` 1: the high-level server, as in its documentation. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import * as z from "zod"

const server = new McpServer({ name: "sdk-v1", version: "1.0.0" })
server.registerTool(
  "greet",
  { description: "Greets a person by name", inputSchema: { name: z.string() } },
  ({ name }) => ({ content: [{ type: "text", text: `Hello, ${name}!` }] })
)
void server.connect(new StdioServerTransport())
