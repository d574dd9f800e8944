/** The short form of `npm run crash -- postgres`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { withDeadline } from "../../../../scripts/deadline.ts"
import { required, unavailable } from "../../../sql/test/postgres.ts"
import { chaos } from "./postgres/chaos.ts"
import { Fleet } from "./postgres/fleet.ts"
import { mishaps, short } from "./postgres/run.ts"
import { scenes } from "./postgres/scenarios.ts"
import { randomFrom } from "./seededRandom.ts"

describe.skipIf(unavailable !== undefined && !required)("PostgreSQL, three workers and a front server", () => {
  let fleet: Fleet
  beforeAll(async () => {
    fleet = await Fleet.open(short)
  }, 60_000)
  afterAll(() => fleet.close(), 60_000)

  /** Fails with the state of the processes, before the test's own time limit. */
  const inTime = <A>(what: string, run: () => Promise<A>): Promise<A> =>
    withDeadline(what, { milliseconds: 150_000, describe: () => fleet.describe() }, run)

  for (const { run, says } of scenes.filter(({ short }) => short)) {
    it(says, async () => {
      await inTime(says, () => run(fleet))
      expect(fleet.problems.splice(0)).toEqual([])
    }, 180_000)
  }

  it("orders during all kinds of incidents: every task ends, and has acted once", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31)
    const all = mishaps.map(([, mishap]) => mishap)
    const plan = { orders: 30, concurrency: 10, mishaps: all, most: all.length, pause: 300 }
    const { problems, ...report } = await inTime("orders", () => chaos(fleet, { ...plan, random: randomFrom(seed) }))
    expect({ seed, problems }).toEqual({ seed, problems: [] })
    expect(report.mishaps).toBeGreaterThan(0)
    expect(report.completed + report.failed + report.cancelled).toBeGreaterThanOrEqual(30)
    expect(report.failed).toBeGreaterThanOrEqual(2)
  }, 180_000)
})
