/** What `SchemaValidation` gives of a schema. What each keyword means is proved in `validation/`, and by the schemas of tools. */
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
  it("tells where a fault is, and no more than ten", () => {
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

  it("2026-07-28 · Implementations MUST NOT automatically dereference $ref values that resolve to a network URI", () => {
    for (
      const $ref of ["https://example.com/schema.json", "http://127.0.0.1:1/#/x", "other.json", "file:///etc/passwd"]
    ) {
      assert.include(refusal({ properties: { a: { $ref } } }), "must lead to a place in the same schema")
    }
    assert.strictEqual(refusal({ $ref: "#/$defs/a", $defs: { a: { type: "string" } } }), "none")
  })

  it("2026-07-28 · MUST support 2020-12 for schemas without $schema; another dialect than that and draft-07 is unusable", () => {
    assert.strictEqual(refusal({ prefixItems: [true] }), "none")
    assert.strictEqual(refusal({ $schema: "http://json-schema.org/draft-07/schema#" }), "none")
    assert.include(refusal({ $schema: "http://json-schema.org/draft-04/schema#" }), "is not supported")
  })

  it("what is no schema is refused, and never throws", () => {
    const circle: Record<string, unknown> = {}
    circle["not"] = circle
    for (const given of [undefined, null, 1, "x", [], circle, () => {}]) assert.notStrictEqual(refusal(given), "none")
  })

  it("a schema that is changed after it was compiled changes nothing", () => {
    const schema = { type: "string" }
    const { problems, schema: copy } = Result.getOrThrow(SchemaValidation.compile(schema))
    schema.type = "integer"
    assert.deepStrictEqual(problems("x"), [])
    assert.deepStrictEqual(copy, { type: "string" })
  })
})
