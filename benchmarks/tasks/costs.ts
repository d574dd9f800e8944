/**
 * The costs that grow with the number of tasks or steps: an idle engine with many sleeping tasks, the replay of tasks
 * with many questions, and the deletion of expired tasks.
 */
import type { Measure, Row } from "../http/report.ts"
import { render } from "../http/report.ts"
import { describe } from "../lib/machine.ts"
import { count } from "../lib/table.ts"
import type { Store } from "./commands.ts"
import { Counters, execute, maintenance, perTask } from "./counters.ts"
import { Databases } from "./databases.ts"
import { prepare, Program, unbuiltPackages } from "./processes.ts"
import { cpuShare } from "./waitingTasks.ts"

/** How much to measure. Times are in milliseconds. */
interface Plan {
  /** The numbers of sleeping tasks, and the longest time that their creation may take. */
  readonly sleepers: ReadonlyArray<number>
  readonly creationTime: number
  readonly idleTime: number
  /** The numbers of questions of a task, and the tasks of each number. */
  readonly questions: ReadonlyArray<number>
  readonly interviews: number
  /** The number of tasks that expire, and the time from the creation of the first to their expiry. */
  readonly expiring: number
  readonly expiryTime: number
}

const thorough: Plan = {
  sleepers: [2_000, 100_000],
  creationTime: 120_000,
  idleTime: 10_000,
  questions: [20, 40, 80],
  interviews: 3,
  expiring: 20_000,
  expiryTime: 200_000
}
const quick: Plan = {
  sleepers: [200, 2_000],
  creationTime: 20_000,
  idleTime: 5_000,
  questions: [5, 10],
  interviews: 2,
  expiring: 1_000,
  expiryTime: 15_000
}

/** Sleeping tasks that are started with one command. */
const batchSize = 5_000

const startPostgres = async (databases: Databases) => {
  const at = await databases.create("postgres")
  const { program } = await Program.startServer("postgres", at)
  return { at, program, counters: await Counters.open([at]) }
}

/** Waits until the engine does little but poll: at most a minute, since its polls may take long too. */
const untilIdle = async (program: Program): Promise<void> => {
  for (let sample = 0; sample < 20; sample++) {
    if (await cpuShare(program, 3_000) < 5) return
  }
}

/** The buffers, the transactions and the processor time of an idle engine. */
const measureSleepers = async (databases: Databases, plan: Plan): Promise<Measure> => {
  const { at, counters, program } = await startPostgres(databases)
  const rows: Array<Row> = []
  let tasks = 0
  const row = async (): Promise<Row> => {
    // The server would do it a minute later, within the measurement.
    await execute(at, "VACUUM (ANALYZE)")
    await untilIdle(program)
    const before = { process: await program.cpu(), database: databases.cpu(), at: performance.now() }
    const [idle] = await counters.idle(plan.idleTime)
    const elapsed = performance.now() - before.at
    return {
      peer: String(tasks),
      label: `${count(tasks)} sleeping tasks`,
      figures: {
        buffers: idle!.buffers,
        transactions: idle!.transactions,
        process: (await program.cpu() - before.process) / elapsed * 100,
        database: (databases.cpu() - before.database) / elapsed * 100
      }
    }
  }
  try {
    await execute(maintenance(at), "ALTER SYSTEM SET autovacuum = off")
    for (const most of [0, ...plan.sleepers]) {
      const begin = performance.now()
      while (tasks < most && performance.now() - begin < plan.creationTime) {
        const batch = Math.min(batchSize, most - tasks)
        await program.send({ do: "sleep", count: batch })
        tasks += batch
      }
      rows.push(await row())
    }
  } finally {
    await program.kill()
    await execute(maintenance(at), "ALTER SYSTEM RESET autovacuum")
    await counters.close()
  }
  return {
    name: "sleepers",
    era: "request",
    title: "An idle engine on PostgreSQL with tasks that sleep for one day",
    columns: [
      { key: "buffers", title: "buffers/s", unit: "count" },
      { key: "transactions", title: "transactions/s", unit: "decimal" },
      { key: "process", title: "CPU % of a core", unit: "decimal" },
      { key: "database", title: "database", unit: "decimal" }
    ],
    rows
  }
}

