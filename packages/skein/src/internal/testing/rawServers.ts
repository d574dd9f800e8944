/**
 * Servers over HTTP and TCP whose responses a test writes.
 */
import * as CoreRaw from "@skein/testing/RawServer"
import * as Core from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import type * as Http from "node:http"
import type * as Net from "node:net"
import { open, type Opened } from "./opened.ts"

/** Headers of a response. */
export interface ResponseHeaders {
  readonly [name: string]: string
}

/** A request that a server received, and ways to respond to it. `Body` is the type that the test expects of its JSON body. */
export interface Exchange<Body = unknown> {
  /** The HTTP method. */
  readonly method: string
  /** The path of the request, with its query. */
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  /** The body as text. */
  readonly body: string
  /** The body parsed as JSON; `undefined` if there is none. It is not checked. */
  readonly json: Body
  /** The response of `node:http`. */
  readonly response: Http.ServerResponse
  /** Whether the client closed the connection before the response was complete. */
  readonly closedByClient: boolean
  /** Responds with a text. */
  respond(status: number, body?: string, headers?: ResponseHeaders): void
  /** Responds with a value as JSON, with the status 200 by default. */
  respondJson(value: unknown, headers?: ResponseHeaders, status?: number): void
  /** Responds to the JSON-RPC request with a result. */
  respondResult(result?: unknown, headers?: ResponseHeaders): void
  /** Opens a stream of events with status 200, and writes the text. */
  openStream(text?: string, headers?: ResponseHeaders): this
  /** Writes a text to an open stream. */
  write(text: string): this
  /** Ends a stream in order. */
  end(text?: string): void
  /** Destroys the connection. */
  cut(): void
}

/** A server over HTTP, and the requests that it received. */
export interface ScriptedHttpServer<Body = unknown> extends Opened {
  /** The URL of its endpoint. */
  readonly url: URL
  /** The requests that it received, in order. */
  readonly exchanges: ReadonlyArray<Exchange<Body>>
  /** The requests with one HTTP method, in order. */
  readonly byMethod: (method: string) => ReadonlyArray<Exchange<Body>>
}

/** Options of a scripted session. */
export interface ScriptedSessionOptions<Body = unknown> {
  /** The revision that the server negotiates: `2025-11-25` by default. */
  readonly revision?: string | undefined
  /** The session id; `null` for none: `s-1` by default. */
  readonly id?: string | null | undefined
  /** Responds to a GET that opens a stream of its own: 405 by default. */
  readonly standaloneStream?: ((exchange: Exchange<Body>) => void) | undefined
}

/** Starts servers over HTTP, and makes their scripts. */
export const ScriptedHttpServer: {
  /**
   * Starts a server on a free port of 127.0.0.1 that calls the script with each request, and with the number of requests so far.
   *
   * @example
   * await using server = await ScriptedHttpServer.make((exchange) => exchange.respond(503, "", { "retry-after": "1" }))
   * await expect(AsyncClient.connect(server.url)).rejects.toThrow(ClientError)
   */
  readonly make: <Body = unknown>(
    script: (exchange: Exchange<Body>, count: number) => void
  ) => Promise<ScriptedHttpServer<Body>>
  /** A script that answers the handshake of a session and its DELETE, and passes every other request to `script`. */
  readonly session: <Body = unknown>(
    script: (exchange: Exchange<Body>) => void,
    options?: ScriptedSessionOptions<Body>
  ) => (exchange: Exchange<Body>) => void
  /** The text of an event with a message as its data, and with an id if one is given. */
  readonly event: (message: unknown, id?: string) => string
} = {
  make: <Body>(script: (exchange: Exchange<Body>, count: number) => void) =>
    open(Core.make<Body>(script), ({ byMethod, exchanges, url }) => ({ byMethod, exchanges, url })) as Promise<
      ScriptedHttpServer<Body>
    >,
  session: Core.session as never,
  event: Core.event
}

/** A server of plain Node, and the connections that it accepted. */
export interface RawServer<S extends Net.Server = Net.Server> extends Opened {
  /** The URL of the port, with the path `/mcp`. */
  readonly url: URL
  /** The server of Node. */
  readonly server: S
  /** The connections that were accepted, in order, including those that are closed. */
  readonly sockets: ReadonlyArray<Net.Socket>
  /** Resolves when every connection that was accepted so far is closed. */
  readonly closed: () => Promise<void>
}

const describeRaw = <S extends Net.Server>({ closed, server, sockets, url }: CoreRaw.RawServer<S>) => ({
  server,
  sockets,
  url,
  closed: () => Effect.runPromise(closed)
})

/** Servers of plain Node on a free port of 127.0.0.1, for tests that write every byte of a response. */
export const RawServer: {
  /**
   * Starts a server of `node:http`, without a keep-alive timeout.
   *
   * @example
   * await using server = await RawServer.http((request, response) => response.writeHead(503).end())
   */
  readonly http: (listener: Http.RequestListener) => Promise<RawServer<Http.Server>>
  /** Starts a server of `node:net`, whose listener writes bytes. */
  readonly tcp: (listener: (socket: Net.Socket) => void) => Promise<RawServer>
  /** Reads the body of a request as UTF-8. Rejects if the client closes the connection before its end. */
  readonly readBody: (request: Http.IncomingMessage) => Promise<string>
} = {
  http: (listener) => open(CoreRaw.http(listener), (server) => describeRaw(server)),
  tcp: (listener) => open(CoreRaw.tcp(listener), (server) => describeRaw(server)),
  readBody: CoreRaw.readBody
}
