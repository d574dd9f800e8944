/**
 * A faulty server over HTTP, in every revision.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http"
import type { Scenario } from "../Scenario.ts"
import { faultyTexts, type Json, parse } from "./faultyTexts.ts"
import {
  callCountOf,
  makeProtocolHandler,
  type ProtocolHandler,
  type Responder,
  type ToolCall
} from "./protocolHandler.ts"
import { Listener } from "./listener.ts"
import { exchangeKind, type FaultOf, type Faults, faultSchedule } from "./faults.ts"
import { type EventStream, Session } from "./session.ts"
import { SseResponse } from "./sseResponse.ts"
import type { FaultySocket } from "./faultySocket.ts"

const body = (request: IncomingMessage): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const chunks: Array<Uint8Array> = []
    const done = (): void => resume(Effect.succeed(new TextDecoder().decode(Buffer.concat(chunks))))
    request.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    request.once("end", done)
    // If the client disconnects early, the server reads the bytes that arrived.
    request.once("close", done)
    request.once("error", done)
  })

/** The bodies of the `Status` fault. */
const pages: Readonly<Record<FaultOf<"Status">["body"], (status: number) => string>> = {
  empty: () => "",
  html: (status) => `<!doctype html><title>${status}</title>\n`,
  error: (status) => jsonRpcError(`Status ${status}`),
  garbage: () => "\u0000{\"jsonrpc\""
}

const jsonRpcError = (message: string): string =>
  JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } })

/** A request with its response, and the faults of both. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly faults: Faults
  readonly message: Json | undefined
}

/** Implements `FaultyServer.HttpServer`. */
export class FaultyHttpServer {
  requestCount = 0
  streamCount = 0
  resumptionCount = 0
  sessionCount = 0
  restartCount = 0
  readonly calls: Array<ToolCall> = []
  readonly #listener: Listener
  readonly #scenario: Scenario
  readonly #nextFaults: ReturnType<typeof faultSchedule>
  readonly #handler: ProtocolHandler
  readonly #sessions = new Map<string, Session>()
  readonly #isHttpSse: boolean
  #lastId: unknown = undefined
  #closing = false
  #port = 0

