/**
 * Schemas and values that are made to stop a process. Each part of a validation between two turns of the event loop is
 * short, and its total is bounded by the sizes of the schema and the value.
 */
import { assert, describe, it } from "@effect/vitest"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { generate, many } from "./generate.ts"
import { known } from "./known.ts"
import { run, violation } from "./measure.ts"

describe("a hostile schema", () => {
  for (const made of known) {
    it(`pauses soon and ends: ${made.name}`, () => {
      assert.isUndefined(violation(made))
    }, 120_000)
  }

  it("pauses soon in 1,000 validations at the same time", () => {
    const { start } = Result.getOrThrow(SchemaValidation.compile({ items: { type: "integer" } }))
    const value = many(20_000, () => 1)
    const validate = Effect.suspend(() => {
      const found = start(value)
      return Effect.isEffect(found) ? found : Effect.succeed(found)
    })
    const { turns, value: results } = run(Effect.all(many(1_000, () => validate), { concurrency: "unbounded" }))
    assert.isTrue(results.every((problems) => problems.length === 0))
    // The first turn begins all of them. The median is not affected by garbage collection.
    const others = turns.slice(1).sort((a, b) => a - b)
    assert.isAbove(others.length, 100)
    assert.isBelow(others[others.length >> 1]!, 25)
  }, 60_000)

  it("pauses soon and ends in 100 random cases", () => {
    for (let seed = 1; seed <= 100; seed++) assert.isUndefined(violation(generate(seed, 50_000)))
  }, 120_000)
})
