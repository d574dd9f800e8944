import * as XMcpHeader from "@skein/protocol/XMcpHeader"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { counted, hostileSchemas, sizeOf } from "./reads.ts"
import * as Timed from "./timed.ts"

const object = (properties: unknown, rest: object = {}) => ({ type: "object", properties, ...rest })
const marked = (header: unknown, type: unknown = "string", rest: object = {}) => ({
  type,
  "x-mcp-header": header,
  ...rest
})
const params = (schema: unknown) => Result.getOrThrow(XMcpHeader.fromSchema(schema))
const refusal = (schema: unknown) => {
  const result = XMcpHeader.fromSchema(schema)
  return Result.isFailure(result) ? result.failure : undefined
}

describe("the annotations of a schema", () => {
  it("2026-07-28 · reads the specification's example", () => {
    const schema = object({
      region: { type: "string", description: "The region to execute the query in", "x-mcp-header": "Region" },
      query: { type: "string" }
    }, { required: ["region", "query"] })
    assert.deepStrictEqual(params(schema), [
      { path: ["region"], header: "Mcp-Param-Region", key: "mcp-param-region", type: "string" }
    ])
  })

  it("returns nothing for a schema without annotations, and for a value that is not a schema", () => {
    for (const schema of [{}, object({ a: { type: "string" } }), true, undefined, null, [], "x", 1]) {
      assert.deepStrictEqual(params(schema), [])
    }
  })

  it("2026-07-28 · refuses an empty name, which MUST NOT be empty", () =>
    assert.isString(refusal(object({ a: marked("") }))))

  it("2026-07-28 · refuses a name that is not an HTTP token", () => {
    for (
      const bad of [
        "My Region",
        "Region:Primary",
        "Région",
        "a(b)",
        "a/b",
        "a\"b",
        "a,b",
        "a;b",
        "a=b",
        "a@b",
        "[a]",
        "{a}",
        "a\\b",
        "a?"
      ]
    ) {
      assert.include(refusal(object({ a: marked(bad) })), "HTTP token", bad)
    }
    assert.lengthOf(params(object({ a: marked("!#$%&'*+-.^_`|~09azAZ") })), 1)
  })

  it("2026-07-28 · refuses control characters, CR and LF in a name", () => {
    for (const bad of ["Region\t1", "Region\r", "Region\n", "a\r\nX-Evil: 1", "\u0000", "a\x7f"]) {
      assert.isString(refusal(object({ a: marked(bad) })), JSON.stringify(bad))
    }
  })

  it("refuses a name that is not a string", () => {
    for (const bad of [1, null, true, {}, ["A"]]) assert.isString(refusal(object({ a: marked(bad) })))
  })

  it("2026-07-28 · refuses names that are not case-insensitively unique, nested ones included", () => {
    assert.include(refusal(object({ a: marked("Region"), b: marked("Region") })), "unique")
    assert.include(refusal(object({ a: marked("Region"), b: marked("REGION") })), "unique")
    assert.include(refusal(object({ a: marked("Region"), b: object({ c: marked("region") }) })), "unique")
  })

  it("SEP-2243 · allows the name Method, for Mcp-Param-Method", () => {
    assert.strictEqual(params(object({ a: marked("Method") }))[0]?.header, "Mcp-Param-Method")
  })

  it("2026-07-28 · allows integer, string and boolean only; number is not permitted", () => {
    for (const type of ["string", "integer", "boolean"]) {
      assert.strictEqual(params(object({ a: marked("A", type) }))[0]?.type, type)
    }
    for (const type of ["number", "array", "object", "null", ["string"], ["string", "null"], "String", 1]) {
      assert.include(refusal(object({ a: marked("A", type) })), "of type string, integer or boolean")
    }
    assert.isString(refusal(object({ a: { "x-mcp-header": "A", enum: ["x"] } })))
  })

  it("2026-07-28 · allows nested properties, where every step is a `properties` key", () => {
    const schema = object({ z: object({ y: object({ x: marked("X", "integer") }) }), a: marked("A") })
    assert.deepStrictEqual(params(schema).map(({ header, path }) => [path, header]), [
      [["z", "y", "x"], "Mcp-Param-X"],
      [["a"], "Mcp-Param-A"]
    ])
  })

  it("2026-07-28 · refuses a chain through items or another array keyword", () => {
    for (const key of ["items", "contains", "additionalItems", "unevaluatedItems"]) {
      assert.include(
        refusal(object({ list: { type: "array", [key]: object({ a: marked("A") }) } })),
        "only \"properties\" keywords lead to",
        key
      )
    }
    for (const key of ["prefixItems", "items"]) {
      assert.isString(refusal(object({ list: { type: "array", [key]: [{}, object({ a: marked("A") })] } })), key)
    }
  })

  it("2026-07-28 · refuses a chain through oneOf, anyOf, allOf or not", () => {
    for (const key of ["oneOf", "anyOf", "allOf"]) {
      assert.isString(refusal({ type: "object", [key]: [object({ a: marked("A") })] }), key)
      assert.isString(refusal(object({ a: { [key]: [marked("A")] } })), key)
    }
    assert.isString(refusal({ type: "object", not: object({ a: marked("A") }) }))
  })

  it("2026-07-28 · refuses a chain through if, then or else", () => {
    for (const key of ["if", "then", "else"]) {
      assert.isString(refusal({ type: "object", [key]: object({ a: marked("A") }) }), key)
    }
  })

  it("2026-07-28 · refuses a chain through $ref: an annotation in $defs is not reachable", () => {
    for (const key of ["$defs", "definitions"]) {
      const schema = object({ a: { $ref: `#/${key}/A` } }, { [key]: { A: marked("A") } })
      assert.isString(refusal(schema), key)
    }
  })

  it("2026-07-28 · refuses an annotation anywhere else", () => {
    assert.isString(refusal({ ...object({}), "x-mcp-header": "Root" }))
    for (const key of ["additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"]) {
      assert.isString(refusal({ type: "object", [key]: marked("A") }), key)
    }
    for (const key of ["patternProperties", "dependentSchemas", "dependencies"]) {
      assert.isString(refusal({ type: "object", [key]: { a: marked("A") } }), key)
    }
  })

  it("ignores a property named x-mcp-header, and the keyword inside data", () => {
    assert.deepStrictEqual(params(object({ "x-mcp-header": { type: "string" } })), [])
    const data = { "x-mcp-header": "A" }
    assert.deepStrictEqual(
      params(object({ a: { type: "object", default: data, const: data, enum: [data], examples: [data] } })),
      []
    )
  })

  it("reads a property with the name of an inherited member", () => {
    const schema = JSON.parse(`{"type":"object","properties":{"__proto__":{"type":"string","x-mcp-header":"P"}}}`)
    assert.deepStrictEqual(params(schema)[0]?.path, ["__proto__"])
    const args = JSON.parse(`{"__proto__":"v"}`)
    assert.deepStrictEqual(Result.getOrThrow(XMcpHeader.encode(params(schema), args)), { "Mcp-Param-P": "v" })
    assert.deepStrictEqual(Result.getOrThrow(XMcpHeader.encode(params(object({ toString: marked("T") })), {})), {})
  })

  it("refuses more than 100,000 subschemas, so that a cycle ends", () => {
    const cycle: Record<string, unknown> = { type: "object" }
    cycle["properties"] = { self: cycle, again: cycle }
    assert.include(refusal(cycle), "100000")
    const properties = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, {}]))
    assert.isUndefined(refusal(object(properties(99_999))))
    assert.isString(refusal(object(properties(100_000))))
  })

  it("refuses an annotation deeper than 64 properties", () => {
    const nest = (depth: number): object => depth === 1 ? object({ p: marked("A") }) : object({ p: nest(depth - 1) })
    assert.lengthOf(params(nest(64))[0]!.path, 64)
    assert.include(refusal(nest(65)), "64")
  })

  it.prop("does not throw for any schema", [Schema.Json], ([schema]) => {
    assert.isTrue(Result.isResult(XMcpHeader.fromSchema(schema)))
    assert.isTrue(
      Result.isResult(XMcpHeader.fromSchema({ properties: schema, items: schema, $defs: schema, allOf: schema }))
    )
  })

  it.each(hostileSchemas)("reads a schema once: %s", (_, schema) => {
    const { reads, value } = counted({ ...schema })
    XMcpHeader.fromSchema(value)
    assert.isBelow(reads(), 6 * sizeOf(schema))
  })

  it("reads 99,999 annotated properties in linear time", () => {
    const properties = Object.fromEntries(Array.from({ length: 99_999 }, (_, i) => [`p${i}`, marked(`H${i}`)]))
    Timed.linear(() => {
      assert.lengthOf(params(object(properties)), 99_999)
    })
  })
})

