/**
 * A rude server over HTTP, in every revision.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http"
import type { Script } from "../Script.ts"
import { garble, type Json } from "./garble.ts"
import { type Call, Mind, type Voice } from "./mind.ts"
import { Endpoint } from "./nodeEndpoint.ts"
import { type Faults, kindOf, Rules } from "./rules.ts"
import { type Log, Session } from "./sessions.ts"
import { Sse } from "./sse.ts"
import type { Tap } from "./tap.ts"

/** What reached the server. */
export interface Heard {
  requests: number
  streams: number
  resumed: number
  sessions: number
  restarts: number
  readonly calls: Array<Call>
}

const parse = (text: string): Json | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? value as Json : undefined
  } catch {
    return undefined
  }
}

const body = (request: IncomingMessage): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const chunks: Array<Uint8Array> = []
    const over = (): void => resume(Effect.succeed(new TextDecoder().decode(Buffer.concat(chunks))))
    request.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    request.once("end", over)
    // A client that leaves in the middle is heard as far as it got.
    request.once("close", over)
    request.once("error", over)
  })

const page = (kind: "empty" | "html" | "error" | "garbage", status: number): string => {
  switch (kind) {
    case "html":
      return `<!doctype html><title>${status}</title>\n`
    case "error":
      return JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message: `Rude: ${status}` } })
    case "garbage":
      return "\u0000{\"jsonrpc\""
    case "empty":
      return ""
  }
}

/** One exchange: a request with its response, and what goes wrong with it. */
interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly faults: Faults
  readonly message: Json | undefined
}

/** See the module's text. */
export class RudeEndpoint {
  readonly heard: Heard = { requests: 0, streams: 0, resumed: 0, sessions: 0, restarts: 0, calls: [] }
  readonly endpoint: Endpoint
  readonly #script: Script
  readonly #rules: Rules
  readonly #mind: Mind
  readonly #sessions = new Map<string, Session>()
  readonly #old: boolean
  #lastId: unknown = undefined
  #closing = false
  #port = 0

