/**
 * Limits of requests: their rate, their number at the same time, their time, and the size of their results; and retries of
 * failed calls.
 */
import type * as Middleware from "@skein/server/Middleware"
import * as Durations from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as EffectRateLimiter from "effect/persistence/RateLimiter"
import type { RateLimiter } from "effect/persistence/RateLimiter"
import { defineLazily, type Definition } from "../base/definition.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import type { ToolCall, ToolChoice } from "./middleware.ts"
import type { McpRequest } from "./request.ts"

/**
 * The requests that share a limit: all of the server, those of one principal (or of one network address of anonymous callers),
 * those of one target (a tool, prompt or resource), or of both. A function makes a key of its own of the request and its
 * target, which is `undefined` for names that do not exist.
 *
 * @example
 * rateLimit({ key: ({ origin }) => origin?.header?.("x-real-ip") ?? "" })
 */
export type LimitKey =
  | "server"
  | "principal"
  | "target"
  | "principalAndTarget"
  | ((request: McpRequest, target: string | undefined) => string)

/** The methods that a limit applies to: a list, or `all` but `subscriptions/listen`, which has no end. */
export type Methods = ReadonlyArray<string> | "all"

const keys = {
  server: "perServer",
  principal: "perPrincipal",
  target: "perTarget",
  principalAndTarget: "perPrincipalAndTarget"
} as const

/** The options with the key of the core. */
const withKey = <O extends { readonly key?: LimitKey | undefined }>(
  { key, ...rest }: O,
  middleware: typeof Middleware
): never =>
  (key === undefined ? rest : { ...rest, key: typeof key === "function" ? key : middleware[keys[key]] }) as never

/** Makes a middleware of a module and of the keys. */
const limiting = <M>(
  load: () => Promise<M>,
  options: { readonly key?: LimitKey | undefined },
  make: (module: M, options: never) => Layer.Layer<never, unknown, unknown>
): Definition =>
  defineLazily(
    () => Promise.all([load(), import("@skein/server/Middleware")]),
    ([module, middleware]) => make(module, withKey(options, middleware))
  )

/** The limit of a rate, and the requests that it applies to. */
export interface RateLimitOptions {
  /** The number of requests of a key in each `interval`: 60 by default, at least 1. */
  readonly limit?: number | undefined
  /** The period of time: 1 minute by default. */
  readonly interval?: Duration | undefined
  /**
   * `token-bucket` (the default): up to `limit` requests at once, and one more each `interval / limit`. `fixed-window`: up to
   * `limit` requests until the interval is over.
   */
  readonly algorithm?: "token-bucket" | "fixed-window" | undefined
  /** Requests with the same key share the limit: `principalAndTarget` by default. */
  readonly key?: LimitKey | undefined
  /** The methods that the limit applies to: `["tools/call"]` by default. */
  readonly methods?: Methods | undefined
  /** The counts of several processes, in a place of yours. In the memory of this process by default. */
  readonly store?: RateLimitStore | undefined
}

/** The counts of a limit that several processes share. */
export interface RateLimitStore {
  /**
   * Counts a request of a key. Returns `undefined` if it is allowed, or the milliseconds after which to try again. An error that
   * it throws is logged.
   */
  readonly consume: (
    key: string,
    rate: {
      readonly limit: number
      readonly intervalMs: number
      readonly algorithm: "token-bucket" | "fixed-window"
    }
  ) => Awaitable<number | undefined>
  /** The answer to a request if `consume` throws: an error with `-32603` (`refuse`, the default), or that of the server. */
  readonly onError?: "refuse" | "allow" | undefined
}

/** The limiter of Effect that asks a store. The middleware uses `consume` only. */
const limiterOf = (limiter: typeof EffectRateLimiter, store: RateLimitStore) => {
  const { RateLimiterError, RateLimitExceeded, RateLimitStoreError } = limiter
  const consume: RateLimiter["consume"] = ({ algorithm = "token-bucket", key, limit, window }) =>
    Effect.flatMap(
      Effect.tryPromise({
        try: async () =>
          store.consume(key, { limit, intervalMs: Durations.toMillis(Durations.fromInputUnsafe(window)), algorithm }),
        catch: (cause) =>
          new RateLimiterError({ reason: new RateLimitStoreError({ message: "consume has thrown an error", cause }) })
      }),
      (waitMs) =>
        waitMs === undefined
          ? Effect.succeed({ delay: Durations.zero, limit, remaining: 0, resetAfter: Durations.zero })
          : Effect.fail(
            new RateLimiterError({
              reason: new RateLimitExceeded({ key, limit, remaining: 0, retryAfter: Durations.millis(waitMs) })
            })
          )
    )
  return Layer.succeed(limiter.RateLimiter, { consume } as RateLimiter)
}

/**
 * Limits the rate of requests, with counts in memory or in a store. Further requests are refused with the JSON-RPC code 429 and the time
 * after which to try again.
 *
 * @example
 * server.use(rateLimit({ limit: 10, interval: "1 minute", key: "principal" }))
 *
 * @example
 * const store = { consume: (key, { limit, intervalMs }) => redis.take(`mcp:${key}`, limit, intervalMs) }
 * server.use(rateLimit({ limit: 10, store }))
 */
