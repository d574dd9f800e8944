import { assert, describe, it } from "@effect/vitest"
import * as CanonicalJson from "../src/CanonicalJson.ts"
import * as Json from "../src/Json.ts"
import * as JsonRpc from "../src/JsonRpc.ts"

const id = "1915883588174806058"

describe("parse and stringify", () => {
  it("writes the digits of numbers that JavaScript rounds", () => {
    for (
      const text of [
        `{"id":${id}}`,
        `[${id},-9007199254740993,9007199254740992]`,
        `{"a":{"b":[{"c":${id}},[[${id}]]]},"d":123456789.123456789123}`,
        `{"power":1152921504606846976,"text":"${id}","a\\"b":${id}}`,
        `{"__proto__":{"id":${id}}}`,
        `{"0":${id},"":${id}}`,
        `{"large":1000000000000000000000001}`
      ]
    ) {
      const value = Json.parse(text)
      assert.deepStrictEqual(value, JSON.parse(text), text)
      assert.strictEqual(Json.stringify(value), text)
    }
  })

  it("writes other numbers as JSON.stringify does", () => {
    for (const text of [`{"a":1.0}`, `[1e3,-0.5,1000000000000000000000]`, `"${id}"`, `{"a":"\\\\\\"${id}"}`, "null"]) {
      assert.strictEqual(Json.stringify(Json.parse(text)), JSON.stringify(JSON.parse(text)), text)
    }
    assert.isUndefined(Json.stringify(undefined))
  })

  it("keeps the last of two members with one name", () => {
    for (
      const [text, expected] of [
        [`{"a":${id},"a":2}`, `{"a":2}`],
        [`{"a":2,"a":${id}}`, `{"a":${id}}`],
        [`{"a":{"b":${id}},"a":{"b":1}}`, `{"a":{"b":1}}`],
        [`{"a":[${id}],"a":{"0":5}}`, `{"a":{"0":5}}`],
        [`{"a":{"b":${id}},"a":{"c":[]}}`, `{"a":{"c":[]}}`]
      ] as const
    ) assert.strictEqual(Json.stringify(Json.parse(text)), expected)
  })

  it("writes the present value of a member that was changed", () => {
    const value = Json.parse(`{"id":${id}}`) as { id: number }
    value.id = 2 ** 62
    assert.strictEqual(Json.stringify(value), `{"id":4611686018427388000}`)
    assert.isUndefined(Json.integerIn(value))
  })

  it("writes the digits with an indent, and in the copies of a replacer", () => {
    const value = Json.parse(`{"b":${id},"a":[${id}]}`)
    assert.strictEqual(Json.stringify(value, undefined, 1), `{\n "b": ${id},\n "a": [\n  ${id}\n ]\n}`)
    assert.strictEqual(CanonicalJson.stringify(value), `{"a":[${id}],"b":${id}}`)
  })

  it("reads a text that is nested deeply, and one with many escapes, without recursion", () => {
    const depth = 100_000
    const deep = Json.parse(`${"[".repeat(depth)}${id}${"]".repeat(depth)}`)
    assert.strictEqual(Json.integerIn(deep)?.text, id)
    const escaped = `{"${"\\\\".repeat(depth)}":"${"\\\"".repeat(depth)}","id":${id}}`
    assert.deepStrictEqual(Json.integerIn(Json.parse(escaped)), { path: "id", text: id })
  })
})

describe("integerIn", () => {
  const pathOf = (text: string) => Json.integerIn(Json.parse(text))?.path

  it("returns the path of an integer that was rounded", () => {
    assert.strictEqual(pathOf(`{"filter":{"ids":[1,${id}]}}`), "filter.ids[1]")
    assert.strictEqual(pathOf(`[{"a b":${id}}]`), `[0]["a b"]`)
  })

  it("does not count exact integers, fractions and texts", () => {
    for (const text of [`{"a":9007199254740992}`, `{"a":3.14159265358979323846}`, `{"a":"${id}"}`, `{"a":1e20}`]) {
      assert.isUndefined(pathOf(text), text)
    }
  })
})

describe("carry", () => {
  it("copies the digits to a copy with other names", () => {
    const value = Json.parse(`{"id":${id},"more":{"id":${id}}}`) as { readonly id: number; readonly more: object }
    const copy = { key: value.id, more: value.more }
    assert.strictEqual(Json.stringify(copy), `{"key":1915883588174806000,"more":{"id":${id}}}`)
    Json.carry(value, copy, (name) => name === "id" ? "key" : name)
    assert.strictEqual(Json.stringify(copy), `{"key":${id},"more":{"id":${id}}}`)
    assert.strictEqual(Json.integerIn(copy)?.text, id)
  })
})

describe("messages", () => {
  it("are written with the digits that were read", () => {
    const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"id":${id}}}}`
    const request = JsonRpc.parseText(text) as JsonRpc.Request
    const { name, arguments: args } = request.params as { readonly name: string; readonly arguments: object }
    assert.strictEqual(JsonRpc.encode(JsonRpc.request(1, "tools/call", { name, arguments: args })), text)
  })
})
