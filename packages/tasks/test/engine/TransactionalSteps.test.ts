/**
 * Transactional steps whose transaction is not committed: the step starts again.
 */
import { it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import * as SqlError from "effect/sql/SqlError"
import { expect } from "vitest"
import { durable, get, pass, settled, submit, work } from "./kit.ts"

type Body = Effect.Effect<unknown, { readonly message: string }, CurrentTask>

/** How a handler uses a step, and how the task ends. */
const bodies: ReadonlyArray<
  readonly [where: string, body: (pay: Effect.Effect<void, never, CurrentTask>) => Body, end: string]
> = [
  ["a body", (pay) => pay, "completed"],
  ["a finalizer", (pay) => Effect.ensuring(Effect.void, pay), "completed"],
  ["an uninterruptible region", (pay) => Effect.uninterruptible(pay), "completed"],
  [
    "a compensation of a task that fails",
    (pay) => Effect.andThen(Step.compensate(() => pay), Effect.fail({ message: "no" })),
    "completed"
  ],
  [
    "a compensation of a task that is cancelled",
    (pay) => Effect.andThen(Step.compensate(() => pay), Step.sleep("long", "1 day")),
    "cancelled"
  ],
  [
    "a finalizer of a compensation",
    (pay) => Effect.andThen(Step.compensate(() => Effect.ensuring(Effect.void, pay)), Step.sleep("long", "1 day")),
    "cancelled"
  ]
]

for (const [where, body, end] of bodies) {
  it.effect(`a step in ${where} that is not committed starts again`, () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient
      yield* sql`CREATE TABLE accounts (id INTEGER PRIMARY KEY)`
      yield* sql`CREATE TABLE paid (account INTEGER REFERENCES accounts DEFERRABLE INITIALLY DEFERRED)`
      yield* sql`INSERT INTO accounts VALUES (1)`
      let begun = 0
      // Account 2 does not exist: the database reports it at the commit.
      const pay = Effect.suspend(() => Effect.orDie(sql`INSERT INTO paid VALUES (${++begun === 1 ? 2 : 1})`))
      yield* work({ pay: durable(() => Effect.as(body(Step.run("pay", { transactional: true }, () => pay)), "")) })
      const { id } = yield* submit("pay")
      yield* settled
      if (end === "cancelled") expect(yield* Effect.flatMap(TaskEngine, ({ cancel }) => cancel(id))).toBe(true)
      yield* pass(5)
      expect(yield* sql`SELECT account FROM paid`).toEqual([{ account: 1 }])
      expect(begun).toBe(2)
      expect(yield* sql`SELECT status FROM skein_tasks`).toEqual([{ status: end }])
      expect(yield* sql`SELECT * FROM skein_task_queue`).toEqual([])
    }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))))
}

it.effect("a step that can never be committed runs ten times, and then its task fails and is compensated", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient
    yield* sql`CREATE TABLE accounts (id INTEGER PRIMARY KEY)`
    yield* sql`CREATE TABLE paid (account INTEGER REFERENCES accounts DEFERRABLE INITIALLY DEFERRED)`
    let begun = 0
    let isUndone = false
    const pay = Effect.suspend(() => (begun++, Effect.orDie(sql`INSERT INTO paid VALUES (1)`)))
    const body = Effect.andThen(
      Step.compensate(() => Effect.sync(() => void (isUndone = true))),
      Step.run("pay", { transactional: true }, () => pay)
    )
    yield* work({ pay: durable(() => Effect.as(body, "")) })
    const { id } = yield* submit("pay")
    yield* settled
    yield* pass(60)
    expect(yield* get(id)).toMatchObject({ status: "failed" })
    expect(begun).toBe(10)
    expect(isUndone).toBe(true)
    expect(yield* sql`SELECT * FROM paid`).toEqual([])
    // A later run, for instance one that continues the compensations, fails in the same way.
    const { log = [] } = (yield* Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id, { values: true }))) ?? {}
    expect(log.map(({ kind, name, value }) => [kind, name, value])).toEqual([
      ["step", "pay", expect.stringContaining("was not committed in 10 executions: ")],
      ["undo", "failed", undefined]
    ])
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))))

it.effect("a transactional step whose commit fails because of an outage runs until the outage is over", () =>
  Effect.gen(function*() {
    let begun = 0
    const failures = [
      new SqlError.DeadlockError({ cause: undefined }),
      new SqlError.SerializationError({ cause: undefined }),
      new SqlError.ConnectionError({ cause: undefined }),
      // A full disk, in PostgreSQL and in SQLite.
      new SqlError.UnknownError({ cause: Object.assign(new Error("full"), { code: "53100" }) }),
      new SqlError.UnknownError({ cause: Object.assign(new Error("full"), { errcode: 13 }) })
    ]
    const client = yield* SqlClient
    const { withTransaction } = client
    const broken: typeof withTransaction = (effect) =>
      withTransaction(Effect.flatMap(effect, (value) =>
        begun > 0 && begun <= 25
          ? Effect.fail(new SqlError.SqlError({ reason: failures[begun % failures.length]! }))
          : Effect.succeed(value)))
    Object.assign(client, { withTransaction: broken })
    const pay = Step.run("pay", { transactional: true }, () => Effect.sync(() => void begun++))
    yield* work({ pay: durable(() => Effect.as(pay, "")) })
    const { id } = yield* submit("pay")
    yield* settled
    yield* pass(300, 10)
    expect(yield* get(id)).toMatchObject({ status: "completed" })
    expect(begun).toBe(26)
  }).pipe(Effect.provide(MemoryTasks.layer({ pollInterval: "1 minute" }))))
