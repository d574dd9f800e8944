/**
 * The state that all calls of one client share: its connection, and everything that it remembers of its server, which are
 * the definitions of tools, cached responses, tasks in progress, and the readers of changes and notifications. It outlives
 * the connections, and receives their messages.
 *
 * Its parts are created when they are first needed: an idle client has none of them.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Method from "@skein/protocol/Method"
import { printableLines } from "@skein/protocol/Text"
import type { TransportError } from "@skein/runtime/TransportError"
import type { Progress } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { Call, Handler } from "../../Middleware.ts"
import type { Notification } from "../../Notification.ts"
import { NotificationListener } from "../../NotificationListener.ts"
import { Broadcast } from "../base/broadcast.ts"
import { CallClock, CurrentCallClock } from "../base/callClock.ts"
import { FixedBounds } from "../base/fixedBounds.ts"
import * as Cache from "../calls/cache/cache.ts"
import type { ClientContext, InternalOptions } from "../calls/context.ts"
import { createdIn } from "../calls/legacyTasks/requestTask.ts"
import { walk } from "../calls/pages.ts"
import { send } from "../calls/send.ts"
import { unsupportedOn } from "../calls/support.ts"
import { Changes } from "../calls/subscriptions/changes.ts"
import { TaskRegistry } from "../calls/taskRegistry.ts"
import { ToolCatalog } from "../calls/toolCatalog.ts"
import { ToolListRefresh } from "../calls/toolListRefresh.ts"
import { limitOf, type Options } from "../connection/clientOptions.ts"
import type { SharedState } from "../connection/connected.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { InputRequestHandler } from "../connection/inputRequests.ts"
import type { ConnectionSupervisor, SupervisorListener } from "../connection/supervisor.ts"
import { call, withMiddleware } from "./pipeline.ts"

/**
 * `logging/setLevel` in all revisions. The stateless revision sends the level with each request and has no such method, but
 * the same capability.
 */
export const setLevel = { ...Method.SetLevel, until: undefined }

// The most characters of one part of a warning.
const maxWarning = 8_192
// How many different warnings of `warnOnce` a client logs. A server chooses a part of each.
const maxWarned = 256

/** The state of one client, and its calls. */
export class ClientContextImpl implements ClientContext, SharedState, SupervisorListener {
  /** The connection of the client. Set once the first one is open. */
  supervisor: ConnectionSupervisor = undefined!
  /** The level of log messages that the host has set. */
  loggingLevel: LoggingLevel | undefined = undefined
  readonly options: Options
  /** The services of effects that run outside of calls. */
  readonly context: Context.Context<never>
  /** The scope of effects that outlive the call that started them. */
  readonly scope: Scope.Scope
  /** The clock of the timeouts of calls. */
  readonly callClock: CallClock
  /** Handles the input requests of the server. */
  readonly answers: InputRequestHandler
  #cache: Cache.Cached | undefined = undefined
  #toolCatalog: ToolCatalog | undefined = undefined
  #changes: Changes | undefined = undefined
  #notifications: Broadcast<Notification> | undefined = undefined
  #tasks: TaskRegistry | undefined = undefined
  #toolListRefresh: ToolListRefresh | undefined = undefined
  #handler: Handler | undefined = undefined
  #warned: Set<string> | undefined = undefined

  constructor(options: Options, context: Context.Context<never>, scope: Scope.Scope) {
    this.options = options
    this.context = context
    this.scope = scope
    this.callClock = Context.getOrUndefined(context, CurrentCallClock) ?? new CallClock()
    this.answers = new InputRequestHandler(context, options)
  }

  // ---- calls

