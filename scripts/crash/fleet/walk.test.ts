/** The short form of `npm run crash -- fleet`. */
import { describe, expect, it } from "vitest"
import { required, unavailable } from "../../../packages/sql/test/postgres.ts"
import { walk } from "./walk.ts"

const skipped = unavailable !== undefined && !required

describe.skipIf(skipped)(skipped ? `a fleet with faults (${unavailable})` : "a fleet with faults", () => {
  it("keeps all sessions, answers each call once, and leaves nothing behind", { timeout: 600_000 }, async () => {
    if (unavailable !== undefined) throw new Error(unavailable)
    const seed = Math.floor(Math.random() * 2 ** 31)
    expect({ seed, problems: await walk({ seed, minutes: 0.5, sessions: 20 }, () => {}) }).toEqual({
      seed,
      problems: []
    })
  })
})
