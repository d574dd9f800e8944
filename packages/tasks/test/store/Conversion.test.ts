/**
 * Databases of version 0.1 with tasks in the middle, which the engine of this version continues: see
 * `version01/generate.ts`.
 */
import { expect, it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Clock from "effect/Clock"
import * as Runner from "effect/cluster/Runner"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { Database } from "../../src/internal/store/database.ts"
import { migrate } from "../../src/internal/store/migrations.ts"
import { unescape } from "../../src/internal/store/storedText.ts"
import { ended, get, handlers, textOf } from "../engine/kit.ts"
import { sharedPostgres } from "../../../sql/test/postgres.ts"
import { each, file, pg } from "./kit.ts"
import { type Copy, postgresCopy, replaceTasks, sqliteCopy } from "./version01/copies.ts"
import { key, makeTools, names } from "./version01/tools.ts"

const sealed = Encryption.layer({ keys: [key], readPlaintext: true })

/** Runs an effect some hours after a database was written. */
const laterBy = (hours: number, { client }: Copy) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const lastSubmission = Effect.flatMap(
      SqlClient,
      (sql) => sql<{ readonly at: unknown }>`SELECT MAX(created_at) AS at FROM skein_tasks`
    )
    const [row] = yield* Effect.provide(lastSubmission, client)
    const offset = Number(row!.at) + hours * 3_600_000 - Date.now()
    const now = () => Date.now() + offset
    const clock = Object.assign(Object.create(yield* Clock.Clock) as Clock.Clock, {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now)
    })
    return yield* Effect.provideService(effect, Clock.Clock, clock)
  })

const owners = ["plain", "sealed"] as const
const yes = { action: "accept", content: { text: "yes" } }

/** The end of each task, and the steps that are executed after the migration. */
const ends: Record<string, readonly [end: string | undefined, ...executed: Array<string>]> = {
  steps: ["one two then three", "then three"],
  sleeper: ["after", "after"],
  asker: ["before yes after", "after"],
  asksForever: ["yes after", "after"],
  late: ["no answer after", "after"],
  timedOut: ["no answer then", "then"],
  answered: ["before yes then", "then"],
  unobserved: ["before soon after", "after"],
  lost: ["fast then", "then"],
  race: ["fast then", "then"],
  raceSleep: ["quick then", "then"],
  branches: ["a1 then a2, b1 b2, yes, d", "then a2"],
  cancelled: [undefined, "then undo b", "undo a"],
  cancelledBranches: [undefined, "then undo b", "undo a"],
  failing: ["c has failed", "then undo a"],
  caught: ["as expected, a defect, then", "then"],
  transactional: ["then", "then"],
  once: ["flaky good", "bad"],
  names: ["then", "then"],
  pauses: ["step", "step"],
  paused: ["step then", "step", "then"],
  missing: ["step", "step"],
  plain: ["plain", "run"],
  ended: ["step"]
}

/** The log of each task. A number of attempts of "paused" depends on the time that its worker took. */
const logsOf: Record<string, ReadonlyArray<string>> = {
  steps: ["step 1 one", "step 1 two", "step 2 two", "step 3 two"],
  sleeper: ["step 1 before", "fired 1 sleep/short", "timer 1 sleep/long"],
  far: ["timer 1 sleep/far"],
  asker: ["step 1 before", "timer 1 timeout/open"],
  asksForever: [],
  late: ["timer 1 timeout/late"],
  timedOut: ["timeout 1 gone"],
  answered: ["step 1 before", "answer 1 nul \0"],
  unobserved: ["step 1 before", "answer 1 soon"],
  lost: ["step 1 fast"],
  race: ["timer 1 sleep/slow", "step 1 fast"],
  raceSleep: ["fired 1 sleep/quick"],
  branches: ["timer 1 sleep/d", "step 1 a1", "fired 1 sleep/b", "step 1 b1", "step 1 b2"],
  cancelled: ["step 1 a", "step 1 b", "step 1 c", "step 1 undo c"],
  cancelledBranches: ["step 1 a", "step 1 b", "step 1 c", "step 1 undo c"],
  failing: ["step 1 a", "step 1 b", "step 1 c", "step 1 undo b"],
  caught: ["step 1 fails", "step 1 dies"],
  transactional: ["step 1 order"],
  once: ["once 1 flaky"],
  names: [
    ...names.map((name) => `step 1 ${name}`),
    `fired 1 sleep/${"s".repeat(300)}`,
    `fired 1 sleep/long ${"s".repeat(300)}`,
    "fired 1 sleep/long \0"
  ],
  pauses: ["step 1 step"],
  missing: [],
  plain: [],
  ended: []
}

