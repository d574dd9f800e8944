/** A server that says over HTTP what a test has it say, and a client's side of a connection to it, bare. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End, Receiver } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import * as Http from "../../../src/Http.ts"
import { bodyOf, http } from "./rawServer.ts"

export type Json = any

/** One request as it came, and how it is answered. */
export class Hit {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly json: Json
  readonly response: ServerResponse
  /** The client has closed the exchange before it was answered. */
  left = false

  constructor(method: string, path: string, headers: IncomingHttpHeaders, body: string, response: ServerResponse) {
    this.method = method
    this.path = path
    this.headers = headers
    this.body = body
    this.json = body === "" ? undefined : JSON.parse(body)
    this.response = response
    response.once("close", () => {
      this.left = !response.writableFinished
    })
  }

  reply(status: number, body = "", headers: Record<string, string> = {}): void {
    this.response.writeHead(status, { "content-length": String(Buffer.byteLength(body)), ...headers }).end(body)
  }

  /** Answers with JSON. */
  say(value: unknown, headers: Record<string, string> = {}, status = 200): void {
    this.reply(status, JSON.stringify(value), { "content-type": "application/json; charset=utf-8", ...headers })
  }

  /** Answers the request with a result. */
  result(result: Json = {}, headers: Record<string, string> = {}): void {
    this.say({ jsonrpc: "2.0", id: this.json.id, result }, headers)
  }

  /** Begins a stream, and says what is given. */
  stream(text = "", headers: Record<string, string> = {}): this {
    this.response.writeHead(200, { "content-type": "text/event-stream", ...headers })
    this.response.flushHeaders()
    return this.write(text)
  }

  write(text: string): this {
    if (text !== "") this.response.write(text)
    return this
  }

  /** Ends a stream without a fault. */
  end(text = ""): void {
    this.response.end(text)
  }

  /** Breaks the connection. */
  cut(): void {
    this.response.socket?.destroy()
  }
}

/** An event of a stream. */
export const event = (message: unknown, id?: string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`

export const answer = (id: JsonRpc.Id, result: Json = {}): Json => ({ jsonrpc: "2.0", id, result })
export const note = (n: number): Json => ({ jsonrpc: "2.0", method: "notifications/test", params: { n } })

export interface Served {
  readonly url: URL
  readonly hits: ReadonlyArray<Hit>
  /** Those of one verb. */
  readonly by: (method: string) => ReadonlyArray<Hit>
  readonly close: () => void
}

/** A server that does what `script` does. */
export const served = (script: (hit: Hit, count: number) => void): Effect.Effect<Served, never, Scope.Scope> => {
  const hits: Array<Hit> = []
  return Effect.map(
    http((request, response) => {
      void bodyOf(request).then((body) => {
        const hit = new Hit(request.method!, request.url!, request.headers, body, response)
        hits.push(hit)
        return script(hit, hits.length)
      }, () => {})
    }),
    ({ server, url }) => ({
      url,
      hits,
      by: (method) => hits.filter((hit) => hit.method === method),
      close: () => {
        server.close()
        server.closeAllConnections()
      }
    })
  )
}

/** Takes a session, accepts what is accepted, and has no stream of its own; `rest` answers everything else. */
export const session = (
  rest: (hit: Hit) => void,
  { revision = "2025-11-25", id = "s-1" as string | null, listen = (hit: Hit) => hit.reply(405) } = {}
) =>
(hit: Hit): void => {
  if (hit.method === "GET" && hit.headers["last-event-id"] === undefined) return listen(hit)
  if (hit.method === "DELETE") return hit.reply(200)
  if (hit.method === "POST" && hit.json.method === "initialize") {
    return hit.result(
      { protocolVersion: revision, capabilities: {}, serverInfo: { name: "scripted", version: "1" } },
      id === null ? {} : { "mcp-session-id": id }
    )
  }
  if (hit.method === "POST" && hit.json.method === "notifications/initialized") return hit.reply(202)
  return rest(hit)
}

/** What a connection told. */
export class Told implements Receiver {
  readonly messages: Array<Json> = []
  readonly refusals: Array<readonly [JsonRpc.Id, TransportError]> = []
  readonly ends: Array<End> = []
  readonly gaps: Array<TransportError | undefined> = []

  message(message: JsonRpc.Inbound): void {
    this.messages.push(message)
  }
  refused(id: JsonRpc.Id, error: TransportError): void {
    this.refusals.push([id, error])
  }
  gap(error: TransportError | undefined): void {
    this.gaps.push(error)
  }
  end(end: End): void {
    this.ends.push(end)
  }
  answer(id: JsonRpc.Id): Json {
    return this.messages.find((message) => message.id === id && message._tag !== "Request")
  }
  error(id: JsonRpc.Id): TransportError | undefined {
    return this.refusals.find(([refused]) => refused === id)?.[1]
  }
}

export interface Side {
  readonly connection: Connection
  readonly told: Told
  readonly request: (id: JsonRpc.Id, method: string, params?: Json) => void
  readonly notify: (method: string, params?: Json) => void
}

/** The params of a request of the request era. */
export const modern = (params: Json = {}): Json => ({
  ...params,
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {}
  }
})

/** Connects, and sends nothing. Nothing waits for the end of it: on the test's clock no grace ends by itself. */
export const connected = (options: Http.Options): Effect.Effect<Side, TransportError, Scope.Scope> =>
  Effect.map(Http.transport({ closeTimeout: 0, ...options }).connect, (connection) => {
    const told = new Told()
    connection.open(told)
    return {
      connection,
      told,
      request: (id, method, params) => void connection.send({ _tag: "Request", id, method, params }),
      notify: (method, params) => void connection.send({ _tag: "Notification", method, params })
    }
  })

/** Waits for what happens on sockets: up to 10 seconds, or as many turns of the event loop as are given. */
export const until = (holds: () => boolean, turns = Infinity): Effect.Effect<void> => {
  const begun = performance.now()
  const wait = (left: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (holds()) return Effect.void
      if (left === 0 || performance.now() - begun > 10_000) return Effect.die(new Error(`It never holds: ${holds}`))
      return Effect.andThen(
        Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
        wait(left - 1)
      )
    })
  return wait(turns)
}

/** Waits as long as something on a socket may take to come, for what must not. */
export const settle: Effect.Effect<void> = Effect.suspend(() => {
  let turns = 200
  return until(() => turns-- === 0)
})

/** Opens a session, up to the end of its handshake. */
export const entered = (options: Http.Options) =>
  Effect.gen(function*() {
    const side = yield* connected(options)
    side.request("init", "initialize", { protocolVersion: "2025-11-25", capabilities: {} })
    yield* until(() => side.told.answer("init") !== undefined)
    side.notify("notifications/initialized")
    return side
  })