  constructor(script: Script, fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>) {
    this.#script = script
    this.#rules = new Rules(script.faults)
    this.#mind = new Mind(script, (call) => void this.heard.calls.push(call))
    this.#old = script.revision === "2024-11-05"
    this.endpoint = new Endpoint((request, response) => {
      this.heard.requests++
      response.on("error", () => {})
      fork(
        Effect.catchCause(this.#take(request, response), (cause) => Effect.logError("The rude server failed", cause))
      )
    })
  }

  get port(): number {
    return this.#port
  }

  readonly start: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(this.endpoint.listen(this.#port), (port) => {
      this.#port = port
    })
  )

  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.#sessions.clear()
    return this.endpoint.close
  })

  readonly restart: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#closing) return Effect.void
    this.#closing = true
    this.heard.restarts++
    return Effect.ensuring(Effect.andThen(this.stop, this.start), Effect.sync(() => void (this.#closing = false)))
  })

  forget(): void {
    this.#sessions.clear()
  }

  /** Says something on the general stream of each session. */
  announce(message: Json): void {
    for (const session of new Set(this.#sessions.values())) session.general.add(JSON.stringify(message))
  }

  #take(request: IncomingMessage, response: ServerResponse): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const text = yield* body(request)
      const message = parse(text)
      const kind = request.method === "GET" ? "stream" : request.method === "DELETE" ? "end" : kindOf(message)
      const faults = this.#rules.next(kind)
      const exchange = { request, response, faults, message }
      const delay = faults.get("Delay")
      if (delay !== undefined) yield* Effect.sleep(delay.ms)
      if (faults.has("Deaf") || faults.get("Silence")?.after === "request") return
      const cut = faults.get("Cut")
      const tap = request.socket as unknown as Tap
      if (cut !== undefined || faults.has("Drip")) tap.plan({ cut, drip: faults.has("Drip") })
      else tap.plan({ drip: false })
      if (faults.has("Forget")) this.forget()
      const status = faults.get("Status")
      const restart = faults.get("Restart")
      if (status?.done === true || restart?.done === true) yield* this.#silently(exchange)
      if (restart !== undefined) return yield* this.restart
      if (status !== undefined) {
        const after = status.retryAfter === undefined ? {} : { "retry-after": String(status.retryAfter) }
        const type = status.body === "html" ? "text/html" : "application/json"
        const text = page(status.body, status.status)
        return yield* this.#whole(exchange, status.status, text, { "content-type": type, ...after })
      }
      const redirect = faults.get("Redirect")
      if (redirect !== undefined && (redirect.to === "loop" || !String(request.url).includes("again"))) {
        const to = redirect.to === "nobody" ? "http://127.0.0.1:9/mcp" : `${request.url}?again`
        return yield* this.#whole(exchange, redirect.status, "", { location: to })
      }
      yield* this.#route(exchange)
    })
  }

  /** Handles a request of which nobody hears. */
  #silently({ message }: Exchange): Effect.Effect<void> {
    if (message?.["method"] !== "tools/call") return Effect.void
    const voice: Voice = { say: () => {}, ask: () => Effect.never }
    return Effect.raceFirst(Effect.asVoid(this.#mind.answer(message, voice)), Effect.void)
  }

  #route(exchange: Exchange): Effect.Effect<void> {
    const { message, request } = exchange
    const post = request.method === "POST"
    if (this.#old && (!post || String(request.url).startsWith("/message"))) return this.#pair(exchange)
    if (post && message === undefined) return this.#no(exchange, 400, "That is no JSON")
    if (this.#mind.modern) return post ? this.#alone(exchange) : this.#no(exchange, 405, "POST only")
    if (this.#old) return this.#no(exchange, 405, "GET only")
    return this.#inSession(exchange)
  }

  #inSession(exchange: Exchange): Effect.Effect<void> {
    const { message, request } = exchange
    const session = this.#sessionOf(request, message)
    if (session === undefined) {
      return this.#no(exchange, request.headers["mcp-session-id"] === undefined ? 400 : 404, "No such session")
    }
    if (request.method === "DELETE") {
      this.#sessions.delete(session.id)
      return this.#whole(exchange, 200, "")
    }
    if (request.method === "GET") return this.#listen(exchange, session)
    if (message !== undefined && message["method"] === undefined) session.settle(message)
    if (message === undefined || message["id"] === undefined || message["method"] === undefined) {
      return this.#whole(exchange, 202, "")
    }
    if (this.#script.answers === "json") return this.#asJson(exchange, session)
    const log = session.stream()
    const sse = this.#stream(exchange, session)
    log.attach(sse)
    if (this.#script.resumable === "primed") log.add("")
    return this.#answer(exchange, message, {
      say: (said) => log.add(JSON.stringify(said)),
      ask: (method, params) => session.ask(log, method, params)
    }, log)
  }

  #sessionOf(request: IncomingMessage, message: Json | undefined): Session | undefined {
    if (message?.["method"] === "initialize") return this.#open()
    if (this.#script.sessions === false) return this.#sessions.values().next().value ?? this.#open()
    return this.#sessions.get(String(request.headers["mcp-session-id"]))
  }

  #open(): Session {
    const session = new Session(`rude-${++this.heard.sessions}`, this.#script.resumable !== false)
    this.#sessions.set(session.id, session)
    return session
  }

  #listen(exchange: Exchange, session: Session): Effect.Effect<void> {
    this.heard.streams++
    const last = exchange.request.headers["last-event-id"]
    if (last !== undefined) this.heard.resumed++
    if (this.#script.listens === false && last === undefined) return this.#no(exchange, 405, "There is no stream here")
    const found = last === undefined ? [session.general, undefined] as const : session.find(String(last))
    if (found === undefined || this.#script.resumable === false && last !== undefined) {
      return this.#no(exchange, 400, "No such event")
    }
    const sse = this.#stream(exchange, session)
    found[0].attach(sse, found[1])
    if (this.#script.resumable === "primed" && !found[0].over) found[0].add("")
    return Effect.void
  }

  /** HTTP+SSE: one stream for everything, and a POST for each message. */
  #pair(exchange: Exchange): Effect.Effect<void> {
    const { message, request } = exchange
    if (request.method !== "POST") {
      this.heard.streams++
      const session = this.#open()
      session.general.attach(this.#stream(exchange, session))
      session.general.add(`/message?session=${session.id}`, "endpoint")
      return Effect.void
    }
    const session = this.#sessions.get(/session=([^&]*)/.exec(String(request.url))?.[1] ?? "")
    if (session === undefined) return this.#no(exchange, 404, "No such session")
    if (message !== undefined && message["method"] === undefined) session.settle(message)
    const answered = message === undefined || message["id"] === undefined || message["method"] === undefined
      ? Effect.void
      : this.#answer(exchange, message, {
        say: (said) => session.general.add(JSON.stringify(said)),
        ask: (method, params) => session.ask(session.general, method, params)
      }, { add: (text) => session.general.add(text), end: () => {} })
    return Effect.andThen(this.#whole(exchange, 202, ""), answered)
  }

  /** The request era: the request ends with its response. */
  #alone(exchange: Exchange): Effect.Effect<void> {
    const { message, response } = exchange
    if (message === undefined || message["id"] === undefined) return this.#whole(exchange, 202, "")
    const known = message["method"] !== "initialize"
    if (this.#script.answers === "json" || !known) return this.#asJson(exchange, undefined, known ? 200 : 404)
    const sse = this.#stream(exchange, undefined)
    const log = { add: (text: string) => sse.send({ id: undefined, text }), end: () => sse.end() }
    const voice: Voice = { say: (said) => log.add(JSON.stringify(said)), ask: () => Effect.never }
    return Effect.raceFirst(
      this.#answer(exchange, message, voice, log),
      Effect.callback<void>((resume) => {
        const gone = (): void => resume(Effect.void)
        response.once("close", gone)
        return Effect.sync(() => response.off("close", gone))
      })
    )
  }

  #answer(
    { faults }: Exchange,
    message: Json,
    voice: Voice,
    log: Pick<Log, "add" | "end">
  ): Effect.Effect<void> {
    const other = this.#lastId
    this.#lastId = message["id"]
    return Effect.map(this.#mind.answer(message, voice), (answer) => {
      for (const text of garble(answer, faults, { other, token: tokenOf(message) })) log.add(text)
      log.end()
    })
  }

  #asJson(exchange: Exchange, session: Session | undefined, status = 200): Effect.Effect<void> {
    const { faults, message } = exchange
    const texts: Array<string> = []
    const voice: Voice = {
      say: () => {},
      ask: () => Effect.succeed({ error: { code: -32000, message: "There is no stream to ask on" } })
    }
    const log = {
      add: (text: string) => void texts.push(text),
      end: () => {
        if (faults.has("Backwards")) texts.reverse()
        const sent = faults.has("Twice") ? [...texts, ...texts] : texts
        const [first = ""] = sent
        const text = sent.length === 1 ? first : `[${sent.join(",")}]`
        const { bom, newline } = faults.get("Text") ?? { bom: false, newline: "" }
        this.#head(exchange, status, session, "application/json")
        if (faults.get("Silence") !== undefined) return exchange.response.flushHeaders()
        exchange.response.end(`${bom ? "\ufeff" : ""}${newline}${text}${newline}`)
      }
    }
    return this.#answer(exchange, message ?? {}, voice, log)
  }

  #stream(exchange: Exchange, session: Session | undefined): Sse {
    this.#head(exchange, 200, session, "text/event-stream")
    return new Sse(exchange.response, exchange.faults)
  }

  #head({ faults, response }: Exchange, status: number, session: Session | undefined, type: string): void {
    const named = faults.get("ContentType")?.type ?? type
    const headers: OutgoingHttpHeaders = named === "" ? {} : { "content-type": named }
    if (session !== undefined && this.#script.sessions !== false && !this.#old) headers["mcp-session-id"] = session.id
    if (session !== undefined && faults.has("NewSession")) {
      const name = `${session.id}-${this.heard.requests}`
      this.#sessions.set(name, session)
      headers["mcp-session-id"] = name
    }
    response.writeHead(status, headers)
  }

  #whole({ response }: Exchange, status: number, text: string, headers: OutgoingHttpHeaders = {}): Effect.Effect<void> {
    return Effect.sync(() => {
      response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(text) })
      response.end(text)
    })
  }

  #no(exchange: Exchange, status: number, message: string): Effect.Effect<void> {
    const text = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } })
    return this.#whole(exchange, status, text, { "content-type": "application/json" })
  }
}

const tokenOf = (message: Json): unknown => {
  const { params } = message as { readonly params?: { readonly _meta?: { readonly progressToken?: unknown } } }
  return params?._meta?.progressToken
}
