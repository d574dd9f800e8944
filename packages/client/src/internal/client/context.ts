/**
 * The state that all calls and all connections of one client share. Its parts are created when they are first needed.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { printableLines } from "@skein/protocol/Text"
import type { Transport } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type { Progress } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { Call, Handler } from "../../Middleware.ts"
import type { Notification } from "../../Notification.ts"
import { NotificationListener } from "../../NotificationListener.ts"
import type { Resolved } from "../../Reconnect.ts"
import { InputRequestHandler } from "../connection/inputRequests.ts"
import { CallClock, CurrentCallClock } from "../base/callClock.ts"
import type { Options } from "../connection/clientOptions.ts"
import * as Cache from "../calls/cache/cache.ts"
import type { ClientContext, InternalOptions } from "../calls/context.ts"
import { call, compose } from "./pipeline.ts"
import { send } from "../calls/send.ts"
import { Changes } from "../calls/subscriptions/changes.ts"
import { connect, type ConnectContext } from "../connection/connect.ts"
import { ToolCatalog } from "../calls/toolCatalog.ts"
import type { ConnectionSupervisor, ScopeListener, SupervisorOptions, Timeouts } from "../connection/supervisor.ts"
import { resolveReconnect } from "../connection/bounds.ts"
import { heartbeat } from "../connection/heartbeat.ts"
import { type NegotiatedConnection, serverProfileOf } from "../connection/connection.ts"
import { ToolListRefresh } from "../calls/toolListRefresh.ts"
import { Broadcast } from "../base/broadcast.ts"
import { type Bounds, walk } from "../calls/pages.ts"
import { createdIn } from "../calls/legacyTasks/requestTask.ts"
import { TaskRegistry } from "../calls/taskRegistry.ts"

// The most characters of one part of a warning.
const maxWarning = 8_192
// How many different warnings of `warnOnce` a client logs. A server chooses a part of each.
const maxWarned = 256

/** The state of one client: the context of its calls, of its connections, and of their supervisor. */
export class ClientContextImpl implements ClientContext, ConnectContext, SupervisorOptions {
  supervisor: ConnectionSupervisor = undefined!
  readonly context: Context.Context<never>
  readonly answers: InputRequestHandler
  readonly options: Options
  readonly policy: Resolved | undefined
  readonly timeouts: Timeouts
  readonly callClock: CallClock
  readonly #transport: Transport
  /** The scope of effects that outlive the call that started them. */
  readonly scope: Scope.Scope
  #cache: Cache.Cached | undefined = undefined
  #definitions: ToolCatalog | undefined = undefined
  #changes: Changes | undefined = undefined
  #notices: Broadcast<Notification> | undefined = undefined
  #toolListRefresh: ToolListRefresh | undefined = undefined
  #tasks: TaskRegistry | undefined = undefined
  #handler: Handler | undefined = undefined
  #warned: Set<string> | undefined = undefined

  constructor(
    transport: Transport,
    options: Options,
    context: Context.Context<never>,
    scope: Scope.Scope
  ) {
    const { timeouts, policy } = resolveReconnect(options, transport)
    this.#transport = transport
    this.options = options
    this.answers = new InputRequestHandler(context, options)
    this.context = context
    this.callClock = Context.getOrUndefined(context, CurrentCallClock) ?? new CallClock()
    this.scope = scope
    this.policy = policy
    this.timeouts = timeouts
  }

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

  // ---- for the calls

  get enforceCapabilities(): boolean {
    return this.options.enforceCapabilities ?? true
  }

  get maxRounds(): number {
    return this.options.maxRounds ?? 10
  }

  get pages(): Bounds {
    const { options } = this
    return {
      maxPages: options.maxPages ?? 1_000,
      maxItems: options.maxItems ?? 10_000,
      maxSize: options.maxListingChars ?? 64 * 1024 * 1024
    }
  }

  get cache(): Cache.Cached {
    return this.#cache ??= Cache.make(this.options.cache, this.context, this.scope)
  }

