/**
 * Kills the processes of running tasks and checks that every task still ends correctly, and those of a fleet, whose
 * sessions must go on: `npm run crash`, or one part only, `npm run crash -- sqlite`, `postgres` or `fleet`. `--seed` repeats the
 * random choices of an earlier run; `--quick` runs a part of it, as `.ci/run` does. `--orders` runs so many orders instead, for
 * as long as they take: `npm run crash -- postgres --orders 20000` (`--concurrency`: how many at a time, 100 by default). `--minutes`, `--sessions` and `--only` change the walk of the fleet:
 * `npm run crash -- fleet --minutes 60 --only "a node killed"`.
 *
 * SQLite: the server is killed at random moments, and before every commit to its database. PostgreSQL: workers, front
 * servers and the database are killed, stopped and terminated, at random, at each commit of the engine and at other
 * chosen moments, while workers join and leave. It also measures how long tasks pause meanwhile.
 *
 * The fleet: nodes on PostgreSQL are replaced under clients that are asked a form in every call. Then nodes are killed,
 * stopped, cut off and drained at random, and their database too, under sessions that call, ask, subscribe and end.
 *
 * Each part has a deadline, five minutes after its start. A part that misses it fails with the state of its tasks, of
 * the database and of the processes, and ends the run on its store.
 */
import { parseArgs } from "node:util"
import { crash, line, type Plan, type Report } from "../../packages/tasks/test/crash/crash.ts"
import { describeChildren, killChildren } from "../../packages/tasks/test/crash/child.ts"
import type { Staged } from "../../packages/tasks/test/crash/clients.ts"
import { everywhere } from "../../packages/tasks/test/crash/killAtCommits.ts"
import { kindOf } from "../../packages/tasks/test/crash/orders.ts"
import { run, runMany } from "../../packages/tasks/test/crash/postgres/run.ts"
import { unavailable } from "../../packages/sql/test/postgres.ts"
import { withDeadline } from "../deadline.ts"
import { faults } from "./fleet/faults.ts"
import { replacement } from "./fleet/replacement.ts"
import { walk } from "./fleet/walk.ts"

const { positionals, values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    seed: { type: "string" },
    orders: { type: "string" },
    minutes: { type: "string" },
    sessions: { type: "string" },
    only: { type: "string", multiple: true },
    concurrency: { type: "string", default: "100" }
  },
  allowPositionals: true
})
const isSelected = (store: string): boolean => positionals.length === 0 || positionals.includes(store)
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const size = values.quick ? "quick" : "whole"
const whole: Plan = { orders: 200, concurrency: 20, pace: 150, life: 2_000, kills: 1_000, seed }
/** The plan on SQLite. */
const plan: Plan = {
  whole,
  quick: { ...whole, orders: 40, pace: 100, life: 1_500 }
}[size]

/** The number of orders of a long run by hand. */
const many = values.orders === undefined ? undefined : Number(values.orders)
const concurrency = Number(values.concurrency)
if (!Number.isSafeInteger(many ?? 1) || (many ?? 1) < 1 || !Number.isSafeInteger(concurrency) || concurrency < 1) {
  throw new Error("--orders and --concurrency must be whole numbers from 1")
}

/** The minutes and the sessions of the walk of a fleet, and the clients of its replacement. */
const fleetPlan = {
  whole: { minutes: 10, sessions: 200, clients: 50 },
  quick: { minutes: 0.3, sessions: 10, clients: 6 }
}[size]
const minutes = Number(values.minutes ?? fleetPlan.minutes)
const sessions = Number(values.sessions ?? fleetPlan.sessions)
if (!(minutes > 0) || !Number.isSafeInteger(sessions) || sessions < 1) {
  throw new Error("--minutes must be a number above 0, and --sessions a whole number from 1")
}
const only = values.only ?? Object.keys(faults)
for (const name of only) {
  if (!Object.hasOwn(faults, name)) throw new Error(`--only must be one of: ${Object.keys(faults).join(", ")}`)
}

/** A problem if no kill interrupted a step or a question, so that the run has proved nothing. */
const ineffective = ({ kills, repeated, survived }: Report): ReadonlyArray<string> =>
  kills >= 5 && repeated > 0 && survived > 0 ?
    [] :
    [
      `the run is not conclusive: ${kills} kills (at least 5 needed), ${repeated} repeated steps, ${survived} questions ` +
      `answered after a kill; try another --seed`
    ]

