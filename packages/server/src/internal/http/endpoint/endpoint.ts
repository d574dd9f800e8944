/**
 * An HTTP endpoint: guards each request, and passes it to the session or the stateless request that handles it.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import { logValue } from "@skein/protocol/Text"
import { maxBatchMessages } from "@skein/runtime/Limits"
import type { Exchange } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { EventStore } from "../../../EventStore.ts"
import type { HttpSession, ServerCore } from "../../dispatch/serverCore.ts"
import { clientOf } from "../../base/client.ts"
import { type LegacySseRoutes, makeLegacySseRoutes } from "../legacySse/routes.ts"
import type { AnswerWatcher, Body, BodyFault, HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { classify, isOpening } from "../messages/classify.ts"
import type { EndpointContext } from "../sessions/context.ts"
import { describeSource, Guards, Warnings } from "../access/guards.ts"
import { identify } from "./identify.ts"
import { MemoryEventStore } from "../limits/eventStore.ts"
import { type IncomingBodies, makeIncomingBodies } from "../limits/incomingBodies.ts"
import { makeKeepAlive } from "../limits/keepAlive.ts"
import { Load } from "../limits/load.ts"
import type { Resolved } from "../access/options.ts"
import * as paramHeaders from "../messages/paramHeaders.ts"
import { credentialHeaders, type FindPrincipal, ForPage, WithheldRequest, withholds } from "../access/protection.ts"
import {
  closing,
  fromError,
  type HttpRefusal,
  idOf,
  invalid,
  makeRefuse,
  malformed,
  noResponses,
  tooManyBytes
} from "../messages/refusals.ts"
import { Sessions } from "../sessions/sessions.ts"
import { makeSlowReaders } from "../limits/slowReaders.ts"
import { StatelessRequests } from "./stateless.ts"
import { makeStreamExpiry } from "../sessions/streamExpiry.ts"

const notFound = invalid(404, "Not Found: there is no such endpoint here")
const initializeTooLarge = invalid(
  413,
  "Content Too Large: initialize has too many characters, or more than 1,000 values"
)
/** The refusals of bodies that were not read. A client that has disconnected gets none. */
const bodyRefusals: { readonly [fault in Exclude<BodyFault, "Aborted">]: HttpRefusal } = {
  TooLarge: invalid(413, "Content Too Large", { connection: "close" }),
  Encoding: fromError(McpError.parseError("Parse error: not valid UTF-8")),
  Dropped: { ...tooManyBytes, headers: { ...tooManyBytes.headers, connection: "close" } }
}

// The most values in an `initialize`: two characters of JSON can become sixty bytes in memory.
const maxValues = 1_000

/** An endpoint that answers the requests of its adapters, in all revisions. */
export class Endpoint {
  readonly options: Resolved
  readonly #shared: EndpointContext
  readonly #guards: Guards
  readonly #stateless: StatelessRequests
  readonly #sessions: Sessions
  readonly #legacySse: LegacySseRoutes | undefined
  readonly #bodies: IncomingBodies
  readonly #slowReaders: AnswerWatcher
  readonly #methods: ReadonlyArray<string>
  /** The names of the headers of an authenticated request that handlers cannot read. */
  readonly #withheld: ReadonlySet<string>
  readonly #warnings = new Warnings()
  /** Done when it is closed; set by the first caller of `close`. */
  #closed: Deferred.Deferred<void> | undefined = undefined

