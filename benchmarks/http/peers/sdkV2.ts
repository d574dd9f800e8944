/**
 * `@modelcontextprotocol/server` 2: `createMcpHandler` for both revisions, behind its checks of `Host` and `Origin`. It
 * runs on `node:http` with the adapter of `@hono/node-server`, which the SDK's transport for Node uses too.
 * `--sessions` adds sessions as in its documentation: a transport per session in a map. `--json` selects JSON responses
 * for these transports, which are faster than the default of SSE but drop the notifications that a handler sends.
 */
import { getRequestListener } from "@hono/node-server"
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isInitializeRequest,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  McpServer,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport
} from "@modelcontextprotocol/server"
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as z from "zod"

const withSessions = process.argv.includes("--sessions")
const enableJsonResponse = process.argv.includes("--json")
const more = Number(process.argv.find((arg) => arg.startsWith("--tools="))?.slice("--tools=".length) ?? 2) - 2

const makeServer = (): McpServer => {
  const server = new McpServer({ name: "sdk-v2", version: "1.0.0" })
  server.registerTool(
    "echo",
    { description: "Repeats a message", inputSchema: z.object({ message: z.string(), times: z.int() }) },
    ({ message, times }) => ({ content: [{ type: "text", text: message.repeat(times) }] })
  )
  server.registerTool(
    "count",
    { description: "Counts and reports progress", inputSchema: z.object({ to: z.int() }) },
    async ({ to }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      if (progressToken !== undefined) {
        for (let progress = 1; progress <= to; progress++) {
          const params = { progressToken, progress, total: to }
          await mcpReq.notify({ method: "notifications/progress", params })
        }
      }
      return { content: [{ type: "text", text: `Counted to ${to}` }] }
    }
  )
  for (let index = 0; index < more; index++) {
    server.registerTool(
      `tool-${index}`,
      { description: `Does thing number ${index}`, inputSchema: z.object({ path: z.string(), lines: z.int() }) },
      () => ({ content: [] })
    )
  }
  return server
}

// The default of 1,024 subscriptions is too low for the number of streams here.
const handler = createMcpHandler(makeServer, {
  maxSubscriptions: 20_000,
  legacy: withSessions ? "reject" : "stateless"
})
const hostnames = localhostAllowedHostnames()
const origins = localhostAllowedOrigins()
const transports = new Map<string, WebStandardStreamableHTTPServerTransport>()

const refuse = (status: number, message: string): Response =>
  Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status })

const inSession = async (request: Request, parsedBody: unknown): Promise<Response> => {
  const id = request.headers.get("mcp-session-id")
  if (id !== null) {
    const transport = transports.get(id)
    return transport === undefined ? refuse(404, "Session not found") : transport.handleRequest(request, { parsedBody })
  }
  if (!isInitializeRequest(parsedBody)) return refuse(400, "No valid session ID provided")
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    enableJsonResponse,
    onsessioninitialized: (id) => {
      transports.set(id, transport)
    }
  })
  transport.onclose = () => {
    if (transport.sessionId !== undefined) transports.delete(transport.sessionId)
  }
  await makeServer().connect(transport)
  return transport.handleRequest(request, { parsedBody })
}

const byEra = async (request: Request): Promise<Response> => {
  // Parsed once, as its documentation recommends, and not by both functions.
  const parsedBody: unknown = request.method === "POST" ? await request.json() : undefined
  return await isLegacyRequest(request, parsedBody)
    ? inSession(request, parsedBody)
    : handler.fetch(request, { parsedBody })
}

const fetch = (request: Request): Response | Promise<Response> =>
  hostHeaderValidationResponse(request, hostnames) ??
    originValidationResponse(request, origins) ??
    (withSessions ? byEra(request) : handler.fetch(request))

const server = createServer(getRequestListener(fetch, { overrideGlobalObjects: false }))
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port))
