/**
 * A rate limit: how many requests are handled in a period of time. "Servers MUST rate limit tool invocations"
 * (2026-07-28, server/tools, security considerations; likewise in the other revisions).
 *
 * It counts `tools/call` by default, separately for each principal and tool. At the limit a request is refused with the
 * error code `429`, which is outside of the range that JSON-RPC reserves, a message with the time of the next try, and
 * `data.retryAfterMs`. Refused requests do not count. A handler that sends input requests in the stateless revision
 * runs once per round, and each run counts.
 *
 * `layer` stores the counts in memory, for one process. `layerStore` stores them in Effect's `RateLimiter`, which
 * several processes can share.
 *
 * @example
 * const server = McpServer.layer(
 *   { name: "search", version: "1.0.0" },
 *   RateLimit.layer({ limit: 10, interval: "1 minute" }),
 *   Tool.layer(search, find)
 * )
 *
 * @example
 * const limit = RateLimit.layerStore({ limit: 10, interval: "1 minute" }).pipe(
 *   Layer.provide(RateLimiter.layer),
 *   Layer.provide(RateLimiter.layerStoreRedis())
 * )
 */
import * as McpError from "@skein/protocol/McpError"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Defaults from "@skein/runtime/Options"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { Bounds } from "./internal/base/fixedBounds.ts"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import * as rateLimitStore from "./internal/middleware/rateLimitStore.ts"
import { describeRequest, formatMillis, withoutRequest } from "./internal/middleware/failureAnswer.ts"
import { targetOf } from "./internal/middleware/target.ts"
import * as Middleware from "./Middleware.ts"

/** The code of the error that refuses a request. */
export const code = 429

/** The limit, and the requests that it applies to. */
export interface Options {
  /** The number of requests of a key in each `interval`: 60 by default, at least 1. */
  readonly limit?: number | undefined
  /** The period of time: 1 minute by default. */
  readonly interval?: Duration.Input | undefined
  /**
   * `token-bucket` (the default): up to `limit` requests at once, and one more each `interval / limit`. `fixed-window`:
   * up to `limit` requests until the interval is over.
   */
  readonly algorithm?: "token-bucket" | "fixed-window" | undefined
  /** Requests with the same key share the limit: `Middleware.perPrincipalAndTarget` by default. */
  readonly key?: Middleware.Key | undefined
  /** The methods that the limit applies to: `["tools/call"]` by default. */
  readonly methods?: Middleware.Methods | undefined
}

/** Options of a limit in a store. */
export interface StoreOptions extends Options {
  /**
   * The prefix of the keys in the store: `mcp:` by default. Servers with the same prefix share their counts. Different
   * limits need different prefixes.
   */
  readonly prefix?: string | undefined
  /** The answer if the store fails: `refuse` (the default) with `-32603`, or `allow`. Both are logged. */
  readonly onStoreError?: "refuse" | "allow" | undefined
}

/**
 * Limits the rate of requests, with counts in memory.
 *
 * @example
 * RateLimit.layer({ limit: 10, interval: "1 minute", key: Middleware.perPrincipal })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  registerLayer<never>((catalog) => {
    const { maxKeys } = Context.get(catalog[internals].base, Bounds)
    const store = rateLimitStore.makeStore(new rateLimitStore.RateLimitMemory(maxKeys))
    const added = Effect.flatMap(
      Effect.provideContext(RateLimiter.make, Context.make(RateLimiter.RateLimiterStore, store)),
      ({ consume }) => catalog[internals].middleware.add(limit(catalog, consume, options))
    )
    return Effect.andThen(ProcessLocal.report(inMemory), added)
  })

const inMemory = {
  what: "the counts of RateLimit.layer",
  remedy: "use RateLimit.layerStore with a store that all share"
}

/**
 * Limits the rate of requests, with counts in the store of the `RateLimiter` that the layer is provided with.
 *
 * @example
 * RateLimit.layerStore({ limit: 10 }).pipe(
 *   Layer.provide(RateLimiter.layer),
 *   Layer.provide(RateLimiter.layerStoreRedis())
 * )
 */
export const layerStore = (
  options: StoreOptions = {}
): Layer.Layer<never, DefinitionError, Catalog | RateLimiter.RateLimiter> =>
  registerLayer<RateLimiter.RateLimiter>((catalog) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const { consume } = Context.getUnsafe(context, RateLimiter.RateLimiter)
      return catalog[internals].middleware.add(
        limit(catalog, consume, { ...options, prefix: options.prefix ?? "mcp:" })
      )
    })
  )

const limit = (
  catalog: Catalog["Service"],
  consume: RateLimiter.RateLimiter["consume"],
  options: StoreOptions
): Middleware.Middleware => {
  const key = options.key ?? Middleware.perPrincipalAndTarget
  const appliesTo = Middleware.includes(options.methods ?? ["tools/call"])
  const prefix = options.prefix ?? ""
  const settings = {
    limit: Math.max(1, Math.floor(options.limit ?? 60)),
    window: Duration.millis(Defaults.resolve({ interval: options.interval }, {}, { interval: "1 minute" }).interval),
    algorithm: options.algorithm ?? "token-bucket",
    onExceeded: "fail"
  } as const
  return (next) => (request) =>
    appliesTo(request.method)
      ? Effect.matchEffect(consume({ ...settings, key: prefix + key(request, targetOf(catalog, request)) }), {
        onSuccess: () => next(request),
        onFailure: ({ reason }) =>
          reason._tag === "RateLimitExceeded"
            ? Effect.fail(tooMany(request, settings, Math.max(1, Math.ceil(Duration.toMillis(reason.retryAfter)))))
            : Effect.andThen(
              withoutRequest(
                Effect.logWarning(`rate limit of ${describeRequest(request)} not checked: its store failed`, reason)
              ),
              () =>
                options.onStoreError === "allow"
                  ? next(request)
                  : Effect.fail(McpError.other(-32603, "The rate limit cannot be checked. Try again later"))
            )
      })
      : next(request)
}

const tooMany = (
  request: RequestContext,
  settings: { readonly limit: number; readonly window: Duration.Duration },
  retryAfterMs: number
): McpError.McpError => {
  const most = `at most ${settings.limit} in ${formatMillis(Duration.toMillis(settings.window))}`
  const text = `Too many requests: ${most} for ${describeRequest(request)}. Try again in ${formatMillis(retryAfterMs)}`
  return McpError.other(code, text, { retryAfterMs })
}
