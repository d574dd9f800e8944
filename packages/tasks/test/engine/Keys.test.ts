import { it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import type { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, ended, get, pass, submit, textOf, work } from "./kit.ts"

const oldKey = "the old key, of 32 characters or more"
const newKey = "the new key, of 32 characters or more"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-keys-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Does something in a process that has these keys, and stops it; time passes meanwhile, as all that is sealed takes its turns. */
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

it.effect("a worker without the key of a task leaves it alone: with the key it goes on", () =>
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
