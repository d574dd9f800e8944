/** Servers that misbehave: what the client does, and that it works again afterwards. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { cases, documentCases } from "./cases.ts"
import { run } from "./kit.ts"
import { outcomes } from "./outcomes.ts"

describe("OAuth", () => {
  it("has one outcome for each case", () => {
    assert.sameMembers(Object.keys(outcomes), [...cases, ...documentCases].map(({ title }) => title))
  })

  for (const row of cases) {
    it.effect(`stops, and works again, after this: ${row.title}`, () =>
      Effect.map(run(row), (observed) => assert.strictEqual(observed, outcomes[row.title])))
  }
})
