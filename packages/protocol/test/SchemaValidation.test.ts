/**
 * The interface of `SchemaValidation`. Its bounds and its agreement with other validators have test files of their own.
 */
import { assert, describe, it } from "@effect/vitest"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"

const refusal = (schema: unknown): string => {
  const compiled = SchemaValidation.compile(schema)
  if (Result.isSuccess(compiled)) return "none"
  assert.instanceOf(compiled.failure, SchemaValidation.Unusable)
  return compiled.failure.message
}

describe("SchemaValidation", () => {
  it("returns at most ten problems, each with its path", () => {
    const { problems } = Result.getOrThrow(SchemaValidation.compile({
      type: "object",
      properties: { list: { items: { type: "integer" } } }
    }))
    assert.deepStrictEqual(problems({ list: [1] }), [])
    assert.deepStrictEqual(problems({ list: [1, "x"] }), [{
      message: "Expected integer, got string",
      path: ["list", 1]
    }])
    assert.strictEqual(problems({ list: Array.from({ length: 99 }, () => "x") }).length, 10)
  })

  it("2026-07-28 · refuses a $ref to a network URI: implementations MUST NOT automatically dereference it", () => {
    for (
      const $ref of ["https://example.com/schema.json", "http://127.0.0.1:1/#/x", "other.json", "file:///etc/passwd"]
    ) {
      assert.include(refusal({ properties: { a: { $ref } } }), "must lead to a place in the same schema")
    }
    assert.strictEqual(refusal({ $ref: "#/$defs/a", $defs: { a: { type: "string" } } }), "none")
  })

  it("2026-07-28 · supports 2020-12 for schemas without $schema, and draft-07; refuses other dialects", () => {
    assert.strictEqual(refusal({ prefixItems: [true] }), "none")
    assert.strictEqual(refusal({ $schema: "http://json-schema.org/draft-07/schema#" }), "none")
    assert.include(refusal({ $schema: "http://json-schema.org/draft-04/schema#" }), "is not supported")
  })

  it("refuses a value that is not a schema, and does not throw", () => {
    const circle: Record<string, unknown> = {}
    circle["not"] = circle
    for (const given of [undefined, null, 1, "x", [], circle, () => {}]) assert.notStrictEqual(refusal(given), "none")
  })

  it("copies the schema, so that later changes have no effect", () => {
    const schema = { type: "string" }
    const { problems, schema: copy } = Result.getOrThrow(SchemaValidation.compile(schema))
    schema.type = "integer"
    assert.deepStrictEqual(problems("x"), [])
    assert.deepStrictEqual(copy, { type: "string" })
  })
})
