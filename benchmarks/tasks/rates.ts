/**
 * Tasks per second, and processor time per task from its creation to its result.
 */
import { type Measure, type Row } from "../http/report.ts"
import { ratios, spread } from "../lib/statistics.ts"
import type { Databases } from "./databases.ts"
import { Program } from "./processes.ts"
import type { Burst, Store, Through, Tool } from "./commands.ts"

export interface Plan {
  /** The number of rounds, and the duration of a round in milliseconds. */
  readonly rounds: number
  readonly millis: number
  /** The duration of the warm-up in milliseconds. */
  readonly warmUp: number
}

/** The number of tasks in flight. */
export const inFlight = 64

/** The measurements of one round. */
export interface Sample extends Burst {
  /** Processor time of the other processes, and of the database. */
  readonly others: number
  readonly database: number
}

/** A store and its processes. */
export interface Setup {
  readonly name: string
  readonly label: string
  readonly driver: (through: Through) => Program
  readonly all: ReadonlyArray<Program>
  readonly database: () => number
}

const setups = {
  memory: { label: "memory", store: "memory", workers: 0 },
  sqlite: { label: "SQLite, one process", store: "sqlite", workers: 0 },
  postgres: { label: "PostgreSQL, one process", store: "postgres", workers: 0 },
  "postgres-3": { label: "PostgreSQL, a server and 3 workers", store: "postgres", workers: 3 }
} as const satisfies Record<string, { readonly label: string; readonly store: Store; readonly workers: number }>

type Name = keyof typeof setups

const start = async (databases: Databases, name: Name): Promise<Setup> => {
  const { label, store, workers } = setups[name]
  const at = await databases.create(store)
  const { program: server, url } = await Program.startServer(store, at, { listen: true, work: workers === 0 })
  const others = await Promise.all(Array.from({ length: workers }, () => Program.startServer(store, at)))
  const client = await Program.startClient(url)
  return {
    name,
    label,
    driver: (through) => through === "http" ? client : server,
    all: [server, client, ...others.map(({ program }) => program)],
    database: () => store === "postgres" ? databases.cpu() : 0
  }
}

const cpuOf = async (programs: ReadonlyArray<Program>): Promise<number> =>
  (await Promise.all(programs.map((program) => program.cpu()))).reduce((sum, cpu) => sum + cpu, 0)

/** Measures a setup for some milliseconds. */
export const sample = async (
  setup: Setup,
  through: Through,
  tool: Tool,
  millis: number,
  tasks = inFlight
): Promise<Sample> => {
  const driver = setup.driver(through)
  const rest = setup.all.filter((program) => program !== driver)
  const before = { others: await cpuOf(rest), database: setup.database() }
  const burst = await driver.burst({ through, tool, inFlight: tasks, millis })
  return {
    ...burst,
    others: await cpuOf(rest) - before.others,
    database: setup.database() - before.database
  }
}

export const titles: Record<Tool, string> = {
  plain: "a tool that is not durable",
  one: "a durable tool with one step",
  five: "a durable tool with five steps"
}

const throughTitles: Record<Through, string> = {
  engine: "through the engine",
  inMemory: "by a client in the same process, 2026-07-28",
  inMemoryLegacy: "by a client in the same process, 2025-11-25",
  http: "by a client in another process, over HTTP, 2026-07-28"
}

/** Tasks per second. */
export const rateOf = ({ tasks, wall }: Burst): number => tasks / wall * 1_000

/** Processor time without the database, which has its own column. */
export const costOf = ({ cpu, others, tasks }: Sample): number => (cpu + others) / tasks

/** Processor time of the database. */
export const databaseCost = ({ database, tasks }: Sample): number => database / tasks

/** Measures all combinations of client and tool, with all setups side by side. */
export const run = async (
  databases: Databases,
  names: ReadonlyArray<Name>,
  plan: Plan,
  show: (measure: Measure) => void
): Promise<void> => {
  const running: Array<Setup> = []
  try {
    for (const name of names) running.push(await start(databases, name))
    for (const through of ["engine", "inMemory", "http"] as const) {
      for (const tool of ["plain", "one", "five"] as const) show(await measure(running, through, tool, plan))
    }
  } finally {
    await Promise.all(running.flatMap(({ all }) => all).map((program) => program.kill()))
  }
}

