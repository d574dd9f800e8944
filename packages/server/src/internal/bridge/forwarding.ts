/**
 * Forwards the requests of HTTP clients to servers behind connections, without reading their params and results.
 *
 * A session has a server of its own, and its ids and progress tokens stay as they are. All stateless requests share one
 * server: their clients use the same ids and tokens, so each request gets an id of the bridge. A notification of a
 * server belongs to a request if it has its progress token, or its id as the id of a subscription. Other notifications,
 * and the requests of the server, belong to the newest request of its client.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Connection } from "@skein/runtime/Connection"
import type { Peer } from "@skein/runtime/Peer"
import type { Answer, Caller, Refusal, RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { ServerSession } from "../base/session.ts"
import { alreadyInitialized, type Identity } from "../dispatch/identity.ts"

/** Opens the connection to a server, which the scope closes. */
export type Connect = Effect.Effect<Connection, { readonly message: string }, Scope.Scope>

const subscriptionKey = "io.modelcontextprotocol/subscriptionId"

/** How long the client may take to answer a request of its server. The server has a timeout of its own. */
const askTimeout = "1 day"

const object = (value: unknown): JsonRpc.JsonObject => JsonRpc.isObject(value) ? value : {}

const failed = (message: string): McpError.McpError => new McpError.McpError({ reason: "InternalError", message })

/** The error of a server, with the status that its clients expect of it in 2026-07-28. */
const errorOf = (error: JsonRpc.ErrorObject, { caller: { revision } }: RequestContext): McpError.McpError => {
  const read = McpError.fromErrorObject(error, revision)
  return McpError.isStateless(error) ? McpError.withHttp(read, { status: 400 }) : read
}

/**
 * Identifies the callers of a bridge. The server behind it judges their requests, so this accepts every request. The
 * revision decides only how errors are written.
 */
export const identity: Identity = {
  supported: Revision.all.toSorted().toReversed(),
  identifyStateless: (_request, origin): Caller => ({
    revision: Revision.latest,
    info: undefined,
    capabilities: {},
    principal: origin?.principal
  }),
  identify: (request, session, origin): Caller | Refusal => {
    if (RequestMeta.isModern(request.params)) return identity.identifyStateless(request, origin)
    if (session instanceof ServerSession) {
      return request.method === "initialize"
        ? { error: alreadyInitialized(), revision: session.revision }
        : session.callerFor(origin?.principal)
    }
    const { capabilities, clientInfo, protocolVersion } = object(request.params)
    return {
      revision: Revision.read(protocolVersion) ?? Revision.latestSession,
      info: object(clientInfo),
      capabilities: object(capabilities),
      principal: origin?.principal
    }
  }
}

/** A request of a client that waits for the response of its server. */
interface Waiting {
  readonly request: RequestContext
  readonly token: unknown
  readonly resume: (answer: Effect.Effect<Answer, McpError.McpError>) => void
}

/** One server, with its requests in both directions. */
class Backend {
  readonly #connection: Connection
  /** The client of its session; undefined for stateless requests. */
  readonly #peer: SessionPeer | undefined
  readonly #waiting = new Map<JsonRpc.Id, Waiting>()
  /** The requests of the server that wait for the client. */
  readonly #asked = new Map<JsonRpc.Id, Fiber.Fiber<JsonRpc.JsonObject, McpError.McpError | RequestError>>()
  #counter = 0

  constructor(connection: Connection, peer: SessionPeer | undefined, ended: (reason: string) => void) {
    this.#connection = connection
    this.#peer = peer
    connection.open({
      message: (message) => this.#receive(message),
      end: (end) => ended(end._tag === "Lost" ? end.cause.message : "The server has ended")
    })
  }

  get #newest(): RequestContext | undefined {
    return [...this.#waiting.values()].at(-1)?.request
  }

