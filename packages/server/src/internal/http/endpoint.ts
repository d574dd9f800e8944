/**
 * The core of HTTP: from a request of any door to what handles it, past the guards.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Limits from "@skein/runtime/Limits"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { logged } from "../text.ts"
import type { Host } from "../dispatch/serverCore.ts"
import { classify, isOpening } from "./classify.ts"
import type { Body, HttpAnswer, HttpRequest } from "./adapter.ts"
import { Gauge } from "./gauge.ts"
import { Guards, lets } from "./guards.ts"
import { KeepAlive } from "./keepAlive.ts"
import { Lone } from "./stateless.ts"
import * as mirrored from "./paramHeaders.ts"
import type { LegacySse, Resolved } from "./options.ts"
import { because, busy, closing, idOf, invalid, malformed, noAnswers, type Refused } from "./refusal.ts"
import { Refusals } from "./refusals.ts"
import { Sessions } from "./sessions.ts"
import { holdsAtMost } from "../definitions/inputSchema.ts"

const notFound = invalid(404, "Not Found: there is no such endpoint here")
const tooLarge = invalid(413, "Content Too Large", { connection: "close" })
const tooMuch = invalid(413, "Content Too Large: the client says too much of itself")
const noText = because(McpError.parseError("Parse error: not valid UTF-8"))
const tooMuchAtOnce: Refused = {
  ...busy("Service Unavailable: too many bodies at once"),
  headers: { "retry-after": "1", connection: "close" }
}

// Of the values in an `initialize`: two characters of JSON can become sixty bytes in memory.
const maxValues = 1_000

/** Finds out who makes a request, writes it there, and goes on. */
export type Identify = (then: () => void) => void

/** An endpoint that answers the requests of doors, in both eras. */
export class Endpoint {
  readonly options: Resolved
  readonly #host: Host
  readonly #context: Context.Context<never>
  readonly #guards: Guards
  readonly #gauge = new Gauge()
  readonly #refusals: Refusals
  readonly #lone: Lone
  readonly #sessions: Sessions
  readonly #maxBatchMessages: number
  readonly #allow: { readonly allow: string }
  /** The options that the log has named. */
  readonly #warned = new Set<"allowedHosts" | "allowedOrigins">()
  #closing = false
  /** Done when it is closed. Who closes it once more waits for the same. */
  #closed: Deferred.Deferred<void> | undefined = undefined

  /** `context` has the services that every request starts with. */
  constructor(host: Host, options: Resolved, context: Context.Context<never>) {
    this.options = options
    this.#host = host
    this.#context = context
    this.#guards = new Guards(options)
    const keepAlive = new KeepAlive(options.keepAliveInterval, context)
    const limits = Limits.resolve(host.limits)
    const refusals = this.#refusals = new Refusals(host, context)
    const parts = { host, options, limits, context, keepAlive, gauge: this.#gauge, refusals }
    this.#lone = new Lone(parts)
    this.#sessions = new Sessions(parts)
    this.#maxBatchMessages = limits.maxBatchMessages
    const verbs = host.revisions.some((one) => Revision.era(one) === "session") ? "GET, POST, DELETE" : "POST"
    this.#allow = { allow: options.cors === undefined ? verbs : `${verbs}, OPTIONS` }
  }

  /** The lone requests in flight. */
  get exchanges(): Iterable<RequestContext> {
    return this.#lone.exchanges
  }

  /** How many streams are open that last as long as their client wants. */
  get streams(): number {
    return this.#gauge.streams
  }

  /** How many sessions there are. */
  get sessions(): number {
    return this.#sessions.size
  }

  /** Answers a request, at once or when it is handled. Never throws. See `Http.Endpoint`. */
  handle(request: HttpRequest, answer: HttpAnswer, identify?: Identify): void {
    try {
      this.#handle(request, answer, identify)
    } catch (defect) {
      this.#fault(answer, defect)
    }
  }

  /**
   * Takes nothing more, and ends what there is: what listens gets its result, what runs may finish within the grace and is interrupted
   * then.
   */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#closed !== undefined) return Deferred.await(this.#closed)
      this.#closing = true
      const closed = this.#closed = Deferred.makeUnsafe<void>()
      const both = Effect.all([this.#lone.close, this.#sessions.close], { concurrency: 2, discard: true })
      return Effect.ensuring(
        both,
        Effect.sync(() => {
          this.#host.endpoints.delete(this)
          Deferred.doneUnsafe(closed, Effect.void)
        })
      )
    })
  }

