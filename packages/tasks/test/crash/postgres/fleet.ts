/**
 * The processes on one database: workers that come and go, and the front server.
 */
import { type Postgres, startPostgres, timeLimits } from "../../../../sql/test/postgres.ts"
import { type PgBouncer, startPgBouncer } from "../../../../sql/test/startPgBouncer.ts"
import * as PgClient from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import { globSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { Client } from "pg"
import { Child, describeChildren } from "../child.ts"
import type { Staged } from "../clients.ts"
import { describeFibers } from "../../../../../scripts/fibers.ts"
import { tables } from "../orders.ts"
import { Outside } from "./outsideServer.ts"
import type { Given } from "./process.ts"

/** The options of all processes of a fleet. */
export interface Options extends Omit<Given, "role" | "url" | "outside" | "port"> {
  readonly workers: number
  /** Whether the processes connect through PgBouncer in session mode. */
  readonly hasPooler?: boolean
}

/** A change of a row whose transaction is held when it commits. `when` is a condition on `NEW` and `OLD`. */
export interface Held {
  readonly table: string
  readonly event: "INSERT" | "UPDATE" | "DELETE"
  readonly when: string
}

/** The variables of a process whose clock differs from that of the machine. Its timers stay right. */
const wrongClock = (clock: string): Readonly<Record<string, string>> => {
  if (libfaketime === undefined) throw new Error("libfaketime is missing: install Debian's package libfaketime")
  return { LD_PRELOAD: libfaketime, FAKETIME: clock, FAKETIME_DONT_FAKE_MONOTONIC: "1" }
}

/** The library of libfaketime; `undefined` if it is not installed. */
export const libfaketime = globSync("/usr/lib/*/faketime/libfaketime.so.1")[0]

/** The key of the advisory lock that held transactions wait for. */
const holdKey = 1616

/** The effects of each step of a task. */
export type Traces = Readonly<Record<string, string>>

/** The processes on one database. */
export class Fleet implements Staged {
  readonly postgres: Postgres
  /** The URL of the database itself. */
  readonly url: string
  readonly pooler: PgBouncer | undefined
  readonly outside: Outside
  readonly workers = new Set<Child>()
  front: Child | undefined
  /** The URL of the front server, also of the next one. */
  serverUrl = ""
  readonly problems: Array<string> = []
  readonly #options: Options
  readonly #all = new Set<Child>()
  readonly #closing = new AbortController()
  readonly #end = () => {
    for (const child of this.#all) child.process.kill("SIGKILL")
  }

  private constructor(
    postgres: Postgres,
    url: string,
    pooler: PgBouncer | undefined,
    outside: Outside,
    options: Options
  ) {
    this.postgres = postgres
    this.url = url
    this.pooler = pooler
    this.outside = outside
    this.#options = options
    process.on("exit", this.#end)
  }

  static async open(options: Options): Promise<Fleet> {
    const postgres = await startPostgres()
    const url = await postgres.createDatabase()
    await Effect.runPromise(Effect.provide(tables, PgClient.layer({ url })))
    const pooler = options.hasPooler === true
      ? await startPgBouncer(postgres.port, { poolMode: "session" })
      : undefined
    const fleet = new Fleet(postgres, url, pooler, await Outside.open(), options)
    // The process that wrote it.
    await fleet.query("ALTER TABLE ledger ADD COLUMN worker TEXT DEFAULT current_setting('application_name')")
    await Promise.all([fleet.openDoor(), ...Array.from({ length: options.workers }, () => fleet.join())])
    return fleet
  }

  /** Aborted when the processes end. */
  get signal(): AbortSignal {
    return this.#closing.signal
  }

  /** Milliseconds; `undefined`: the default. */
  get leaseTimeout(): number | undefined {
    return this.#options.leaseTimeout as number | undefined
  }

  #fork(role: Given["role"], port = 0, env: Readonly<Record<string, string>> = {}): Child {
    const { hasPooler: _, workers: __, ...options } = this.#options
    const url = this.pooler?.through(this.url) ?? this.url
    const given: Given = { ...options, role, url, outside: this.outside.url, port }
    const child = new Child("postgres/process.ts", [JSON.stringify(given)], env)
    this.#all.add(child)
    void this.#noteEnd(role, child)
    return child
  }

  /** Records a problem if a process ends without a signal. */
  async #noteEnd(role: Given["role"], child: Child): Promise<void> {
    const code = await child.ended
    this.#all.delete(child)
    // SIGKILL has no exit code, and the shutdown by SIGTERM has one of these.
    if (typeof code === "number" && code !== 143 && code !== 130) {
      this.problems.push(`a ${role} exited with ${code} without a signal\n${child.err.slice(-4000)}`)
    }
  }

  /** Starts a process that does not belong to the fleet, and does not wait until it is ready. */
  startProcess(role: Given["role"]): Child {
    return this.#fork(role)
  }

  async #spawn(
    role: Given["role"],
    port = 0,
    env: Readonly<Record<string, string>> = {}
  ): Promise<readonly [Child, { readonly url?: string }]> {
    const child = this.#fork(role, port, env)
    const ready = await child.message<{ readonly url?: string }>()
    if (ready === undefined) throw new Error(`A ${role} did not start: ${await child.ended}\n${child.err}`)
    return [child, ready]
  }

  /** Starts a worker, with a clock that differs, such as `+2h` or `-30s`. */
  async join(clock?: string): Promise<Child> {
    const [worker] = await this.#spawn("worker", 0, clock === undefined ? {} : wrongClock(clock))
    this.workers.add(worker)
    return worker
  }

  /** Stops a worker: by a shutdown, which must succeed, or by `SIGKILL`. Returns the milliseconds that it took. */
  async leave(worker: Child, signal: "SIGTERM" | "SIGKILL"): Promise<number> {
    this.workers.delete(worker)
    const begun = performance.now()
    const code = await worker.kill(signal)
    if (signal === "SIGTERM" && code !== 130 && code !== 143) {
      this.problems.push(`SIGTERM ended a worker with ${code}\n${worker.err}`)
    }
    return performance.now() - begun
  }

  /** Starts the front server; the next one has the same address. */
  async openDoor(): Promise<void> {
    const [front, { url = "" }] = await this.#spawn(
      "front",
      this.serverUrl === "" ? 0 : Number(new URL(this.serverUrl).port)
    )
    this.front = front
    this.serverUrl = url
  }

  /** Starts another front server. */
  async openOtherServer(): Promise<string> {
    const [, { url = "" }] = await this.#spawn("front")
    return url
  }

  /** The worker of a process. */
  workerOf(pid: number): Child {
    for (const worker of this.workers) if (worker.process.pid === pid) return worker
    throw new Error(`${pid} is no worker of this fleet`)
  }

  /** Runs a query on the database. */
  async query<Row>(sql: string, parameters: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<Row>> {
    const client = new Client({ connectionString: this.url, ...timeLimits })
    client.on("error", () => {})
    await client.connect()
    try {
      return (await client.query(sql, [...parameters])).rows as Array<Row>
    } finally {
      await client.end().catch(() => {})
    }
  }

  /** Locks a table against writes. The returned function unlocks it. */
  async lock(table: string): Promise<() => Promise<void>> {
    const client = new Client({ connectionString: this.url, ...timeLimits })
    await client.connect()
    await client.query(`BEGIN; LOCK TABLE ${table} IN SHARE MODE`)
    return () => client.end()
  }

  /** Holds the transactions that change such a row, when they commit. The returned function lets them continue. */
  async hold({ event, table, when }: Held): Promise<() => Promise<void>> {
    const client = new Client({ connectionString: this.url, ...timeLimits })
    client.on("error", () => {})
    await client.connect()
    await client.query(`SELECT pg_advisory_lock(${holdKey})`)
    await client.query(
      `CREATE OR REPLACE FUNCTION skein_hold() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN PERFORM pg_advisory_xact_lock_shared(${holdKey}); RETURN NULL; END $$;
       DROP TRIGGER IF EXISTS skein_hold ON ${table};
       CREATE CONSTRAINT TRIGGER skein_hold AFTER ${event} ON ${table} DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION skein_hold()`
    )
    return async () => {
      await client.query(`SELECT pg_advisory_unlock(${holdKey})`)
      await client.query(`DROP TRIGGER IF EXISTS skein_hold ON ${table}`)
      await client.end()
    }
  }

  /** Begins to read the database in a transaction, which the returned function ends. */
  async read(): Promise<() => Promise<void>> {
    const client = new Client({ connectionString: this.url })
    client.on("error", () => {})
    await client.connect()
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM skein_tasks")
    return () => client.end()
  }

  /** Waits until a process is held: its id, and that of its connection in the database. */
  async stuckAtHold(what: string): Promise<{ readonly pid: number; readonly backend: number }> {
    let found: { name: string; pid: number } | undefined
    await this.eventually(`${what}: a held transaction`, async () => {
      const rows = await this.query<{ name: string; pid: number }>(
        `SELECT application_name AS name, pid FROM pg_stat_activity
         WHERE application_name LIKE 'skein %' AND wait_event_type = 'Lock' AND wait_event = 'advisory'`
      )
      found = rows[0]
      return found !== undefined
    })
    return { pid: Number(found!.name.slice("skein ".length)), backend: found!.pid }
  }

  /** Polls until a condition holds. */
  async eventually(what: string, look: () => Promise<boolean>, patience = 30_000): Promise<void> {
    const end = performance.now() + patience
    while (performance.now() < end) {
      if (await look()) return
      await sleep(30)
    }
    throw new Error(`Never in ${patience} ms: ${what}\n${this.output}`)
  }

  /** Waits until a statement of a process waits for a lock. */
  stuck(pid: number | undefined, statement: RegExp): Promise<void> {
    return this.eventually(`a statement of ${pid} that waits, like ${statement}`, async () => {
      const stuck = await this.query<{ query: string }>(
        "SELECT query FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'",
        [`skein ${pid}`]
      )
      return stuck.some(({ query }) => statement.test(query))
    })
  }

  /** Waits until a task is settled. */
  settled(task: string, what: string): Promise<void> {
    return this.eventually(
      `${what}: settled`,
      async () => (await this.query("SELECT FROM skein_task_queue WHERE task_id = $1", [task])).length === 0
    )
  }

  /** Records a problem if a condition does not hold. */
  same(what: string, found: unknown, wanted: unknown): void {
    const [is, should] = [JSON.stringify(found), JSON.stringify(wanted)]
    if (is !== should) this.problems.push(`${what}: ${is}, and not ${should}`)
  }

  /** The effects of a task: how often each step acted outside, with how many keys, and how often it was committed. */
  async traces(task: string): Promise<Traces> {
    const traces: Record<string, string> = {}
    const done = this.outside.done.filter((done) => done.task === task)
    for (const { step } of done) {
      // Each run writes these notes again.
      if (step === "reason" || step === "winner") continue
      const keys = new Set(done.filter((done) => done.step === step).map(({ key }) => key))
      traces[step] = keys.size === 1 ? "one effect" : `${keys.size} effects`
    }
    const rows = await this.query<{ step: string; count: string }>(
      "SELECT step, count(*) FROM ledger WHERE task = $1 GROUP BY step ORDER BY step",
      [task]
    )
    for (const { count, step } of rows) traces[step] = count === "1" ? "committed once" : `committed ${count} times`
    return traces
  }

  /** The reasons with which the compensations of a task have run. */
  reasons(task: string): ReadonlyArray<string> {
    const notes = this.outside.done.filter((done) => done.task === task && done.step === "reason")
    return [...new Set(notes.map(({ key }) => key.slice(task.length + 1)))]
  }

  /** Describes the step at which a part of the run is. */
  describeStage = (): string => "the stage is unknown"

  /**
   * Describes the state of a part of the run that does not end: its stage, the database, and the processes with their
   * fibers.
   */
  async describe(): Promise<string> {
    const parts = [`stage: ${this.describeStage()}`]
    const tables: ReadonlyArray<readonly [string, string]> = [
      [
        "connections",
        `SELECT pid, application_name, state, wait_event_type, wait_event, now() - query_start AS since, left(query, 150) AS query
         FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY 2, 1`
      ],
      [
        "tasks that are not settled",
        `SELECT id, tasks.tool, status, args, to_timestamp(updated_at / 1000.0) AS updated, state, worker, signals, runs,
           attempts, to_timestamp(LEAST(wake_at, 1e13) / 1000.0) AS wakes
         FROM skein_tasks AS tasks JOIN skein_task_queue ON task_id = id`
      ],
      [
        "logs of these tasks",
        `SELECT task_id, seq, kind, left(name, 40) AS name, attempt, to_timestamp(LEAST(at, 1e13) / 1000.0) AS at
         FROM skein_task_log WHERE task_id IN (SELECT task_id FROM skein_task_queue) ORDER BY task_id, seq`
      ],
      ["workers", "SELECT *, extract(epoch FROM now()) * 1000 AS now FROM skein_task_workers"]
    ]
    for (const [title, sql] of tables) {
      const rows = await this.query(sql).catch((error: unknown) => [String(error)])
      parts.push(`${title}: ${rows.length}`, ...rows.map((row) => `  ${JSON.stringify(row)}`))
    }
    parts.push(await describeChildren(), `fibers of ${process.pid}, the clients:\n${describeFibers()}`)
    return parts.join("\n")
  }

  /** The stderr output of the running processes. */
  get output(): string {
    return [...this.#all].map(({ err, process }) => `${process.pid}:\n${err}`).join("\n")
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#end()
    await Promise.all([...this.#all].map(({ ended }) => ended))
    process.off("exit", this.#end)
    this.outside.close()
    await this.pooler?.stop()
    await this.postgres.stop()
  }
}
