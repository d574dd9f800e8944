/** Steps that have acted and whose results cannot be stored as they are: they are stored as JSON has them, or undone. */
import { describe, expect, it } from "@effect/vitest"
import type { McpRequest } from "@skein/runtime/RequestContext"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import type { TaskContext } from "@skein/tasks/TaskContext"
import { once } from "@skein/server/Once"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expectTypeOf } from "vitest"
import { toEffect } from "../../src/internal/engine/taskContext.ts"
import { durable, ended, get, pass, settled, submit, textOf, work } from "./kit.ts"

const memory = MemoryTasks.layer({ pollInterval: "1 minute" })

const sqlite = Layer.unwrap(Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-unstorable-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => Layer.orDie(SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 minute" }))
))

/** A durable handler that is an async function. */
const asyncTask = (handler: (context: TaskContext) => Promise<string>) =>
  durable(() =>
    toEffect((_: void, context: TaskContext) => handler(context))() as Effect.Effect<
      string,
      never,
      CurrentTask | McpRequest
    >
  )

class Payment {
  id = 7
  refund(): void {}
}

/** Refuses records of more than 2,000 characters. */
const refuseLongRecords = Effect.flatMap(SqlClient, (sql) =>
  Effect.orDie(sql.unsafe(
    `CREATE TRIGGER refuse BEFORE INSERT ON skein_task_log WHEN length(NEW.value) > 2000
     BEGIN SELECT RAISE(ABORT, 'the record is too large'); END`
  )))

it("a step has the type of its JSON form, and rejects values that JSON cannot hold", () => {
  const types = (step: TaskContext["step"]) => {
    const dated = step("dated", () => ({ at: new Date(0), note: undefined as string | undefined, size: 1 }))
    const paid = step("paid", async () => new Payment(), {
      compensate: (payment) => expectTypeOf(payment).toEqualTypeOf<{ id: number }>()
    })
    expectTypeOf(dated).resolves.toEqualTypeOf<{ at: string; note: string | undefined; size: number }>()
    expectTypeOf(paid).resolves.toEqualTypeOf<{ id: number }>()
    expectTypeOf(step("nothing", () => {})).resolves.toEqualTypeOf<void>()
    expectTypeOf(step("any", () => JSON.parse("1"))).resolves.toBeAny()
    return [
      // @ts-expect-error -- a bigint has no form in JSON
      step("big", () => ({ id: 7n })),
      // @ts-expect-error -- a Map has none
      step("map", async () => new Map([["a", 1]]))
    ]
  }
  expect(types).toBeTypeOf("function")
})

