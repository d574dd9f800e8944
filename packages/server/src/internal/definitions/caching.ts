import type { Hint } from "../../Caching.ts"
import type { Defined } from "../omitUndefined.ts"

/** The hint as it is written: "Servers MUST provide a `ttlMs` value that is `>= 0`", and an integer. */
export const hint = ({ cacheScope, ttlMs }: Hint): Defined<Hint> => ({
  ...(ttlMs === undefined ? undefined : { ttlMs: whole(ttlMs) }),
  ...(cacheScope === undefined ? undefined : { cacheScope })
})

const whole = (ttlMs: number): number => Math.min(Math.max(0, Math.floor(ttlMs) || 0), Number.MAX_SAFE_INTEGER)
