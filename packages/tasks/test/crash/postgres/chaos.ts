/**
 * Orders, and incidents of their workers, their front server and their database until all of them have ended.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { setTimeout as sleep } from "node:timers/promises"
import { check, type Found, output, type Summary, unreceived } from "../checks.ts"
import * as Clients from "../clients.ts"
import { settled } from "../crash.ts"
import type { Fleet } from "./fleet.ts"
import { watchForStandstill } from "./standstill.ts"

/** An incident. It ends when all processes are back. */
export type Mishap = (fleet: Fleet, random: () => number) => Promise<void>

const one = <A>(all: Iterable<A>, random: () => number): A => {
  const array = [...all]
  return array[Math.floor(random() * array.length)]!
}

/** A worker is killed, and another one started. */
export const killed: Mishap = async (fleet, random) => {
  await fleet.leave(one(fleet.workers, random), "SIGKILL")
  await fleet.join()
}

/** A worker is shut down, and another one started meanwhile. */
export const terminate: Mishap = async (fleet, random) => {
  await Promise.all([fleet.leave(one(fleet.workers, random), "SIGTERM"), fleet.join()])
}

/** A worker is stopped for longer than `leaseTimeout`, and continues. */
export const stopped = (milliseconds: number): Mishap => async (fleet, random) => {
  const worker = one(fleet.workers, random)
  worker.process.kill("SIGSTOP")
  await sleep(milliseconds)
  worker.process.kill("SIGCONT")
}

/** Workers join, and others are shut down or killed, without a pause. */
export const churned: Mishap = async (fleet, random) => {
  await Promise.all([
    fleet.join(),
    sleep(random() * 500).then(() => fleet.leave(one(fleet.workers, random), random() < 0.5 ? "SIGTERM" : "SIGKILL"))
  ])
}

/** The database is restarted without notice. */
export const restarted: Mishap = ({ postgres }) => postgres.restartImmediate()

/** The same, while a task compensates; or after a while, if no task does. */
export const restartedUndoing: Mishap = async (fleet, random) => {
  const end = performance.now() + 4000
  const inLog = (name: string) =>
    `EXISTS (SELECT FROM skein_task_log AS log WHERE log.task_id = id AND kind = 'step' AND name = '${name}')`
  const undoing = `SELECT FROM skein_tasks JOIN skein_task_queue ON task_id = id
    WHERE state = 2 AND (status = 'cancelled' AND ${inLog("reserve")} OR ${inLog("release")}) LIMIT 1`
  while (performance.now() < end && (await fleet.query(undoing)).length === 0) await sleep(3)
  await restarted(fleet, random)
}

/** The database is killed, and comes back after a while. */
export const gone = (milliseconds: number): Mishap => async ({ postgres }) => {
  await postgres.kill()
  await sleep(milliseconds)
  await postgres.start()
}

