import { describe, expect, it } from "@effect/vitest"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import * as Encryption from "../../src/Encryption.ts"
import * as SqlStore from "../../src/internal/store/sqlStore.ts"
import { TaskStore } from "../../src/internal/store/store.ts"
import type { TaskError } from "../../src/TaskError.ts"
import { completed, insert, type Opened, question, stateOf } from "./kit.ts"

const key = (letter: string) => letter.repeat(32)
const [a, b, c] = [key("a"), key("b"), key("c")]

/** Stores with these keys, one after the other, on the same database. */
const database = Effect.gen(function*() {
  const scope = yield* Effect.scope
  const client = yield* Layer.buildWithScope(SqliteClient.layer({ filename: ":memory:" }), scope)
  const sql = Context.get(client, SqlClient.SqlClient)
  return {
    sql,
    store: (options?: Encryption.Options) => {
      const encryption = options === undefined ? Layer.empty : Encryption.layer(options)
      const layer = SqlStore.layer().pipe(Layer.provide(encryption), Layer.provide(Layer.succeedContext(client)))
      return Effect.map(
        Layer.buildWithScope(layer, scope),
        (context): Opened => ({ sql, store: Context.get(context, TaskStore) })
      )
    }
  }
})

/** A task with a secret in each of its texts. */
const secretive = (opened: Opened) =>
  Effect.gen(function*() {
    const { store } = opened
    const { id } = yield* insert(opened, { args: { word: "secret" } })
    yield* store.setStatusMessage(id, "secret message")
    yield* store.setProgress(id, { progress: 1, message: "secret progress" })
    yield* store.ask(id, question("answered", { message: "secret question" }))
    yield* store.answer(id, "answered", { content: "secret answer" })
    yield* store.ask(id, question("open", { message: "secret question" }))
    yield* store.send(id, "paid", "secret event")
    return id
  })

const rows = (sql: SqlClient.SqlClient) =>
  Effect.map(
    Effect.all([
      sql`SELECT * FROM skein_tasks`,
      sql`SELECT * FROM skein_task_questions`,
      sql`SELECT * FROM skein_task_events`
    ]),
    (tables) => JSON.stringify(tables)
  )

const whole = (opened: Opened, id: string) =>
  Effect.all({
    state: stateOf(opened, id),
    work: opened.store.load(id),
    answer: opened.store.ask(id, question("answered")),
    event: opened.store.readEvent(id, 2)
  })

const reasonOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as TaskError).reason._tag)

