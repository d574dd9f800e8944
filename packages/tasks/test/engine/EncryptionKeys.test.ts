import { it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Encryption from "@skein/tasks/Encryption"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, ended, get, pass, submit, textOf, until, work } from "./kit.ts"

const oldKey = "the old key, of 32 characters or more"
const newKey = "the new key, of 32 characters or more"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-keys-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/**
 * Runs an effect in a process with these keys, and stops the process; time passes meanwhile, since encryption takes
 * real turns.
 */
const worker = (filename: string, log: Array<string>) => {
  const tools = {
    pay: durable(() =>
      Effect.gen(function*() {
        const paid = yield* Step.run("pay", { success: Schema.String }, () =>
          Effect.sync(() => {
            log.push("pay")
            return "paid"
          }))
        yield* Step.compensate((why) => Effect.sync(() => void log.push(why)))
        yield* Step.sleep("rest", "1 hour")
        return paid
      })
    )
  }
  return <A, E>(keys: ReadonlyArray<string>, effect: Effect.Effect<A, E, TaskEngine>) =>
    Effect.gen(function*() {
      const engine = SqliteTasks.layer({ filename, pollInterval: "1 minute" })
      const layer = Layer.provideMerge(Layer.effectDiscard(work(tools)), engine)
      const process = yield* Effect.forkChild(Effect.provide(effect, Layer.provide(layer, Encryption.layer({ keys }))))
      yield* Effect.repeat(pass(10, 10), { until: () => process.pollUnsafe() !== undefined })
      return yield* Fiber.join(process)
    })
}

it.effect("a worker without the key of a task leaves it alone: the task continues with the key", () =>
  Effect.gen(function*() {
    const log: Array<string> = []
    const having = worker(join(yield* folder, "tasks.db"), log)
    const { id } = yield* having([oldKey], Effect.tap(submit("pay"), () => Effect.sleep("10 minutes")))
    expect(log).toEqual(["pay"])
    const keyless = Effect.andThen(Effect.sleep("2 hours"), get(id))
    expect(yield* having([newKey], keyless)).toMatchObject({ status: "working" })
    expect(textOf(yield* having([newKey, oldKey], ended(id)))).toBe("paid")
    expect(log).toEqual(["pay"])
  }))

it.effect("keys change between processes while a task asks: its answer, its steps and its result stay readable", () =>
  Effect.gen(function*() {
    const filename = join(yield* folder, "tasks.db")
    const log: Array<string> = []
    const question = "How much is in the vault?"
    const worker = (...keys: ReadonlyArray<string>) =>
      // Some time passes between two processes.
      Layer.effectDiscard(Effect.andThen(
        TestClock.adjust(10),
        work({
          count: durable(({ vault }) =>
            Effect.gen(function*() {
              const opened = yield* Step.run("open", { success: Schema.String }, () =>
                Effect.sync(() => `${String(vault)} opened ${log.push("open")} time`))
              const taskRequest = yield* McpRequest
              const asked = taskRequest.request("elicitation/create", { message: question }, { key: "much" })
              const { content } = yield* Effect.orDie(asked)
              return `${opened}: ${JSON.stringify(content)}`
            })
          )
        })
      )).pipe(
        Layer.provideMerge(SqliteTasks.layer({ filename, pollInterval: "1 minute" })),
        Layer.provide(Encryption.layer({ keys }))
      )
    const found = Effect.map(
      Effect.promise(() => readFile(filename)),
      (bytes) => ["golden", question, "nineteen", "opened 1"].filter((text) => bytes.includes(text))
    )

    const { id } = yield* Effect.provide(
      Effect.flatMap(
        submit("count", { args: { vault: "golden" } }),
        ({ id }) => until(id, ({ questions }) => questions.length > 0)
      ),
      worker(oldKey)
    )
    // As `Encryption` documents: every process has the new key in the second place before the key encrypts.
    const asked = yield* Effect.provide(get(id), worker(oldKey, newKey))
    expect(asked?.questions).toMatchObject([{ key: "much", params: { message: question } }])
    expect(yield* found).toEqual([])
    const done = yield* Effect.gen(function*() {
      const { answer } = yield* TaskEngine
      expect(yield* answer(id, "much", { action: "accept", content: { ounces: "nineteen" } })).toBe(true)
      return yield* ended(id)
    }).pipe(Effect.provide(worker(newKey, oldKey)))
    expect(textOf(done)).toBe(`golden opened 1 time: {"ounces":"nineteen"}`)
    expect(log).toEqual(["open"])
    expect(yield* found).toEqual([])
    // Without the old key, texts that it encrypted cannot be read, and later texts can.
    expect(textOf(yield* Effect.provide(get(id), worker(newKey)))).toBe(textOf(done))
    expect(yield* Effect.flip(Effect.provide(get(id), worker(oldKey)))).toMatchObject({ reason: { _tag: "KeyError" } })
  }))