/** The transactions of tasks that replay after each answer. */
const measureReplay = async (databases: Databases, { idleTime, interviews, questions }: Plan): Promise<Measure> => {
  const { counters, program } = await startPostgres(databases)
  const rows: Array<Row> = []
  try {
    const [idle] = await counters.idle(idleTime)
    let [before] = await counters.read()
    for (const number of questions) {
      const begin = { at: performance.now(), cpu: await program.cpu() }
      await program.send({ do: "interview", tasks: interviews, questions: number })
      const elapsed = performance.now() - begin.at
      const cpu = (await program.cpu() - begin.cpu) / interviews
      const [after] = await counters.read()
      const { statements, transactions } = perTask(before!, after!, idle!, elapsed, interviews)
      const seconds = elapsed / 1_000
      rows.push({ peer: String(number), label: `${number} steps`, figures: { transactions, statements, cpu, seconds } })
      before = after
    }
  } finally {
    await program.kill()
    await counters.close()
  }
  return {
    name: "replay",
    era: "request",
    title: `A task on PostgreSQL with a question after each step, ${interviews} at a time`,
    columns: [
      { key: "transactions", title: "transactions/task", unit: "count" },
      { key: "statements", title: "statements/task", unit: "count" },
      { key: "cpu", title: "CPU ms/task", unit: "count" },
      { key: "seconds", title: "seconds", unit: "decimal" }
    ],
    rows
  }
}

/** The time from the expiry of ended tasks until the last one is deleted. */
const measureExpiry = async (databases: Databases, { expiring, expiryTime }: Plan): Promise<Measure> => {
  const row = async (store: Store, label: string): Promise<Row> => {
    const { program } = await Program.startServer(store, await databases.create(store))
    try {
      const expireAt = Date.now() + expiryTime
      const tasks = await program.send({ do: "runExpiring", count: expiring, expireAt }) as number
      const deletedAt = await program.send({ do: "awaitDeletion" }) as number
      return { peer: store, label, figures: { tasks, seconds: (deletedAt - expireAt) / 1_000 } }
    } finally {
      await program.kill()
    }
  }
  return {
    name: "expiry",
    era: "request",
    title: "Ended tasks that expire at once",
    columns: [
      { key: "tasks", title: "tasks", unit: "count" },
      { key: "seconds", title: "seconds until all are deleted", unit: "decimal" }
    ],
    rows: [await row("sqlite", "SQLite"), await row("postgres", "PostgreSQL")]
  }
}

const parts = { sleepers: measureSleepers, replay: measureReplay, expiry: measureExpiry } as const
type Part = keyof typeof parts

const usage = `usage: npm run bench -- tasks-costs [--quick] [--only=${
  Object.keys(parts).join("|")
}] [--sleepers=number,…] [--minutes=number] [--source]`

/** Positive numbers in ascending order. */
const numbersOf = (text: string): ReadonlyArray<number> => {
  const numbers = text.split(",").map(Number)
  if (!numbers.every((number) => Number.isSafeInteger(number) && number > 0)) throw new Error(`${text}\n${usage}`)
  return numbers.toSorted((a, b) => a - b)
}

/** Runs the benchmark and prints its tables. */
export const main = async (args: ReadonlyArray<string>): Promise<void> => {
  const basis = args.includes("--quick") ? quick : thorough
  let { creationTime, sleepers } = basis
  let chosen = Object.keys(parts) as ReadonlyArray<Part>
  let source = unbuiltPackages().length > 0
  for (const arg of args) {
    const value = arg.slice(arg.indexOf("=") + 1)
    if (arg === "--source") source = true
    else if (arg.startsWith("--sleepers=")) sleepers = numbersOf(value)
    else if (arg.startsWith("--minutes=")) creationTime = numbersOf(value)[0]! * 60_000
    else if (arg.startsWith("--only=") && Object.hasOwn(parts, value)) chosen = [value as Part]
    else if (arg !== "--quick") throw new Error(`${arg}: not an option\n${usage}`)
  }
  await prepare(source)
  console.log(`${describe()} · npm run bench -- ${["tasks-costs", ...args].join(" ")}\n`)
  if (source) console.log("Skein runs from its sources, not from its built packages.\n")
  const plan = { ...basis, sleepers, creationTime }
  const databases = new Databases()
  try {
    for (const part of chosen) console.log(`${render(await parts[part](databases, plan), "")}\n`)
  } finally {
    await databases.stop()
  }
}
