/** A thousand children, and processes that stop and are killed while children run. */
import { expect, it } from "@effect/vitest"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Task from "@skein/tasks/Task"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { settled } from "../engine/kit.ts"
import { all, allLayer, expected, fanOut, itemLayer } from "./items.ts"
import { type Engine, inTime, process } from "./kit.ts"

it.live("runs a thousand children, of which a fifth fail, with one event in the log of their parent", () =>
  fanOut(1000))

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

/** `RUNS` and `SEED` make it run longer, and with other items. */
const runs = Number(globalThis.process.env["RUNS"] ?? 15)
const seed = globalThis.process.env["SEED"] ?? "skein"
const cancelled = "Stopped by a person"

const event = Arbitrary.all({ cancels: int(0, 2), kills: int(0, 1), turns: int(0, 40), seconds: int(0, 8) })

it.effect.prop(
  "starts each child once, and returns its result after any kills, stops and cancellations",
  [
    Arbitrary.all({
      items: Arbitrary.array(Arbitrary.all({ n: int(0, 20), seconds: int(0, 9) }), { minLength: 1, maxLength: 8 }),
      concurrency: int(1, 4)
    }),
    Arbitrary.array(event, { maxLength: 4 })
  ],
  ([{ concurrency, items }, history]) =>
    Effect.gen(function*() {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-children-"))),
        (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
      )
      let number = 0
      const file = () => join(folder, `${number}.db`)
      const start = Effect.suspend(() =>
        process(
          SqliteTasks.layer({ filename: file(), pollInterval: "1 second", checkCode: false }) as unknown as Engine,
          [itemLayer, allLayer(items, concurrency)]
        )
      )
      let now = yield* start
      const { id } = yield* now.run(Task.submit(all, {}))
      let cancels = 0
      for (const { cancels: isCancelled, kills, seconds, turns } of history) {
        yield* Effect.forEach(
          Array.from({ length: turns }),
          (_, turn) =>
            turn % 4 === 3
              ? Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
              : Effect.yieldNow,
          { discard: true }
        )
        yield* TestClock.adjust(seconds * 1000)
        if (isCancelled === 0) {
          const live = yield* now.run(
            Effect.flatMap(TaskAdmin, ({ list }) => list({ tool: "item", status: ["working"] }))
          )
          const first = live[0]?.state.id ?? ""
          if (yield* now.run(Effect.flatMap(TaskAdmin, ({ cancel }) => cancel(first, cancelled)))) cancels++
        }
        if (kills === 1) {
          // The next process finds the file as it is now.
          const before = file()
          number++
          for (const part of ["", "-wal"]) if (existsSync(before + part)) copyFileSync(before + part, file() + part)
        }
        yield* inTime(now.stop)
        now = yield* start
        yield* settled
      }
      const inspect = now.run(Effect.flatMap(TaskAdmin, ({ inspect }) => inspect(id, { values: true })))
      let task = yield* inspect
      for (let turn = 0; task?.state.status !== "completed"; turn++) {
        if (turn > 200) return yield* Effect.die(new Error(`the parent is ${task?.state.status}`))
        yield* TestClock.adjust("1 second")
        yield* settled
        task = yield* inspect
      }
      const outcome = task?.outcome as unknown as {
        readonly result: { readonly content: readonly [{ readonly text: string }] }
      }
      const results = JSON.parse(outcome.result.content[0].text) as ReadonlyArray<unknown>
      expect(results).toHaveLength(items.length)
      expect(results.filter((result) => result === cancelled)).toHaveLength(cancels)
      for (const [index, result] of results.entries()) {
        if (result !== cancelled) expect(result).toBe(expected(items[index]!.n))
      }
      const children = yield* now.run(Effect.flatMap(TaskAdmin, ({ list }) => list({ tool: "item" })))
      expect(children).toHaveLength(items.length)
    }).pipe(Effect.scoped),
  { timeout: 120_000 + runs * 2000, arbitrary: { runs, seed, size: 20, maxShrinks: 20 } }
)