/** Milliseconds in which each part on SQLite must end. The longest takes a little more than a minute. */
const partMillis = 300_000

let failed = false
const timed = async (
  title: string,
  run: (staged: Staged) => Promise<readonly [string, ReadonlyArray<string>]>,
  milliseconds = partMillis
): Promise<void> => {
  const start = performance.now()
  console.log(title)
  const staged = { describeStage: () => "" }
  const describe = async () => `${staged.describeStage()}\n${await describeChildren()}`
  const [report, problems] = await withDeadline(title, { milliseconds, describe }, () => run(staged))
  console.log(`  ${report}; ${((performance.now() - start) / 1000).toFixed(1)} s`)
  for (const problem of problems) console.error(`  ${problem}`)
  failed ||= problems.length > 0
}

const sqlite = async (): Promise<void> => {
  if (many !== undefined) {
    const plan: Plan = { orders: many, concurrency, pace: 100, life: 5_000, kills: 1e6, seed }
    await timed(
      `SQLite, ${many} tasks, ${concurrency} at a time, SIGKILL and SIGTERM at random moments: --seed ${seed}`,
      async (staged) => {
        const report = await crash(plan, staged)
        return [line(report), [...report.problems, ...ineffective(report)]]
      },
      partMillis + many * 1000
    )
    return
  }
  await timed(
    `SQLite, ${plan.orders} tasks, SIGKILL and SIGTERM at random moments: --seed ${seed}`,
    async (staged) => {
      const report = await crash(plan, staged)
      return [line(report), size === "quick" ? report.problems : [...report.problems, ...ineffective(report)]]
    }
  )

  if (size !== "quick") {
    // The first run starts with the migrations. The others start before the commit where they begin to differ from it: a
    // race, a question without an answer, a failure, a cancellation, an event, children, a section.
    const moments = [[1, 1], [9, 8], [5, 7], [4, 7], [3, 7], [11, 5], [12, 5], [13, 5]] as const
    for (const [order, first] of moments) {
      await timed(`SQLite, SIGKILL before each commit of a task (${kindOf(order)})`, async () => {
        const { deaths, problems } = await everywhere(order, "before", first)
        return [
          `${deaths} kills`,
          deaths < 10 ? [...problems, `${deaths} commits; at least 10 expected`] : problems
        ]
      })
    }
  }
}

const postgres = async (): Promise<void> => {
  console.log(`PostgreSQL, three workers and a front server: --seed ${seed}`)
  const start = many === undefined
    ? () => run({ size, seed }, console.log)
    : () => runMany({ orders: many, concurrency, seed }, console.log)
  const problems = unavailable === undefined ? await start() : [unavailable]
  for (const problem of problems) console.error(`  ${problem}`)
  failed ||= problems.length > 0
}

/** Milliseconds in which a part of the fleet must end, beside the time of the walk. */
const fleetMillis = 900_000

const fleet = async (): Promise<void> => {
  if (many !== undefined) return
  if (unavailable !== undefined) throw new Error(unavailable)
  const parts = [
    [`A fleet whose nodes are replaced under ${fleetPlan.clients} clients`, () => replacement(fleetPlan, console.log)],
    [
      `A fleet with faults for ${minutes} min, ${sessions} sessions: --seed ${seed}`,
      () => walk({ minutes, only, seed, sessions }, console.log)
    ]
  ] as const
  for (const [title, run] of parts) {
    console.log(title)
    const milliseconds = fleetMillis + minutes * 60_000
    for (const problem of await withDeadline(title, { milliseconds }, run)) {
      console.error(`  ${problem}`)
      failed = true
    }
  }
}

for (const [store, check] of [["sqlite", sqlite], ["postgres", postgres], ["fleet", fleet]] as const) {
  if (!isSelected(store)) continue
  try {
    await check()
  } catch (error) {
    console.error(error)
    failed = true
  }
}
killChildren()
// After a missed deadline, the part that missed it still runs, and would keep the process alive.
process.exit(failed ? 1 : 0)
