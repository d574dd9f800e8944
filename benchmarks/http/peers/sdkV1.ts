/**
 * `@modelcontextprotocol/sdk` 1 in its Express application, with its check of `Host`. With `--sessions` there is a
 * server and a transport per session in a map, as in its examples; without, each request has new ones. `--json` selects
 * JSON responses, which are faster than the default of SSE but drop the notifications that a handler sends.
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
    { description: "Repeats a message", inputSchema: { message: z.string(), times: z.int() } },
    ({ message, times }) => ({ content: [{ type: "text", text: message.repeat(times) }] })
  )
  server.registerTool(
    "count",
    { description: "Counts and reports progress", inputSchema: { to: z.int() } },
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

/** A request of Express, whose types are not installed. */
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

const stateless = async (req: Request, res: ServerResponse): Promise<void> => {
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
app.all("/mcp", withSessions ? inSession : stateless)
const server = app.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port))
