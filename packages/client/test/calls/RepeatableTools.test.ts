/** Tools whose calls may be repeated, by their annotations. */
import { assert, describe, it } from "@effect/vitest"
import type { ToolAnnotations } from "@skein/protocol/Tool"
import * as Definitions from "../../src/internal/calls/toolCatalog.ts"
import type { NegotiatedConnection } from "../../src/internal/connection/connection.ts"
import { fixedBounds } from "../../src/internal/base/fixedBounds.ts"

const repeatable = (annotations?: ToolAnnotations): boolean => {
  const definitions = new Definitions.ToolCatalog({ options: {}, bounds: fixedBounds, warn: () => {} })
  const line = { revision: "2025-11-25", isStateless: false, sendsHeaders: false } as NegotiatedConnection
  const inputSchema = { type: "object" } as const
  definitions.read(line, { tools: [{ name: "t", inputSchema, ...(annotations && { annotations }) }] })
  assert.isFalse(definitions.repeatable("other"))
  const is = definitions.repeatable("t")
  definitions.forget()
  assert.isFalse(definitions.repeatable("t"))
  return is
}

describe("a tool call whose response was lost", () => {
  it("may be repeated if the tool is declared read-only or idempotent", () => {
    assert.isTrue(repeatable({ readOnlyHint: true }))
    assert.isTrue(repeatable({ idempotentHint: true, destructiveHint: false }))
  })

  it("may not be repeated if the tool declares neither, or is declared destructive", () => {
    assert.isFalse(repeatable())
    assert.isFalse(repeatable({}))
    assert.isFalse(repeatable({ readOnlyHint: false, idempotentHint: false }))
    assert.isFalse(repeatable({ destructiveHint: true, idempotentHint: true }))
    assert.isFalse(repeatable({ destructiveHint: true, readOnlyHint: true }))
  })
})