  call<P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    options: InternalOptions<R> = {}
  ): Effect.Effect<R, ClientError> {
    const { label, middleware } = this.options
    if (middleware !== undefined && middleware.length > 0) {
      const handler = this.#handler ??= withMiddleware(this, middleware)
      const asked = { server: label, method, params, options } as unknown as Call
      return Effect.suspend(() => handler(asked)) as Effect.Effect<R, ClientError>
    }
    return call(this, method as Method.RequestMethod<unknown, R>, params, options) as Effect.Effect<R, ClientError>
  }

  watchTasks(taskIds: ReadonlyArray<string>): Stream.Stream<Change, ClientError> {
    return this.changes.on(this, { taskIds })
  }

  /** Lists all tools again, past the cache. */
  get listAllTools(): Effect.Effect<unknown, ClientError> {
    const page = (cursor: string | undefined) =>
      this.call(Method.ListTools, cursor === undefined ? {} : { cursor }, { cache: "refresh" })
    return Effect.tap(
      walk(Method.ListTools.name, this, page, ({ tools }) => tools),
      () => Effect.sync(() => this.toolCatalog.relisted())
    )
  }

  // ---- warnings

  /** Logs a warning, from code that does not run in an effect. Its texts may quote the server. */
  warn(...message: ReadonlyArray<unknown>): void {
    const shown = message.map((part) => typeof part === "string" ? printableLines(part, maxWarning) : part)
    Effect.runForkWith(this.context)(Effect.logWarning(...shown))
  }

  warnOnce(key: string, ...message: ReadonlyArray<unknown>): void {
    const warned = this.#warned ??= new Set()
    if (warned.has(key) || warned.size >= maxWarned) return
    warned.add(key)
    this.warn(...message)
  }

  // ---- its parts

  get cache(): Cache.Cached {
    return this.#cache ??= Cache.make(this.options.cache, this.context, this.scope)
  }

  get toolCatalog(): ToolCatalog {
    return this.#toolCatalog ??= new ToolCatalog(this)
  }

  get toolListRefresh(): ToolListRefresh {
    return this.#toolListRefresh ??= new ToolListRefresh(this)
  }

  get changes(): Changes {
    return this.#changes ??= new Changes(this.#bufferSize, this.scope)
  }

  get notifications(): Broadcast<Notification> {
    return this.#notifications ??= new Broadcast(this.#bufferSize)
  }

  get tasks(): TaskRegistry {
    return this.#tasks ??= new TaskRegistry(this)
  }

  get bounds(): FixedBounds {
    return Context.get(this.context, FixedBounds)
  }

  get #bufferSize(): number {
    return limitOf(this.options, "maxBufferedNotifications")
  }

  /**
   * The cache, if it may contain responses of the server. A shared store must be notified of stale responses even if
   * this client has not read from it.
   */
  get #usedCache(): Cache.Cached | undefined {
    const { cache } = this.options
    const isShared = cache !== undefined && cache !== false && cache.store !== undefined
    return isShared ? this.cache : this.#cache
  }

  clearCache(): void {
    this.#usedCache?.forget()
  }

  // ---- for the supervisor

  /**
   * Discards everything that was remembered, since the connection may lead to another server, and sets the level of log
   * messages again.
   */
  reopened(connection: NegotiatedConnection): Effect.Effect<void> {
    this.#toolCatalog?.forget()
    this.clearCache()
    const level = this.loggingLevel
    if (level === undefined || unsupportedOn(this, connection, setLevel) !== undefined) return Effect.void
    if (connection.isStateless) return Effect.sync(() => connection.setLogLevel(level))
    return Effect.match(send(connection, setLevel.name, { level }, {}), {
      onFailure: (error) => this.warn("The level of the server's log messages was not set again:", error.message),
      onSuccess: () => {}
    })
  }

  ended(): void {
    this.#notifications?.end()
  }

  // ---- for the connections

  get hasReaders(): boolean {
    return this.#notifications?.hasListeners === true
  }

  publish(notification: Notification): void {
    this.#notifications?.publish(notification)
  }

  onNotification(notification: JsonRpc.Notification, about?: JsonRpc.Id): void {
    // The caches are cleared first: a listener that reads again after a change must not receive the old value.
    if (notification.method === Method.ToolListChanged.name) this.#toolCatalog?.forget()
    this.#usedCache?.notice(notification)
    this.#changes?.onNotification(notification)
    this.#tasks?.onNotification(notification)
    this.answers.onNotification(notification)
    Context.getOrUndefined(this.context, NotificationListener)?.onNotification(
      notification,
      typeof about === "number" ? about : undefined
    )
  }

  onUnmatchedProgress(peer: Peer, token: unknown, progress: Progress): void {
    this.#tasks?.onUnmatchedProgress(peer, token, progress)
  }

  /** Cancels a task that was created for a call which was interrupted before the response came. */
  onLateResponse(connection: NegotiatedConnection, method: string, result: JsonRpc.JsonObject): void {
    const taskId = method === Method.CallTool.name ? createdIn(result) : undefined
    if (taskId === undefined || !this.tasks.enabled) return
    const { cancelTimeout: timeout } = this.bounds
    const cancelled = send(connection, Method.CancelTask.name, { taskId }, { timeout, maxTimeout: timeout })
    Effect.runForkWith(this.context)(Effect.forkIn(Effect.ignore(cancelled), this.scope))
  }

  onGap(error: TransportError | undefined): void {
    this.#changes?.onGap(error)
  }
}
