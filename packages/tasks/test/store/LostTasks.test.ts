/** Tasks that were lost with their workers: when they are claimed again, and beside which others. */
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { expect } from "vitest"
import { all, each, event, fresh, insert, type Opened } from "./kit.ts"

/** Claims tasks, of tools with a limit or of others. */
const claimWith = ({ store }: Opened, isGated: boolean) => (maxLost?: number, limit = 10) =>
  Effect.map(
    (isGated ? store.claimGated : store.claim)("w1", undefined, limit, maxLost),
    (claims) => claims.map(({ attempts, id }) => ({ id, attempts }))
  )

each(all, (backend) => {
  for (const isGated of [false, true]) {
    const open = Effect.tap(
      fresh(backend),
      ({ store }) => isGated ? store.tools.pace("report", { concurrency: 100, rate: undefined }) : Effect.void
    )
    const kind = isGated ? "gated " : ""

    it.effect(`a ${kind}task waits longer each time that it is lost again, and not after the first time`, () =>
      Effect.gen(function*() {
        const opened = yield* open
        const { store } = opened
        const claim = claimWith(opened, isGated)
        const { id } = yield* insert(opened)
        yield* claim()
        yield* store.takeBackAll
        expect(yield* claim()).toEqual([{ id, attempts: 1 }])
        for (const [index, seconds] of [1, 2, 4, 8, 16, 32, 60, 60].entries()) {
          yield* store.takeBackAll
          expect(yield* claim()).toEqual([])
          yield* TestClock.adjust(seconds * 1000 - 1)
          expect((yield* store.wake).count).toBe(0)
          yield* TestClock.adjust(1)
          expect((yield* store.wake).count).toBe(1)
          expect(yield* claim()).toEqual([{ id, attempts: index + 2 }])
        }
        // It has come further.
        yield* store.append(id, event(1))
        yield* store.takeBackAll
        expect(yield* claim()).toEqual([{ id, attempts: 1 }])
        yield* store.takeBackAll
        expect(yield* claim()).toEqual([])
      }).pipe(Effect.scoped))

    it.effect(`${kind}tasks that were lost twice are claimed one by one, beside none that was lost`, () =>
      Effect.gen(function*() {
        const opened = yield* open
        const { sql } = opened
        const claim = claimWith(opened, isGated)
        const lose = (attempts: number) =>
          Effect.gen(function*() {
            yield* TestClock.adjust(1)
            const { id } = yield* insert(opened)
            yield* sql`UPDATE skein_task_queue SET attempts = ${attempts}, runs = 1 WHERE task_id = ${id}`
            return { id, attempts }
          })
        const order = (claims: ReadonlyArray<{ readonly id: string }>) => claims.map(({ id }) => id).toSorted()
        const [twice, never, often, once] = [yield* lose(2), yield* lose(0), yield* lose(3), yield* lose(1)]
        expect(order(yield* claim())).toEqual(order([twice, never]))
        expect(yield* claim(2)).toEqual([once])
        expect(yield* claim(2)).toEqual([])
        expect(yield* claim()).toEqual([often])
        const [first, second] = [yield* lose(1), yield* lose(1)]
        yield* lose(2)
        expect(yield* claim(0)).toEqual([])
        expect(order(yield* claim(1))).toEqual(order([first, second]))
        expect(yield* claim(1)).toEqual([])
      }).pipe(Effect.scoped))
  }
})
