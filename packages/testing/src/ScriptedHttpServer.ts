/**
 * A server over HTTP whose responses a test writes, for tests of HTTP itself: statuses, headers, events, connections.
 *
 * Use {@link FaultyServer} for a server that implements the protocol and misbehaves at times, `ScriptedServer` for
 * messages without HTTP, and `RawServer` for bytes that are not valid HTTP.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import * as RawServer from "./RawServer.ts"

/** Headers of a response. */
export interface Headers {
  readonly [name: string]: string
}

/**
 * A request that the server received, and ways to respond to it. `Body` is the type that the test expects of its JSON
 * body; it is not checked.
 */
export class Exchange<Body = unknown> {
  /** The HTTP method. */
  readonly method: string
  /** The path of the request, with its query. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body as text. */
  readonly body: string
  /** The body parsed as JSON; `undefined` if there is none. */
  readonly json: Body
  /** The response of `node:http`. */
  readonly response: ServerResponse
  #closedByClient = false

  /** Throws a `SyntaxError` if the body is not JSON. */
  constructor(request: IncomingMessage, body: string, response: ServerResponse) {
    this.method = String(request.method)
    this.path = String(request.url)
    this.headers = request.headers
    this.body = body
    this.json = body === "" ? undefined : JSON.parse(body)
    this.response = response
    response.once("close", () => {
      this.#closedByClient = !response.writableFinished
    })
  }

  /** Whether the client closed the connection before the response was complete. */
  get closedByClient(): boolean {
    return this.#closedByClient
  }

  /** Responds with a text. */
  respond(status: number, body = "", headers: Headers = {}): void {
    this.response.writeHead(status, { "content-length": String(Buffer.byteLength(body)), ...headers }).end(body)
  }

  /** Responds with a value as JSON. Default status: 200. */
  respondJson(value: unknown, headers: Headers = {}, status = 200): void {
    this.respond(status, JSON.stringify(value), { "content-type": "application/json; charset=utf-8", ...headers })
  }

  /** Responds to the JSON-RPC request with a result. */
  respondResult(result: unknown = {}, headers: Headers = {}): void {
    const { id } = JSON.parse(this.body)
    this.respondJson({ jsonrpc: "2.0", id, result }, headers)
  }

  /** Opens a stream of events with status 200, and writes the text. */
  openStream(text = "", headers: Headers = {}): this {
    this.response.writeHead(200, { "content-type": "text/event-stream", ...headers })
    this.response.flushHeaders()
    return this.write(text)
  }

  /** Writes a text to an open stream. */
  write(text: string): this {
    if (text !== "") this.response.write(text)
    return this
  }

  /** Ends a stream in order. */
  end(text = ""): void {
    this.response.end(text)
  }

  /** Destroys the connection. */
  cut(): void {
    this.response.socket?.destroy()
  }
}

/** Responds to one request, immediately or later. */
export type Script<Body = unknown> = (exchange: Exchange<Body>, count: number) => void

/** A server over HTTP, and the requests that it received. */
export interface ScriptedHttpServer<Body = unknown> {
  /** The URL of its endpoint. */
  readonly url: URL
  /** The requests that it received, in order. */
  readonly exchanges: ReadonlyArray<Exchange<Body>>
  /** The requests with one HTTP method, in order. */
  readonly byMethod: (method: string) => ReadonlyArray<Exchange<Body>>
  /** Closes the port and all connections before the scope does. */
  readonly close: () => void
}

/**
 * Starts a server on a free port of 127.0.0.1 that calls the script with each request, once its body was read, and with
 * the number of requests so far. The scope stops it. Dies if no port can be opened.
 *
 * @example
 * const server = yield* ScriptedHttpServer.make((exchange) => exchange.respond(503, "", { "retry-after": "1" }))
 * const error = yield* Effect.flip(Client.make(Http.transport({ url: server.url })))
 */
export const make = <Body = unknown>(
  script: Script<Body>
): Effect.Effect<ScriptedHttpServer<Body>, never, Scope.Scope> => {
  const exchanges: Array<Exchange<Body>> = []
  return Effect.map(
    RawServer.http((request, response) => {
      void RawServer.readBody(request).then((body) => {
        const exchange = new Exchange<Body>(request, body, response)
        exchanges.push(exchange)
        return script(exchange, exchanges.length)
      }, () => {})
    }),
    ({ server, url }) => ({
      url,
      exchanges,
      byMethod: (method) => exchanges.filter((exchange) => exchange.method === method),
      close: () => {
        server.close()
        server.closeAllConnections()
      }
    })
  )
}

/** Options of a scripted session. */
export interface SessionOptions<Body = unknown> {
  /** The revision that the server negotiates. Default: `2025-11-25`. */
  readonly revision?: string | undefined
  /** The session id; `null` for none. Default: `s-1`. */
  readonly id?: string | null | undefined
  /** Responds to a GET that opens the standalone stream. Default: 405. */
  readonly standaloneStream?: ((exchange: Exchange<Body>) => void) | undefined
}

/**
 * A script that answers the handshake of a session, accepts its DELETE, and passes every other request to `script`,
 * including a GET that resumes a stream.
 *
 * @example
 * const server = yield* ScriptedHttpServer.make(
 *   ScriptedHttpServer.session((exchange) => exchange.respondResult({ tools: [] }))
 * )
 */
export const session = <Body = unknown>(
  script: (exchange: Exchange<Body>) => void,
  options: SessionOptions<Body> = {}
) =>
(exchange: Exchange<Body>): void => {
  const { id = "s-1", revision = "2025-11-25", standaloneStream = () => exchange.respond(405) } = options
  if (exchange.method === "GET" && exchange.headers["last-event-id"] === undefined) return standaloneStream(exchange)
  if (exchange.method === "DELETE") return exchange.respond(200)
  const method = exchange.method === "POST" ? JSON.parse(exchange.body).method : undefined
  if (method === "initialize") {
    return exchange.respondResult(
      { protocolVersion: revision, capabilities: {}, serverInfo: { name: "scripted", version: "1" } },
      id === null ? {} : { "mcp-session-id": id }
    )
  }
  if (method === "notifications/initialized") return exchange.respond(202)
  return script(exchange)
}

/**
 * The text of an event with a message as its data, and with an id if one is given.
 *
 * @example
 * exchange.openStream(ScriptedHttpServer.event({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }, "e1"))
 */
export const event = (message: unknown, id?: string | undefined): string =>
  `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`
