/**
 * What the parts of the store share.
 */
import * as Effect from "effect/Effect"
import type { Changes } from "./notifications.ts"
import { type Database, never } from "./database.ts"
import type { Vault } from "./stored.ts"

/** The database, who is told of its changes, and what seals its texts. */
export interface Table {
  readonly database: Database
  readonly changes: Changes
  readonly vault: Vault
}

/** Milliseconds of Unix time. */
export const now: Effect.Effect<number> = /* @__PURE__ */ Effect.clockWith((clock) =>
  Effect.succeed(clock.currentTimeMillisUnsafe())
)

/** Milliseconds as they are kept: whole, and no later than the clock's end. */
export const millis = (time: number): number => Math.min(Math.max(Math.ceil(time), 0), never)

/** How many characters the names may have that are in indexes: of tools, pools, owners, and the keys of questions. */
export const longest = 512