  /** `context` has the services that every request starts with. */
  constructor(core: ServerCore, options: Resolved, context: Context.Context<never>) {
    this.options = options
    this.#guards = new Guards(options)
    const eventStore = Option.getOrElse(
      Context.getOption(context, EventStore),
      () => new MemoryEventStore(options.bounds)
    )
    const load = new Load(options.maxRetainedBytes, eventStore)
    const runner = core.runner(context)
    const shared = this.#shared = {
      core,
      options,
      context,
      runner,
      keepAlive: makeKeepAlive(options.keepAliveInterval, context),
      streamExpiry: makeStreamExpiry(options.expiredStreams, runner, context),
      load,
      eventStore,
      refuse: makeRefuse(core, context),
      isClosing: false
    }
    this.#bodies = makeIncomingBodies(load)
    this.#slowReaders = makeSlowReaders(load, options.bounds, () => runner.now(), context)
    this.#stateless = new StatelessRequests(shared)
    this.#sessions = new Sessions(shared)
    const { legacySse } = options
    this.#legacySse = legacySse && makeLegacySseRoutes(legacySse, this.#sessions, this.#guards)
    this.#withheld = credentialHeaders(options)
    const hasSessions = !options.stateless && core.revisions.some((one) => Revision.era(one) === "session")
    this.#methods = hasSessions ? ["GET", "POST", "DELETE"] : ["POST"]
  }

  /** The stateless requests in flight. */
  get requests(): Iterable<Exchange> {
    return this.#stateless.suspendedRequests
  }

  /** The sessions that requests can use. */
  get openSessions(): Iterable<HttpSession> {
    return this.#sessions.open.values()
  }

  /** How many long-lived streams are open. */
  get streams(): number {
    return this.#shared.load.streams
  }

  /** How many bytes are retained for clients. */
  get retainedBytes(): number {
    return this.#shared.load.bytes
  }

  /** How many sessions there are. */
  get sessions(): number {
    return this.#sessions.open.size
  }

  /** Answers a request, synchronously or when it is handled. Never throws. See `Http.Endpoint`. */
  handle(request: HttpRequest, answer: HttpAnswer, findPrincipal?: FindPrincipal): void {
    try {
      answer.watch?.(this.#slowReaders, request)
      const { cors, pages, path, protection } = this.options
      const wrongHost = this.#guards.host(request)
      if (wrongHost === undefined && protection?.pages !== undefined && request.path !== path) {
        if (protection.pages(new ForPage(request, this.#bodies), answer)) return
      }
      const refused = wrongHost ?? this.#guards.origin(request)
      if (refused !== undefined) return this.#refuseSource(request, answer, refused)
      if (pages !== undefined && request.path !== path) {
        if (pages.handle(new ForPage(request, this.#bodies), answer)) return
      }
      const allowed = cors?.headers(request.header("origin"))
      if (allowed !== undefined) answer.addHeaders(allowed)
      const { method } = request
      const legacyMethod = this.#legacySse?.methodOf(request.path)
      const isLegacy = legacyMethod !== undefined
      if (request.path !== path && path !== "*" && !isLegacy) return this.#shared.refuse(answer, notFound)
      if (method === "OPTIONS") return this.#options(request, answer, legacyMethod)
      const isServed = isLegacy ? method === legacyMethod : method === "POST" || method === "GET" || method === "DELETE"
      if (!isServed) return this.#shared.refuse(answer, this.#notAllowed(legacyMethod))
      // A principal of the application is checked as one that a function finds.
      const given = request.principal
      const find = findPrincipal ?? (given === undefined ? undefined : () => given)
      if (find === undefined) return this.#protect(request, answer, isLegacy)
      identify(find, this.#shared, request, answer, () => this.#protect(request, answer, isLegacy))
    } catch (defect) {
      this.#fault(answer, defect)
    }
  }

  /** Identifies the sender of a request that has no principal yet, and routes the request. Never throws. */
  #protect(request: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void {
    const { protection } = this.options
    if (protection === undefined || request.principal !== undefined) return this.#route(request, answer, isLegacy)
    identify(protection.identify, this.#shared, request, answer, () => this.#route(request, answer, isLegacy))
  }

  /**
   * Closes the endpoint. New requests are refused, subscriptions return their results, and other requests may finish
   * within `shutdownTimeout` and are interrupted then.
   */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#closed !== undefined) return Deferred.await(this.#closed)
      this.#shared.isClosing = true
      const closed = this.#closed = Deferred.makeUnsafe<void>()
      const both = Effect.all([this.#stateless.close, this.#sessions.close], { concurrency: 2, discard: true })
      return Effect.ensuring(
        both,
        Effect.sync(() => {
          this.#shared.core.endpoints.delete(this)
          Deferred.doneUnsafe(closed, Effect.void)
        })
      )
    })
  }

  /** Routes a request whose head was accepted. Never throws: its principal may have been found later. */
  #route(request: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void {
    try {
      if (request.method !== "POST" && !isLegacy) return this.#getOrDelete(request, answer)
      const refused = isLegacy
        ? this.#legacySse!.refusal(request)
        : this.#guards.content(request) ?? this.#guards.accept(request)
      if (refused !== undefined) return this.#shared.refuse(answer, refused)
      if (request.method !== "POST") return this.#legacySse!.get(request, answer)
      request.read(
        this.options.maxMessageBytes,
        (body) => this.#received(body, request, answer, isLegacy),
        this.#bodies
      )
    } catch (defect) {
      this.#fault(answer, defect)
    }
  }

  /** "An origin server MUST generate an Allow header field in a 405" (RFC 9110, 15.5.6). */
  #notAllowed(legacyMethod: string | undefined): HttpRefusal {
    const methods = legacyMethod === undefined ? this.#methods : [legacyMethod]
    const all = this.options.cors === undefined ? methods : [...methods, "OPTIONS"]
    return invalid(405, "Method Not Allowed", { allow: all.join(", ") })
  }

  /** Answers a preflight. Without `cors` a web page cannot call the server, and its browser shows no reason. */
  #options(request: HttpRequest, answer: HttpAnswer, legacyMethod: string | undefined): void {
    const { cors } = this.options
    const origin = request.header("origin")
    const preflight = cors?.preflight(origin, (name) => request.header(name))
    if (preflight !== undefined) return answer.reply(204, preflight, "")
    const refused = this.#notAllowed(legacyMethod)
    const isPreflight = origin !== undefined && request.header("access-control-request-method") !== undefined
    if (cors !== undefined || !isPreflight) return this.#shared.refuse(answer, refused)
    const advice = "set the option cors (Cors.make()) to let pages of allowedOrigins call the server"
    this.#refuseOnce(answer, refused, `of a web page of ${logValue(origin)}: ${advice}`)
  }

  /** Handles a GET, which opens a stream of a session, or a DELETE, which ends a session. */
  #getOrDelete(request: HttpRequest, answer: HttpAnswer): void {
    if (this.options.stateless) {
      return this.#shared.refuse(answer, invalid(405, `Method Not Allowed: ${request.method}`, { allow: "POST" }))
    }
    const classified = classify(request, undefined, this.#shared.core.revisions)
    if (typeof classified === "object") return this.#shared.refuse(answer, classified)
    if (request.method === "DELETE") return this.#sessions.delete(request, answer)
    const refused = this.#guards.acceptStream(request) ?? (this.#shared.isClosing ? closing : undefined)
    if (refused !== undefined) return this.#shared.refuse(answer, refused)
    this.#sessions.get(request, answer)
  }

  /** Handles the body of a POST, once it has been read. */
  #received(body: Body, received: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void {
    this.#bodies.received(received)
    try {
      if ("fault" in body) {
        return body.fault === "Aborted" ? undefined : this.#shared.refuse(answer, bodyRefusals[body.fault])
      }
      const size = received.size = body.text.length
      const isWithheld = withholds(this.options, received.principal)
      const request = isWithheld ? new WithheldRequest(received, this.#withheld) : received
      const { load } = this.#shared
      if (!load.hasRoom(size) && !load.makeRoom(clientOf(request), size)) {
        return this.#shared.refuse(answer, tooManyBytes)
      }
      const message = JsonRpc.parseText(body.text, maxBatchMessages)
      if (isOpening(message) && this.#isTooLarge(message, request)) {
        return this.#shared.refuse(answer, initializeTooLarge, message.id)
      }
      if (isLegacy) return this.#legacySse!.post(message, request, answer)
      // Requests in flight may finish, so the responses that they wait for are accepted.
      if (this.#shared.isClosing && (message._tag === "Request" || message._tag === "Batch")) {
        return this.#shared.refuse(answer, closing, idOf(message))
      }
      // An invalid response fails the request of its session that it belongs to.
      if (message._tag === "Invalid" && !message.answer) {
        return this.#shared.refuse(answer, malformed(message), message.id)
      }
      const classified = classify(request, message, this.#shared.core.revisions, this.options.stateless)
      if (classified === "session") return this.#sessions.post(message, request, answer)
      if (typeof classified === "object") return this.#shared.refuse(answer, classified, idOf(message))
      if (message._tag === "Request") return this.#stateless.start(message, request, answer)
      if (message._tag === "Notification") return this.#statelessNotification(message, request, answer)
      this.#shared.refuse(answer, noResponses)
    } catch (defect) {
      this.#fault(answer, defect)
    }
  }

  /**
   * Whether an `initialize` exceeds its bounds. Its session stores the information about the client that it contains.
   */
  #isTooLarge({ params }: JsonRpc.Request, { size }: HttpRequest): boolean {
    return size > this.options.bounds.maxInitializeChars || !Nesting.holdsAtMost(params, maxValues)
  }

  /**
   * "If the server accepts it, the server MUST return HTTP status code `202 Accepted` with no body." No notification
   * has an effect in this revision; its headers and its version are validated all the same.
   */
  #statelessNotification(message: JsonRpc.Notification, request: HttpRequest, answer: HttpAnswer): void {
    const version = RequestMeta.versionOf(message.params)
    const header = request.header(Header.keys.protocolVersion)
    const wrong = (version === undefined || header === undefined
      ? undefined
      : Header.mismatch(Header.names.protocolVersion, header, version)) ??
      paramHeaders.mismatch(this.#shared.core.catalog, message, request, undefined, false)
    if (wrong !== undefined) return this.#shared.refuse(answer, fromError(McpError.headerMismatch(wrong)))
    const { revisions } = this.#shared.core
    if (version !== undefined && !revisions.includes(version as Revision.Revision)) {
      return this.#shared.refuse(
        answer,
        fromError(McpError.unsupportedProtocolVersion({ supported: revisions, requested: version }))
      )
    }
    answer.reply(202, {}, "")
  }

  /** Refuses a request by its head. A refusal that an option would have prevented is logged. */
  #refuseSource(request: HttpRequest, answer: HttpAnswer, refused: HttpRefusal): void {
    const described = describeSource(refused, request)
    if (described === undefined) this.#shared.refuse(answer, refused)
    else this.#refuseOnce(answer, refused, described)
  }

  /**
   * Refuses a request that an option would allow. Behind a proxy whose name is not allowed, every request is refused, and
   * the browser of a page shows no reason. So the first request with each value is logged as a warning, for some values, and
   * the others at the level `Debug`.
   */
  #refuseOnce(answer: HttpAnswer, refused: HttpRefusal, described: string): void {
    const text = `HTTP: refused a request ${described}`
    this.#shared.refuse(answer, refused, undefined, { level: this.#warnings.isNew(text) ? "Warn" : "Debug", text })
  }

  /** Logs a defect of this side, and answers with a reference to the log entry. */
  #fault(answer: HttpAnswer, defect: unknown): void {
    const reference = globalThis.crypto.randomUUID()
    Effect.runForkWith(this.#shared.context)(Effect.logError(`An HTTP request failed, reference ${reference}`, defect))
    try {
      if (!answer.isClosed) this.#shared.refuse(answer, fromError(McpError.internal(reference), Revision.latest, 500))
    } catch {
      answer.abort()
    }
  }
}
