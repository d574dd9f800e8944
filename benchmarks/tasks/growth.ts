/**
 * Tasks per second on PostgreSQL with several workers, and with large tables, a long queue or an open transaction, each
 * compared with a quiet database in the same round.
 */
import { Client } from "pg"
import type { Measure, Row } from "../http/report.ts"
import { ratios, spread } from "../lib/statistics.ts"
import { execute } from "./counters.ts"
import type { Databases } from "./databases.ts"
import { Program } from "./processes.ts"
import {
  costOf,
  databaseCost,
  inFlight,
  type Plan as RatesPlan,
  rateOf,
  sampleAll,
  type Setup,
  titles
} from "./rates.ts"

export interface Plan extends RatesPlan {
  /** The tasks that have ended, and those in the queue: half of these wait for a child, which is one of the others. */
  readonly retained: number
  readonly queued: number
}

const tool = "five"

const start = async (databases: Databases, name: string, label: string, workers: number): Promise<[Setup, string]> => {
  const at = await databases.create("postgres")
  const { program: server } = await Program.startServer("postgres", at, { work: workers === 0 })
  const others = await Promise.all(Array.from({ length: workers }, () => Program.startServer("postgres", at)))
  const all = [server, ...others.map(({ program }) => program)]
  return [{ name, label, driver: () => server, all, database: () => databases.cpu() }, at]
}

/** Measures setups in interleaved rounds. The figures are compared with those of the first one. */
const compare = async (title: string, setups: ReadonlyArray<Setup>, plan: RatesPlan): Promise<Measure> => {
  const samples = await sampleAll(setups, "engine", tool, plan)
  const rows = setups.map(({ label, name }, index): Row => {
    const own = samples[index]!
    const base = samples[0]!
    return {
      peer: name,
      label,
      figures: {
        rate: spread(own.map(rateOf)),
        rates: ratios(own.map(rateOf), base.map(rateOf)),
        cost: spread(own.map(costOf)),
        costs: ratios(own.map(costOf), base.map(costOf)),
        database: spread(own.map(databaseCost)),
        databases: ratios(own.map(databaseCost), base.map(databaseCost))
      },
      samples: { rate: own.map(rateOf), cost: own.map(costOf) }
    }
  })
  const first = setups[0]!.label
  return {
    name: "growth",
    era: "request",
    title: `${title}: ${titles[tool]}, ${inFlight} at a time`,
    columns: [
      { key: "rate", title: "tasks/s", unit: "count" },
      { key: "rates", title: `tasks/s / ${first}`, unit: "ratio" },
      { key: "cost", title: "CPU ms/task", unit: "decimal" },
      { key: "costs", title: `CPU / ${first}`, unit: "ratio" },
      { key: "database", title: "database", unit: "decimal" },
      { key: "databases", title: `database / ${first}`, unit: "ratio" }
    ],
    rows
  }
}

const killAll = (setups: ReadonlyArray<Setup>) =>
  Promise.all(setups.flatMap(({ all }) => all).map((program) => program.kill()))

/** Compares one, two and four workers, beside the process that submits the tasks. */
export const workers = async (databases: Databases, plan: RatesPlan): Promise<Measure> => {
  const setups: Array<Setup> = []
  try {
    for (const count of [1, 2, 4]) {
      setups.push((await start(databases, `workers-${count}`, count === 1 ? "1 worker" : `${count} workers`, count))[0])
    }
    return await compare("Workers on PostgreSQL", setups, plan)
  } finally {
    await killAll(setups)
  }
}

/** Copies the row of a task in a table, with the ids `prefix` and a number. */
const copyRows = async (
  at: string,
  table: string,
  id: string,
  given: Readonly<Record<string, string>>,
  count: number,
  where: string
): Promise<void> => {
  const client = new Client({ connectionString: at })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT column_name AS name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
      [table]
    )
    const columns = rows.map(({ name }) => name)
    const values = columns.map((name) => name === id ? given["id"]! : given[name] ?? name)
    await client.query(
      `INSERT INTO ${table} (${columns.join()}) SELECT ${values.join()}
       FROM (SELECT * FROM ${table} WHERE ${where} LIMIT 1) AS one, generate_series(1, ${count}) AS n`
    )
  } finally {
    await client.end()
  }
}

const idOf = (letter: string): string => `'${letter}' || lpad(CAST(n AS TEXT), 31, '0')`

const addRetained = async (at: string, count: number): Promise<void> => {
  const id = idOf("R")
  await copyRows(at, "skein_tasks", "id", { id, submission_key: "NULL" }, count, "status = 'completed'")
  await copyRows(at, "skein_task_log", "task_id", { id }, count, "kind = 'step'")
}

const addQueued = async (at: string, count: number): Promise<void> => {
  const id = idOf("Q")
  await copyRows(at, "skein_tasks", "id", { id, submission_key: "NULL" }, count, "status = 'working'")
  await copyRows(at, "skein_task_queue", "task_id", { id, wake_at: "wake_at + n" }, count, "state = 1")
  const half = Math.floor(count / 2)
  await execute(
    at,
    `INSERT INTO skein_task_children (parent, name, item, child, detached, state)
     SELECT ${id}, 'child', 0, ${idOf("Q").replace("CAST(n AS", `CAST(n + ${half} AS`)}, 0, 0
     FROM generate_series(1, ${half}) AS n`
  )
}

/** Compares a quiet database with large ones, and with one that a transaction reads all the time. */
export const growth = async (databases: Databases, plan: Plan): Promise<Measure> => {
  const setups: Array<Setup> = []
  let reader: Client | undefined
  try {
    const labels = {
      quiet: "quiet",
      retained: `${plan.retained.toLocaleString("en")} tasks that have ended`,
      queued: `${plan.queued.toLocaleString("en")} tasks that wait, half of them for a child`,
      transaction: "an open transaction"
    }
    for (const [name, label] of Object.entries(labels)) {
      const [setup, at] = await start(databases, name, label, 0)
      setups.push(setup)
      const { driver } = setup
      await driver("engine").burst({ through: "engine", tool, inFlight: 1, millis: 200 })
      if (name === "retained") await addRetained(at, plan.retained)
      if (name === "queued") {
        await driver("engine").send({ do: "sleep", count: 1 })
        await addQueued(at, plan.queued)
      }
      if (name === "transaction") {
        reader = new Client({ connectionString: at })
        await reader.connect()
        await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM skein_tasks")
      }
    }
    return await compare("Large and busy databases", setups, plan)
  } finally {
    await reader?.end()
    await killAll(setups)
  }
}
