import { expect, it } from "@effect/vitest"
import type { CurrentTask } from "@skein/tasks/CurrentTask"
import * as Encryption from "@skein/tasks/Encryption"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Step from "@skein/tasks/Step"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as kit from "./kit.ts"

const engine = MemoryTasks.layer()
const sealing = Layer.provide(engine, Encryption.layer({ keys: ["a key of thirty-two characters, or more"] }))

const bake = Effect.andThen(
  Step.sleep("dough", "10 seconds"),
  Effect.andThen(Step.run("bake", {}, () => Effect.void), Step.run("cool", {}, () => Effect.void))
)
// An hour of the test clock: the encryption between two steps takes real time, in which the clock goes on.
const limit = Step.sleep("limit", "1 hour")

for (const [how, layer] of [["as they are", engine], ["sealed", sealing]] as const) {
  for (
    const [what, race, winner] of [
      ["steps after a sleep", Effect.raceFirst(Effect.as(limit, "limit"), Effect.as(bake, "baked")), "baked"],
      [
        "steps after a sleep, named first",
        Effect.raceFirst(Effect.as(bake, "baked"), Effect.as(limit, "limit")),
        "baked"
      ],
      [
        "the shorter of two sleeps",
        Effect.raceFirst(Effect.as(limit, "limit"), Effect.as(Step.sleep("short", "10 seconds"), "short")),
        "short"
      ]
    ] as ReadonlyArray<[string, Effect.Effect<string, never, CurrentTask>, string]>
  ) {
    it.effect(`texts ${how}: ${what} that won a race with a sleep wins it in each later run, after the sleep has elapsed too`, () =>
      Effect.gen(function*() {
        const winners: Array<string> = []
        const body = Effect.tap(race, (winner) => Effect.sync(() => void winners.push(winner)))
        yield* kit.work({
          order: kit.durable(() => Effect.flatMap(body, (winner) => Effect.as(Step.sleep("late", "2 hours"), winner)))
        })
        const { id } = yield* kit.submit("order")
        while (kit.textOf(yield* kit.get(id)) === undefined) {
          yield* winners.length === 0 ? kit.pass(1) : kit.pass(60, 60)
        }
        expect(kit.textOf(yield* kit.get(id))).toBe(winner)
        expect(winners.length).toBeGreaterThan(1)
        expect(new Set(winners)).toEqual(new Set([winner]))
      }).pipe(Effect.provide(layer)))
  }
}