  /** Sends a request to the server. Interrupting it cancels the request there. */
  forward(request: RequestContext): Effect.Effect<Answer, McpError.McpError> {
    return Effect.callback((resume) => {
      const { method, params } = request
      const meta = object(params?.["_meta"])
      const token = meta["progressToken"]
      const id = this.#peer === undefined ? `http:${++this.#counter}` : request.id
      this.#waiting.set(id, { request, token, resume })
      const named = this.#peer === undefined && token !== undefined
        ? { ...params, _meta: { ...meta, progressToken: id } }
        : params
      this.#connection.send(JsonRpc.request(id, method, named))
      return Effect.sync(() => {
        if (this.#waiting.delete(id)) this.notify(JsonRpc.notification("notifications/cancelled", { requestId: id }))
      })
    })
  }

  /** Sends a notification to the server. */
  notify(notification: JsonRpc.Notification): void {
    this.#connection.send(notification)
  }

  /** Fails the requests that wait. */
  end(reason: string): void {
    for (const { resume } of this.#waiting.values()) resume(Effect.fail(failed(reason)))
    this.#waiting.clear()
  }

  #receive(message: JsonRpc.Inbound): void {
    switch (message._tag) {
      case "Success":
        return this.#settle(message.id, () => Effect.succeed(message.result))
      case "Failure":
        return this.#settle(message.id, (request) => Effect.fail(errorOf(message.error, request)))
      case "Invalid":
        return this.#settle(
          message.answer ? message.id : undefined,
          (request) => Effect.fail(errorOf(message.error, request))
        )
      case "Batch":
        for (const member of message.members) this.#receive(member)
        return
      case "Request":
        return this.#ask(message)
      case "Notification":
        return this.#pass(message)
    }
  }

  #settle(
    id: JsonRpc.Id | undefined,
    answer: (request: RequestContext) => Effect.Effect<Answer, McpError.McpError>
  ): void {
    const waiting = id === undefined ? undefined : this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id!)
    waiting.resume(answer(waiting.request))
  }

  /** Passes a notification of the server on to the request that it belongs to. */
  #pass({ method, params = {} }: JsonRpc.Notification): void {
    if (method === "notifications/cancelled") {
      return void this.#asked.get(params["requestId"] as JsonRpc.Id)?.interruptUnsafe()
    }
    const meta = object(params["_meta"])
    const [subscription, progress] = [meta[subscriptionKey], params["progressToken"]]
    for (const [id, { request, token }] of this.#waiting) {
      if (subscription !== undefined && subscription === id) {
        const own = { ...params, _meta: { ...meta, [subscriptionKey]: request.id } }
        return void Effect.runFork(request.notify(method, own))
      }
      if (progress !== undefined && progress === (this.#peer === undefined ? id : token)) {
        return void Effect.runFork(request.notify(method, { ...params, progressToken: token }))
      }
    }
    const newest = this.#newest
    const sent = newest === undefined ? this.#peer?.notify(method, params) : newest.notify(method, params)
    if (sent !== undefined) Effect.runFork(sent)
  }

  /** Passes a request of the server on to the client, and its response back. */
  #ask({ id, method, params }: JsonRpc.Request): void {
    const target = this.#newest ?? this.#peer
    if (target === undefined) {
      const error = { code: -32601, message: `${method} was not sent: there is no client that could receive it` }
      return void this.#connection.send(JsonRpc.failure(id, error))
    }
    const { progressToken, ...meta } = object(params?.["_meta"])
    const fiber = Effect.runFork(
      progressToken === undefined
        ? target.request(method, params, { timeout: askTimeout, maxTimeout: askTimeout })
        : target.request(method, { ...params, _meta: meta }, {
          timeout: askTimeout,
          maxTimeout: askTimeout,
          onProgress: (progress) =>
            this.notify(JsonRpc.notification("notifications/progress", { ...progress, progressToken }))
        })
    )
    this.#asked.set(id, fiber)
    fiber.addObserver((exit) => {
      this.#asked.delete(id)
      if (Exit.isSuccess(exit)) return void this.#connection.send(JsonRpc.success(id, exit.value))
      if (Cause.hasInterruptsOnly(exit.cause)) return
      const error = exit.cause.reasons.find(Cause.isFailReason)?.error
      this.#connection.send(JsonRpc.failure(
        id,
        McpError.isMcpError(error)
          ? McpError.toErrorObject(error, Revision.latestSession)
          : { code: -32603, message: error?.message ?? "Internal error" }
      ))
    })
  }
}