/** The databases were written after this time, in milliseconds. */
const writtenSince = Date.UTC(2026, 10, 24)

interface Task {
  readonly id: string
  readonly tool: string
  readonly owner: string
}

interface LogRow {
  readonly task_id: string
  readonly seq: unknown
  readonly kind: string
  readonly name: string
  readonly attempt: number
  readonly value: string | null
  readonly started_at: unknown
  readonly at: unknown
}

const migration: Effect.Effect<void, TaskError, SqlClient> = Effect.flatMap(
  SqlClient,
  (sql) => migrate(new Database(sql))
)

const readLogs = Effect.map(
  Effect.flatMap(SqlClient, (sql) => sql<LogRow>`SELECT * FROM skein_task_log ORDER BY task_id, seq`),
  (rows) => Map.groupBy(rows, ({ task_id }) => task_id)
)

const tablesOf = (isPostgres: boolean) =>
  Effect.flatMap(SqlClient, (sql) =>
    Effect.map(
      sql.unsafe<{ readonly name: string }>(
        isPostgres
          ? "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
          : "SELECT name FROM sqlite_master WHERE type = 'table'"
      ),
      (rows) => rows.map(({ name }) => name).toSorted()
    ))

/** The values of steps in the tables of version 0.1. */
const valuesOfSteps = Effect.map(
  Effect.flatMap(
    SqlClient,
    (sql) =>
      sql<{ readonly entity_id: string; readonly message: string; readonly reply: string }>`
      SELECT entity_id, messages.payload AS message, replies.payload AS reply FROM cluster_messages AS messages
      JOIN cluster_replies AS replies ON replies.request_id = messages.id WHERE tag = 'activity'`
  ),
  (rows) =>
    new Map(rows.map(({ entity_id, message, reply }) => {
      const { attempt, name } = JSON.parse(message) as { readonly name: string; readonly attempt: number }
      const { value: { exit } } = JSON.parse(reply) as {
        readonly value: { readonly exit?: { readonly value: string } }
      }
      return [
        `${entity_id.split("/").at(-1)} ${attempt} ${unescape(name).replace(/^step\//, "")}`,
        exit?.value
      ] as const
    }))
)

