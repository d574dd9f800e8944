/**
 * Tasks that begin again with other arguments.
 */
import { describe, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { required, sharedPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { ask, durable, ended, get, pass, submit, textOf, until, work } from "./kit.ts"

const server = unavailable === undefined || required ? await sharedPostgres() : undefined

const memory = MemoryTasks.layer({ pollInterval: 50 })
const stores = [
  ["memory", memory],
  ["encrypted", Layer.provide(memory, Encryption.layer({ keys: ["a key of thirty-two characters, or more"] }))],
  ...server === undefined ? [] : [
    [
      "PostgreSQL",
      Layer.unwrap(
        Effect.map(
          Effect.promise(() => server.createDatabase()),
          (url) => PostgresTasks.layer({ url, pollInterval: 50 })
        )
      )
    ] as const
  ]
] as const

const answer = (id: string, key: string) => Effect.flatMap(TaskEngine, ({ answer }) => answer(id, key, { yes: true }))

for (const [store, layer] of stores) {
  describe(`Task.continueWith · ${store}`, () => {
    it.live(
      "begins again in the same task, with an empty log, the same names and other keys",
      () =>
        Effect.gen(function*() {
          const keys: Array<string> = []
          yield* work({
            poll: durable(({ round }) =>
              Effect.gen(function*() {
                const number = round as number
                for (const name of ["look", "book"]) {
                  yield* Step.run(name, { transactional: name === "book" }, (key) =>
                    Effect.sync(() =>
                      void keys.push(key)
                    ))
                }
                yield* Task.setStatusMessage(`Round ${number}`)
                yield* Step.sleep("pause", 20)
                if (number === 4) {
                  return "Found"
                }
                return yield* Task.continueWith({ round: number + 1 })
              })
            )
          })
          const before = yield* submit("poll", { args: { round: 1 }, owner: "ada", ttlMs: 60_000 })
          const after = yield* ended(before.id)
          expect(textOf(after)).toBe("Found")
          expect(after).toMatchObject({
            owner: "ada",
            createdAt: before.createdAt,
            ttlMs: 60_000,
            statusMessage: "Round 4"
          })
          expect(keys).toHaveLength(8)
          expect(new Set(keys).size).toBe(8)
          const admin = yield* TaskAdmin
          const inspected = (yield* admin.inspect(before.id, { values: true }))!
          expect(inspected.log.map(({ kind, name }) => `${kind} ${name}`))
            .toEqual(["continued ", "step look", "step book", "fired sleep/pause"])
          expect(inspected.events).toBe(4)
          expect(inspected.log[1]!.value).toContain("\"v\"")
          // Once more, with the last arguments: from the beginning, and with the first step.
          for (const from of [undefined, "book"]) {
            const again = yield* admin.rerun(before.id, { from })
            expect(textOf(yield* ended(again!.id))).toBe("Found")
          }
          expect(new Set(keys).size).toBe(8 + 2 + 1)
          expect(keys).toHaveLength(8 + 2 + 1)
        }).pipe(Effect.provide(layer)),
      120_000
    )

    it.live(
      "asks an equal question again, and withdraws the open question of another branch",
      () =>
        Effect.gen(function*() {
          yield* work({
            asks: durable(({ round }) =>
              Effect.gen(function*() {
                if (round === 1) {
                  yield* Effect.orDie(ask("Sure?"))
                  return yield* Task.continueWith({ round: 2 })
                }
                if (round === 2) {
                  const other = Effect.andThen(
                    Step.run("wait", {}, () => Effect.sleep(300)),
                    Task.continueWith({ round: 3 })
                  )
                  return yield* Effect.raceFirst(Effect.as(Effect.orDie(ask("Other?")), "answered"), other)
                }
                yield* Effect.orDie(ask("Sure?"))
                return "Sure"
              })
            )
          })
          const { id } = yield* submit("asks", { args: { round: 1 } })
          const [first] = (yield* until(id, ({ questions }) => questions.length > 0)).questions
          yield* answer(id, first!.key)
          const isSecond =
            (message: string) => ({ questions }: { questions: ReadonlyArray<{ key: string; params: unknown }> }) =>
              questions.some(({ key, params }) =>
                key !== first!.key && (params as { message: string }).message === message
              )
          const [second] = (yield* until(id, isSecond("Other?"))).questions
          const third = yield* until(id, isSecond("Sure?"))
          expect(third.questions).toHaveLength(1)
          expect(yield* answer(id, second!.key)).toBe(false)
          expect(yield* answer(id, first!.key)).toBe(false)
          yield* answer(id, third.questions[0]!.key)
          const end = yield* ended(id)
          expect(textOf(end)).toBe("Sure")
        }).pipe(Effect.provide(layer)),
      120_000
    )

    it.live("is cancelled like any other task, and compensates what it has done since", () =>
      Effect.gen(function*() {
        const undone: Array<unknown> = []
        yield* work({
          buys: durable(({ round }) =>
            Effect.gen(function*() {
              if (round === 1) {
                yield* Step.run("buy", {}, () => Effect.void)
                return yield* Task.continueWith({ round: 2 })
              }
              yield* Step.withCompensation(() => Effect.sync(() => void undone.push(round)))(
                Step.run("buy", {}, () => Effect.void)
              )
              yield* Task.setStatusMessage("Bought")
              return yield* Effect.as(Step.sleep("rest", "1 day"), "")
            })
          )
        })
        const { id } = yield* submit("buys", { args: { round: 1 } })
        yield* until(id, ({ statusMessage }) => statusMessage === "Bought")
        yield* (yield* TaskEngine).cancel(id)
        const admin = yield* TaskAdmin
        yield* Effect.repeat(Effect.delay(admin.inspect(id), 20), { until: (task) => task?.place._tag === "Settled" })
        expect(undone).toEqual([2])
      }).pipe(Effect.provide(layer)), 120_000)
  })
}

describe("Task.continueWith", () => {
  const silent = Effect.provide(Logger.layer([]))

  it.live("is a defect while the task has compensations, which run then; and in a step", () =>
    Effect.gen(function*() {
      const undone: Array<string> = []
      yield* work({
        holds: durable(() =>
          Effect.andThen(
            Step.compensate((reason) => Effect.sync(() => void undone.push(reason))),
            Task.continueWith({})
          )
        ),
        inStep: durable(() => Effect.as(Step.run("step", {}, () => Task.continueWith({}) as Effect.Effect<never>), "")),
        undoes: durable(() =>
          Effect.andThen(
            Step.compensate(() =>
              Effect.catchCause(Task.continueWith({}), (cause) => Effect.sync(() => void undone.push(String(cause))))
            ),
            Effect.fail({ message: "No" })
          )
        )
      })
      const holds = yield* ended((yield* submit("holds")).id)
      expect(holds).toMatchObject({ status: "failed" })
      expect(undone).toEqual(["failed"])
      expect(yield* ended((yield* submit("inStep")).id)).toMatchObject({ status: "failed" })
      yield* ended((yield* submit("undoes")).id)
      expect(undone[1]).toContain("Task.continueWith is not allowed in a compensation")
    }).pipe(silent, Effect.provide(memory)))

  it.effect(
    "continues after a restart where the last round was, and has one round in its log",
    () =>
      Effect.gen(function*() {
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-continue-"))),
          (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
        )
        const rounds: Array<number> = []
        const process = <A, E>(effect: Effect.Effect<A, E, TaskEngine | TaskAdmin | SqlClient>) =>
          Effect.gen(function*() {
            yield* work({
              poll: durable(({ round }) =>
                Effect.gen(function*() {
                  const number = round as number
                  yield* Step.run("look", {}, () => Effect.sync(() => void rounds.push(number)))
                  yield* Step.sleep("pause", "1 hour")
                  return number === 6 ? "Done" : yield* Task.continueWith({ round: number + 1 })
                })
              )
            })
            return yield* effect
          }).pipe(
            Effect.scoped,
            Effect.provide(SqliteTasks.layer({ filename: join(folder, "tasks.db"), pollInterval: "1 minute" }))
          )
        const { id } = yield* process(Effect.tap(submit("poll", { args: { round: 1 } }), () => pass(2.5 * 3600, 60)))
        expect(rounds).toEqual([1, 2, 3])
        const { log } = yield* process(Effect.andThen(
          pass(2 * 3600, 60),
          Effect.flatMap(TaskAdmin, ({ inspect }) => Effect.map(inspect(id), (task) => task!))
        ))
        expect(rounds).toEqual([1, 2, 3, 4, 5])
        expect(log.map(({ kind }) => kind)).toEqual(["continued", "step", "timer"])
        const end = yield* process(Effect.andThen(pass(3 * 3600, 60), get(id)))
        expect(textOf(end)).toBe("Done")
        expect(rounds).toEqual([1, 2, 3, 4, 5, 6])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("runs with the arguments of its log, if another worker continues it while this one reads it", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      let isFirstRun = true
      const { prepare } = DatabaseSync.prototype
      let hasContinued = false
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          DatabaseSync.prototype.prepare = function(this: DatabaseSync, sql: string) {
            const statement = prepare.call(this, sql)
            if (!/FROM skein_task_log WHERE task_id = \? ORDER BY seq/.test(sql)) return statement
            const { all } = statement
            statement.all = (...parameters: ReadonlyArray<never>) => {
              if (!isFirstRun && !hasContinued) {
                hasContinued = true
                this.exec("UPDATE skein_tasks SET args = '{\"round\":2}'")
                this.exec("UPDATE skein_task_log SET seq = seq + 5, kind = 'continued', name = '' WHERE kind = 'step'")
                this.exec("DELETE FROM skein_task_log WHERE kind <> 'continued'")
              }
              return all.apply(statement, parameters as never)
            }
            return statement
          }
        }),
        () => Effect.sync(() => void (DatabaseSync.prototype.prepare = prepare))
      )
      yield* Effect.gen(function*() {
        yield* work({
          poll: durable(({ round }) =>
            Effect.gen(function*() {
              seen.push(round)
              yield* Step.run("look", {}, () => Effect.void)
              if (round === 2) return "Second"
              yield* Effect.orDie(ask("Go on?"))
              return "First"
            })
          )
        })
        const { id } = yield* submit("poll", { args: { round: 1 } })
        const { questions: [question] } = yield* until(id, ({ questions }) => questions.length > 0)
        const admin = yield* TaskAdmin
        yield* Effect.repeat(Effect.delay(admin.inspect(id), 20), { until: (task) => task?.place._tag === "Waiting" })
        isFirstRun = false
        yield* answer(id, question!.key)
        expect(textOf(yield* ended(id))).toBe("Second")
        expect(seen).toEqual([1, 2])
      }).pipe(Effect.provide(memory))
    }).pipe(Effect.scoped))

  it.live("keeps the prepared value of a task, and rejects invalid arguments like those of a call", () =>
    Effect.gen(function*() {
      const definition = Task.make("count", { input: { number: Schema.Int } })
      const counting = Task.layerPrepared(
        definition,
        Schema.String,
        () => Effect.succeed("prepared"),
        ({ number }, prepared) =>
          number === 3
            ? Effect.succeed(prepared)
            : Task.continueWith({ number: number === 10 ? "ten" : number + 1 })
      )
      const server = McpServer.layer({ name: "count", version: "1.0.0" }, counting, Tasks.layer())
      yield* Effect.gen(function*() {
        const { serve } = yield* McpServer.McpServer
        const client = yield* Client.make(InMemoryTransport.transport(serve))
        expect((yield* client.callTool("count", { number: 1 })).content).toMatchObject([{ text: "prepared" }])
        expect(yield* client.callTool("count", { number: 10 })).toMatchObject({ isError: true })
      }).pipe(Effect.provide(Layer.provide(server, memory)))
    }).pipe(Effect.scoped))
})