/** A session, and its server once it is connected. */
interface Session {
  backend: Backend | undefined
}

/** The servers behind a bridge: one for each session, and one for all stateless requests. */
export class Forwarding {
  readonly #connect: Connect
  readonly #scope: Scope.Scope
  readonly #maxServers: number
  /** The sessions, by their last use. */
  readonly #sessions = new Map<SessionPeer, Session>()
  #shared: Deferred.Deferred<Backend, McpError.McpError> | undefined = undefined

  constructor(connect: Connect, scope: Scope.Scope, maxServers: number) {
    this.#connect = connect
    this.#scope = scope
    this.#maxServers = maxServers
  }

  /** Forwards a request of a session, or a stateless request. */
  dispatch(request: RequestContext): Effect.Effect<Answer, McpError.McpError> {
    const { method, peer } = request
    if (peer === undefined) return Effect.flatMap(this.#stateless(), (backend) => backend.forward(request))
    if (method === "initialize") return this.#initialize(request, peer)
    const session = this.#sessions.get(peer)
    if (session?.backend === undefined) return Effect.fail(McpError.invalidRequest("The session is not initialized"))
    this.#sessions.delete(peer)
    this.#sessions.set(peer, session)
    return session.backend.forward(request)
  }

  /** Forwards a notification of a session. */
  onNotification(peer: Peer, notification: JsonRpc.Notification): void {
    this.#sessions.get(peer)?.backend?.notify(notification)
  }

  /** Opens the server of a session. At the bound the session that was used least recently ends. */
  #initialize(request: RequestContext, peer: SessionPeer): Effect.Effect<Answer, McpError.McpError> {
    return Effect.gen({ self: this }, function*() {
      const [oldest] = this.#sessions.keys()
      if (this.#sessions.size >= this.#maxServers && oldest !== undefined) this.#end(oldest, "The session has ended")
      const session: Session = { backend: undefined }
      this.#sessions.set(peer, session)
      yield* Scope.addFinalizer(peer.scope, Effect.sync(() => this.#sessions.delete(peer)))
      const backend = session.backend = yield* this.#open(peer, peer.scope, (reason) => this.#end(peer, reason))
      const result = yield* backend.forward(request)
      const { capabilities, info, principal, revision } = request.caller
      const negotiated = JsonRpc.isObject(result) ? Revision.read(result["protocolVersion"]) : undefined
      peer.session = new ServerSession(peer, negotiated ?? revision, info, capabilities, principal)
      return result
    })
  }

  /** Ends a session: its requests fail with the reason. */
  #end(peer: SessionPeer, reason: string): void {
    const session = this.#sessions.get(peer)
    this.#sessions.delete(peer)
    session?.backend?.end(reason)
    // The failures are sent before the session closes.
    peer.close({ _tag: "ClosedByPeer" })
  }

  /** The server of stateless requests, which the first one opens. */
  #stateless(): Effect.Effect<Backend, McpError.McpError> {
    return Effect.suspend(() => {
      if (this.#shared !== undefined) return Deferred.await(this.#shared)
      const shared = this.#shared = Deferred.makeUnsafe<Backend, McpError.McpError>()
      const forget = (): void => {
        if (this.#shared === shared) this.#shared = undefined
      }
      const own = Scope.forkUnsafe(this.#scope)
      const opening = Effect.tapError(
        this.#open(undefined, own, () => {
          forget()
          Effect.runFork(Scope.close(own, Exit.void))
        }),
        () => Effect.sync(forget)
      )
      // The request that opens it may be cancelled while others wait for it.
      Effect.runFork(Deferred.into(opening, shared))
      return Deferred.await(shared)
    })
  }

  #open(
    peer: SessionPeer | undefined,
    scope: Scope.Scope,
    ended: (reason: string) => void
  ): Effect.Effect<Backend, McpError.McpError> {
    return Effect.map(
      Effect.mapError(Scope.provide(this.#connect, scope), ({ message }) => failed(message)),
      (connection) => {
        const backend = new Backend(connection, peer, (reason) => {
          backend.end(reason)
          ended(reason)
        })
        return backend
      }
    )
  }
}