/** Measures setups in interleaved rounds, after a warm-up of each. */
export const sampleAll = async (
  setups: ReadonlyArray<Setup>,
  through: Through,
  tool: Tool,
  plan: Plan
): Promise<ReadonlyArray<ReadonlyArray<Sample>>> => {
  const samples = setups.map((): Array<Sample> => [])
  for (const setup of setups) await sample(setup, through, tool, plan.warmUp)
  for (let round = 0; round < plan.rounds; round++) {
    for (const [index, setup] of setups.entries()) {
      samples[index]!.push(await sample(setup, through, tool, plan.millis))
    }
  }
  return samples
}

const measure = async (setups: ReadonlyArray<Setup>, through: Through, tool: Tool, plan: Plan): Promise<Measure> => {
  const samples = await sampleAll(setups, through, tool, plan)
  const rows = setups.map(({ label, name }, index): Row => {
    const own = samples[index]!
    const base = samples[0]!
    return {
      peer: name,
      label,
      figures: {
        rate: spread(own.map(rateOf)),
        cost: spread(own.map(costOf)),
        ...(name.startsWith("postgres") && {
          database: spread(own.map(databaseCost))
        }),
        ...(index > 0 && { ratio: ratios(own.map(costOf), base.map(costOf)) })
      },
      samples: { rate: own.map(rateOf), cost: own.map(costOf) }
    }
  })
  return {
    name: "rates",
    era: "request",
    title: `Tasks to their results, ${titles[tool]}, ${throughTitles[through]}, ${inFlight} at a time`,
    columns: [
      { key: "rate", title: "tasks/s", unit: "count" },
      { key: "cost", title: "CPU ms/task", unit: "decimal" },
      { key: "database", title: "database", unit: "decimal" },
      { key: "ratio", title: `CPU / ${setups[0]!.label}`, unit: "ratio" }
    ],
    rows
  }
}

/**
 * Compares Skein with SDK v1, both with tasks in memory and a client in the same process, in 2025-11-25, which both
 * support.
 */
export const compare = async (plan: Plan): Promise<Measure> => {
  const { program: skein } = await Program.startServer("memory", "")
  const sdkV1 = new Program("sdk-v1")
  await sdkV1.send({ do: "open", store: "memory", at: "", work: true, listen: false })
  const peers = [
    { peer: "sdk-v1", label: "SDK v1 1.32.2, InMemoryTaskStore", program: sdkV1, samples: [] as Array<Burst> },
    { peer: "skein", label: "Skein, memory", program: skein, samples: [] as Array<Burst> }
  ]
  const drive = (program: Program, millis: number) =>
    program.burst({ through: "inMemoryLegacy", tool: "plain", inFlight, millis })
  try {
    for (const { program } of peers) await drive(program, plan.warmUp)
    for (let round = 0; round < plan.rounds; round++) {
      for (const { program, samples } of peers) samples.push(await drive(program, plan.millis))
    }
  } finally {
    await Promise.all(peers.map(({ program }) => program.kill()))
  }
  const costs = (samples: ReadonlyArray<Burst>) => samples.map(({ cpu, tasks }) => cpu / tasks)
  const base = peers[0]!.samples
  return {
    name: "peer",
    era: "session",
    title: `Tasks in memory, ${titles.plain}, each ${throughTitles.inMemoryLegacy}, ${inFlight} at a time`,
    columns: [
      { key: "ratio", title: "tasks/s / SDK v1", unit: "ratio" },
      { key: "rate", title: "tasks/s", unit: "count" },
      { key: "costs", title: "CPU / SDK v1", unit: "ratio" },
      { key: "cost", title: "CPU ms/task", unit: "decimal" }
    ],
    rows: peers.map(({ label, peer, samples }) => ({
      peer,
      label,
      figures: {
        ratio: ratios(samples.map(rateOf), base.map(rateOf)),
        rate: spread(samples.map(rateOf)),
        costs: ratios(costs(samples), costs(base)),
        cost: spread(costs(samples))
      }
    }))
  }
}

/** The setups of some stores. */
export const namesOf = (stores: ReadonlyArray<Store>): ReadonlyArray<Name> =>
  (Object.keys(setups) as ReadonlyArray<Name>).filter((name) => stores.includes(setups[name].store))
