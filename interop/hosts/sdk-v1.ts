/** Servers of `@modelcontextprotocol/sdk` 1 over HTTP, in each way that the SDK has. */
import { InMemoryEventStore } from "@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js"
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js"
import { type EventStore, StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Events from "../fixtures/events.ts"
import { bodyOf, type Host, host, type Life, refuse } from "./host.ts"

/**
 * With sessions, whose events are kept in order, or in the store of the SDK's examples; `refusing` a session that is not known with 400,
 * as the SDK's own transport does that was not initialized yet, and many servers that were made from its first examples; with sessions and one JSON answer for each
 * request; with a server for each request.
 *
 * The store of the examples is not fit for more than a call that is resumed later than it spoke last: it gives the events of one
 * millisecond any order, and so may never give the last one; and it does not know the stream of a session, whose name has the
 * character that it splits its ids at, so that the stream which the SDK then opens is one that says nothing for ever.
 */
export type Way = "sessions" | "refusing" | "example" | "json" | "stateless"

// The types of the SDK do not know `exactOptionalPropertyTypes`.
const connect = (server: McpServer, transport: StreamableHTTPServerTransport): Promise<void> =>
  server.connect(transport as Transport)

const sessions = (make: () => McpServer, way: Way): Life => {
  // The SDKs have the same interface of a store, with types of their own.
  const store = () => way === "example" ? new InMemoryEventStore() : Events.make() as EventStore
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: way === "json",
      ...(way === "json" ? {} : { eventStore: store(), retryInterval: 20 }),
      onsessioninitialized: (id) => void transports.set(id, transport)
    })
    transport.onclose = () => void transports.delete(transport.sessionId!)
    await connect(make(), transport)
    return transport
  }
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const id = request.headers["mcp-session-id"]
    const known = typeof id === "string" ? transports.get(id) : undefined
    if (known !== undefined) return known.handleRequest(request, response, body)
    if (id !== undefined && way !== "refusing") return refuse(response, 404, "Session not found")
    if (!isInitializeRequest(body)) return refuse(response, 400, "Bad Request: No valid session ID provided")
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

const stateless = (make: () => McpServer): Life => {
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== "POST") return refuse(response, 405, "Method not allowed.")
    const body = await bodyOf(request)
    const server = make()
    const transport = new StreamableHTTPServerTransport({})
    response.on("close", () => void server.close())
    await connect(server, transport)
    await transport.handleRequest(request, response, body)
  }
  return { listener: (request, response) => void serve(request, response) }
}

/** Streamable HTTP. */
export const streamable = (make: () => McpServer, way: Way): Promise<Host> =>
  host(() => way === "stateless" ? stateless(make) : sessions(make, way))

/** The pair of HTTP+SSE, and nothing else. */
export const sse = (make: () => McpServer): Promise<Host> =>
  host(() => {
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
      if (request.method !== "POST" || pathname !== "/messages") return refuse(response, 404, "Not found")
      if (transport === undefined) return refuse(response, 400, "No transport found for sessionId")
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