export const rateLimit = ({ store, ...options }: RateLimitOptions = {}): Definition =>
  store === undefined
    ? limiting(() => import("@skein/server/RateLimit"), options, ({ layer }, options) => layer(options))
    : limiting(
      () => Promise.all([import("@skein/server/RateLimit"), import("effect/persistence/RateLimiter")]),
      options,
      ([{ layerStore }, limiter], options: object) =>
        Layer.provide(
          layerStore({ ...options, prefix: "", onStoreError: store.onError }),
          limiterOf(limiter, store)
        )
    )

/** The limits of the time of requests. */
export interface TimeoutOptions {
  /** The limit of requests without one of their own below: 1 minute by default. */
  readonly timeout?: Duration | undefined
  /** Limits by method. `subscriptions/listen` and `tasks/result` have a limit only if they are listed here. */
  readonly methods?: { readonly [method: string]: Duration } | undefined
  /** Limits by the name of the tool. */
  readonly tools?: { readonly [name: string]: Duration } | undefined
}

/**
 * Limits how long the handling of a request may take. Then the handler ends early, and the caller receives an error with the
 * limit. A handler that does not stop within 5 seconds is abandoned, with a warning.
 *
 * @example
 * server.use(timeout({ timeout: "10 seconds" }))
 */
export const timeout = (options?: TimeoutOptions): Definition =>
  defineLazily(() => import("@skein/server/Timeout"), ({ layer }) => layer(options))

/** The limit of concurrent requests, and the requests that it applies to. */
export interface ConcurrencyOptions {
  /** The number of requests of a key that are handled at the same time: 16 by default, at least 1. */
  readonly limit?: number | undefined
  /** The number of waiting requests of a key: 64 by default. Further ones are refused with the code 503. */
  readonly maxQueuedRequests?: number | undefined
  /** How long a request waits before it is refused: 30 seconds by default. */
  readonly waitTimeout?: Duration | undefined
  /** Requests with the same key share the limit: `server` by default. */
  readonly key?: LimitKey | undefined
  /** The methods that the limit applies to: `["tools/call"]` by default. `all` excludes `tasks/result` too. */
  readonly methods?: Methods | undefined
}

/**
 * Limits how many requests are handled at the same time.
 *
 * @example
 * server.use(concurrency({ limit: 4, waitTimeout: "5 seconds" }))
 */
export const concurrency = (options: ConcurrencyOptions = {}): Definition =>
  limiting(() => import("@skein/server/Concurrency"), options, ({ layer }, options) => layer(options))

/** The largest results, and the requests that it applies to. */
export interface MaxResponseSizeOptions {
  /** The largest result, in bytes of UTF-8: 4 MiB by default. */
  readonly maxBytes?: number | undefined
  /** The methods that the limit applies to: `all` by default. */
  readonly methods?: Methods | undefined
}

/**
 * Limits how large a result may be. The caller of a larger one receives an error with both sizes.
 *
 * @example
 * server.use(maxResponseSize({ maxBytes: 256 * 1024, methods: ["tools/call", "resources/read"] }))
 */
export const maxResponseSize = (options?: MaxResponseSizeOptions): Definition =>
  defineLazily(() => import("@skein/server/MaxResponseSize"), ({ layer }) => layer(options))

/** A failed run of a handler. */
export interface RetryAttempt {
  readonly call: ToolCall
  /** The error of the handler. */
  readonly error: unknown
  /** Whether the error is an unexpected one, whose message a client does not see. */
  readonly isDefect: boolean
  /** The number of the attempt, from 1. */
  readonly attempt: number
}

/** Which calls are retried, and when. */
export interface RetryOptions {
  /** The tools: by default those with `readOnlyHint` or `idempotentHint` among their annotations. */
  readonly tools?: ToolChoice | undefined
  /** Which failures are retried: by default those of `VisibleError`, and no other errors. */
  readonly when?: ((attempt: RetryAttempt) => boolean) | undefined
  /** How often the handler runs for one call, the first run included: 3 by default. */
  readonly maxAttempts?: number | undefined
  /** The first delay: 200 milliseconds by default. Each further one is twice as long, with jitter. */
  readonly delay?: Duration | undefined
  /** The longest delay: 5 seconds by default. */
  readonly maxDelay?: Duration | undefined
}

/**
 * Retries failed calls of tools. A call for which the handler has asked the client is not retried.
 *
 * @example
 * server.use(retry({ tools: ["quote"], when: ({ error }) => error instanceof TypeError }))
 */
export const retry = ({ delay = "200 millis", maxDelay = "5 seconds", ...options }: RetryOptions = {}): Definition =>
  defineLazily(
    () => import("@skein/server/Retry"),
    ({ backoff, layer }) => layer({ ...options, schedule: backoff(delay, maxDelay) } as never)
  )
