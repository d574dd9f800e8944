/**
 * The benchmark of tasks: how many per second and at what cost, how soon a change is heard, what ten thousand cost that wait, and how
 * long they stand still when their worker leaves. Rounds are interleaved, and nothing is asserted but that the results are right.
 */
import { writeFileSync } from "node:fs"
import { type Measure, render } from "../http/report.ts"
import { describe } from "../lib/machine.ts"
import { Databases } from "./database.ts"
import * as leaving from "./leaving.ts"
import * as notices from "./notices.ts"
import { prepare, unbuilt } from "./processes.ts"
import * as rates from "./rates.ts"
import * as waiting from "./waiting.ts"
import type { Store } from "./wire.ts"

interface Plan {
  readonly rates: rates.Plan
  readonly notices: notices.Plan
  readonly waiting: waiting.Plan
  readonly leaving: leaving.Plan
}

const thorough: Plan = {
  rates: { rounds: 5, millis: 1_500, warmUp: 2_500 },
  notices: { rounds: 5, tasks: 8, ticks: 60, every: 40 },
  waiting: { tasks: 10_000, rest: 20_000, watch: 5_000, millis: 1_500, rounds: 3 },
  leaving: { rounds: 5, tasks: 48, step: 100, settle: 6_000, patience: 12_000 }
}
const quick: Plan = {
  rates: { rounds: 3, millis: 400, warmUp: 700 },
  notices: { rounds: 2, tasks: 8, ticks: 20, every: 40 },
  waiting: { tasks: 1_000, rest: 15_000, watch: 2_000, millis: 500, rounds: 3 },
  leaving: { rounds: 1, tasks: 48, step: 100, settle: 5_000, patience: 12_000 }
}

const stores: ReadonlyArray<Store> = ["memory", "sqlite", "postgres"]
const parts = ["rates", "peer", "notices", "waiting", "leaving"] as const
type Part = (typeof parts)[number]

const usage = `usage: npm run bench -- tasks [--quick] [--only=${
  [...stores, ...parts].join("|")
},…] [--source] [--json=file]`

/** What was asked for. */
interface Choice {
  plan: Plan
  stores: ReadonlyArray<Store>
  parts: ReadonlyArray<Part>
  source: boolean
  json: string | undefined
}

const pick = <A extends string>(all: ReadonlyArray<A>, names: ReadonlyArray<string>): ReadonlyArray<A> => {
  const picked = all.filter((name) => names.includes(name))
  return picked.length === 0 ? all : picked
}

const read = (args: ReadonlyArray<string>): Choice => {
  const choice: Choice = { plan: thorough, stores, parts, source: false, json: undefined }
  for (const arg of args) {
    const value = arg.slice(arg.indexOf("=") + 1)
    if (arg === "--quick") choice.plan = quick
    else if (arg === "--source") choice.source = true
    else if (arg.startsWith("--json=")) choice.json = value
    else if (arg.startsWith("--only=")) {
      const names = value.split(",")
      const unknown = names.find((name) => ![...stores, ...parts].some((known) => known === name))
      if (unknown !== undefined) throw new Error(`${unknown}: neither a store nor a part\n${usage}`)
      choice.stores = pick(stores, names)
      choice.parts = pick(parts, names)
    } else throw new Error(`${arg}: not an option\n${usage}`)
  }
  return choice
}

const explanation = [
  "Rates, costs and times are medians over interleaved rounds. A ratio is the median of a figure over that of the first line in the",
  "same round (min–max). CPU is that of all our processes together, clients among them; that of the database is beside it. SQLite",
  "is a file with `synchronous: \"normal\"`, PostgreSQL flushes each commit. Nothing is kept on a core of its own."
].join("\n")

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const { json, parts, plan, source, stores } = read(args)
  const missing = source ? [] : unbuilt()
  await prepare(source || missing.length > 0)
  const machine = `${describe()} · npm run bench -- ${["tasks", ...args].join(" ")}`
  console.log(`${machine}\n`)
  if (missing.length > 0) console.log(`Not built: ${missing.join(", ")}.`)
  if (source || missing.length > 0) console.log("Skein runs from its sources, not as it is installed.\n")

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
        case "notices":
          show(await notices.measure(databases, stores.filter((store) => store !== "memory"), plan.notices))
          break
        case "waiting":
          show(await waiting.measure(databases, stores, plan.waiting))
          break
        case "leaving":
          if (stores.includes("postgres")) show(await leaving.measure(databases, plan.leaving))
      }
    }
  } finally {
    await databases.stop()
  }
  console.log(explanation)
  if (json !== undefined) writeFileSync(json, JSON.stringify({ machine, plan, measures }, undefined, 2) + "\n")
}
