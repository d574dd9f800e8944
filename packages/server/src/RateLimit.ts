/**
 * A rate limit: how many requests are handled in a time. "Servers MUST rate limit tool invocations" (2026-07-28, server/tools,
 * security considerations; the other revisions alike).
 *
 * It counts `tools/call` by default, for each principal and tool apart. At the bound a request is refused with the error code
 * `429`, which is outside of what JSON-RPC reserves, with text that says when to try again and `data.retryAfterMs`. A refused
 * request counts for nothing. A handler that asks the client something in the request era is called once more for each round of
 * answers, and each of these calls counts.
 *
 * The counts are kept in memory by `layer`, for one process; `layerShared` keeps them wherever Effect's `RateLimiter` does.
 *
 * @example
 * const server = McpServer.layer(
 *   { name: "search", version: "1.0.0" },
 *   RateLimit.layer({ limit: 10, window: "1 minute" }),
 *   Tool.layer(search, find)
 * )
 *
 * @example
 * const limit = RateLimit.layerShared({ limit: 10, window: "1 minute" }).pipe(
 *   Layer.provide(RateLimiter.layer),
 *   Layer.provide(RateLimiter.layerStoreRedis())
 * )
 */
import * as McpError from "@skein/protocol/McpError"
import type { RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import * as limiterStore from "./internal/limits/rateLimitStore.ts"
import { describeRequest, formatMillis, withoutRequest } from "./internal/limits/failRequest.ts"
import { targetOf } from "./internal/dispatch/target.ts"
import * as Middleware from "./Middleware.ts"

/** The code of the error that refuses a request. */
export const code = 429

/** What is counted, and how much of it is let through. */
export interface Options {
  /** How many requests of a key in each `window`: 60 by default, 1 at least. */
  readonly limit?: number | undefined
  /** 1 minute by default. */
  readonly window?: Duration.Input | undefined
  /**
   * `token-bucket`, the default: up to `limit` at once, after which there is room for another one each `window / limit`.
   * `fixed-window`: up to `limit`, and then none until the window is over.
   */
  readonly algorithm?: "token-bucket" | "fixed-window" | undefined
  /** What is counted apart: `Middleware.perPrincipalAndTarget` by default. */
  readonly key?: Middleware.Key | undefined
  /** The methods that count: `["tools/call"]` by default. */
  readonly methods?: Middleware.Methods | undefined
}

/** The same, with the bound of the memory. */
export interface MemoryOptions extends Options {
  /** The keys that are remembered: 10,000 by default. Beyond, what the one used longest ago has used is forgotten. */
  readonly maxKeys?: number | undefined
}

/** The same, with what the shared store needs. */
export interface SharedOptions extends Options {
  /**
   * What the keys start with: `mcp:` by default. Servers with the same prefix share what is used; limits that are not the same
   * need prefixes that are not.
   */
  readonly prefix?: string | undefined
  /** What becomes of a request that cannot be counted: `refuse`, the default, with `-32603`; or `allow`. The log hears of both. */
  readonly onStoreError?: "refuse" | "allow" | undefined
}

/** What the limiters of both layers are asked. */
type Consume = RateLimiter.RateLimiter["consume"]

/** Limits the rate of requests, with what was used kept in memory. */
export const layer = (options: MemoryOptions = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  captured.layer<never>((catalog) => {
    const store = limiterStore.makeStore(new limiterStore.RateLimitMemory(options.maxKeys ?? 10_000))
    return Effect.flatMap(
      Effect.provideContext(RateLimiter.make, Context.make(RateLimiter.RateLimiterStore, store)),
      ({ consume }) => catalog.middleware.add(limit(catalog, consume, options))
    )
  })

/** Limits the rate of requests, with what was used kept by the `RateLimiter` that the layer is provided with. */
export const layerShared = (
  options: SharedOptions = {}
): Layer.Layer<never, DefinitionError, Catalog | RateLimiter.RateLimiter> =>
  captured.layer<RateLimiter.RateLimiter>((catalog) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const { consume } = Context.getUnsafe(context, RateLimiter.RateLimiter)
      return catalog.middleware.add(limit(catalog, consume, { ...options, prefix: options.prefix ?? "mcp:" }))
    })
  )

const limit = (catalog: Catalog["Service"], consume: Consume, options: SharedOptions): Middleware.Middleware => {
  const key = options.key ?? Middleware.perPrincipalAndTarget
  const counts = Middleware.includes(options.methods ?? ["tools/call"])
  const prefix = options.prefix ?? ""
  const terms = {
    limit: Math.max(1, Math.floor(options.limit ?? 60)),
    window: Duration.fromInputUnsafe(options.window ?? "1 minute"),
    algorithm: options.algorithm ?? "token-bucket",
    onExceeded: "fail"
  } as const
  return (next) => (exchange) =>
    counts(exchange.method)
      ? Effect.matchEffect(consume({ ...terms, key: prefix + key(exchange, targetOf(catalog, exchange)) }), {
        onSuccess: () => next(exchange),
        onFailure: ({ reason }) =>
          reason._tag === "RateLimitExceeded"
            ? Effect.fail(tooMany(exchange, terms, Math.max(1, Math.ceil(Duration.toMillis(reason.retryAfter)))))
            : Effect.andThen(
              withoutRequest(
                Effect.logWarning(`The rate limit of ${describeRequest(exchange)} cannot be checked`, reason)
              ),
              () =>
                options.onStoreError === "allow"
                  ? next(exchange)
                  : Effect.fail(McpError.other(-32603, "The rate limit cannot be checked now. Try again later"))
            )
      })
      : next(exchange)
}

const tooMany = (
  exchange: RequestContext,
  terms: { readonly limit: number; readonly window: Duration.Duration },
  retryAfterMs: number
): McpError.McpError => {
  const most = `at most ${terms.limit} in ${formatMillis(Duration.toMillis(terms.window))}`
  const text = `Too many requests: ${most} for ${describeRequest(exchange)}. Try again in ${formatMillis(retryAfterMs)}`
  return McpError.other(code, text, { retryAfterMs })
}
