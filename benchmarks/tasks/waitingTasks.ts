/**
 * The cost of many waiting tasks: memory and processor time of their process, and the rate of other tasks meanwhile.
 */
import { failure, type Measure, type Row } from "../http/report.ts"
import { spread } from "../lib/statistics.ts"
import type { Databases } from "./databases.ts"
import { Program } from "./processes.ts"
import { inFlight } from "./rates.ts"
import type { Store } from "./commands.ts"

export interface Plan {
  /** The number of waiting tasks. */
  readonly tasks: number
  /**
   * The time between the last activity and the measurement, and the duration of a processor time sample, in
   * milliseconds.
   */
  readonly idleTime: number
  readonly sampleTime: number
  /** The number of rounds with other tasks, and the duration of each in milliseconds. */
  readonly rounds: number
  readonly millis: number
}

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const names: Record<Store, string> = { memory: "memory", sqlite: "SQLite", postgres: "PostgreSQL" }

const rateOf = async (program: Program, { millis, rounds }: Plan): Promise<number> => {
  const rates: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const { tasks, wall } = await program.burst({ through: "engine", tool: "one", inFlight, millis })
    rates.push(tasks / wall * 1_000)
  }
  return spread(rates).median
}

/** Waits until the process is idle, and then until it has released memory that it retains for later use. */
const untilIdle = async (program: Program, { idleTime, sampleTime }: Plan): Promise<void> => {
  while (await cpuShare(program, sampleTime) > 5) await sleep(500)
  await sleep(idleTime)
}

/** The share of a core that the process uses, in percent. */
export const cpuShare = async (program: Program, sampleTime: number): Promise<number> => {
  const before = await program.cpu()
  await sleep(sampleTime)
  return (await program.cpu() - before) / sampleTime * 100
}

const rowOf = async (databases: Databases, store: Store, tool: "ask" | "sleep", plan: Plan): Promise<Row> => {
  const label = `${names[store]}, ${tool === "ask" ? "for an input response" : "for one day"}`
  const { program } = await Program.startServer(store, await databases.create(store), { keepHeap: false })
  try {
    const rateWithout = await rateOf(program, plan)
    await untilIdle(program, plan)
    const empty = await program.memory()
    const idle = await cpuShare(program, plan.sampleTime)
    const begin = performance.now()
    await program.send({ do: "begin", tool, count: plan.tasks })
    const seconds = (performance.now() - begin) / 1_000
    await untilIdle(program, plan)
    const withTasks = await program.memory()
    const withTasksCpu = await cpuShare(program, plan.sampleTime)
    const rateWith = await rateOf(program, plan)
    const kilobytes = (of: (usage: NodeJS.MemoryUsage) => number) => (of(withTasks) - of(empty)) / plan.tasks / 1_000
    return {
      peer: `${store}-${tool}s`,
      label,
      figures: {
        heap: kilobytes((usage) => usage.heapUsed),
        // The system reclaims released heap memory only when it needs memory.
        resident: withTasks.rss / 1_000_000,
        idle,
        busy: withTasksCpu,
        begun: plan.tasks / seconds,
        ratio: rateWith / rateWithout
      }
    }
  } catch (error) {
    return failure({ name: store, label }, error)
  } finally {
    await program.kill()
  }
}

/** Measures each store, with sleeping tasks and with tasks that wait for input. */
export const measure = async (databases: Databases, stores: ReadonlyArray<Store>, plan: Plan): Promise<Measure> => {
  const rows: Array<Row> = []
  for (const store of stores) {
    for (const tool of ["sleep", "ask"] as const) rows.push(await rowOf(databases, store, tool, plan))
  }
  const tasks = plan.tasks.toLocaleString("en-US")
  return {
    name: "waiting",
    era: "request",
    title: `${tasks} waiting tasks in one process`,
    columns: [
      { key: "heap", title: "heap KB each", unit: "decimal" },
      { key: "resident", title: "resident MB total", unit: "count" },
      { key: "idle", title: "CPU % of a core without", unit: "decimal" },
      { key: "busy", title: "with all", unit: "decimal" },
      { key: "begun", title: "started/s", unit: "count" },
      { key: "ratio", title: "other tasks/s with / without", unit: "ratio" }
    ],
    rows
  }
}
