import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { documents, isInstalled } from "./published/documents.ts"
import { measure } from "./published/measure.ts"

const title = isInstalled
  ? "a public document"
  : "a public document (skipped: npm ci --ignore-scripts --prefix packages/openapi/test/published installs them)"

describe.skipIf(!isInstalled)(title, () => {
  it.live.each(documents)(
    "has a tool with a valid schema for every operation, and calls them: %s",
    ([, url]) =>
      Effect.gen(function*() {
        const { called, failures, invalidSchemas, leftOut, operations, tools } = yield* measure(url)
        expect({ tools, leftOut, invalidSchemas, failures }).toEqual({
          tools: operations,
          leftOut: 0,
          invalidSchemas: [],
          failures: []
        })
        expect(called).toBeGreaterThan(Math.min(10, tools) / 2)
      }),
    120_000
  )
})
