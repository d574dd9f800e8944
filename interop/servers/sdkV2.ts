/** Servers of `@modelcontextprotocol/server` 2 over HTTP: with sessions, and with a new server for each request. */
import { getRequestListener } from "@hono/node-server"
import {
  createMcpHandler,
  type CreateMcpHandlerOptions,
  isInitializeRequest,
  type McpHttpHandler,
  type McpServer,
  WebStandardStreamableHTTPServerTransport
} from "@modelcontextprotocol/server"
import { randomUUID } from "node:crypto"
import * as Events from "../fixtures/eventStore.ts"
import { type HttpServer, startHttpServer } from "./httpServer.ts"

const sendError = (status: number, message: string): Response =>
  Response.json({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }, { status })

const listener = (serve: (request: Request) => Promise<Response>) => {
  const listen = getRequestListener(serve, { overrideGlobalObjects: false })
  return (...args: Parameters<typeof listen>) => void listen(...args)
}

/** Revisions with sessions. */
export const sessions = (make: () => McpServer): Promise<HttpServer> =>
  startHttpServer(() => {
    const transports = new Map<string, WebStandardStreamableHTTPServerTransport>()
    const open = async (): Promise<WebStandardStreamableHTTPServerTransport> => {
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: Events.make(),
        retryInterval: 20,
        onsessioninitialized: (id) => void transports.set(id, transport)
      })
      transport.onclose = () => void transports.delete(transport.sessionId!)
      await make().connect(transport)
      return transport
    }
    const serve = async (request: Request): Promise<Response> => {
      const id = request.headers.get("mcp-session-id")
      if (id !== null) return transports.get(id)?.handleRequest(request) ?? sendError(404, "Session not found")
      const parsedBody: unknown = request.method === "POST" ? await request.json() : undefined
      if (!isInitializeRequest(parsedBody)) return sendError(400, "Bad Request: No valid session ID provided")
      return (await open()).handleRequest(request, { parsedBody })
    }
    return {
      listener: listener(serve),
      sessions: () => transports.size,
      end: async () => {
        for (const transport of transports.values()) await transport.close()
      }
    }
  })

/**
 * `createMcpHandler`, which makes a server for each request: 2026-07-28 and, depending on `legacy`, older revisions
 * without sessions.
 */
export const handler = (
  make: (notify: () => McpHttpHandler["notify"]) => McpServer,
  options: CreateMcpHandlerOptions = {}
): Promise<HttpServer> =>
  startHttpServer(() => {
    const entry: McpHttpHandler = createMcpHandler(() => make(() => entry.notify), { legacy: "reject", ...options })
    return { listener: listener((request) => entry.fetch(request)), end: entry.close }
  })
