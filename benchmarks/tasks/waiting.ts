/**
 * What many tasks cost that wait: memory and processor time of the process that has them, and how it works meanwhile.
 */
import { failure, type Measure, type Row } from "../http/report.ts"
import { spread } from "../lib/statistics.ts"
import type { Databases } from "./database.ts"
import { Program } from "./processes.ts"
import { inFlight } from "./rates.ts"
import type { Store } from "./wire.ts"

export interface Plan {
  /** How many tasks wait. */
  readonly tasks: number
  /** How long they wait before they are measured, once all of them do, and how long they are watched, in milliseconds. */
  readonly rest: number
  readonly watch: number
  /** Rounds of other tasks meanwhile, and how long each is, in milliseconds. */
  readonly rounds: number
  readonly millis: number
}

const sleep = (millis: number): Promise<void> => new Promise((later) => setTimeout(later, millis))

const names: Record<Store, string> = { memory: "memory", sqlite: "SQLite", postgres: "PostgreSQL" }

const rateOf = async (program: Program, { millis, rounds }: Plan): Promise<number> => {
  const rates: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const { tasks, wall } = await program.burst({ through: "engine", tool: "one", inFlight, millis })
    rates.push(tasks / wall * 1_000)
  }
  return spread(rates).median
}

/** Waits until nothing is done any more, and then until what is kept for what might come has been let go. */
const settled = async (program: Program, { rest, watch }: Plan): Promise<void> => {
  while (await busy(program, watch) > 5) await sleep(500)
  await sleep(rest)
}

/** The share of a core that it takes to do nothing. */
const busy = async (program: Program, watch: number): Promise<number> => {
  const before = await program.cpu()
  await sleep(watch)
  return (await program.cpu() - before) / watch * 100
}

const rowOf = async (databases: Databases, store: Store, tool: "asks" | "sleeps", plan: Plan): Promise<Row> => {
  const label = `${names[store]}, ${tool === "asks" ? "for an answer" : "for a day to pass"}`
  const { program } = await Program.serving(store, await databases.create(store), { steady: false })
  try {
    const alone = await rateOf(program, plan)
    await settled(program, plan)
    const empty = await program.memory()
    const idle = await busy(program, plan.watch)
    const begin = performance.now()
    await program.tell({ do: "begin", tool, count: plan.tasks })
    const seconds = (performance.now() - begin) / 1_000
    await settled(program, plan)
    const held = await program.memory()
    const taken = await busy(program, plan.watch)
    const beside = await rateOf(program, plan)
    const kilobytes = (of: (usage: NodeJS.MemoryUsage) => number) => (of(held) - of(empty)) / plan.tasks / 1_000
    return {
      peer: `${store}-${tool}`,
      label,
      figures: {
        heap: kilobytes((usage) => usage.heapUsed),
        // The system takes back what the heap has let go when it needs it, and not before.
        resident: held.rss / 1_000_000,
        idle,
        busy: taken,
        begun: plan.tasks / seconds,
        ratio: beside / alone
      }
    }
  } catch (error) {
    return failure({ name: store, label }, error)
  } finally {
    await program.kill()
  }
}

/** Measures each store, with tasks that sleep and with tasks that ask. */
export const measure = async (databases: Databases, stores: ReadonlyArray<Store>, plan: Plan): Promise<Measure> => {
  const rows: Array<Row> = []
  for (const store of stores) {
    for (const tool of ["sleeps", "asks"] as const) rows.push(await rowOf(databases, store, tool, plan))
  }
  const tasks = plan.tasks.toLocaleString("en-US")
  return {
    name: "waiting",
    era: "request",
    title: `${tasks} tasks that wait, in one process`,
    columns: [
      { key: "heap", title: "heap KB each", unit: "decimal" },
      { key: "resident", title: "resident MB in all", unit: "count" },
      { key: "idle", title: "core % without", unit: "decimal" },
      { key: "busy", title: "core % with all", unit: "decimal" },
      { key: "begun", title: "begun/s", unit: "count" },
      { key: "ratio", title: "others' tasks/s beside / alone", unit: "ratio" }
    ],
    rows
  }
}
