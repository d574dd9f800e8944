/**
 * The benchmark of authorization: the processor time that each protection adds to a call, and the time of a refresh
 * under many concurrent calls. Rounds are interleaved, and each protection is compared with none in the same round.
 */
import { describe } from "../lib/machine.ts"
import { spread } from "../lib/statistics.ts"
import { count, markdown, ratio } from "../lib/table.ts"
import * as protections from "./protections.ts"
import * as refreshes from "./refreshes.ts"

interface Plan extends protections.Plan, refreshes.Plan {}

const thorough: Plan = { rounds: 25, calls: 300, warmUp: 5, refreshes: 10, concurrentCalls: 1_000 }
const quick: Plan = { rounds: 5, calls: 100, warmUp: 2, refreshes: 2, concurrentCalls: 1_000 }

const parts = ["calls", "refresh"] as const
const usage = `usage: npm run bench -- auth [--quick] [--only=${parts.join("|")}]`

const micros = (value: number): string => value.toFixed(1)

const measureCalls = async (plan: Plan): Promise<void> => {
  const rows = (await protections.measure(plan)).map(({ added, name, perCall, toBase }) => [
    name,
    micros(spread(perCall).median),
    micros(spread(added).median),
    ratio(toBase)
  ])
  console.log("tools/call of 2026-07-28 in this process, processor time in µs per call\n")
  console.log(`${markdown(["protection", "per call", "added", "against none"], rows)}\n`)
}

const measureRefreshes = async (plan: Plan): Promise<void> => {
  const { counts, expired, valid } = await refreshes.measure(plan)
  const millis = (samples: ReadonlyArray<number>): ReadonlyArray<string> => {
    const { max, median } = spread(samples)
    return [count(median), count(max)]
  }
  console.log(
    `${count(plan.concurrentCalls)} concurrent calls over HTTP on loopback, time until the last result in ms\n`
  )
  console.log(
    markdown(["token", "median", "most", "refreshes"], [
      ["valid", ...millis(valid), "0"],
      ["expired", ...millis(expired), [...new Set(counts)].join(", ")]
    ])
  )
}

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  let plan = thorough
  let only: string | undefined
  for (const arg of args) {
    if (arg === "--quick") plan = quick
    else if (arg.startsWith("--only=") && parts.includes(arg.slice(7) as never)) only = arg.slice(7)
    else throw new Error(`${arg}: not an option\n${usage}`)
  }
  console.log(`${describe()} · npm run bench -- ${["auth", ...args].join(" ")}\n`)
  if (only !== "refresh") await measureCalls(plan)
  if (only !== "calls") await measureRefreshes(plan)
}