  /** `guard` sees each request first, and returns whether it answered it. */
  constructor(
    scenario: Scenario,
    fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>,
    guard?: (request: IncomingMessage, response: ServerResponse) => boolean
  ) {
    this.#scenario = scenario
    this.#nextFaults = faultSchedule(scenario.faults)
    this.#handler = makeProtocolHandler(scenario, (call) => void this.calls.push(call))
    this.#isHttpSse = scenario.revision === "2024-11-05"
    this.#listener = new Listener((request, response) => {
      this.requestCount++
      response.on("error", () => {})
      if (guard?.(request, response) === true) return
      fork(
        Effect.catchCause(
          this.#handle(request, response),
          (cause) => Effect.logError("The faulty server failed", cause)
        )
      )
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/mcp`
  }

  get connectionCount(): number {
    return this.#listener.connectionCount
  }

  get openConnections(): number {
    return this.#listener.openConnections
  }

  readonly callCount = (key: string): number => callCountOf(this.calls, key)

  readonly closeConnections = (how: "reset" | "end"): Effect.Effect<void> =>
    Effect.sync(() => this.#listener.closeConnections(how === "reset"))

  readonly start: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(this.#listener.listen(this.#port), (port) => {
      this.#port = port
    })
  )

  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.#sessions.clear()
    return this.#listener.close
  })

  readonly restart: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#closing) return Effect.void
    this.#closing = true
    this.restartCount++
    return Effect.ensuring(Effect.andThen(this.stop, this.start), Effect.sync(() => void (this.#closing = false)))
  })

  readonly forgetSessions: Effect.Effect<void> = Effect.sync(() => this.#sessions.clear())

  readonly notify = (method: string, params: object = {}): Effect.Effect<void> =>
    Effect.sync(() => {
      const text = JSON.stringify({ jsonrpc: "2.0", method, params })
      for (const session of new Set(this.#sessions.values())) session.standalone.add(text)
    })

  #handle(request: IncomingMessage, response: ServerResponse): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const text = yield* body(request)
      const message = parse(text)
      const kind = request.method === "GET" ? "stream" : request.method === "DELETE" ? "delete" : exchangeKind(message)
      const faults = this.#nextFaults(kind)
      const exchange = { request, response, faults, message }
      const delay = faults.get("Delay")
      if (delay !== undefined) yield* Effect.sleep(delay.ms)
      if (faults.has("StopReading") || faults.get("Stall")?.after === "request") return
      const socket = request.socket as unknown as FaultySocket
      socket.setFaults({ cut: faults.get("Cut"), drip: faults.has("Drip") })
      if (faults.has("ForgetSessions")) yield* this.forgetSessions
      const status = faults.get("Status")
      const restart = faults.get("Restart")
      if (status?.handled === true || restart?.handled === true) yield* this.#carryOut(exchange)
      if (restart !== undefined) return yield* this.restart
      if (status !== undefined) {
        const after = status.retryAfterSeconds === undefined ? {} : { "retry-after": String(status.retryAfterSeconds) }
        const type = status.body === "html" ? "text/html" : "application/json"
        const text = pages[status.body](status.status)
        return yield* this.#send(exchange, status.status, text, { "content-type": type, ...after })
      }
      const redirect = faults.get("Redirect")
      if (redirect !== undefined && (redirect.to === "loop" || !String(request.url).includes("again"))) {
        const to = redirect.to === "closed port" ? "http://127.0.0.1:9/mcp" : `${request.url}?again`
        return yield* this.#send(exchange, redirect.status, "", { location: to })
      }
      yield* this.#route(exchange)
    })
  }

  /** Carries out a tool call without responding. */
  #carryOut({ message }: Exchange): Effect.Effect<void> {
    if (message?.["method"] !== "tools/call") return Effect.void
    const responder: Responder = { send: () => {}, request: () => Effect.never }
    return Effect.raceFirst(Effect.asVoid(this.#handler.respond(message, responder)), Effect.void)
  }

  #route(exchange: Exchange): Effect.Effect<void> {
    const { message, request } = exchange
    const post = request.method === "POST"
    if (this.#isHttpSse && (!post || String(request.url).startsWith("/message"))) return this.#httpSse(exchange)
    if (post && message === undefined) return this.#refuse(exchange, 400, "The body is not JSON")
    if (this.#handler.isStateless) return post ? this.#stateless(exchange) : this.#refuse(exchange, 405, "POST only")
    if (this.#isHttpSse) return this.#refuse(exchange, 405, "GET only")
    return this.#inSession(exchange)
  }

  #inSession(exchange: Exchange): Effect.Effect<void> {
    const { message, request } = exchange
    const session = this.#sessionOf(request, message)
    if (session === undefined) {
      return this.#refuse(exchange, request.headers["mcp-session-id"] === undefined ? 400 : 404, "No such session")
    }
    if (request.method === "DELETE") {
      this.#sessions.delete(session.id)
      return this.#send(exchange, 200, "")
    }
    if (request.method === "GET") return this.#openStream(exchange, session)
    if (message !== undefined && message["method"] === undefined) session.requests.complete(message)
    if (message === undefined || message["id"] === undefined || message["method"] === undefined) {
      return this.#send(exchange, 202, "")
    }
    if (this.#scenario.responses === "json") return this.#asJson(exchange, session)
    const stream = session.stream()
    stream.attach(this.#sse(exchange, session))
    if (this.#scenario.resumable === "primed") stream.add("")
    return this.#respond(exchange, message, session.requests.responder((text) => stream.add(text)), stream)
  }

  #sessionOf(request: IncomingMessage, message: Json | undefined): Session | undefined {
    if (message?.["method"] === "initialize") return this.#openSession()
    if (this.#scenario.sessions === false) return this.#sessions.values().next().value ?? this.#openSession()
    return this.#sessions.get(String(request.headers["mcp-session-id"]))
  }

  #openSession(): Session {
    const session = new Session(`faulty-${++this.sessionCount}`, this.#scenario.resumable !== false)
    this.#sessions.set(session.id, session)
    return session
  }

  #openStream(exchange: Exchange, session: Session): Effect.Effect<void> {
    this.streamCount++
    const last = exchange.request.headers["last-event-id"]
    if (last !== undefined) this.resumptionCount++
    if (this.#scenario.standaloneStream === false && last === undefined) {
      return this.#refuse(exchange, 405, "The server has no standalone stream")
    }
    const found = last === undefined ? [session.standalone, undefined] as const : session.find(String(last))
    if (found === undefined || this.#scenario.resumable === false && last !== undefined) {
      return this.#refuse(exchange, 400, "No such event")
    }
    found[0].attach(this.#sse(exchange, session), found[1])
    if (this.#scenario.resumable === "primed" && !found[0].ended) found[0].add("")
    return Effect.void
  }

  /** HTTP+SSE (2024-11-05): one stream for all messages of the server, and a POST for each message of the client. */
  #httpSse(exchange: Exchange): Effect.Effect<void> {
    const { message, request } = exchange
    if (request.method !== "POST") {
      this.streamCount++
      const session = this.#openSession()
      session.standalone.attach(this.#sse(exchange, session))
      session.standalone.add(`/message?session=${session.id}`, "endpoint")
      return Effect.void
    }
    const session = this.#sessions.get(/session=([^&]*)/.exec(String(request.url))?.[1] ?? "")
    if (session === undefined) return this.#refuse(exchange, 404, "No such session")
    if (message !== undefined && message["method"] === undefined) session.requests.complete(message)
    const add = (text: string) => session.standalone.add(text)
    const responding = message === undefined || message["id"] === undefined || message["method"] === undefined
      ? Effect.void
      : this.#respond(exchange, message, session.requests.responder(add), { add, end: () => {} })
    return Effect.andThen(this.#send(exchange, 202, ""), responding)
  }

  /** 2026-07-28: each request ends with its response. */
  #stateless(exchange: Exchange): Effect.Effect<void> {
    const { message, response } = exchange
    if (message === undefined || message["id"] === undefined) return this.#send(exchange, 202, "")
    const known = message["method"] !== "initialize"
    if (this.#scenario.responses === "json" || !known) return this.#asJson(exchange, undefined, known ? 200 : 404)
    const sse = this.#sse(exchange, undefined)
    const stream = { add: (text: string) => sse.send({ id: undefined, text }), end: () => sse.end() }
    const responder: Responder = { send: (sent) => stream.add(JSON.stringify(sent)), request: () => Effect.never }
    return Effect.raceFirst(
      this.#respond(exchange, message, responder, stream),
      Effect.callback<void>((resume) => {
        const closed = (): void => resume(Effect.void)
        response.once("close", closed)
        return Effect.sync(() => response.off("close", closed))
      })
    )
  }

  #respond(
    { faults }: Exchange,
    message: Json,
    responder: Responder,
    stream: Pick<EventStream, "add" | "end">
  ): Effect.Effect<void> {
    const otherId = this.#lastId
    this.#lastId = message["id"]
    return Effect.map(this.#handler.respond(message, responder), (response) => {
      for (const text of faultyTexts(response, faults, { request: message, otherId })) stream.add(text)
      stream.end()
    })
  }

  #asJson(exchange: Exchange, session: Session | undefined, status = 200): Effect.Effect<void> {
    const { faults, message } = exchange
    const texts: Array<string> = []
    const responder: Responder = {
      send: () => {},
      request: () => Effect.succeed({ error: { code: -32000, message: "There is no stream for a request" } })
    }
    const stream = {
      add: (text: string) => void texts.push(text),
      end: () => {
        if (faults.has("Reverse")) texts.reverse()
        const sent = faults.has("Duplicate") ? [...texts, ...texts] : texts
        const [first = ""] = sent
        const text = sent.length === 1 ? first : `[${sent.join(",")}]`
        const { bom, newline } = faults.get("Formatting") ?? { bom: false, newline: "" }
        this.#head(exchange, status, session, "application/json")
        if (faults.get("Stall") !== undefined) return exchange.response.flushHeaders()
        exchange.response.end(`${bom ? "\ufeff" : ""}${newline}${text}${newline}`)
      }
    }
    return this.#respond(exchange, message ?? {}, responder, stream)
  }

  #sse(exchange: Exchange, session: Session | undefined): SseResponse {
    this.#head(exchange, 200, session, "text/event-stream")
    return new SseResponse(exchange.response, exchange.faults)
  }

  #head({ faults, response }: Exchange, status: number, session: Session | undefined, type: string): void {
    const named = faults.get("ContentType")?.type ?? type
    const headers: OutgoingHttpHeaders = named === "" ? {} : { "content-type": named }
    if (session !== undefined && this.#scenario.sessions !== false && !this.#isHttpSse) {
      headers["mcp-session-id"] = session.id
    }
    if (session !== undefined && faults.has("NewSessionId")) {
      const name = `${session.id}-${this.requestCount}`
      this.#sessions.set(name, session)
      headers["mcp-session-id"] = name
    }
    response.writeHead(status, headers)
  }

  #send({ response }: Exchange, status: number, text: string, headers: OutgoingHttpHeaders = {}): Effect.Effect<void> {
    return Effect.sync(() => {
      response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(text) })
      response.end(text)
    })
  }

  #refuse(exchange: Exchange, status: number, message: string): Effect.Effect<void> {
    return this.#send(exchange, status, jsonRpcError(message), { "content-type": "application/json" })
  }
}
