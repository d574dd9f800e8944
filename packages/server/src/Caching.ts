/**
 * Caching hints: how long a client may cache a result, and whether it may share it (2026-07-28, caching). A result
 * without hints is stale immediately and private. Earlier revisions have no hints.
 *
 * Set the hints of resources with `Resource.make`, `ResourceTemplate.make` or the result of a reader, and the hints of
 * the server's methods with the option `caching` of `McpServer.layer`.
 *
 * @example
 * McpServer.layer(
 *   { name: "shop", version: "1.0.0", caching: { "tools/list": { ttlMs: 300_000, cacheScope: "public" } } },
 *   Resource.layer(Resource.make("shop://terms", { ttlMs: 3_600_000, cacheScope: "public" }), terms)
 * )
 */
import type { Defined } from "./internal/base/json.ts"

/** How long, and for whom, a result may be cached. */
export interface Hint {
  /** How long the result is fresh, in milliseconds: a whole number of at least 0. 0 by default. */
  readonly ttlMs?: number | undefined
  /**
   * `public`: the result contains no data of a user and may be shared between all callers. `private` is the default. It
   * always applies to a resource, or a list with an entry, that only some callers may see.
   */
  readonly cacheScope?: "public" | "private" | undefined
}

/**
 * Returns a hint as results have it: "Servers MUST provide a `ttlMs` value that is `>= 0`", and an integer.
 *
 * @example
 * Caching.toWire({ ttlMs: 1500.5 }) // { ttlMs: 1500 }
 */
export const toWire = ({ cacheScope, ttlMs }: Hint): Defined<Hint> => ({
  ...(ttlMs === undefined ? undefined : { ttlMs: toWholeMillis(ttlMs) }),
  ...(cacheScope === undefined ? undefined : { cacheScope })
})

const toWholeMillis = (ttlMs: number): number => Math.min(Math.max(0, Math.floor(ttlMs) || 0), Number.MAX_SAFE_INTEGER)

/** The hints by method, for the methods whose results have hints. The hints of a resource take precedence. */
export type Methods = {
  readonly [
    M in
      | "server/discover"
      | "tools/list"
      | "prompts/list"
      | "resources/list"
      | "resources/templates/list"
      | "resources/read"
      | "skills/list"
      | "skills/get"
  ]?: Hint
}
