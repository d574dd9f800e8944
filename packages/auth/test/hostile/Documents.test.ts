/** Documents and answers that cannot be read, from every endpoint. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { documentCases } from "./cases.ts"
import { run } from "./kit.ts"
import { outcomes } from "./outcomes.ts"

describe("OAuth", () => {
  for (const row of documentCases) {
    it.effect(`stops, and works again, after this: ${row.title}`, () =>
      Effect.map(run(row), (observed) => assert.strictEqual(observed, outcomes[row.title])))
  }
})
