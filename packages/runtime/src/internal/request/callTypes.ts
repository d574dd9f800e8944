/**
 * The types of a request that neither `Exchange` nor `RequestContext` refers back to: its sender, its calls and its round.
 * `RequestContext` exports them.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Headers, Principal } from "../../Connection.ts"
import type { RequestError } from "../../RequestError.ts"
import type { Session, SessionEnd } from "../../Session.ts"

/** The sender of a request, as the request itself or its session describes it. */
export interface Caller {
  /** The revision that the request is written in, and is answered in. */
  readonly revision: Revision.Revision
  /** Name and version of the client, as the client sent them. Not to be trusted. */
  readonly info: JsonRpc.JsonObject | undefined
  /** The capabilities that the client declared. */
  readonly capabilities: JsonRpc.JsonObject
  /** The least severe level of the log messages that the client wants for this request, if it named one. */
  readonly logLevel?: string | undefined
  /** The authenticated user, if the transport or the application around it has found one. */
  readonly principal?: Principal | undefined
}

/** Why a request is refused before it is dispatched, and the revision of the error response. */
export interface Refusal {
  readonly error: McpError.McpError
  readonly revision: Revision.Revision
}

/** Options of one outbound call. */
export interface CallOptions {
  /** How long to wait for the response, instead of the connection's `timeout`. */
  readonly timeout?: Duration.Input | undefined
  /** How long to wait in total, instead of the connection's `maxTimeout`. */
  readonly maxTimeout?: Duration.Input | undefined
  /**
   * Asks the peer for progress. Each report restarts the timeout. Reports come in order, and never after the response.
   * An error that the callback throws is logged.
   */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /**
   * Receives the notifications of the subscription that the request opens (`subscriptions/listen`). An error that it
   * throws is logged.
   */
  readonly onNotification?: ((notification: JsonRpc.Notification) => void) | undefined
  /**
   * Receives the id of the request right before it is sent. The id is also its progress token if `onProgress` is given,
   * and if the request is answered with a task (2025-11-25), it stays the token of the task; see `onUnmatchedProgress`
   * of a peer.
   */
  readonly onSend?: ((id: number) => void) | undefined
  /** Headers that repeat a part of the params, for a connection that `sendsHeaders`. */
  readonly headers?: Headers | undefined
  /**
   * Stateless revisions: the key of the input request when the handler runs again, instead of a digest of its content.
   */
  readonly key?: string | undefined
  /**
   * Stateless revisions, with a `key`: whether a response under that key counts although nothing has requested it yet.
   */
  readonly acceptUnsolicited?: boolean | undefined
  /** The person or group that answers, in place of the caller: a request that is stored (`RequestContext.asksOthers`). */
  readonly to?: string | undefined
}

/** The result of an outbound call. */
export type CallResult = Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError>

/**
 * One run of a handler. In a stateless revision a server cannot send requests while it handles one, so the handler runs
 * once per round of input requests.
 */
export interface Round {
  /**
   * Sends an input request in the result of this request. The client then sends the request again, with the response.
   */
  readonly ask: (
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ) => CallResult
  /** Runs an effect once per request, however often its handler runs. The result of the effect must be JSON. */
  readonly once: <E, R>(key: string, effect: Effect.Effect<unknown, E, R>) => Effect.Effect<unknown, E, R>
}

/** A step that a handler executes: a part of a task that is recorded. */
export interface RunningStep {
  readonly name: string
  /** The number of the attempt, from 1. */
  readonly attempt: number
  /** When the attempt began, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  readonly fiber: Fiber.Fiber<unknown, unknown>
}

/** Progress of a request: `progress` grows with every report, `total` and `message` are optional. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** The peer of a session, for the requests in it. */
export interface SessionPeer {
  /**
   * The negotiated session; undefined before `initialize` is handled, and on a connection with stateless requests only.
   */
  session: Session | undefined
  /** Whether the session stays until the connection ends: the transport names it. See `Connection.hasSessionId`. */
  readonly hasSessionId: boolean
  /** Sends a request and waits for its response. Interrupting it sends `notifications/cancelled`. */
  readonly request: (method: string, params?: JsonRpc.JsonObject, options?: CallOptions) => CallResult
  /**
   * Sends a notification. Waits while the peer is slow to read; does nothing after the end. Parameters without JSON
   * form are a defect.
   */
  readonly notify: (method: string, params?: JsonRpc.JsonObject) => Effect.Effect<void>
  /**
   * Closes the session on this side. Requests in flight are interrupted, calls fail with `Closed`. A session that has
   * ended already keeps its reason; if it still waits for requests to finish, it stops waiting.
   *
   * `stopping`: this side shuts down as a whole. Its requests can read that: see `RequestContext.stopped`.
   */
  readonly close: (end: SessionEnd, stopping?: boolean) => void
  /** Closed when the session ends. Made when first read. */
  readonly scope: Scope.Scope
}
