/**
 * The state that all calls of one client share: its connection, and everything it remembers of its server.
 */
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { Call, Handler } from "../../Middleware.ts"
import type { Cached } from "../calls/cache/cache.ts"
import type { ClientContext, InternalOptions } from "../calls/context.ts"
import { type Bounds, walk } from "../calls/pages.ts"
import type { TaskRegistry } from "../calls/taskRegistry.ts"
import type { ToolCatalog } from "../calls/toolCatalog.ts"
import { ToolListRefresh } from "../calls/toolListRefresh.ts"
import { limitOf, type Options } from "../connection/clientOptions.ts"
import type { InputRequestHandler } from "../connection/inputRequests.ts"
import type { ConnectionSupervisor } from "../connection/supervisor.ts"
import { call, withMiddleware } from "./pipeline.ts"
import type { ServerState } from "./serverState.ts"

/** Makes the calls of one client. */
export class ClientContextImpl implements ClientContext {
  readonly supervisor: ConnectionSupervisor
  readonly server: ServerState
  #toolListRefresh: ToolListRefresh | undefined = undefined
  #handler: Handler | undefined = undefined

  constructor(supervisor: ConnectionSupervisor, server: ServerState) {
    this.supervisor = supervisor
    this.server = server
  }

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

  // ---- the options

  get options(): Options {
    return this.server.options
  }

  get enforceCapabilities(): boolean {
    return this.options.enforceCapabilities ?? true
  }

  get maxRounds(): number {
    return limitOf(this.options, "maxRounds")
  }

  get pages(): Bounds {
    const { maxListingChars, maxPages } = this.server.bounds
    return { maxPages, maxItems: limitOf(this.options, "maxItems"), maxSize: maxListingChars }
  }

  // ---- the state of the server

  get answers(): InputRequestHandler {
    return this.server.answers
  }

  get cache(): Cached {
    return this.server.cache
  }

  get toolCatalog(): ToolCatalog {
    return this.server.toolCatalog
  }

  get tasks(): TaskRegistry {
    return this.server.tasks
  }

  get scope(): Scope.Scope {
    return this.server.scope
  }

  warn(...message: ReadonlyArray<unknown>): void {
    this.server.warn(...message)
  }

  warnOnce(key: string, ...message: ReadonlyArray<unknown>): void {
    this.server.warnOnce(key, ...message)
  }

  // ---- calls of its own

  watchTasks(taskIds: ReadonlyArray<string>): Stream.Stream<Change, ClientError> {
    return this.server.changes.on(this, { taskIds })
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
}