each([file, pg], (backend) => {
  const copy: Effect.Effect<Copy, never, Scope.Scope> = backend === pg
    ? Effect.promise(async () => postgresCopy(await (await sharedPostgres()).createDatabase()))
    : sqliteCopy
  /** Runs an effect on a copy. */
  const onCopy = <A, E>(effect: Effect.Effect<A, E, SqlClient | Scope.Scope>) =>
    Effect.scoped(Effect.flatMap(copy, ({ client }) => Effect.provide(effect, client)))

  it.live("continues tasks of version 0.1", () =>
    Effect.gen(function*() {
      const old = yield* copy
      yield* Effect.gen(function*() {
        const { answer, runTasks } = yield* TaskEngine
        const sql = yield* SqlClient
        const executed: Array<string> = []
        yield* runTasks(handlers(makeTools({ holds: false, executed, sql })))
        const rows = yield* sql<{ readonly id: string; readonly tool: string; readonly owner: string }>`
          SELECT id, tool, owner FROM skein_tasks`
        const results: Record<string, unknown> = {}
        for (const { id, owner, tool } of rows) {
          if (tool === "far") continue
          for (const { key } of (yield* get(id))!.questions) {
            if (key !== "late") expect(yield* answer(id, key, yes)).toBe(true)
          }
          const state = yield* Effect.timeout(ended(id), "20 seconds")
          results[`${tool} ${owner.slice(1)}`] = textOf(state)
        }
        expect(results).toEqual(Object.fromEntries(
          Object.entries(ends).flatMap(([tool, [end]]) => owners.map((owner) => [`${tool} ${owner}`, end]))
        ))
        // Cancelled tasks compensate after their end.
        yield* Effect.timeout(
          Effect.repeat(sql`SELECT tool FROM skein_task_queue`, {
            until: (rows) => rows.length <= 2,
            schedule: Schedule.spaced("50 millis")
          }),
          "20 seconds"
        )
        expect(yield* sql`SELECT tool, state FROM skein_task_queue`).toEqual([
          { tool: "far", state: 1 },
          { tool: "far", state: 1 }
        ])
        const all = Object.entries(ends).flatMap(([tool, [, ...steps]]) => steps.map((step) => `${tool}: ${step}`))
        expect(executed.toSorted()).toEqual([...all, ...all].toSorted())
        expect(yield* sql`SELECT name FROM orders`).toEqual([{ name: "tea" }, { name: "tea" }])
      }).pipe(Effect.provide(Layer.provide(old.tasks, sealed)), laterBy(2, old))
    }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))), 60_000)

  it.effect("writes a log of each task, with the values as they were", () =>
    onCopy(Effect.gen(function*() {
      const sql = yield* SqlClient
      const tasks = yield* sql<Task>`SELECT id, tool, owner FROM skein_tasks`
      const values = yield* valuesOfSteps
      yield* Effect.provide(migration, sealed)
      const logs = yield* readLogs
      const found: Record<string, unknown> = {}
      for (const { id, owner, tool } of tasks) {
        const log = logs.get(id) ?? []
        expect(log.map(({ seq }) => Number(seq))).toEqual(log.map((_, index) => index + 1))
        for (const { at, started_at } of log) {
          expect(Number(at)).toBeGreaterThan(writtenSince)
          if (started_at !== null) expect(Number(started_at)).toBeLessThanOrEqual(Number(at))
        }
        const text = log.map(({ attempt, kind, name }) => `${kind} ${attempt} ${unescape(name)}`)
        if (tool !== "paused") found[`${tool} ${owner.slice(1)}`] = text
        for (const { attempt, kind, name, value } of log) {
          if (kind === "step") expect(value).toBe(values.get(`${id} ${attempt} ${unescape(name)}`))
        }
      }
      expect(found).toEqual(
        Object.fromEntries(
          Object.entries(logsOf).flatMap(([tool, log]) => owners.map((owner) => [`${tool} ${owner}`, log]))
        )
      )
      const queue = yield* sql`SELECT DISTINCT tool, pool, state FROM skein_task_queue WHERE state <> 0 ORDER BY tool`
      expect(queue.map(({ tool }) => tool)).toEqual(
        ["asker", "asksForever", "far", "late", "missing", "paused", "pauses", "sleeper"]
      )
      expect(yield* tablesOf(backend === pg)).toEqual([
        "orders",
        "skein_task_counts",
        "skein_task_log",
        "skein_task_questions",
        "skein_task_queue",
        "skein_task_schedules",
        "skein_task_starts",
        "skein_task_tools",
        "skein_task_versions",
        "skein_task_workers",
        "skein_tasks"
      ])
    })))

  it.effect("converts encrypted tasks without their key", () =>
    Effect.gen(function*() {
      // Each copy has the same rows.
      const logsWith = (encryption: Layer.Layer<never, unknown>) =>
        onCopy(Effect.andThen(Effect.provide(migration, encryption), readLogs))
      expect(yield* logsWith(Layer.empty)).toEqual(yield* logsWith(sealed))
    }))

  it.effect("keeps the messages of other users of the cluster", () =>
    onCopy(Effect.gen(function*() {
      const sql = yield* SqlClient
      const insert = (id: number, type: string, payload: string) =>
        sql`INSERT INTO cluster_messages ${
          sql.insert({
            id,
            message_id: `other/${id}`,
            shard_id: "default:1",
            entity_type: type,
            entity_id: "x",
            kind: 0,
            tag: "run",
            payload,
            request_id: id
          })
        }`
      yield* insert(1, "Counter", "{}")
      yield* insert(2, "Workflow/-/DurableClock", `{"name":"nap","workflowName":"Order"}`)
      yield* sql`INSERT INTO cluster_replies ${sql.insert({ id: 3, kind: 0, request_id: 1, payload: "{}" })}`
      yield* migration
      expect(yield* sql`SELECT entity_type FROM cluster_messages ORDER BY id`).toEqual([
        { entity_type: "Counter" },
        { entity_type: "Workflow/-/DurableClock" }
      ])
      expect(yield* sql`SELECT payload FROM cluster_replies`).toEqual([{ payload: "{}" }])
      expect(yield* tablesOf(backend === pg)).toContain("cluster_migrations")
    })))

  it.effect.each([
    { size: { count: 1200, steps: 2, valueChars: 10 }, expected: { tasks: 1200, events: 3600 } },
    { size: { count: 7, steps: 3, valueChars: 1_000_000 }, expected: { tasks: 7, events: 28 } }
  ])(
    "converts many tasks, and large ones, page by page: $size.count of $size.valueChars",
    ({ expected, size }) =>
      onCopy(Effect.gen(function*() {
        const sql = yield* SqlClient
        yield* replaceTasks(size)
        yield* migration
        const [counts] = yield* sql`SELECT
        (SELECT COUNT(*) FROM skein_task_queue WHERE state = 1 AND wake_at = 1893456000000) AS tasks,
        (SELECT COUNT(*) FROM skein_task_log) AS events`
        expect({ tasks: Number(counts!["tasks"]), events: Number(counts!["events"]) }).toEqual(expected)
        const [last] = yield* sql<{ readonly id: string }>`SELECT MAX(task_id) AS id FROM skein_task_log`
        expect((yield* readLogs).get(last!.id)!.map(({ kind, name }) => `${kind} ${name}`)).toEqual(
          [...Array.from({ length: size.steps }, (_, index) => `step ${index + 1}`), "timer sleep/long"]
        )
      })),
    30_000
  )

  it.effect("converts tasks of a database without the tables of the cluster", () =>
    onCopy(Effect.gen(function*() {
      const sql = yield* SqlClient
      for (const table of yield* tablesOf(backend === pg)) {
        if (table.startsWith("cluster_") || table === "skein_task_pools") yield* sql.unsafe(`DROP TABLE ${table}`)
      }
      yield* migration
      const [queue] = yield* sql`SELECT COUNT(*) AS tasks, MAX(state) AS state, MIN(runs) AS runs FROM skein_task_queue`
      expect([Number(queue!["tasks"]), queue!["state"], queue!["runs"]]).toEqual([48, 0, 1])
      expect(yield* sql`SELECT * FROM skein_task_log`).toEqual([])
    })))

  it.effect("changes nothing if it fails", () =>
    onCopy(Effect.gen(function*() {
      const sql = yield* SqlClient
      yield* sql`ALTER TABLE cluster_replies RENAME TO renamed`
      const tables = yield* tablesOf(backend === pg)
      expect(yield* Effect.flip(migration)).toMatchObject({ reason: { _tag: "StoreError" } })
      expect(yield* tablesOf(backend === pg)).toEqual(tables)
      expect(yield* sql`SELECT MIN(settled) AS settled FROM skein_tasks`).toEqual([{ settled: 0 }])
      yield* sql`ALTER TABLE renamed RENAME TO cluster_replies`
      yield* migration
      expect((yield* sql`SELECT task_id FROM skein_task_log`).length).toBeGreaterThan(100)
    })))
})