describe("encryption", () => {
  it.effect("is off by default; with a key no content is readable, and all of it is decrypted", () =>
    Effect.gen(function*() {
      const { sql, store } = yield* database
      const plain = yield* store()
      const plainId = yield* secretive(plain)
      expect((yield* rows(sql)).split("secret").length - 1).toBe(7)
      yield* plain.store.remove([plainId])

      const opened = yield* store({ keys: [a] })
      const id = yield* secretive(opened)
      yield* opened.store.finish((yield* insert(opened)).id, completed({ word: "secret" }))
      expect(yield* rows(sql)).not.toContain("secret")
      expect(yield* whole(opened, id)).toMatchObject({
        state: {
          statusMessage: "secret message",
          progress: { progress: 1, message: "secret progress" },
          questions: [question("open", { message: "secret question" })]
        },
        work: { args: { word: "secret" } },
        answer: { content: "secret answer" },
        event: "\"secret event\""
      })
      const [over] = yield* opened.store.list(["ada"], undefined, 10).pipe(
        Effect.map((tasks) => tasks.filter(({ status }) => status === "completed"))
      )
      expect((yield* stateOf(opened, over!.id)).outcome).toEqual({ _tag: "Result", result: { word: "secret" } })
    }))

  it.effect("decrypts a text that an earlier version has stored", () =>
    Effect.gen(function*() {
      const cipher = yield* Encryption.make({ keys: ["0123456789abcdef0123456789abcdef"] })
      const stored = "Kg8-AQ.6zpgcADhFbL4v7eEP6U939robwF8LzSiVKeSozq17xM0v6R9-28DAsc"
      expect(yield* cipher.decrypt(stored, "task-1/args")).toBe("a secret \u{1F642}")
      // The hint of the key.
      expect((yield* cipher.encrypt("x", "y")).split(".")[0]).toBe("Kg8-AQ")
    }))

  it.effect("encrypts the same text differently each time", () =>
    Effect.gen(function*() {
      const { store } = yield* (yield* database).store({ keys: [a] })
      expect(yield* store.encrypt("x", "y")).not.toBe(yield* store.encrypt("x", "y"))
    }))

  it.effect("keys rotate: the first one encrypts, all of them decrypt, a removed one does not", () =>
    Effect.gen(function*() {
      const { store } = yield* database
      const old = yield* secretive(yield* store({ keys: [a] }))
      const both = yield* store({ keys: [b, a] })
      expect((yield* whole(both, old)).work?.args).toEqual({ word: "secret" })
      const fresh = yield* secretive(both)
      const only = yield* store({ keys: [Redacted.make(b)] })
      expect((yield* whole(only, fresh)).work?.args).toEqual({ word: "secret" })
      expect(yield* reasonOf(only.store.load(old))).toBe("KeyError")
      expect(yield* reasonOf(only.store.get(old))).toBe("KeyError")
      const listed = yield* only.store.list(["ada"], undefined, 10)
      expect(new Map(listed.map(({ id, statusMessage, progress }) => [id, { statusMessage, progress }]))).toEqual(
        new Map([
          [fresh, { statusMessage: "secret message", progress: { progress: 1, message: "secret progress" } }],
          [old, {
            statusMessage: "The status message is encrypted with a key that is not configured here",
            progress: { progress: 1 }
          }]
        ])
      )
      expect(yield* reasonOf((yield* store({ keys: [c] })).store.get(fresh))).toBe("KeyError")
      expect(yield* reasonOf((yield* store()).store.get(fresh))).toBe("KeyError")
      expect(yield* reasonOf((yield* store()).store.load(fresh))).toBe("KeyError")
      // A task that cannot be decrypted can still be ended and deleted.
      expect(yield* only.store.finish(old, { status: "cancelled" })).toBe(true)
      yield* only.store.remove([old])
    }))

  it.effect("reads texts that are not encrypted only if that is allowed", () =>
    Effect.gen(function*() {
      const { store } = yield* database
      const id = yield* secretive(yield* store())
      expect(yield* reasonOf((yield* store({ keys: [a] })).store.get(id))).toBe("KeyError")
      const lenient = yield* store({ keys: [a], readPlaintext: true })
      expect((yield* whole(lenient, id)).answer).toEqual({ content: "secret answer" })
      expect(yield* lenient.store.decrypt("{}", "x")).toBe("{}")
    }))

  it.effect("does not decrypt a text that was changed", () =>
    Effect.gen(function*() {
      const { sql, store } = yield* database
      const opened = yield* store({ keys: [a] })
      const id = yield* secretive(opened)
      const [row] = yield* sql<{ args: string }>`SELECT args FROM skein_tasks`
      const sealed = row!.args
      const dot = sealed.indexOf(".")
      const changed = [
        ...[dot + 1, dot + 12, dot + 20, sealed.length - 2].map((at) =>
          `${sealed.slice(0, at)}${sealed[at] === "A" ? "B" : "A"}${sealed.slice(at + 1)}`
        ),
        sealed.slice(0, -4),
        sealed.slice(0, dot + 1),
        `${sealed}AAAA`,
        "sealed:",
        "sealed:.",
        "sealed:nonsense",
        "sealed:Zm9v.Zm9v",
        "{}",
        ""
      ]
      for (const args of changed) {
        yield* sql`UPDATE skein_tasks SET args = ${args}`
        expect([args, yield* reasonOf(opened.store.load(id))]).toEqual([args, "KeyError"])
      }
      yield* sql`UPDATE skein_tasks SET args = ${sealed}`
      expect((yield* opened.store.load(id))?.args).toEqual({ word: "secret" })
    }))

  it.effect("does not decrypt a text that was moved to another task, or to another use", () =>
    Effect.gen(function*() {
      const { sql, store } = yield* database
      const opened = yield* store({ keys: [a] })
      const id = yield* secretive(opened)
      const other = yield* secretive(opened)
      const swap = (from: string, to: string) =>
        sql.unsafe(`UPDATE skein_tasks SET ${to} = (SELECT ${from} FROM skein_tasks WHERE id = ?) WHERE id = ?`, [
          other,
          id
        ])
      yield* swap("args", "args")
      expect(yield* reasonOf(opened.store.load(id))).toBe("KeyError")
      yield* swap("message", "message")
      expect(yield* reasonOf(opened.store.get(id))).toBe("KeyError")
      yield* sql`UPDATE skein_tasks SET args = message, message = args WHERE id = ${other}`
      expect(yield* reasonOf(opened.store.load(other))).toBe("KeyError")
      expect(yield* reasonOf(opened.store.get(other))).toBe("KeyError")
      const third = yield* secretive(opened)
      yield* sql`UPDATE skein_task_questions SET params = (
        SELECT params FROM skein_task_questions WHERE task_id = ${third} AND name = 'answered'
      ) WHERE task_id = ${third} AND name = 'open'`
      expect(yield* reasonOf(opened.store.get(third))).toBe("KeyError")
      yield* sql`UPDATE skein_task_questions SET answer = params WHERE name = 'answered'`
      expect(yield* reasonOf(opened.store.ask(third, question("answered")))).toBe("KeyError")
    }))

  it.effect("decrypts a text of the engine only with its own associated data", () =>
    Effect.gen(function*() {
      const { store } = yield* (yield* database).store({ keys: [a] })
      const sealed = yield* store.encrypt(`{"x":"\\ud800"}`, "task/step")
      expect(yield* store.decrypt(sealed, "task/step")).toBe(`{"x":"\\ud800"}`)
      expect(yield* reasonOf(store.decrypt(sealed, "task/other"))).toBe("KeyError")
      // Nor as a column, for any name.
      const { id } = yield* insert({ store, sql: (yield* database).sql })
      expect(yield* reasonOf(store.decrypt(sealed, `args ${id}`))).toBe("KeyError")
    }))

  it.effect("requires at least one key, of at least 32 bytes", () =>
    Effect.gen(function*() {
      const { store } = yield* database
      for (const keys of [[], ["short"], [a, new Uint8Array(31)], [Redacted.make("")]]) {
        expect(yield* reasonOf(store({ keys }))).toBe("KeyError")
      }
      yield* store({ keys: [new Uint8Array(32)] })
    }))

  it.effect("reads keys from configuration, and fails without it", () =>
    Effect.gen(function*() {
      const make = (env: Record<string, string>, name?: string) =>
        Effect.scoped(Effect.map(
          Layer.build(Encryption.layerConfig(name)),
          (context) => Context.get(context as Context.Context<never>, Encryption.Encryption)
        )).pipe(Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })))
      const sealer = yield* make({ SKEIN_TASK_KEYS: ` ${b}, ${a},` })
      const old = yield* make({ OLD: a }, "OLD")
      expect(yield* sealer!.decrypt(yield* old!.encrypt("x", "y"), "y")).toBe("x")
      expect(yield* reasonOf(old!.decrypt(yield* sealer!.encrypt("x", "y"), "y"))).toBe("KeyError")
      expect(yield* reasonOf(make({ SKEIN_TASK_KEYS: " , " }))).toBe("KeyError")
      expect((yield* Effect.flip(make({})))._tag).toBe("ConfigError")
    }))
})
