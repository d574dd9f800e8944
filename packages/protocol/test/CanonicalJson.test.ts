import { assert, describe, it } from "@effect/vitest"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import * as Schema from "effect/Schema"

/** The same value with the members of each object in reverse order. */
const reversed = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(reversed)
    : typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).toReversed().map(([key, member]) => [key, reversed(member)]))
    : value

describe("stringify", () => {
  it("sorts the members of every object by UTF-16 units", () => {
    assert.strictEqual(CanonicalJson.stringify({ b: 1, a: [{ d: 2, c: 3 }] }), `{"a":[{"c":3,"d":2}],"b":1}`)
    assert.strictEqual(CanonicalJson.stringify({ é: 1, a: 2, Z: 3 }), `{"Z":3,"a":2,"é":1}`)
  })

  it("writes members named like array indices first, in numeric order: stored digests depend on it", () => {
    assert.strictEqual(CanonicalJson.stringify({ a: 1, 10: 2, 9: 3, "01": 4 }), `{"9":3,"10":2,"01":4,"a":1}`)
  })

  it("leaves out members that are undefined, and writes a value without a JSON form as null", () => {
    assert.strictEqual(CanonicalJson.stringify({ a: undefined, b: 1 }), `{"b":1}`)
    assert.strictEqual(CanonicalJson.stringify([undefined, () => 1]), "[null,null]")
    assert.strictEqual(CanonicalJson.stringify(undefined), "null")
  })

  it("keeps an own __proto__ as a member, and uses toJSON", () => {
    assert.strictEqual(
      CanonicalJson.stringify(JSON.parse(`{"b":1,"__proto__":{"d":1,"c":2}}`)),
      `{"__proto__":{"c":2,"d":1},"b":1}`
    )
    assert.strictEqual(CanonicalJson.stringify({ at: new Date(0) }), `{"at":"1970-01-01T00:00:00.000Z"}`)
  })

  it("throws for a cycle, a bigint and a value nested deeper than the stack", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    let deep: unknown = {}
    for (let i = 0; i < 200_000; i++) deep = { deep }
    assert.throws(() => CanonicalJson.stringify(cycle), RangeError)
    assert.throws(() => CanonicalJson.stringify({ big: 1n }), TypeError)
    assert.throws(() => CanonicalJson.stringify(deep), RangeError)
  })

  it.prop(
    "returns the same text whatever the order of members is, and text of an equal value",
    [Schema.Json],
    ([json]) => {
      const value: unknown = JSON.parse(JSON.stringify(json))
      const text = CanonicalJson.stringify(value)
      assert.strictEqual(CanonicalJson.stringify(reversed(value)), text)
      assert.deepStrictEqual(JSON.parse(text), value)
    }
  )
})
