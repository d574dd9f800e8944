import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { documents, isInstalled } from "./published/documents.ts"
import { measure } from "./published/measure.ts"

const title = isInstalled
  ? "a public document"
  : "a public document (skipped: npm ci --ignore-scripts --prefix packages/openapi/test/published installs them)"

describe.skipIf(!isInstalled && process.env["CI"] !== "true")(title, () => {
  it("is one of at least 100", () => expect(documents.length).toBeGreaterThan(100))

  it.live.each(documents)(
    "has a tool with a valid schema for every operation, and calls them: $name",
    (document) =>
      Effect.gen(function*() {
        const { called, failures, invalidSchemas, leftOut, tools, unaccounted } = yield* measure(document)
        expect({ unaccounted, invalidSchemas, failures }).toEqual({
          unaccounted: [],
          invalidSchemas: [],
          failures: []
        })
        // No other operation of these documents is unusable.
        expect(leftOut.filter((reason) => reason !== "No request can have the method \"TRACE\"")).toEqual([])
        expect(called).toBeGreaterThan(Math.min(document.maxCalls / 6, tools) / 2)
      }),
    120_000
  )
})
