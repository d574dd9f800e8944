/**
 * Durable tasks beside DBOS Transact: with the same steps on the same PostgreSQL server, in interleaved slices. Each
 * library has a process and a database, and its default options. Skein on SQLite runs beside them.
 */
import type { Measure, Row } from "../http/report.ts"
import { confidence, spread } from "../lib/statistics.ts"
import { Counters, hotUpdates, perTask } from "./counters.ts"
import type { Databases } from "./databases.ts"
import { type PeerName, Program } from "./processes.ts"
import { costOf, databaseCost, rateOf, type Sample, sample, type Setup, titles } from "./rates.ts"
import type { Burst, Store } from "./commands.ts"

export interface Plan {
  /** The numbers of tasks in flight. A task of Skein takes more transactions with few. */
  readonly inFlight: ReadonlyArray<number>
  /** The number of rounds, and the duration of a slice in milliseconds. Each round has a slice of each library. */
  readonly rounds: number
  readonly millis: number
  /** The durations of the warm-up, and of the slice whose transactions are counted, in milliseconds. */
  readonly warmUp: number
  readonly counted: number
}

interface Library extends Setup {
  readonly store: Store
  readonly at: string
  /** The table with a row for each task. */
  readonly table: string
}

const libraries = [
  { name: "dbos", label: "DBOS 5.3.0, PostgreSQL", peer: "dbos", store: "postgres", table: "workflow_status" },
  { name: "postgres", label: "Skein, PostgreSQL", peer: "skein", store: "postgres", table: "skein_tasks" },
  { name: "sqlite", label: "Skein, SQLite", peer: "skein", store: "sqlite", table: "skein_tasks" }
] as const satisfies ReadonlyArray<
  Pick<Library, "label" | "name" | "store" | "table"> & { readonly peer: PeerName }
>

const tools = ["one", "five"] as const
type StepTool = (typeof tools)[number]

const start = async (databases: Databases, { peer, store, ...rest }: (typeof libraries)[number]): Promise<Library> => {
  const at = await databases.create(store)
  const program = new Program(peer)
  await program.send({ do: "open", store, at, work: true, listen: false })
  const database = () => store === "postgres" ? databases.cpu() : 0
  return { ...rest, store, at, driver: () => program, all: [program], database }
}

const burst = (library: Library, inFlight: number, tool: StepTool, millis: number): Promise<Burst> =>
  library.driver("engine").burst({ through: "engine", tool, inFlight, millis })

const totalCost = (sample: Sample): number => costOf(sample) + databaseCost(sample)

const compareCosts = async (
  all: ReadonlyArray<Library>,
  inFlight: number,
  tool: StepTool,
  plan: Plan
): Promise<Measure> => {
  const samples = all.map((): Array<Sample> => [])
  for (const library of all) await burst(library, inFlight, tool, plan.warmUp)
  for (let round = 0; round < plan.rounds; round++) {
    // Each library follows each other one equally often.
    const order = round % 2 === 0 ? [...all.keys()] : [...all.keys()].toReversed()
    for (const index of order) samples[index]!.push(await sample(all[index]!, "engine", tool, plan.millis, inFlight))
  }
  const base = samples[0]!
  const against = (own: ReadonlyArray<Sample>, of: (sample: Sample) => number) =>
    confidence(own.map((sample, round) => of(sample) / of(base[round]!)))
  const rows = all.map(({ label, name, store }, index): Row => {
    const own = samples[index]!
    const onPostgres = store === "postgres"
    return {
      peer: name,
      label,
      figures: {
        rate: spread(own.map(rateOf)),
        cost: spread(own.map(costOf)),
        ...(onPostgres && { database: spread(own.map(databaseCost)) }),
        ...(index > 0 && { process: against(own, costOf), total: against(own, totalCost) }),
        ...(index > 0 && onPostgres && { databases: against(own, databaseCost) })
      },
      samples: { rate: own.map(rateOf), cost: own.map(costOf), database: own.map(databaseCost) }
    }
  })
  return {
    name: "dbos",
    era: "request",
    title: `Tasks to their results beside DBOS, ${titles[tool]}, ${inFlight} at a time (95 % intervals)`,
    columns: [
      { key: "rate", title: "tasks/s", unit: "count" },
      { key: "cost", title: "CPU ms/task", unit: "decimal" },
      { key: "database", title: "database", unit: "decimal" },
      { key: "process", title: "CPU / DBOS", unit: "ratio" },
      { key: "databases", title: "database / DBOS", unit: "ratio" },
      { key: "total", title: "both / DBOS", unit: "ratio" }
    ],
    rows
  }
}

/** Counts transactions and statements in a slice of each library. */
const count = async (all: ReadonlyArray<Library>, inFlight: number, plan: Plan): Promise<Measure> => {
  const counters = await Counters.open(all.map(({ at }) => at))
  const figures = all.map((): Record<string, number> => ({}))
  try {
    const idle = await counters.idle(plan.counted)
    let before = await counters.read()
    for (const tool of tools) {
      const bursts: Array<Burst> = []
      for (const library of all) bursts.push(await burst(library, inFlight, tool, plan.counted))
      const after = await counters.read()
      for (const [index, { tasks, wall }] of bursts.entries()) {
        const { statements, transactions } = perTask(before[index]!, after[index]!, idle[index]!, wall, tasks)
        Object.assign(figures[index]!, { [`transactions-${tool}`]: transactions, [`statements-${tool}`]: statements })
      }
      before = after
    }
  } finally {
    await counters.close()
  }
  const rows: Array<Row> = []
  for (const [index, { at, label, name, table }] of all.entries()) {
    const hot = await hotUpdates(at, table)
    rows.push({ peer: name, label, figures: { ...figures[index], ...(hot !== undefined && { hot }) } })
  }
  return {
    name: "dbos-transactions",
    era: "request",
    title: `Transactions and statements of a task, with BEGIN and COMMIT, ${inFlight} at a time`,
    columns: [
      ...(["transactions", "statements"] as const).flatMap((counter) =>
        tools.map((tool) =>
          ({
            key: `${counter}-${tool}`,
            title: `${counter}, ${tool === "one" ? "1 step" : "5 steps"}`,
            unit: "decimal"
          }) as const
        )
      ),
      { key: "hot", title: "HOT updates of the tasks", unit: "percent" }
    ],
    rows
  }
}

/** Measures the costs of tasks with one step and with five steps, and then their transactions. */
export const run = async (databases: Databases, plan: Plan, show: (measure: Measure) => void): Promise<void> => {
  const all: Array<Library> = []
  try {
    for (const library of libraries) all.push(await start(databases, library))
    for (const inFlight of plan.inFlight) {
      for (const tool of tools) show(await compareCosts(all, inFlight, tool, plan))
    }
    // Last, because counting statements costs processor time.
    const counted = all.filter(({ store }) => store === "postgres")
    for (const inFlight of plan.inFlight) show(await count(counted, inFlight, plan))
  } finally {
    await Promise.all(all.map((library) => library.driver("engine").kill()))
  }
}
