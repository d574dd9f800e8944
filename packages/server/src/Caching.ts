/**
 * Caching hints: how long a client may keep an answer, and whether it may share it (2026-07-28, caching). Without them an answer
 * is stale at once and private, and before 2026-07-28 there are none.
 *
 * They are given for a resource (`Resource.make`, `ResourceTemplate.make`, or with what a reader answers) and, for the methods of
 * the server, by the option `caching` of `McpServer.layer`.
 *
 * @example
 * McpServer.layer(
 *   { name: "shop", version: "1.0.0", caching: { "tools/list": { ttlMs: 300_000, cacheScope: "public" } } },
 *   Resource.layer(Resource.make("shop://terms", { ttlMs: 3_600_000, cacheScope: "public" }), terms)
 * )
 */

/** How long and for whom an answer may be kept. */
export interface Hint {
  /** Milliseconds for which the answer may be taken as fresh, a whole number of at least 0; 0 by default. */
  readonly ttlMs?: number | undefined
  /**
   * `public`: the answer holds nothing of a user's and may be shared between callers, whatever authorises them. `private` is the
   * default, and holds in any case for a resource, or a list with an entry, that not everybody may see.
   */
  readonly cacheScope?: "public" | "private" | undefined
}

/** The hints by the methods whose results have them. A resource's own come first. */
export type Methods = {
  readonly [
    M in
      | "server/discover"
      | "tools/list"
      | "prompts/list"
      | "resources/list"
      | "resources/templates/list"
      | "resources/read"
  ]?: Hint
}