for (const [store, layer] of [["MemoryTasks", memory], ["SqliteTasks", sqlite]] as const) {
  describe(`${store} · a step that has acted`, () => {
    for (
      const [what, value, stored] of [
        ["a member that is undefined", () => ({ id: 7, note: undefined }), { id: 7 }],
        ["a Date", () => ({ id: 7, at: new Date(0) }), { id: 7, at: "1970-01-01T00:00:00.000Z" }],
        ["an instance of a class", () => new Payment(), { id: 7 }],
        ["a list with a hole", () => ({ list: [1, undefined, { a: undefined }] }), { list: [1, null, {}] }]
      ] as const
    ) {
      it.effect(`stores ${what} as JSON has it, and returns the same in each run`, () =>
        Effect.gen(function*() {
          const seen: Array<unknown> = []
          let charged = 0
          yield* work({
            buy: asyncTask(async ({ sleep, step }) => {
              seen.push(await step("charge", () => (charged++, value() as object)))
              await sleep("long", "1 hour")
              return "paid"
            })
          })
          const { id } = yield* submit("buy")
          yield* settled
          yield* pass(3700, 600)
          expect(textOf(yield* ended(id))).toBe("paid")
          expect(charged).toBe(1)
          expect(seen).toEqual([stored, stored])
        }).pipe(Effect.provide(layer)))
    }

    const cycle: { id: number; self?: unknown } = { id: 7 }
    cycle.self = cycle
    for (
      const [what, value] of [
        ["a bigint", { id: 7, cents: 5n }],
        ["a Map", { id: 7, lines: new Map() }],
        ["NaN", { id: 7, cents: NaN }],
        ["an invalid Date", { id: 7, at: new Date(NaN) }],
        ["itself", cycle],
        [
          "a toJSON that throws",
          {
            id: 7,
            toJSON: () => {
              throw new Error("no")
            }
          }
        ]
      ] as ReadonlyArray<readonly [string, any]>
    ) {
      it.effect(`is undone once if its result has ${what}`, () =>
        Effect.gen(function*() {
          const log: Array<string> = []
          yield* work({
            buy: asyncTask(async ({ step }) => {
              await step("first", () => "first", { compensate: (value) => void log.push(`undo ${value}`) })
              await step("charge", () => (log.push("charge"), value), {
                retry: { times: 2, initialDelay: 10 },
                compensate: async (payment, { step }, reason) => {
                  await step("refund", () => void log.push(`refund ${payment.id} ${reason}`))
                }
              })
              return "paid"
            })
          })
          const { id } = yield* submit("buy")
          const state = yield* ended(id)
          expect(state).toMatchObject({ status: "failed", outcome: { error: { code: -32603 } } })
          expect(log).toEqual(["charge", "refund 7 failed", "undo first"])
        }).pipe(Effect.provide(layer)))
    }

    it.effect("records a member that is undefined although its schema has exact optional members", () =>
      Effect.gen(function*() {
        const success = Schema.Struct({ id: Schema.Finite, note: Schema.optionalKey(Schema.String) })
        yield* work({
          buy: durable(() =>
            Effect.gen(function*() {
              const paid = yield* Step.run("charge", { success }, () =>
                Effect.succeed({ id: 7, note: undefined } as never))
              const kept = yield* once("log", success, Effect.succeed({ id: 8, note: undefined } as never))
              return JSON.stringify([paid, kept])
            }) as never
          )
        })
        expect(textOf(yield* ended((yield* submit("buy")).id))).toBe(`[{"id":7},{"id":8}]`)
      }).pipe(Effect.provide(layer)))

    it.effect("is undone if its schema cannot encode the value, also by another worker after a restart", () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const success = Schema.Struct({ id: Schema.String })
        const tools = {
          buy: durable(() => {
            const charge = Step.run("charge", { success }, () =>
              Effect.sync(() => {
                log.push("charge")
                return { id: 7n, text: "x".repeat(5000) } as never
              }))
            return charge.pipe(
              Step.withCompensation((value: any, reason) =>
                Effect.andThen(
                  Step.run("slow", {}, () => Effect.sleep("1 second")),
                  Step.run("refund", {}, () =>
                    Effect.sync(() =>
                      void log.push(`refund ${value.id} ${value.text.length} ${reason}`)
                    ))
                )
              ),
              Effect.as("paid")
            )
          })
        }
        const first = yield* Scope.make()
        yield* Scope.provide(work(tools), first)
        const { id } = yield* submit("buy")
        yield* settled
        expect(log).toEqual(["charge"])
        // The worker stops while it compensates.
        yield* Effect.forkChild(Scope.close(first, Exit.void))
        yield* settled
        yield* pass(5)
        yield* work(tools)
        yield* pass(5)
        expect((yield* get(id))?.status).toBe("failed")
        expect(log).toEqual(["charge", "refund 7 1001 failed"])
      }).pipe(Effect.provide(layer)))

    it.effect("is undone if the database refuses its record, and later runs fail in the same way", () =>
      Effect.gen(function*() {
        yield* refuseLongRecords
        const log: Array<string> = []
        yield* work({
          buy: asyncTask(async ({ step }) => {
            await step("charge", () => (log.push("charge"), { id: 7, text: "x".repeat(5000) }), {
              compensate: ({ id, text }) => void log.push(`refund ${id} ${text.length}`)
            })
            return "paid"
          })
        })
        const { id } = yield* submit("buy")
        expect(yield* ended(id)).toMatchObject({ status: "failed", outcome: { error: { code: -32603 } } })
        expect(log).toEqual(["charge", "refund 7 5000"])
        const sql = yield* SqlClient
        const [record] = yield* sql<{ value: string }>`SELECT value FROM skein_task_log WHERE name = 'charge'`
        expect(JSON.parse(record!.value)).toMatchObject({
          d: expect.stringMatching(/^the database refuses the result of step "charge": .*the record is too large/),
          r: [{ id: 7, text: `${"x".repeat(1000)}…` }]
        })
      }).pipe(Effect.provide(layer)))

    it.effect("is rolled back and not undone if it is transactional and the database refuses its record", () =>
      Effect.gen(function*() {
        yield* refuseLongRecords
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE paid (amount INTEGER)`
        const log: Array<string> = []
        yield* work({
          buy: durable(() =>
            Step.run("first", {}, () => Effect.void).pipe(
              Step.withCompensation(() => Effect.sync(() => void log.push("undo first"))),
              Effect.andThen(
                Step.run("charge", { success: Schema.String, transactional: true }, () =>
                  Effect.as(Effect.orDie(sql`INSERT INTO paid VALUES (1)`), "x".repeat(5000))).pipe(
                    Step.withCompensation(() =>
                      Effect.sync(() =>
                        void log.push("undo charge")
                      )
                    )
                  )
              )
            )
          )
        })
        expect((yield* ended((yield* submit("buy")).id)).status).toBe("failed")
        expect(log).toEqual(["undo first"])
        expect(yield* sql`SELECT amount FROM paid`).toEqual([])
      }).pipe(Effect.provide(layer)))

    it.effect("does not run again after `once` if the database refuses its record", () =>
      Effect.gen(function*() {
        yield* refuseLongRecords
        let charged = 0
        yield* work({
          buy: durable(() => {
            const charge = once("charge", Schema.String, Effect.sync(() => (charged++, "x".repeat(5000))))
            const caught = Effect.catchCause(charge, (cause) => Effect.succeed(String(Cause.squash(cause))))
            return Effect.andThen(caught, caught) as never
          })
        })
        expect(textOf(yield* ended((yield* submit("buy")).id))).toMatch(
          /the database refuses the result of once "charge"/
        )
        expect(charged).toBe(1)
      }).pipe(Effect.provide(layer)))

    it.effect("is undone if the database refuses the outcome of its task", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        yield* sql.unsafe(
          `CREATE TRIGGER refuse BEFORE UPDATE ON skein_tasks WHEN length(NEW.outcome) > 2000
           BEGIN SELECT RAISE(ABORT, 'the outcome is too large'); END`
        )
        const log: Array<string> = []
        yield* work({
          buy: asyncTask(async ({ step }) => {
            await step("charge", () => "id", { compensate: (id) => void log.push(`refund ${id}`) })
            return "x".repeat(5000)
          })
        })
        expect(yield* ended((yield* submit("buy")).id)).toMatchObject({
          status: "failed",
          outcome: { error: { code: -32603 } }
        })
        expect(log).toEqual(["refund id"])
      }).pipe(Effect.provide(layer)))

    it.effect("waits for room on a full disk, and is recorded then", () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        let charged = 0
        yield* work({
          buy: asyncTask(async ({ step }) => {
            const text = await step("charge", () => (charged++, "x".repeat(200_000)), {
              compensate: () => void charged--
            })
            return String(text.length)
          })
        })
        const [pages] = yield* sql.unsafe<{ page_count: number }>("PRAGMA page_count")
        yield* sql.unsafe(`PRAGMA max_page_count = ${pages!.page_count + 5}`)
        const { id } = yield* submit("buy")
        yield* settled
        yield* pass(5)
        expect(charged).toBe(1)
        expect((yield* get(id))?.status).toBe("working")
        yield* sql.unsafe("PRAGMA max_page_count = 1000000")
        yield* pass(30)
        expect(textOf(yield* ended(id))).toBe("200000")
        expect(charged).toBe(1)
      }).pipe(Effect.provide(layer)))
  })
}
