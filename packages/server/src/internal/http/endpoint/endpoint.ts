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
import * as Trace from "@skein/runtime/Trace"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { EventStore } from "../../../EventStore.ts"
import type { HttpSession, ServerCore } from "../../dispatch/serverCore.ts"
import { clientOf } from "../../base/client.ts"
import { makeLegacySseRoutes } from "../legacySse/routes.ts"
import type { Body, BodyFault, HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { classify, isOpening } from "../messages/classify.ts"
import type { EndpointContext } from "../sessions/context.ts"
import { describeSource, Guards, Warnings } from "../access/guards.ts"
import { identify } from "./identify.ts"
import { MemoryEventStore } from "../limits/eventStore.ts"
import { makeIncomingBodies } from "../limits/incomingBodies.ts"
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
import { makeSilentAnswers } from "../limits/silentAnswers.ts"
import { makeSlowReaders } from "../limits/slowReaders.ts"
import { StatelessRequests } from "./stateless.ts"
import { makeStreamExpiry } from "../sessions/streamExpiry.ts"

const notFound = invalid(404, "Not Found: there is no such endpoint here")
const noProbe = invalid(
  404,
  "Not Found: there is no such endpoint here: probes are answered at /livez and /readyz, with the option health (SKEIN_HEALTH)"
)
/** For a person who opens the URL of the endpoint. */
const noPage = "this is an endpoint for MCP clients, which a browser cannot open"

// The paths at which other servers answer probes.
const probePaths = new Set(["/health", "/healthz", "/healthcheck", "/ready", "/live"])
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

/**
 * An endpoint that answers the requests of its adapters, in all revisions. `context` has the services that every request
 * starts with.
 */
export const makeEndpoint = (core: ServerCore, options: Resolved, context: Context.Context<never>) => {
  const guards = new Guards(options)
  const eventStore = Option.getOrElse(
    Context.getOption(context, EventStore),
    () => new MemoryEventStore(options.bounds)
  )
  const load = new Load(options.maxRetainedBytes, eventStore)
  const runner = core.runner(context)
  const refuse = makeRefuse(core, context)
  const shared: EndpointContext = {
    core,
    options,
    context,
    runner,
    keepAlive: makeKeepAlive(options.keepAliveInterval, context),
    silentAnswers: makeSilentAnswers(options.streamAfter, runner, context),
    streamExpiry: makeStreamExpiry(options.expiredStreams, runner, context),
    load,
    eventStore,
    refuse,
    isClosing: false
  }
  const bodies = makeIncomingBodies(load)
  const slowReaders = makeSlowReaders(load, options.bounds, () => runner.now(), context)
  const stateless = new StatelessRequests(shared)
  const streamable = new Sessions(shared)
  const legacyRoutes = options.legacySse && makeLegacySseRoutes(options.legacySse, streamable, guards)
  /** The names of the headers of an authenticated request that handlers cannot read. */
  const withheld = credentialHeaders(options)
  const hasSessions = !options.stateless && core.revisions.some((one) => Revision.era(one) === "session")
  const ownMethods = hasSessions ? ["GET", "POST", "DELETE"] : ["POST"]
  const warnings = new Warnings()
  const around = Context.get(context, Trace.Around)
  /** Done when it is closed; set by the first caller of `close`. */
  let closed: Deferred.Deferred<void> | undefined

  /** Answers a request, synchronously or when it is handled. Never throws. See `Http.Endpoint`. */
  const handle = (request: HttpRequest, answer: HttpAnswer, findPrincipal?: FindPrincipal): void => {
    try {
      if (around !== undefined && request.context === undefined) request.context = around()
      answer.watch?.(slowReaders, request)
      const { cors, pages, path, protection, serverCard } = options
      const wrongHost = guards.host(request)
      if (wrongHost === undefined && request.path !== path) {
        if (protection?.pages?.(new ForPage(request, bodies), answer) === true) return
        if (serverCard?.handle(new ForPage(request, bodies), answer) === true) return
      }
      const refused = wrongHost ?? guards.origin(request)
      if (refused !== undefined) return refuseSource(request, answer, refused)
      if (pages !== undefined && request.path !== path) {
        if (pages.handle(new ForPage(request, bodies), answer)) return
      }
      const allowed = cors?.headers(request.header("origin"))
      if (allowed !== undefined) answer.addHeaders(allowed)
      const { method } = request
      const legacyMethod = legacyRoutes?.methodOf(request.path)
      const isLegacy = legacyMethod !== undefined
      if (request.path !== path && path !== "*" && !isLegacy) return refuse(answer, notFoundFor(request))
      if (method === "OPTIONS") return answerOptions(request, answer, legacyMethod)
      const isServed = isLegacy ? method === legacyMethod : method === "POST" || method === "GET" || method === "DELETE"
      if (!isServed) return refuse(answer, notAllowed(legacyMethod))
      // A principal of the application is checked as one that a function finds.
      const given = request.principal
      const find = findPrincipal ?? (given === undefined ? undefined : () => given)
      if (find === undefined) return protect(request, answer, isLegacy)
      identify(find, shared, request, answer, () => protect(request, answer, isLegacy))
    } catch (defect) {
      fault(answer, defect)
    }
  }

  /** Identifies the sender of a request that has no principal yet, and routes the request. Never throws. */
  const protect = (request: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void => {
    const { protection } = options
    if (protection === undefined || request.principal !== undefined) return route(request, answer, isLegacy)
    identify(protection.identify, shared, request, answer, () => route(request, answer, isLegacy))
  }

  /**
   * Closes the endpoint. New requests are refused, subscriptions return their results, and other requests may finish
   * within `shutdownTimeout` and are interrupted then.
   */
  const close: Effect.Effect<void> = Effect.suspend(() => {
    if (closed !== undefined) return Deferred.await(closed)
    shared.isClosing = true
    const done = closed = Deferred.makeUnsafe<void>()
    const both = Effect.all([stateless.close, streamable.close], { concurrency: 2, discard: true })
    return Effect.ensuring(
      both,
      Effect.sync(() => {
        shared.silentAnswers.close()
        core.endpoints.delete(endpoint)
        Deferred.doneUnsafe(done, Effect.void)
      })
    )
  })

  /** Routes a request whose head was accepted. Never throws: its principal may have been found later. */
  const route = (request: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void => {
    try {
      if (request.method !== "POST" && !isLegacy) return getOrDelete(request, answer)
      const refused = isLegacy
        ? legacyRoutes!.refusal(request)
        : guards.content(request) ?? guards.accept(request)
      if (refused !== undefined) return refuse(answer, refused)
      if (request.method !== "POST") return legacyRoutes!.get(request, answer)
      request.read(
        options.maxMessageBytes,
        (body) => received(body, request, answer, isLegacy),
        bodies
      )
    } catch (defect) {
      fault(answer, defect)
    }
  }

  /** The refusal of another path: a person or a probe that sends a GET learns the right one. */
  const notFoundFor = ({ method, path }: HttpRequest): HttpRefusal => {
    if (method !== "GET") return notFound
    if (probePaths.has(path)) return noProbe
    return invalid(404, `${notFound.error.message}: MCP clients connect to ${options.path}`)
  }

  /** "An origin server MUST generate an Allow header field in a 405" (RFC 9110, 15.5.6). */
  const notAllowed = (legacyMethod: string | undefined): HttpRefusal => {
    const methods = legacyMethod === undefined ? ownMethods : [legacyMethod]
    const all = options.cors === undefined ? methods : [...methods, "OPTIONS"]
    return invalid(405, "Method Not Allowed", { allow: all.join(", ") })
  }

  /** Answers a preflight. Without `cors` a web page cannot call the server, and its browser shows no reason. */
  const answerOptions = (request: HttpRequest, answer: HttpAnswer, legacyMethod: string | undefined): void => {
    const { cors } = options
    const origin = request.header("origin")
    const preflight = cors?.preflight(origin, (name) => request.header(name))
    if (preflight !== undefined) return answer.reply(204, preflight, "")
    const refused = notAllowed(legacyMethod)
    const isPreflight = origin !== undefined && request.header("access-control-request-method") !== undefined
    if (cors !== undefined || !isPreflight) return refuse(answer, refused)
    const advice = "set the option cors (Cors.make()) to let pages of allowedOrigins call the server"
    refuseOnce(answer, refused, `of a web page of ${logValue(origin)}: ${advice}`)
  }

  /** Handles a GET, which opens a stream of a session, or a DELETE, which ends a session. */
  const getOrDelete = (request: HttpRequest, answer: HttpAnswer): void => {
    const isBrowser = request.method === "GET" && request.header("accept")?.startsWith("text/html") === true
    if (options.stateless) {
      const problem = isBrowser ? noPage : request.method
      return refuse(answer, invalid(405, `Method Not Allowed: ${problem}`, { allow: "POST" }))
    }
    const classified = isBrowser
      ? invalid(400, `Bad Request: ${noPage}`)
      : classify(request, undefined, core.revisions)
    if (typeof classified === "object") return refuse(answer, classified)
    if (request.method === "DELETE") return streamable.delete(request, answer)
    // A stream of a request that is in progress here can be resumed through another node.
    const isEnding = shared.isClosing && request.isPassed !== true
    const refused = guards.acceptStream(request) ?? (isEnding ? closing : undefined)
    if (refused !== undefined) return refuse(answer, refused)
    streamable.get(request, answer)
  }

  /** Handles the body of a POST, once it has been read. */
  const received = (body: Body, received: HttpRequest, answer: HttpAnswer, isLegacy: boolean): void => {
    bodies.received(received)
    try {
      if ("fault" in body) {
        return body.fault === "Aborted" ? undefined : refuse(answer, bodyRefusals[body.fault])
      }
      const size = received.size = body.text.length
      const isWithheld = withholds(options, received.principal)
      const request = isWithheld ? new WithheldRequest(received, withheld) : received
      if (!load.hasRoom(size) && !load.makeRoom(clientOf(request), size)) {
        return refuse(answer, tooManyBytes)
      }
      const message = JsonRpc.parseText(body.text, maxBatchMessages)
      if (isOpening(message) && isTooLarge(message, request)) {
        return refuse(answer, initializeTooLarge, message.id)
      }
      if (isLegacy) return legacyRoutes!.post(message, request, answer, body.text)
      // Requests in flight may finish, so the responses that they wait for are accepted.
      if (shared.isClosing && (message._tag === "Request" || message._tag === "Batch")) {
        return refuse(answer, closing, idOf(message))
      }
      // An invalid response fails the request of its session that it belongs to.
      if (message._tag === "Invalid" && !message.answer) {
        return refuse(answer, malformed(message), message.id)
      }
      const classified = classify(request, message, core.revisions, options.stateless)
      if (classified === "session") return streamable.post(message, request, answer, body.text)
      if (typeof classified === "object") return refuse(answer, classified, idOf(message))
      if (message._tag === "Request") return stateless.start(message, request, answer)
      if (message._tag === "Notification") return statelessNotification(message, request, answer)
      refuse(answer, noResponses)
    } catch (defect) {
      fault(answer, defect)
    }
  }

  /**
   * Whether an `initialize` exceeds its bounds. Its session stores the information about the client that it contains.
   */
  const isTooLarge = ({ params }: JsonRpc.Request, { size }: HttpRequest): boolean =>
    size > options.bounds.maxInitializeChars || !Nesting.holdsAtMost(params, maxValues)

  /**
   * "If the server accepts it, the server MUST return HTTP status code `202 Accepted` with no body." No notification
   * has an effect in this revision; its headers and its version are validated all the same.
   */
  const statelessNotification = (message: JsonRpc.Notification, request: HttpRequest, answer: HttpAnswer): void => {
    const version = RequestMeta.versionOf(message.params)
    const header = request.header(Header.keys.protocolVersion)
    const wrong = (version === undefined || header === undefined
      ? undefined
      : Header.mismatch(Header.names.protocolVersion, header, version)) ??
      paramHeaders.mismatch(core.catalog, message, request, undefined, false)
    if (wrong !== undefined) return refuse(answer, fromError(McpError.headerMismatch(wrong)))
    const { revisions } = shared.core
    if (version !== undefined && !revisions.includes(version as Revision.Revision)) {
      return refuse(
        answer,
        fromError(McpError.unsupportedProtocolVersion({ supported: revisions, requested: version }))
      )
    }
    answer.reply(202, {}, "")
  }

  /** Refuses a request by its head. A refusal that an option would have prevented is logged. */
  const refuseSource = (request: HttpRequest, answer: HttpAnswer, refused: HttpRefusal): void => {
    const described = describeSource(refused, request)
    if (described === undefined) refuse(answer, refused)
    else refuseOnce(answer, refused, described)
  }

  /**
   * Refuses a request that an option would allow. Behind a proxy whose name is not allowed, every request is refused, and
   * the browser of a page shows no reason. So the first request with each value is logged as a warning, for some values, and
   * the others at the level `Debug`.
   */
  const refuseOnce = (answer: HttpAnswer, refused: HttpRefusal, described: string): void => {
    const text = `HTTP: refused a request ${described}`
    refuse(answer, refused, undefined, { level: warnings.isNew(text) ? "Warn" : "Debug", text })
  }

  /** Logs a defect of this side, and answers with a reference to the log entry. */
  const fault = (answer: HttpAnswer, defect: unknown): void => {
    const reference = globalThis.crypto.randomUUID()
    Effect.runForkWith(context)(Effect.logError(`An HTTP request failed, reference ${reference}`, defect))
    try {
      if (!answer.isClosed) refuse(answer, fromError(McpError.internal(reference), Revision.latest, 500))
    } catch {
      answer.abort()
    }
  }

  if (streamable.nodes !== undefined) {
    // The node that has received it has checked the rest of its head, and has found its principal.
    streamable.nodes.transport.handle = (request, answer) => {
      if (around !== undefined) request.context = around()
      answer.watch?.(slowReaders, request)
      route(request, answer, legacyRoutes?.methodOf(request.path) !== undefined)
    }
  }

  const endpoint = {
    handle,
    close,
    /** The stateless requests in flight. */
    get requests(): Iterable<Exchange> {
      return stateless.suspendedRequests
    },
    /** The sessions that requests can use. */
    get openSessions(): Iterable<HttpSession> {
      return streamable.open.values()
    },
    /** How many long-lived streams are open. */
    get streams(): number {
      return load.streams
    },
    /** How many requests are in progress, without those of `subscriptions/listen`. */
    get inFlightRequests(): number {
      return load.requests
    },
    /** How many bytes are retained for clients. */
    get retainedBytes(): number {
      return load.bytes
    },
    /** How many sessions there are. */
    get sessions(): number {
      return streamable.open.size
    }
  }
  return endpoint
}
