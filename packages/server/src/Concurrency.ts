/**
 * A concurrency limit: how many requests are handled at the same time, and how many wait for it.
 *
 * It counts `tools/call` by default, for the whole server together. At the bound the next ones wait, in order, and can be
 * cancelled meanwhile. Where too many wait already, or one has waited too long, it is refused with the error code `503`, which is
 * outside of what JSON-RPC reserves.
 *
 * @example
 * // One report at a time for each principal.
 * const limit = Concurrency.layer({ limit: 1, key: Middleware.perPrincipal })
 */
import * as Duration from "effect/Duration"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { ConcurrencyLimiter } from "./internal/limits/concurrencyLimiter.ts"
import { targetOf } from "./internal/dispatch/target.ts"
import * as Middleware from "./Middleware.ts"

/** The code of the error that refuses a request. */
export const code = 503

/** The bounds. */
export interface Options {
  /** How many requests of a key are handled at the same time: 16 by default, 1 at least. */
  readonly limit?: number | undefined
  /** How many of a key wait: 64 by default. Beyond, they are refused at once. */
  readonly maxWaiting?: number | undefined
  /** How long one waits: 30 seconds by default. Then it is refused. */
  readonly maxWait?: Duration.Input | undefined
  /** What is counted apart: `Middleware.perServer` by default. */
  readonly key?: Middleware.Key | undefined
  /**
   * The methods that count: `["tools/call"]` by default. `all` leaves out `tasks/result` (2025-11-25) besides, which waits as long as a
   * task takes.
   */
  readonly methods?: Middleware.Methods | undefined
}

/** Limits how many requests are handled at the same time. */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  captured.layer<never>((catalog) => {
    const room = new ConcurrencyLimiter(
      code,
      Math.max(1, Math.floor(options.limit ?? 16)),
      Math.max(0, Math.floor(options.maxWaiting ?? 64)),
      Duration.fromInputUnsafe(options.maxWait ?? "30 seconds")
    )
    const key = options.key ?? Middleware.perServer
    const { methods = ["tools/call"] } = options
    const included = Middleware.includes(methods)
    const counts = (method: string): boolean => included(method) && !(methods === "all" && method === "tasks/result")
    return catalog.middleware.add((next) => (exchange) =>
      counts(exchange.method)
        ? room.enter(key(exchange, targetOf(catalog, exchange)), exchange, next)
        : next(exchange)
    )
  })
