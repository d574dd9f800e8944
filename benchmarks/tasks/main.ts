/**
 * The benchmark of tasks: tasks per second and their processor time, also beside DBOS Transact, the latency of change notifications, the cost of
 * ten thousand waiting tasks, how long tasks pause when their worker leaves, and what several workers and large tables
 * change. Rounds are interleaved. Only the
 * correctness of results is checked.
 */
import { writeFileSync } from "node:fs"
import { type Measure, render } from "../http/report.ts"
import { describe } from "../lib/machine.ts"
import { Databases } from "./databases.ts"
import * as growth from "./growth.ts"
import * as dbos from "./dbos.ts"
import * as takeover from "./takeover.ts"
import * as notificationLatency from "./notificationLatency.ts"
import { prepare, unbuiltPackages } from "./processes.ts"
import * as rates from "./rates.ts"
import * as waitingTasks from "./waitingTasks.ts"
import type { Store } from "./commands.ts"

interface Plan {
  readonly rates: rates.Plan
  readonly dbos: Omit<dbos.Plan, "inFlight">
  readonly notices: notificationLatency.Plan
  readonly waiting: waitingTasks.Plan
  readonly leaving: takeover.Plan
  readonly growth: growth.Plan
}

const thorough: Plan = {
  rates: { rounds: 5, millis: 1_500, warmUp: 2_500 },
  dbos: { rounds: 15, millis: 1_500, warmUp: 2_500, counted: 5_000 },
  notices: { rounds: 5, tasks: 8, ticks: 60, interval: 40 },
  waiting: { tasks: 10_000, idleTime: 20_000, sampleTime: 5_000, millis: 1_500, rounds: 3 },
  leaving: { rounds: 5, tasks: 48, stepDuration: 100, settleTime: 6_000, takeoverTime: 12_000 },
  growth: { rounds: 7, millis: 3_000, warmUp: 3_000, retained: 1_000_000, queued: 100_000 }
}
const quick: Plan = {
  rates: { rounds: 3, millis: 400, warmUp: 700 },
  dbos: { rounds: 3, millis: 400, warmUp: 700, counted: 1_000 },
  notices: { rounds: 2, tasks: 8, ticks: 20, interval: 40 },
  waiting: { tasks: 1_000, idleTime: 15_000, sampleTime: 2_000, millis: 500, rounds: 3 },
  leaving: { rounds: 1, tasks: 48, stepDuration: 100, settleTime: 5_000, takeoverTime: 12_000 },
  growth: { rounds: 3, millis: 700, warmUp: 700, retained: 10_000, queued: 1_000 }
}

const stores: ReadonlyArray<Store> = ["memory", "sqlite", "postgres"]
const parts = ["rates", "peer", "dbos", "notices", "waiting", "leaving", "workers", "growth"] as const
type Part = (typeof parts)[number]

const usage = `usage: npm run bench -- tasks [--quick] [--only=${
  [...stores, ...parts].join("|")
},…] [--in-flight=number,…] [--source] [--json=file]`

/** The parsed arguments. */
interface Options {
  plan: Plan
  stores: ReadonlyArray<Store>
  parts: ReadonlyArray<Part>
  source: boolean
  json: string | undefined
  /** The numbers of tasks in flight beside DBOS. */
  inFlight: ReadonlyArray<number>
}

const pick = <A extends string>(all: ReadonlyArray<A>, names: ReadonlyArray<string>): ReadonlyArray<A> => {
  const picked = all.filter((name) => names.includes(name))
  return picked.length === 0 ? all : picked
}

const parseOptions = (args: ReadonlyArray<string>): Options => {
  const options: Options = {
    plan: thorough,
    stores,
    parts,
    source: false,
    json: undefined,
    inFlight: [rates.inFlight, 4]
  }
  for (const arg of args) {
    const value = arg.slice(arg.indexOf("=") + 1)
    if (arg === "--quick") options.plan = quick
    else if (arg === "--source") options.source = true
    else if (arg.startsWith("--in-flight=")) {
      const inFlight = value.split(",").map(Number)
      if (!inFlight.every((number) => Number.isSafeInteger(number) && number > 0)) throw new Error(`${arg}\n${usage}`)
      options.inFlight = inFlight
    } else if (arg.startsWith("--json=")) options.json = value
    else if (arg.startsWith("--only=")) {
      const names = value.split(",")
      const unknown = names.find((name) => ![...stores, ...parts].some((valid) => valid === name))
      if (unknown !== undefined) throw new Error(`${unknown}: neither a store nor a part\n${usage}`)
      options.stores = pick(stores, names)
      options.parts = pick(parts, names)
    } else throw new Error(`${arg}: not an option\n${usage}`)
  }
  return options
}

const explanation = [
  "Rates, costs and times are medians over interleaved rounds. A ratio is the median of a figure divided by that of the first row in the",
  "same round (min–max). CPU is the processor time of all Skein processes, including clients; that of the database is in its own column.",
  "SQLite is a file with `synchronous: \"normal\"`, PostgreSQL flushes each commit. Processes are not pinned to cores."
].join("\n")

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const { inFlight, json, parts, plan, source, stores } = parseOptions(args)
  const missing = source ? [] : unbuiltPackages()
  await prepare(source || missing.length > 0)
  const machine = `${describe()} · npm run bench -- ${["tasks", ...args].join(" ")}`
  console.log(`${machine}\n`)
  if (missing.length > 0) console.log(`These packages are not built: ${missing.join(", ")}.`)
  if (source || missing.length > 0) console.log("Skein runs from its sources, not from its built packages.\n")

  const measures: Array<Measure> = []
  const show = (measure: Measure): void => {
    measures.push(measure)
    console.log(render(measure, "") + "\n")
  }
  const databases = new Databases()
  try {
    for (const part of parts) {
      switch (part) {
        case "rates":
          await rates.run(databases, rates.namesOf(stores), plan.rates, show)
          break
        case "peer":
          if (stores.includes("memory")) show(await rates.compare(plan.rates))
          break
        case "dbos":
          if (stores.includes("postgres")) await dbos.run(databases, { ...plan.dbos, inFlight }, show)
          break
        case "notices":
          show(await notificationLatency.measure(databases, stores.filter((store) => store !== "memory"), plan.notices))
          break
        case "waiting":
          show(await waitingTasks.measure(databases, stores, plan.waiting))
          break
        case "leaving":
          if (stores.includes("postgres")) show(await takeover.measure(databases, plan.leaving))
          break
        case "workers":
          if (stores.includes("postgres")) show(await growth.workers(databases, plan.growth))
          break
        case "growth":
          if (stores.includes("postgres")) show(await growth.growth(databases, plan.growth))
      }
    }
  } finally {
    await databases.stop()
  }
  console.log(explanation)
  if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, plan, measures }, undefined, 2) + "\n")
}
