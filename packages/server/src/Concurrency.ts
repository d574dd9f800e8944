/**
 * A concurrency limit: how many requests are handled at the same time, and how many wait.
 *
 * It counts `tools/call` by default, for the whole server together. At the limit further requests wait in order and can
 * be cancelled meanwhile. If too many are waiting, or one has waited too long, the request is refused with the error
 * code `503`, which is outside of the range that JSON-RPC reserves.
 *
 * One client may have three quarters of the limit, rounded up, if the key is `Middleware.perServer` or `perTarget`, so
 * that it cannot lock out others; with another key it may have all. A client is a principal, or the network address of an
 * anonymous caller; without either it is not bounded. For a smaller share list a second limit with the key
 * `Middleware.perPrincipal`.
 *
 * @example
 * // One report at a time for each principal.
 * const limit = Concurrency.layer({ limit: 1, key: Middleware.perPrincipal })
 */
import * as Defaults from "@skein/runtime/Options"
import type * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import { makeConcurrencyLimiter } from "./internal/middleware/concurrencyLimiter.ts"
import { targetOf } from "./internal/middleware/target.ts"
import * as Middleware from "./Middleware.ts"

/** The code of the error that refuses a request. */
export const code = 503

/** The limit, and the requests that it applies to. */
export interface Options {
  /** The number of requests of a key that are handled at the same time: 16 by default, at least 1. */
  readonly limit?: number | undefined
  /**
   * The number of waiting requests of a key: 64 by default. Further ones are refused immediately, unless another client
   * has at least twice as many as theirs: then its last one is refused. Set 0 where a request is worth nothing later.
   */
  readonly maxQueuedRequests?: number | undefined
  /** How long a request waits before it is refused: 30 seconds by default. Clients have timeouts of their own. */
  readonly waitTimeout?: Duration.Input | undefined
  /** Requests with the same key share the limit: `Middleware.perServer` by default. */
  readonly key?: Middleware.Key | undefined
  /**
   * The methods that the limit applies to: `["tools/call"]` by default. `all` excludes `subscriptions/listen`, and also
   * `tasks/result` (2025-11-25), which waits as long as the task takes.
   */
  readonly methods?: Middleware.Methods | undefined
}

/**
 * Limits how many requests are handled at the same time.
 *
 * @example
 * Concurrency.layer({ limit: 4, waitTimeout: "5 seconds" })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  registerLayer<never>((catalog) => {
    const key = options.key ?? Middleware.perServer
    const limit = Math.max(1, Math.floor(options.limit ?? 16))
    const isShared = key === Middleware.perServer || key === Middleware.perTarget
    const limiter = makeConcurrencyLimiter(code, {
      limit,
      maxPerClient: isShared ? Math.ceil(limit * 0.75) : limit,
      maxQueuedRequests: Math.max(0, Math.floor(options.maxQueuedRequests ?? 64)),
      ...Defaults.resolve({ waitTimeout: options.waitTimeout }, {}, { waitTimeout: "30 seconds" })
    })
    const { methods = ["tools/call"] } = options
    const included = Middleware.includes(methods)
    const appliesTo = (method: string): boolean => included(method) && !(methods === "all" && method === "tasks/result")
    return catalog[internals].middleware.add((next) => (request) =>
      appliesTo(request.method)
        ? limiter.run(key(request, targetOf(catalog, request)), request, next)
        : next(request)
    )
  })
