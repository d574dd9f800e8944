/**
 * The types of calls: the state that all calls of a client share, one call on its way to the server, its response, and
 * the layers between them.
 */
import type * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Method from "@skein/protocol/Method"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { Cached } from "./cache/cache.ts"
import type { Configured } from "../connection/clientOptions.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { ConnectionSupervisor } from "../connection/supervisor.ts"
import type { InputRequestHandler } from "../connection/inputRequests.ts"
import type { TaskHandler, TaskProgress, TaskRegistry } from "./taskRegistry.ts"
import type { CallToolOptions } from "../base/callOptions.ts"
import type { ToolListRefresh } from "./toolListRefresh.ts"
import type { ToolCatalog } from "./toolCatalog.ts"

/** The options of a call, and the handling of a task that the server answers with: by default its result is awaited. */
export interface InternalOptions<R = unknown> extends CallToolOptions {
  readonly handleTask?: TaskHandler<R> | undefined
  /**
   * Whether the caller waits for a task, and not for its result (`startTask`). In 2025-11-25 the call fails if it is not
   * known whether the tool supports tasks.
   */
  readonly startsTask?: boolean | undefined
}

/** The state that all calls of one client share. */
export interface ClientContext extends Configured {
  /** Makes a call through all layers. */
  readonly call: <P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    options?: InternalOptions<R>
  ) => Effect.Effect<R, ClientError>
  readonly supervisor: ConnectionSupervisor
  readonly answers: InputRequestHandler
  readonly toolCatalog: ToolCatalog
  readonly tasks: TaskRegistry
  /** The notifications of the server about tasks (stateless revision). */
  readonly watchTasks: (taskIds: ReadonlyArray<string>) => Stream.Stream<Change, ClientError>
  readonly cache: Cached
  /** Lists all tools again, past the cache. */
  readonly toolListRefresh: ToolListRefresh
  /** The scope of effects that outlive the call that started them. */
  readonly scope: Scope.Scope
  /** Logs a warning once for each key. */
  readonly warnOnce: (key: string, ...message: ReadonlyArray<unknown>) => void
}

/** A call on its way to the server. A layer passes it on as it is, or a copy with other members. */
export interface CallContext {
  readonly client: ClientContext
  readonly method: Method.RequestMethod<unknown, unknown>
  readonly params: unknown
  readonly options: InternalOptions
  /** Whether it may be sent twice without harm. */
  readonly isRepeatable: boolean
  /**
   * When the whole call must be over, in milliseconds of the monotonic clock: `Infinity` unless its options have a
   * `maxTimeout`.
   */
  readonly deadline: number
  /** How many times the server has answered it with input requests. */
  readonly rounds: number
  /** The connection that it is sent on; the last one until `retryLostRequests` has chosen. */
  readonly connection: NegotiatedConnection
  /** When the present round began, and when the present attempt did, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  readonly sentAt: number
}

/** The response to a call. The layers complete it on its way to the caller. */
export interface CallResponse {
  /** The connection that it came on. */
  readonly connection: NegotiatedConnection
  /** When the first attempt of this round was made. */
  readonly startedAt: number
  /** The result as it was received. */
  readonly raw: JsonObject
  /** The progress of a call that was augmented with a task (2025-11-25); `undefined` for any other call. */
  augmented: { readonly reports: TaskProgress | undefined } | undefined
  /** The decoded result. Set by `readResponse`. */
  answer: Codec.Answer<unknown> | undefined
  /** The value that the caller receives. */
  result: unknown
  /** Whether the cache may store it: not if it depends on input of the user. */
  keep: boolean
}

/** Makes a call: a layer and all layers inside of it. */
export type CallHandler = (call: CallContext) => Effect.Effect<CallResponse, ClientError>

/** A layer of the client's call. It is applied once, and the handler that it returns is called for each call. */
export type CallLayer = (next: CallHandler) => CallHandler