const four = params(object({
  region: marked("Region"),
  count: marked("Count", "integer"),
  flag: marked("Flag", "boolean"),
  deep: object({ er: marked("Deep") })
}))
const headers = (args: unknown) => Result.getOrThrow(XMcpHeader.encode(four, args))
const mismatch = (sent: Record<string, string>, args: unknown) => {
  const lower = new Map(Object.entries(sent).map(([key, value]) => [key.toLowerCase(), value]))
  return XMcpHeader.mismatch(four, args, (key) => lower.get(key))
}

describe("the headers of a call", () => {
  it("2026-07-28 · write a string as it is, an integer in decimal, a boolean as true or false", () => {
    assert.deepStrictEqual(headers({ region: "us-west1", count: -7, flag: false, deep: { er: "日本語" } }), {
      "Mcp-Param-Region": "us-west1",
      "Mcp-Param-Count": "-7",
      "Mcp-Param-Flag": "false",
      "Mcp-Param-Deep": "=?base64?5pel5pys6Kqe?="
    })
  })

  it("2026-07-28 · omit a null or absent value, as the client MUST", () => {
    for (const args of [{}, { region: null }, { deep: null }, { deep: {} }, { deep: [] }, undefined, null, [], "x"]) {
      assert.deepStrictEqual(headers(args), {})
      assert.isUndefined(mismatch({}, args))
    }
  })

  it("2026-07-28 · include every provided value, an empty string too, as the client MUST", () => {
    assert.deepStrictEqual(headers({ region: "" }), { "Mcp-Param-Region": "" })
  })

  it("2026-07-28 · read the value at the exact property path, not through an array", () => {
    assert.deepStrictEqual(headers({ er: "x", "deep.er": "y", deep: [{ er: "z" }] }), {})
  })

  it("omit an object or an array, which the tool's schema refuses", () => {
    assert.deepStrictEqual(headers({ region: {}, count: [1] }), {})
    assert.isUndefined(mismatch({}, { region: {}, count: [1] }))
  })

  it("2026-07-28 · fail for an integer outside the safe range", () => {
    assert.isTrue(Result.isFailure(XMcpHeader.encode(four, { count: 2 ** 53 })))
    assert.isTrue(Result.isFailure(XMcpHeader.encode(four, { count: -(2 ** 53) })))
    assert.deepStrictEqual(headers({ count: Number.MAX_SAFE_INTEGER }), { "Mcp-Param-Count": "9007199254740991" })
    assert.isString(mismatch({ "Mcp-Param-Count": "9007199254740992" }, { count: 2 ** 53 }))
  })

  it("2026-07-28 · mismatch where the header is missing and the body has a value: the server MUST reject", () => {
    assert.strictEqual(mismatch({}, { region: "us-west1" }), "Mcp-Param-Region header is missing")
  })

  it("2026-07-28 · mismatch where the header is different, malformed, or without a value in the body", () => {
    assert.include(mismatch({ "Mcp-Param-Region": "eu" }, { region: "us" }), "'eu' does not match body value 'us'")
    assert.include(mismatch({ "Mcp-Param-Region": "=?base64?x?=" }, { region: "us" }), "malformed")
    for (const args of [{}, { region: null }, { region: {} }]) {
      assert.isString(mismatch({ "Mcp-Param-Region": "eu" }, args))
    }
  })

  it("2026-07-28 · match regardless of the case of names, and compare integers numerically", () => {
    assert.isUndefined(mismatch({ "MCP-PARAM-REGION": "us", "mcp-param-count": "42.0" }, { region: "us", count: 42 }))
  })

  it("ignore a header that no parameter names", () => {
    assert.isUndefined(mismatch({ "Mcp-Param-Other": "x" }, {}))
  })

  it.prop(
    "written by a client match the body for a server",
    [Schema.String, Schema.Int, Schema.Boolean, Schema.Json],
    ([region, count, flag, er]) => {
      const args = { region, count, flag, deep: { er } }
      const sent = XMcpHeader.encode(four, args)
      if (Result.isSuccess(sent)) assert.isUndefined(mismatch(sent.success, args))
      else assert.include(sent.failure, "safe range")
    }
  )
})
