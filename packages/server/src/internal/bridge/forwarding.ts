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

/**
 * One server, with its requests in both directions. `peer` is the client of its session, and undefined for stateless
 * requests.
 */
const makeBackend = (connection: Connection, peer: SessionPeer | undefined, ended: (reason: string) => void) => {
  const waiting = new Map<JsonRpc.Id, Waiting>()
  /** The requests of the server that wait for the client. */
  const asking = new Map<JsonRpc.Id, Fiber.Fiber<JsonRpc.JsonObject, McpError.McpError | RequestError>>()
  let counter = 0

  const newestRequest = (): RequestContext | undefined => [...waiting.values()].at(-1)?.request

  /** Sends a request to the server. Interrupting it cancels the request there. */
  const forward = (request: RequestContext): Effect.Effect<Answer, McpError.McpError> =>
    Effect.callback((resume) => {
      const { method, params } = request
      const meta = object(params?.["_meta"])
      const token = meta["progressToken"]
      const id = peer === undefined ? `http:${++counter}` : request.id
      waiting.set(id, { request, token, resume })
      const named = peer === undefined && token !== undefined
        ? { ...params, _meta: { ...meta, progressToken: id } }
        : params
      connection.send(JsonRpc.request(id, method, named))
      return Effect.sync(() => {
        if (waiting.delete(id)) notify(JsonRpc.notification("notifications/cancelled", { requestId: id }))
      })
    })

  /** Sends a notification to the server. */
  const notify = (notification: JsonRpc.Notification): void => {
    connection.send(notification)
  }

  /** Fails the requests that wait. */
  const end = (reason: string): void => {
    for (const { resume } of waiting.values()) resume(Effect.fail(failed(reason)))
    waiting.clear()
  }

  const receive = (message: JsonRpc.Inbound): void => {
    switch (message._tag) {
      case "Success":
        return settle(message.id, () => Effect.succeed(message.result))
      case "Failure":
        return settle(message.id, (request) => Effect.fail(errorOf(message.error, request)))
      case "Invalid":
        return settle(
          message.answer ? message.id : undefined,
          (request) => Effect.fail(errorOf(message.error, request))
        )
      case "Batch":
        for (const member of message.members) receive(member)
        return
      case "Request":
        return ask(message)
      case "Notification":
        return pass(message)
    }
  }

  const settle = (
    id: JsonRpc.Id | undefined,
    answer: (request: RequestContext) => Effect.Effect<Answer, McpError.McpError>
  ): void => {
    const settled = id === undefined ? undefined : waiting.get(id)
    if (settled === undefined) return
    waiting.delete(id!)
    settled.resume(answer(settled.request))
  }

  /** Passes a notification of the server on to the request that it belongs to. */
  const pass = ({ method, params = {} }: JsonRpc.Notification): void => {
    if (method === "notifications/cancelled") {
      return void asking.get(params["requestId"] as JsonRpc.Id)?.interruptUnsafe()
    }
    const meta = object(params["_meta"])
    const [subscription, progress] = [meta[subscriptionKey], params["progressToken"]]
    for (const [id, { request, token }] of waiting) {
      if (subscription !== undefined && subscription === id) {
        const own = { ...params, _meta: { ...meta, [subscriptionKey]: request.id } }
        return void Effect.runFork(request.notify(method, own))
      }
      if (progress !== undefined && progress === (peer === undefined ? id : token)) {
        return void Effect.runFork(request.notify(method, { ...params, progressToken: token }))
      }
    }
    const newest = newestRequest()
    const sent = newest === undefined ? peer?.notify(method, params) : newest.notify(method, params)
    if (sent !== undefined) Effect.runFork(sent)
  }

  /** Passes a request of the server on to the client, and its response back. */
  const ask = ({ id, method, params }: JsonRpc.Request): void => {
    const target = newestRequest() ?? peer
    if (target === undefined) {
      const error = { code: -32601, message: `${method} was not sent: there is no client that could receive it` }
      return void connection.send(JsonRpc.failure(id, error))
    }
    const { progressToken, ...meta } = object(params?.["_meta"])
    const fiber = Effect.runFork(
      progressToken === undefined
        ? target.request(method, params, { timeout: askTimeout, maxTimeout: askTimeout })
        : target.request(method, { ...params, _meta: meta }, {
          timeout: askTimeout,
          maxTimeout: askTimeout,
          onProgress: (progress) =>
            notify(JsonRpc.notification("notifications/progress", { ...progress, progressToken }))
        })
    )
    asking.set(id, fiber)
    fiber.addObserver((exit) => {
      asking.delete(id)
      if (Exit.isSuccess(exit)) return void connection.send(JsonRpc.success(id, exit.value))
      if (Cause.hasInterruptsOnly(exit.cause)) return
      const error = exit.cause.reasons.find(Cause.isFailReason)?.error
      connection.send(JsonRpc.failure(
        id,
        McpError.isMcpError(error)
          ? McpError.toErrorObject(error, Revision.latestSession)
          : { code: -32603, message: error?.message ?? "Internal error" }
      ))
    })
  }

  connection.open({
    message: receive,
    end: (end) => ended(end._tag === "Lost" ? end.cause.message : "The server has ended")
  })
  return { forward, notify, end }
}

