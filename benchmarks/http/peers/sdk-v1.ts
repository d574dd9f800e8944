/**
 * `@modelcontextprotocol/sdk` 1 in its own Express application, with its check of `Host`. `--sessions` keeps a server and a
 * transport per session, in a map, as its examples do; without, each request gets new ones. `--json` answers in JSON, which is
 * faster than its default of SSE but drops whatever a handler says before its result.
 */
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as z from "zod"

const withSessions = process.argv.includes("--sessions")
const enableJsonResponse = process.argv.includes("--json")
const more = Number(process.argv.find((arg) => arg.startsWith("--tools="))?.slice("--tools=".length) ?? 2) - 2

const makeServer = (): McpServer => {
  const server = new McpServer({ name: "sdk-v1", version: "1.0.0" })
  server.registerTool(
    "echo",
    { description: "Says a message several times", inputSchema: { message: z.string(), times: z.int() } },
    ({ message, times }) => ({ content: [{ type: "text", text: message.repeat(times) }] })
  )
  server.registerTool(
    "count",
    { description: "Counts, and tells how far it is", inputSchema: { to: z.int() } },
    async ({ to }, extra) => {
      const progressToken = extra._meta?.progressToken
      if (progressToken !== undefined) {
        for (let progress = 1; progress <= to; progress++) {
          const params = { progressToken, progress, total: to }
          await extra.sendNotification({ method: "notifications/progress", params })
        }
      }
      return { content: [{ type: "text", text: `Counted to ${to}` }] }
    }
  )
  for (let index = 0; index < more; index++) {
    server.registerTool(
      `tool-${index}`,
      { description: `Does thing number ${index}`, inputSchema: { path: z.string(), lines: z.int() } },
      () => ({ content: [] })
    )
  }
  return server
}

/** What Express hands over. Its types are not installed. */
type Request = IncomingMessage & { readonly body?: unknown }
const refuse = (res: ServerResponse, status: number, message: string): void => {
  res.writeHead(status, { "content-type": "application/json" })
  res.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }))
}

const transports = new Map<string, StreamableHTTPServerTransport>()

const inSession = async (req: Request, res: ServerResponse): Promise<void> => {
  const id = req.headers["mcp-session-id"]
  if (typeof id === "string") {
    const transport = transports.get(id)
    if (transport === undefined) return refuse(res, 404, "Session not found")
    return transport.handleRequest(req, res, req.body)
  }
  if (!isInitializeRequest(req.body)) return refuse(res, 400, "No valid session ID provided")
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse,
    onsessioninitialized: (id) => {
      transports.set(id, transport)
    }
  })
  transport.onclose = () => {
    if (transport.sessionId !== undefined) transports.delete(transport.sessionId)
  }
  await makeServer().connect(transport as Parameters<McpServer["connect"]>[0])
  await transport.handleRequest(req, res, req.body)
}

const alone = async (req: Request, res: ServerResponse): Promise<void> => {
  if (req.method !== "POST") return refuse(res, 405, "Method not allowed")
  const server = makeServer()
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse })
  res.on("close", () => {
    void transport.close()
    void server.close()
  })
  await server.connect(transport as Parameters<McpServer["connect"]>[0])
  await transport.handleRequest(req, res, req.body)
}

const app = createMcpExpressApp()
app.all("/mcp", withSessions ? inSession : alone)
const server = app.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port))