/** Some connections of some processes break. */
export const cut: Mishap = async (fleet) => {
  await fleet.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name LIKE 'skein %' AND random() < 0.4`
  )
}

/** Workers join whose clocks are hours or seconds off, and leave after a while. */
export const clocksDiffer: Mishap = async (fleet, random) => {
  const workers = await Promise.all(["+2h", "-30s", "-3h"].map((clock) => fleet.join(clock)))
  await sleep(2000 + random() * 2000)
  await Promise.all(workers.map((worker) => fleet.leave(worker, random() < 0.5 ? "SIGTERM" : "SIGKILL")))
}

/** A backup reads the database, in a transaction of some seconds. */
export const backup: Mishap = async (fleet) => {
  const end = await fleet.read()
  await sleep(5000)
  await end()
}

/** The disk is full for a while: PostgreSQL refuses what it has no room for. */
export const fullDisk: Mishap = async (fleet) => {
  const tables = ["skein_tasks", "skein_task_log", "skein_task_output", "skein_task_events"]
  await fleet.query(
    `CREATE OR REPLACE FUNCTION skein_full() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
       RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full';
     END $$`
  )
  for (const table of tables) {
    await fleet.query(`CREATE TRIGGER skein_full BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION skein_full()`)
  }
  await sleep(2500)
  for (const table of tables) await fleet.query(`DROP TRIGGER skein_full ON ${table}`)
}

/** PgBouncer is killed, and started again. */
export const poolerKilled: Mishap = async ({ pooler }) => pooler?.restart()

/** The front server is killed, with the calls that wait. */
export const shut: Mishap = async (fleet) => {
  await fleet.front?.kill("SIGKILL")
  await fleet.openDoor()
}

/** The amount of work. */
export interface Plan {
  readonly orders: number
  readonly concurrency: number
  /** The incidents, one after the other, repeated. */
  readonly mishaps: ReadonlyArray<Mishap>
  /** The number of incidents, at most, and the milliseconds between two. */
  readonly most: number
  readonly pause: number
  readonly random: () => number
}

export interface Report extends Summary {
  readonly mishaps: number
  /** Questions that were asked before an incident and answered after it. */
  readonly survived: number
}

const read = async (fleet: Fleet, before: ReadonlySet<string>): Promise<Found> => {
  const tasks = await fleet.query<Found["tasks"][number]>(
    "SELECT id, status, args, outcome FROM skein_tasks WHERE tool = 'order' ORDER BY created_at"
  )
  const [count] = await fleet.query<{ live: string; retained: string }>(
    "SELECT SUM(live) AS live, SUM(retained) AS retained FROM skein_task_counters WHERE kind = 1 AND name = 'order'"
  )
  return {
    tasks: tasks.filter(({ id }) => !before.has(id)),
    ledger: (await fleet.query<Found["ledger"][number]>(
      "SELECT task, step FROM ledger WHERE task IN (SELECT id FROM skein_tasks WHERE tool = 'order')"
    )).filter(({ task }) => !before.has(task)),
    tally: 0,
    all: tasks.length - before.size,
    unreceived: await fleet.query(unreceived),
    output: await fleet.query(output),
    counted: { live: Number(count!.live), retained: Number(count!.retained) - before.size },
    questions: await fleet.query("SELECT task_id AS task, state FROM skein_task_questions")
  }
}

/** Runs the orders, and checks the result. */
export const chaos = async (
  fleet: Fleet,
  { concurrency, most, orders, pause, random, ...plan }: Plan
): Promise<Report> => {
  const before = new Set(
    (await fleet.query<{ id: string }>("SELECT id FROM skein_tasks WHERE tool = 'order'")).map(({ id }) => id)
  )
  const tally = async () => Number((await fleet.query<{ count: number }>("SELECT count FROM tally"))[0]!.count)
  const counted = await tally()
  const scope = Scope.makeUnsafe()
  let mishaps = 0
  const clients = await Effect.runPromise(
    Scope.provide(Clients.make({ url: fleet.serverUrl, random, life: () => mishaps }), scope)
  )
  const numbers = Array.from({ length: orders }, (_, order) => order)
  const customers = Effect.runFork(Effect.forEach(numbers, clients.order, { concurrency, discard: true }), {
    signal: fleet.signal
  })
  const watched = watchForStandstill(fleet)
  let over = false
  customers.addObserver(() => void (over = true))
  const waitFor = (what: string) => {
    fleet.describeStage = () => `${what} after ${mishaps} incidents\n${clients.describeUnfinished()}`
  }
  while (!over && mishaps < most) {
    waitFor("waits for the next incident")
    await sleep(random() * pause)
    if (over) break
    const mishap = plan.mishaps[mishaps++ % plan.mishaps.length]!
    waitFor("waits for the end of an incident")
    await mishap(fleet, random)
  }
  waitFor("waits for the orders")
  const ended = await Effect.runPromise(Fiber.await(customers))
  if (Exit.isFailure(ended)) throw new Error(`The clients failed: ${ended.cause}\n${fleet.output}`)
  waitFor("waits for the tasks that no client knows")
  const left = await Effect.runPromise(settled(clients))
  await Effect.runPromise(Scope.close(scope, Exit.void))
  const { acknowledged, cancelled, survived } = clients.reported
  const found = { ...await read(fleet, before), tally: await tally() - counted }
  const ids = new Set(found.tasks.map(({ id }) => id))
  const calls = fleet.outside.done.filter(({ task }) => ids.has(task))
  const { problems, ...summary } = check(found, calls, acknowledged, cancelled)
  const still = await watched.stop()
  const missing = acknowledged.size === orders ? [] : [`${acknowledged.size} orders of ${orders} were acknowledged`]
  return {
    ...summary,
    mishaps,
    survived,
    problems: [...missing, ...still, ...left, ...problems, ...fleet.problems.splice(0)]
  }
}

/** A report as a line. */
export const line = (report: Report): string =>
  [
    `${report.completed} completed, ${report.failed} failed, ${report.cancelled} cancelled`,
    `${report.mishaps} mishaps`,
    `${report.repeated} steps acted more than once`,
    `${report.survived} questions answered in a later life`
  ].join("; ")
