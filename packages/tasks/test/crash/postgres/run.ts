/**
 * The whole run: `npm run crash -- postgres`.
 */
import { required } from "../../../../sql/test/postgres.ts"
import { noPgBouncer } from "../../../../sql/test/startPgBouncer.ts"
import { DeadlineError, withDeadline } from "../../../../../scripts/deadline.ts"
import { describeChildren } from "../child.ts"
import { randomFrom } from "../seededRandom.ts"
import * as chaos from "./chaos.ts"
import { Fleet, libfaketime, type Options } from "./fleet.ts"
import { formatMillis, type Going, pauses } from "./pauses.ts"
import { scenes } from "./scenarios.ts"

/** Milliseconds for which a stopped worker keeps its tasks here: shorter than by default, to shorten the run. */
const leaseTimeout = 2000

/** The processes, with times that are shorter than by default. */
export const short = { workers: 3, leaseTimeout, pace: 100 }

/** The incidents of the orders. */
const mishaps: ReadonlyArray<readonly [string, chaos.Mishap]> = [
  ["SIGKILL, and another worker", chaos.killed],
  ["SIGTERM, and another worker", chaos.terminate],
  ["SIGSTOP for longer than the locks last, and SIGCONT", chaos.stopped(leaseTimeout * 1.6)],
  ["workers that join and leave, all the time", chaos.churned],
  ["the database restarted at once", chaos.restarted],
  ["the database restarted while a task undoes what it has done", chaos.restartedUndoing],
  ["the database killed, and gone for a while", chaos.gone(2500)],
  ["connections that break", chaos.cut],
  ["the front server killed", chaos.shut]
]

/** Further incidents, of a whole run and of a long one by hand. */
const rareMishaps: ReadonlyArray<readonly [string, chaos.Mishap]> = [
  ...libfaketime === undefined && !required ? [] : [["workers with wrong clocks", chaos.clocksDiffer] as const],
  ["a transaction of some seconds", chaos.backup],
  ["a full disk", chaos.fullDisk]
]

/** The incidents of the orders of processes that connect through PgBouncer in session mode. */
const poolerMishaps: ReadonlyArray<chaos.Mishap> = [
  chaos.poolerKilled,
  chaos.killed,
  chaos.restarted,
  chaos.stopped(leaseTimeout * 1.6),
  chaos.cut,
  chaos.gone(2500)
]

const goings: ReadonlyArray<readonly [Going, string]> = [
  ["SIGTERM", "a worker leaves gently"],
  ["SIGKILL", "a worker is killed"],
  ["SIGSTOP", "a worker is stopped"],
  ["join", "a worker joins"]
]

/** Milliseconds in which each part of a run must end by default. The longest takes less than a minute. */
const partMillis = 300_000

/** Milliseconds in which the processes must start, or end. */
const startMillis = 120_000

/**
 * The parts of a run, and their processes. After a part that has failed, the next one has new processes. A part that
 * misses its deadline fails the run.
 */
export class Parts {
  readonly problems: Array<string> = []
  readonly #options: Options
  readonly #print: (line: string) => void
  readonly #milliseconds: number
  #fleet: Fleet | undefined

  /** `milliseconds` is the deadline of each part. */
  constructor(options: Options, print: (line: string) => void, milliseconds = partMillis) {
    this.#options = options
    this.#print = print
    this.#milliseconds = milliseconds
  }

  /** Runs a part, and prints its result. */
  async run(what: string, part: (fleet: Fleet) => Promise<string>): Promise<void> {
    const begun = performance.now()
    const result = await this.#result(what, part).catch(async (error: unknown) => {
      const output = this.#fleet?.output.slice(-4000) ?? ""
      this.problems.push(`${what}: ${error instanceof Error ? error.stack : String(error)}\n${output}`)
      await this.close()
      if (error instanceof DeadlineError) throw error
      return "failed"
    })
    const seconds = ((performance.now() - begun) / 1000).toFixed(1)
    this.#print(`  ${what}: ${[result, `${seconds} s`].filter((text) => text !== "").join("; ")}`)
  }

  async #result(what: string, part: (fleet: Fleet) => Promise<string>): Promise<string> {
    const open = () => Fleet.open(this.#options)
    const fleet = this.#fleet ??= await withDeadline("the start of the processes", {
      milliseconds: startMillis,
      describe: describeChildren
    }, open)
    const limit = { milliseconds: this.#milliseconds, describe: () => fleet.describe() }
    const result = await withDeadline(what, limit, () => part(fleet))
    this.problems.push(...fleet.problems.splice(0).map((problem) => `${what}: ${problem}`))
    return result
  }

  /** Ends the processes. */
  async close(): Promise<void> {
    const fleet = this.#fleet
    this.#fleet = undefined
    if (fleet !== undefined) {
      await withDeadline("the end of the processes", { milliseconds: startMillis }, () => fleet.close())
    }
  }
}