type Backend = ReturnType<typeof makeBackend>

/** A session, and its server once it is connected. */
interface Session {
  backend: Backend | undefined
}

/** The servers behind a bridge: one for each session, and one for all stateless requests. */
export const makeForwarding = (connect: Connect, scope: Scope.Scope, maxServers: number) => {
  /** The sessions, by their last use. */
  const sessions = new Map<SessionPeer, Session>()
  let sharedBackend: Deferred.Deferred<Backend, McpError.McpError> | undefined

  /** Forwards a request of a session, or a stateless request. */
  const dispatch = (request: RequestContext): Effect.Effect<Answer, McpError.McpError> => {
    const { method, peer } = request
    if (peer === undefined) return Effect.flatMap(stateless(), (backend) => backend.forward(request))
    if (method === "initialize") return initialize(request, peer)
    const session = sessions.get(peer)
    if (session?.backend === undefined) return Effect.fail(McpError.invalidRequest("The session is not initialized"))
    sessions.delete(peer)
    sessions.set(peer, session)
    return session.backend.forward(request)
  }

  /** Forwards a notification of a session. */
  const onNotification = (peer: Peer, notification: JsonRpc.Notification): void => {
    sessions.get(peer)?.backend?.notify(notification)
  }

  /** Opens the server of a session. At the bound the session that was used least recently ends. */
  const initialize = (request: RequestContext, peer: SessionPeer): Effect.Effect<Answer, McpError.McpError> =>
    Effect.gen(function*() {
      const [oldest] = sessions.keys()
      if (sessions.size >= maxServers && oldest !== undefined) end(oldest, "The session has ended")
      const session: Session = { backend: undefined }
      sessions.set(peer, session)
      yield* Scope.addFinalizer(peer.scope, Effect.sync(() => sessions.delete(peer)))
      const backend = session.backend = yield* open(peer, peer.scope, (reason) => end(peer, reason))
      const result = yield* backend.forward(request)
      const { capabilities, info, principal, revision } = request.caller
      const negotiated = JsonRpc.isObject(result) ? Revision.read(result["protocolVersion"]) : undefined
      peer.session = new ServerSession(peer, negotiated ?? revision, info, capabilities, principal)
      return result
    })

  /** Ends a session: its requests fail with the reason. */
  const end = (peer: SessionPeer, reason: string): void => {
    const session = sessions.get(peer)
    sessions.delete(peer)
    session?.backend?.end(reason)
    // The failures are sent before the session closes.
    peer.close({ _tag: "ClosedByPeer" })
  }

  /** The server of stateless requests, which the first one opens. */
  const stateless = (): Effect.Effect<Backend, McpError.McpError> =>
    Effect.suspend(() => {
      if (sharedBackend !== undefined) return Deferred.await(sharedBackend)
      const shared = sharedBackend = Deferred.makeUnsafe<Backend, McpError.McpError>()
      const forget = (): void => {
        if (sharedBackend === shared) sharedBackend = undefined
      }
      const own = Scope.forkUnsafe(scope)
      const opening = Effect.tapError(
        open(undefined, own, () => {
          forget()
          Effect.runFork(Scope.close(own, Exit.void))
        }),
        () => Effect.sync(forget)
      )
      // The request that opens it may be cancelled while others wait for it.
      Effect.runFork(Deferred.into(opening, shared))
      return Deferred.await(shared)
    })

  const open = (
    peer: SessionPeer | undefined,
    scope: Scope.Scope,
    ended: (reason: string) => void
  ): Effect.Effect<Backend, McpError.McpError> =>
    Effect.map(
      Effect.mapError(Scope.provide(connect, scope), ({ message }) => failed(message)),
      (connection) => {
        const backend: Backend = makeBackend(connection, peer, (reason) => {
          backend.end(reason)
          ended(reason)
        })
        return backend
      }
    )

  return { dispatch, onNotification }
}
