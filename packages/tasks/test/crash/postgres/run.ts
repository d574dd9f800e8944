/**
 * The whole run: `npm run crash -- postgres`.
 */
import { randomFrom } from "../seededRandom.ts"
import * as chaos from "./chaos.ts"
import { Fleet } from "./fleet.ts"
import { formatMillis, type Going, pauses } from "./pauses.ts"
import { scenes } from "./scenarios.ts"

/** Milliseconds for which a stopped worker keeps its tasks here: shorter than by default, to shorten the run. */
const lockExpiry = 2000

/** The processes, with times that are shorter than by default. */
export const short = { workers: 3, lockExpiry, sweepInterval: 1000, pace: 100 }

/** The incidents of the orders. */
export const mishaps: ReadonlyArray<readonly [string, chaos.Mishap]> = [
  ["SIGKILL, and another worker", chaos.killed],
  ["SIGTERM, and another worker", chaos.terminate],
  ["SIGSTOP for longer than the locks last, and SIGCONT", chaos.stopped(lockExpiry * 1.6)],
  ["workers that join and leave, all the time", chaos.churned],
  ["the database restarted at once", chaos.restarted],
  ["the database restarted while a task undoes what it has done", chaos.restartedUndoing],
  ["the database killed, and gone for a while", chaos.gone(2500)],
  ["connections that break", chaos.cut],
  ["the front server killed", chaos.shut]
]

const goings: ReadonlyArray<readonly [Going, string]> = [
  ["SIGTERM", "a worker leaves gently"],
  ["SIGKILL", "a worker is killed"],
  ["SIGSTOP", "a worker is stopped"],
  ["join", "a worker joins"]
]

/** Runs, prints the results, and returns the problems. `quick`: only the scenarios, and one round of orders. */
export const run = async (
  { quick, seed }: { readonly quick: boolean; readonly seed: number },
  print: (line: string) => void
): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = []
  const random = randomFrom(seed)
  const timed = async (what: string, run: () => Promise<string>, fleet: Fleet): Promise<void> => {
    const begun = performance.now()
    const found = await run().catch((error: unknown) => {
      fleet.problems.push(`${error instanceof Error ? error.stack : String(error)}\n${fleet.output.slice(-4000)}`)
      return "failed"
    })
    const wrong = fleet.problems.splice(0)
    problems.push(...wrong.map((problem) => `${what}: ${problem}`))
    print(
      `  ${what}: ${
        [found, `${((performance.now() - begun) / 1000).toFixed(1)} s`].filter((part) => part !== "").join("; ")
      }`
    )
  }

  const fleet = await Fleet.open(short)
  try {
    for (const { run, says } of scenes) {
      await timed(says, async () => {
        await run(fleet)
        return ""
      }, fleet)
    }
    for (const [what, mishap] of mishaps) {
      const plan = { orders: quick ? 20 : 60, concurrency: 20, mishaps: [mishap], most: quick ? 3 : 8, pause: 1500 }
      await timed(`orders: ${what}`, async () => {
        const report = await chaos.chaos(fleet, { ...plan, random, later: true })
        fleet.problems.push(...report.problems)
        return chaos.line(report)
      }, fleet)
    }
  } finally {
    await fleet.close()
  }
  if (quick) return problems

  // The default.
  const plain = await Fleet.open({ workers: 3, pace: 100 })
  try {
    for (const [going, says] of goings) {
      await timed(`${says}, p50 / p95 / max`, async () => {
        const { others, pause, takeover } = await pauses(plain, going, 4)
        return [
          `pause ${formatMillis(pause)}`,
          `takeover ${formatMillis(takeover)}`,
          `longest gap of the others ${formatMillis(others)}`
        ].join(
          "; "
        )
      }, plain)
    }
  } finally {
    await plain.close()
  }
  return problems
}