/** Runs orders as a part. Returns its result. */
const runOrders = async (fleet: Fleet, plan: chaos.Plan): Promise<string> => {
  const report = await chaos.chaos(fleet, plan)
  fleet.problems.push(...report.problems)
  return chaos.line(report)
}

/** The milliseconds between two incidents of a long run, at most, and those that an order may take. */
const longRun = { pause: 3000, orderMillis: 1000 }

/** Runs a number of orders with all incidents in turn, until the orders have ended. Returns the problems. */
export const runMany = async (
  { concurrency, orders, seed }: { readonly orders: number; readonly concurrency: number; readonly seed: number },
  print: (line: string) => void
): Promise<ReadonlyArray<string>> => {
  const parts = new Parts(short, print, partMillis + orders * longRun.orderMillis)
  const plan = {
    orders,
    concurrency,
    mishaps: [...mishaps, ...rareMishaps].map(([, mishap]) => mishap),
    most: Infinity,
    pause: longRun.pause
  }
  try {
    await parts.run(
      `${orders} orders, ${concurrency} at a time, all incidents in turn`,
      (fleet) => runOrders(fleet, { ...plan, random: randomFrom(seed) })
    )
  } finally {
    await parts.close()
  }
  return parts.problems
}

/** How much of the run is done. */
export type Size = "whole" | "quick"

/** The number of orders, and of incidents at most, in each part with one kind of incident. */
const counts: Record<Size, readonly [orders: number, most: number]> = { whole: [60, 8], quick: [20, 3] }

/**
 * Runs, prints the results, and returns the problems. A part that misses its deadline ends the run, with the state of
 * the part among the problems. `quick`: a part of the scenarios, and a third of the orders and incidents.
 */
export const run = async (
  { seed, size }: { readonly size: Size; readonly seed: number },
  print: (line: string) => void
): Promise<ReadonlyArray<string>> => {
  const random = randomFrom(seed)
  const groups: Array<Parts> = []
  const group = async (options: Options, run: (parts: Parts) => Promise<void>): Promise<void> => {
    const parts = new Parts(options, print)
    groups.push(parts)
    try {
      await run(parts)
    } finally {
      await parts.close()
    }
  }

  try {
    await group(short, async (parts) => {
      for (const { run, says } of scenes.filter(({ short }) => size === "whole" || short === true)) {
        await parts.run(says, async (fleet) => {
          const found = await run(fleet)
          return typeof found === "string" ? found : ""
        })
      }
      for (const [what, mishap] of size === "whole" ? [...mishaps, ...rareMishaps] : mishaps) {
        const [orders, most] = counts[size]
        const plan = { orders, concurrency: 20, mishaps: [mishap], most, pause: 1500 }
        await parts.run(`orders: ${what}`, (fleet) => runOrders(fleet, { ...plan, random }))
      }
    })
    if (size === "quick") return groups.flatMap(({ problems }) => problems)

    if (noPgBouncer !== undefined && !required) print(`  orders through PgBouncer: skipped, because ${noPgBouncer}`)
    else {
      await group({ ...short, hasPooler: true }, async (parts) => {
        const plan = { orders: 60, concurrency: 20, mishaps: poolerMishaps, most: 12, pause: 1500 }
        await parts.run(
          "orders through PgBouncer in session mode: PgBouncer, workers and the database killed",
          (fleet) => runOrders(fleet, { ...plan, random })
        )
      })
    }

    // A measurement, with the default lease.
    await group({ workers: 3, pace: 100 }, async (parts) => {
      for (const [going, says] of goings) {
        await parts.run(`${says}, p50 / p95 / max`, async (fleet) => {
          const { others, pause, takeover } = await pauses(fleet, going, 4)
          return [
            `pause ${formatMillis(pause)}`,
            `takeover ${formatMillis(takeover)}`,
            `longest gap of the others ${formatMillis(others)}`
          ].join("; ")
        })
      }
    })
  } catch (error) {
    // The message of a missed deadline is long, and already among the problems of its part.
    const ended = `the run ended early: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`
    return [...groups.flatMap(({ problems }) => problems), ended]
  }
  return groups.flatMap(({ problems }) => problems)
}
