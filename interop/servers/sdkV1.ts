/** Servers of `@modelcontextprotocol/sdk` 1 over HTTP, in each configuration of the SDK. */
import { InMemoryEventStore } from "@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js"
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js"
import { type EventStore, StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Events from "../fixtures/eventStore.ts"
import { type HttpServer, readBody, sendError, type ServerInstance, startHttpServer } from "./httpServer.ts"

/**
 * The configuration of a server:
 *
 * - `sessions`: sessions, with an event store that keeps the order.
 * - `unknownSession400`: the same, but it rejects unknown sessions with 400. The SDK's transport does that before
 *   `initialize`, and so do many servers that follow its first examples.
 * - `exampleStore`: the event store of the SDK's examples. Only a call that has sent nothing since the interruption can
 *   be resumed with it: it returns events of the same millisecond in any order, and may lose the last one. It cannot
 *   resume the stream of a session: the stream's name contains the character that separates the parts of an event id,
 *   so that the SDK opens a stream without events.
 * - `json`: sessions, and one JSON response for each request.
 * - `stateless`: a new server for each request.
 */
export type HttpMode = "sessions" | "unknownSession400" | "exampleStore" | "json" | "stateless"

// The types of the SDK do not support `exactOptionalPropertyTypes`.
const connect = (server: McpServer, transport: StreamableHTTPServerTransport): Promise<void> =>
  server.connect(transport as Transport)

const sessions = (make: () => McpServer, mode: HttpMode): ServerInstance => {
  // Both SDKs have the same `EventStore` interface, with different types.
  const store = () => mode === "exampleStore" ? new InMemoryEventStore() : Events.make() as EventStore
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: mode === "json",
      ...(mode === "json" ? {} : { eventStore: store(), retryInterval: 20 }),
      onsessioninitialized: (id) => void transports.set(id, transport)
    })
    transport.onclose = () => void transports.delete(transport.sessionId!)
    await connect(make(), transport)
    return transport
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request)
    const id = request.headers["mcp-session-id"]
    const known = typeof id === "string" ? transports.get(id) : undefined
    if (known !== undefined) return known.handleRequest(request, response, body)
    if (id !== undefined && mode !== "unknownSession400") return sendError(response, 404, "Session not found")
    if (!isInitializeRequest(body)) return sendError(response, 400, "Bad Request: No valid session ID provided")
    return (await open()).handleRequest(request, response, body)
  }
  return {
    listener: (request, response) => void serve(request, response),
    sessions: () => transports.size,
    end: async () => {
      for (const transport of transports.values()) await transport.close()
    }
  }
}

const stateless = (make: () => McpServer): ServerInstance => {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== "POST") return sendError(response, 405, "Method not allowed.")
    const body = await readBody(request)
    const server = make()
    const transport = new StreamableHTTPServerTransport({})
    response.on("close", () => void server.close())
    await connect(server, transport)
    await transport.handleRequest(request, response, body)
  }
  return { listener: (request, response) => void serve(request, response) }
}

/** Streamable HTTP. */
export const streamable = (make: () => McpServer, mode: HttpMode): Promise<HttpServer> =>
  startHttpServer(() => mode === "stateless" ? stateless(make) : sessions(make, mode))

/** HTTP+SSE only. */
export const sse = (make: () => McpServer): Promise<HttpServer> =>
  startHttpServer(() => {
    const transports = new Map<string, SSEServerTransport>()
    const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const { pathname, searchParams } = new URL(request.url!, "http://localhost")
      if (request.method === "GET" && pathname === "/sse") {
        const transport = new SSEServerTransport("/messages", response)
        transports.set(transport.sessionId, transport)
        response.on("close", () => void transports.delete(transport.sessionId))
        return make().connect(transport)
      }
      const transport = transports.get(searchParams.get("sessionId") ?? "")
      if (request.method !== "POST" || pathname !== "/messages") return sendError(response, 404, "Not found")
      if (transport === undefined) return sendError(response, 400, "No transport found for sessionId")
      return transport.handlePostMessage(request, response)
    }
    return {
      listener: (request, response) => void serve(request, response),
      sessions: () => transports.size,
      end: async () => {
        for (const transport of transports.values()) await transport.close()
      }
    }
  }, { path: "/sse", transport: "sse" })