/** The tests with several processes. */
each([pg], () => {
  const database = Effect.promise(async () => postgresCopy(await (await sharedPostgres()).createDatabase()))

  it.live("migrates once, although several processes start at the same time", () =>
    Effect.gen(function*() {
      const { client } = yield* database
      const migrated = Effect.provide(Effect.andThen(migration, readLogs), Layer.fresh(client))
      const logs = yield* Effect.all([migrated, migrated, migrated], { concurrency: "unbounded" })
      expect(logs[1]).toEqual(logs[0])
      expect(logs[2]).toEqual(logs[0])
    }), 30_000)

  /** A worker of the cluster, which runs until its scope closes. */
  const worker = (client: Copy["client"], group: string) =>
    Effect.gen(function*() {
      const address = RunnerAddress.make("worker", 0)
      const config = ShardingConfig.layer({
        runnerAddress: Option.some(address),
        availableShardGroups: [group],
        assignedShardGroups: [group]
      })
      const layer = SqlRunnerStorage.layer.pipe(Layer.provide([client, config]))
      const context = yield* Layer.build(Layer.fresh(layer))
      const storage = yield* Effect.provideContext(RunnerStorage, context)
      yield* storage.register(Runner.make({ address, groups: [group], weight: 1 }), true)
      yield* storage.acquire(address, [ShardId.make(group, 1)])
    })

  const run = (group: string, then: (client: Copy["client"]) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
    Effect.scoped(Effect.gen(function*() {
      const { client } = yield* database
      yield* worker(client, group)
      yield* then(client)
    }))

  const log = () => {
    const lines: Array<string> = []
    return [lines, Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])] as const
  }

  /** Advances the test clock until a fiber ends. */
  const passUntilEnd = <A, E>(fiber: Fiber.Fiber<A, E>) =>
    Effect.gen(function*() {
      let seconds = 0
      while (fiber.pollUnsafe() === undefined) {
        yield* TestClock.adjust(500)
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
        seconds += 0.5
      }
      return seconds
    })

  it.effect(
    "fails while a worker of version 0.1 runs, after half a minute",
    () =>
      run("0000", (client) =>
        Effect.gen(function*() {
          const [lines, logger] = log()
          const fiber = yield* Effect.forkChild(Effect.flip(migration).pipe(Effect.provide([client, logger])))
          expect(yield* passUntilEnd(fiber)).toBeGreaterThanOrEqual(30)
          expect(yield* Fiber.join(fiber)).toMatchObject({
            reason: { _tag: "StoreError" },
            message:
              "workers of @skein/tasks 0.1 still run on this database: stop all of them before a later version migrates its tables"
          })
          expect(lines).toEqual([
            "the migration of the task tables waits up to 30000 ms for workers of @skein/tasks 0.1 to stop"
          ])
        })),
    60_000
  )

  it.effect("migrates when the last worker of version 0.1 has stopped", () =>
    Effect.gen(function*() {
      const { client } = yield* database
      const fiber = yield* Effect.scoped(Effect.gen(function*() {
        yield* worker(client, "0001")
        const fiber = yield* Effect.forkDetach(Effect.provide(migration, client))
        for (let pass = 0; pass < 10; pass++) {
          yield* TestClock.adjust(500)
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
        }
        expect(fiber.pollUnsafe()).toBeUndefined()
        return fiber
      }))
      expect(yield* passUntilEnd(fiber)).toBeLessThan(30)
      yield* Fiber.join(fiber)
    }), 60_000)

  it.live("does not wait for other users of the cluster", () =>
    run("orders", (client) =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        yield* migration
        expect(yield* tablesOf(true)).toContain("cluster_runners")
        expect(yield* sql`SELECT id FROM cluster_messages`).toEqual([])
      }).pipe(Effect.provide(client))), 30_000)
})