  #handle(request: HttpRequest, answer: HttpAnswer, identify: Identify | undefined): void {
    const { method } = request
    const refused = this.#guards.source(request)
    if (refused !== undefined) return this.#foreign(request, answer, refused)
    const { cors, path } = this.options
    const allowed = cors?.headers(request.header("origin"))
    if (allowed !== undefined) answer.also(allowed)
    const { legacySse } = this.options
    const isLegacy = request.path === legacySse?.path || request.path === legacySse?.messages
    if (request.path !== path && path !== "*" && !isLegacy) return this.#refusals.refuse(answer, notFound)
    const preflight = method === "OPTIONS"
      ? cors?.preflight(request.header("origin"), (name) => request.header(name))
      : undefined
    if (preflight !== undefined) return answer.reply(204, preflight, "")
    const isServed = method === "POST" || method === "GET" || method === "DELETE" || (isLegacy && method !== "OPTIONS")
    if (!isServed) return this.#refusals.refuse(answer, invalid(405, "Method Not Allowed", this.#allow))
    if (identify === undefined) return this.#route(request, answer, isLegacy)
    identify(() => {
      try {
        this.#route(request, answer, isLegacy)
      } catch (defect) {
        this.#fault(answer, defect)
      }
    })
  }

  #route(request: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void {
    if (isLegacy) return this.#legacy(this.options.legacySse!, request, answer)
    if (request.method === "POST") return this.#post(request, answer)
    this.#open(request, answer)
  }

  /** The transport of 2024-11-05: GET on one path, POST on another. */
  #legacy({ messages, path }: LegacySse, request: HttpRequest, answer: HttpAnswer): void {
    const method = request.path === path ? "GET" : "POST"
    if (request.method !== method) {
      return this.#refusals.refuse(answer, invalid(405, "Method Not Allowed", { allow: method }))
    }
    const refused = method === "GET" ? this.#guards.acceptStream(request) : this.#guards.content(request)
    if (refused !== undefined) return this.#refusals.refuse(answer, refused)
    if (method === "GET") return this.#sessions.legacyGet(messages, request, answer)
    this.#read(request, answer, (message) => {
      const wrong = this.#mismatch(message, request, false)
      if (wrong === undefined) this.#sessions.legacyPost(message, request, answer)
      else this.#refusals.refuse(answer, because(McpError.headerMismatch(wrong), Revision.latestSession), idOf(message))
    })
  }

  /** A stream of a session, or its end. */
  #open(request: HttpRequest, answer: HttpAnswer): void {
    if (this.options.sessions.stateless) {
      return this.#refusals.refuse(answer, invalid(405, `Method Not Allowed: ${request.method}`, { allow: "POST" }))
    }
    const classified = classify(request, undefined, this.#host.revisions)
    if (classified._tag === "Refused") return this.#refusals.refuse(answer, classified)
    if (request.method === "DELETE") return this.#sessions.delete(request, answer)
    const refused = this.#guards.acceptStream(request) ?? (this.#closing ? closing : undefined)
    if (refused !== undefined) return this.#refusals.refuse(answer, refused)
    this.#sessions.get(request, answer)
  }

  #post(request: HttpRequest, answer: HttpAnswer): void {
    const refused = this.#guards.content(request) ?? this.#guards.accept(request)
    if (refused !== undefined) return this.#refusals.refuse(answer, refused)
    this.#read(request, answer, (message) => this.#posted(message, request, answer))
  }

  #read(request: HttpRequest, answer: HttpAnswer, then: (message: JsonRpc.Inbound) => void): void {
    const { maxTotalBodyBytes, maxBodyBytes } = this.options
    const declared = Number(request.header("content-length") ?? maxBodyBytes)
    // Without a `Content-Length`, or with one that is none, it may become as large as any.
    const expected = declared >= 0 ? Math.min(declared, maxBodyBytes) : maxBodyBytes
    if (this.#gauge.bodies + expected > maxTotalBodyBytes) return this.#refusals.refuse(answer, tooMuchAtOnce)
    this.#gauge.bodies += expected
    const read = (body: Body): void => {
      this.#gauge.bodies -= expected
      try {
        if (!("fault" in body)) {
          request.size = body.text.length
          this.#parsed(JsonRpc.parseText(body.text, this.#maxBatchMessages), request, answer, then)
        } else if (body.fault === "TooLarge") this.#refusals.refuse(answer, tooLarge)
        else if (body.fault === "Encoding") this.#refusals.refuse(answer, noText)
      } catch (defect) {
        this.#fault(answer, defect)
      }
    }
    try {
      request.read(maxBodyBytes, read)
    } catch (defect) {
      // Somebody else has read it: nothing will call back.
      this.#gauge.bodies -= expected
      throw defect
    }
  }

  /** What a client says of itself is kept for as long as its session. */
  #parsed(
    message: JsonRpc.Inbound,
    { size }: HttpRequest,
    answer: HttpAnswer,
    then: (message: JsonRpc.Inbound) => void
  ): void {
    if (!isOpening(message)) return then(message)
    if (size <= this.options.sessions.maxInitializeChars && holdsAtMost(message.params, maxValues)) return then(message)
    this.#refusals.refuse(answer, tooMuch, message.id)
  }

  #posted(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    // What is in flight may finish, and so its questions may be answered.
    if (this.#closing && (message._tag === "Request" || message._tag === "Batch")) {
      return this.#refusals.refuse(answer, closing, idOf(message))
    }
    // What looks like an answer fails the question that it is for, and so goes to its session.
    if (message._tag === "Invalid" && !message.answer) {
      return this.#refusals.refuse(answer, malformed(message), message.id)
    }
    const { stateless } = this.options.sessions
    const classified = classify(request, message, this.#host.revisions, stateless)
    if (classified._tag === "Refused") return this.#refusals.refuse(answer, classified, idOf(message))
    if (classified._tag === "SessionEra") return this.#inSession(message, request, answer)
    if (message._tag === "Request") return this.#lone.start(message, request, answer)
    if (message._tag === "Notification") return this.#notified(message, request, answer)
    // A single response or a malformed one: the classification refuses those of this era.
    this.#refusals.refuse(answer, noAnswers)
  }

  /**
   * "If the server accepts it, the server MUST return HTTP status code `202 Accepted` with no body." There is none in this
   * revision that means anything; what it says of itself has to be right all the same.
   */
  #notified(message: JsonRpc.Notification, request: HttpRequest, answer: HttpAnswer): void {
    const version = RequestMeta.versionOf(message.params)
    const stated = request.header(Header.keys.protocolVersion)
    const wrong = (version === undefined || stated === undefined
      ? undefined
      : Header.mismatch(Header.names.protocolVersion, stated, version)) ??
      mirrored.mismatch(this.#host.catalog, message, request, undefined, false)
    if (wrong !== undefined) return this.#refusals.refuse(answer, because(McpError.headerMismatch(wrong)))
    const { revisions } = this.#host
    if (version !== undefined && !revisions.includes(version as Revision.Revision)) {
      return this.#refusals.refuse(
        answer,
        because(McpError.unsupportedProtocolVersion({ supported: revisions, requested: version }))
      )
    }
    answer.reply(202, {}, "")
  }

  #inSession(message: JsonRpc.Inbound, request: HttpRequest, answer: HttpAnswer): void {
    const wrong = this.#mismatch(message, request, this.options.requireMcpHeaders)
    if (wrong === undefined) return this.#sessions.post(message, request, answer)
    this.#refusals.refuse(answer, because(McpError.headerMismatch(wrong), Revision.latestSession), idOf(message))
  }

  #mismatch(message: JsonRpc.Inbound, request: HttpRequest, demanded: boolean): string | undefined {
    if (message._tag === "Batch") return mirrored.mismatchOfBatch(message, request, demanded)
    if (message._tag !== "Request" && message._tag !== "Notification") return undefined
    const required = demanded && message._tag === "Request"
    const caller = required || request.params !== undefined
      ? this.#sessions.caller(request)?.by(request.principal)
      : undefined
    return mirrored.mismatch(this.#host.catalog, message, request, caller, required)
  }

  /**
   * A request for another name, or from another origin. Behind a proxy whose name nobody has allowed that is every request: so the
   * log warns of the first one of each kind, and of the others it says the same at the level `Debug`.
   */
  #foreign(request: HttpRequest, answer: HttpAnswer, refused: Refused): void {
    const [header, option] = lets(refused)
    const value = request.header(header.toLowerCase())
    const said = value === undefined ? `without a ${header}` : `with the ${header} ${logged(value)}`
    const text = `HTTP: refused a request ${said}, which is not among the ${option} of the server`
    this.#refusals.because(text, this.#warned.has(option) ? "Debug" : "Warn", answer, refused)
    this.#warned.add(option)
  }

  /** Something of this side broke. Its cause reaches the log, and a reference to it the client. */
  #fault(answer: HttpAnswer, defect: unknown): void {
    const reference = globalThis.crypto.randomUUID()
    Effect.runForkWith(this.#context)(Effect.logError(`An HTTP request failed, reference ${reference}`, defect))
    try {
      if (!answer.over) this.#refusals.refuse(answer, because(McpError.internal(reference), Revision.latest, 500))
    } catch {
      answer.abort()
    }
  }
}
