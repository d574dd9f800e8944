import { it } from "@effect/vitest"
import * as Encryption from "@skein/tasks/Encryption"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { durable, ended, get, pass, settled, submit, textOf, work } from "./kit.ts"

const oldKey = "the old key, of 32 characters or more"
const newKey = "the new key, of 32 characters or more"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-keys-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

it.effect("a worker without the key of a task leaves it alone: with the key it goes on", () =>
  Effect.gen(function*() {
    const filename = join(yield* folder, "tasks.db")
    const log: Array<string> = []
    const worker = (...keys: ReadonlyArray<string>) =>
      Layer.effectDiscard(work({
        pay: durable(() =>
          Effect.gen(function*() {
            const paid = yield* Step.run(
              "pay",
              { success: Schema.String },
              () => Effect.sync(() => `paid ${log.push("pay")}`)
            )
            yield* Step.compensate((why) => Effect.sync(() => void log.push(why)))
            yield* Step.sleep("rest", "1 hour")
            return paid
          })
        )
      })).pipe(
        Layer.provideMerge(SqliteTasks.layer({ filename, pollInterval: "1 minute" })),
        Layer.provide(Encryption.layer({ keys }))
      )

    const { id } = yield* Effect.provide(Effect.tap(submit("pay"), settled), worker(oldKey))
    yield* TestClock.adjust("1 hour")
    const looked = yield* Deferred.make<string | undefined>()
    const keyless = yield* Effect.forkChild(
      Effect.gen(function*() {
        yield* pass(600, 20)
        yield* Deferred.succeed(looked, (yield* get(id))?.status)
      }).pipe(Effect.provide(worker(newKey)))
    )
    expect(yield* Deferred.await(looked)).toBe("working")
    // Its end waits no longer for a run than for any other.
    yield* pass(10)
    yield* Fiber.join(keyless)
    const state = yield* Effect.andThen(pass(600, 20), ended(id)).pipe(Effect.provide(worker(newKey, oldKey)))
    expect(textOf(state)).toBe("paid 1")
    expect(log).toEqual(["pay"])
  }))
