/**
 * Caching hints of results, since 2026-07-28 (server/utilities/caching).
 */
import * as Schema from "effect/Schema"
import { since } from "./Annotate.ts"
import { resultFields } from "./Message.ts"

const atLeastZero = (ttl: unknown): number => typeof ttl === "number" && ttl < 0 ? 0 : ttl as number

/**
 * The fields of a result that may be cached.
 *
 * Writing fills in the safe values: `ttlMs` 0 (stale immediately) and `cacheScope` `"private"`. Reading fills in
 * nothing, so that an absent `ttlMs` stays distinct from 0. A negative `ttlMs` is written and read as 0.
 */
export const cacheFields = {
  /** How long the result is fresh, in milliseconds. */
  ttlMs: since("2026-07-28", Schema.optionalKey(Schema.Int), {
    fill: () => 0,
    lower: atLeastZero,
    lift: atLeastZero
  }),
  /** Whether a cache that several principals share may store the result. */
  cacheScope: since("2026-07-28", Schema.optionalKey(Schema.Literals(["public", "private"])), {
    fill: () => "private" as const
  })
}

/** A result that may be cached, without its content. */
export class CacheableResult extends Schema.Opaque<CacheableResult>()(Schema.Struct({
  ...resultFields,
  ...cacheFields
})) {}