  get toolCatalog(): ToolCatalog {
    return this.#definitions ??= new ToolCatalog(this)
  }

  get changes(): Changes {
    return this.#changes ??= new Changes(this.#buffer, this.scope)
  }

  get notifications(): Broadcast<Notification> {
    return this.#notices ??= new Broadcast(this.#buffer)
  }

  get tasks(): TaskRegistry {
    return this.#tasks ??= new TaskRegistry(this)
  }

  call<P, R>(
    method: Method.RequestMethod<P, R>,
    params: P,
    options: InternalOptions<R> = {}
  ): Effect.Effect<R, ClientError> {
    const { middleware } = this.options
    if (middleware !== undefined && middleware.length > 0) {
      const handler = this.#handler ??= compose(this, middleware)
      const asked = { server: this.options.label, method, params, options } as unknown as Call
      return Effect.suspend(() => handler(asked)) as Effect.Effect<R, ClientError>
    }
    return call(this, method as Method.RequestMethod<unknown, R>, params, options) as Effect.Effect<R, ClientError>
  }

  watchTasks(taskIds: ReadonlyArray<string>): Stream.Stream<Change, ClientError> {
    return this.changes.on(this, { taskIds })
  }

  get toolListRefresh(): ToolListRefresh {
    return this.#toolListRefresh ??= new ToolListRefresh(this)
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

  /** Discards everything that was remembered of the server. */
  forget(): void {
    this.#definitions?.forget()
    this.clearCache()
  }

  clearCache(): void {
    this.#usedCache?.forget()
  }

  // ---- for the supervisor

  open(fresh: boolean, owned: ScopeListener): Effect.Effect<NegotiatedConnection, ClientError> {
    const serverProfile = fresh ? undefined : this.#known
    return connect(this.#transport, { ...this.options, serverProfile }, this, owned)
  }

  /** The server profile that the next connection is opened with. */
  get #known(): ServerProfile | undefined {
    // Undefined when the first connection is opened.
    const last: NegotiatedConnection | undefined = this.supervisor?.last
    if (last?.agreement.silence !== undefined) return serverProfileOf(last) ?? this.options.serverProfile
    // "Clients SHOULD cache the result for the lifetime of […] origin (HTTP)": the next session is opened without a
    // probe. In the stateless revision, only the probe shows whether the server is reachable again.
    if (last?.isStateless === false && last.connection.httpMode !== undefined) return serverProfileOf(last)
    return last?.isStateless === true && last.isAssumed !== true ? undefined : this.options.serverProfile
  }

  opened(connection: NegotiatedConnection): Effect.Effect<void, never, Scope.Scope> {
    const beats = this.options.heartbeat
    const answering = this.answers.opened(connection)
    return beats === undefined ? answering : Effect.andThen(answering, heartbeat(beats, connection))
  }

  reopened(): void {
    // The next connection may lead to another server.
    this.forget()
  }

  ended(): void {
    this.#notices?.end()
  }

  // ---- for the connections

  /** Receives every notification as it was sent, and the request on whose stream it arrived. */
  onNotification(notification: JsonRpc.Notification, about?: JsonRpc.Id): void {
    // The caches are cleared first: a listener that reads again after a change must not receive the old value.
    if (notification.method === Method.ToolListChanged.name) this.#definitions?.forget()
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
    const { cancelTimeout: timeout } = this.tasks.settings
    const cancelled = send(connection, Method.CancelTask.name, { taskId }, { timeout, maxTimeout: timeout })
    Effect.runForkWith(this.context)(Effect.forkIn(Effect.ignore(cancelled), this.scope))
  }

  onGap(error: TransportError | undefined): void {
    this.#changes?.onGap(error)
  }

  get hasListeners(): boolean {
    return this.#notices?.hasListeners === true
  }

  get #buffer(): number {
    return this.options.maxBufferedNotifications ?? 256
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
}
