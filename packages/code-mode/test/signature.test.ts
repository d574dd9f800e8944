import { describe, expect, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { counted, hostileSchemas, sizeOf } from "../../protocol/test/reads.ts"
import { signatureOf } from "../src/internal/calls/signature.ts"

const signature = (inputSchema: JsonObject, outputSchema?: JsonObject, name = "t", maxChars = 1000) =>
  signatureOf(
    { name, inputSchema: { type: "object", ...inputSchema }, ...(outputSchema && { outputSchema }) } as never,
    maxChars
  )
/** The type of a result with this schema. */
const typeOf = (schema: JsonObject) => /Promise<(.*)>$/s.exec(signature({ properties: {} }, schema)!)![1]

describe("the signature of a tool", () => {
  it("has the arguments, which may be optional, and text as the result of a tool without an output schema", () => {
    expect(signature({ properties: {} })).toBe("tools.t(): Promise<string>")
    expect(signature({ properties: { a: { type: "string" }, b: { type: "integer" } }, required: ["a"] }))
      .toBe("tools.t(args: { a: string; b?: number }): Promise<string>")
    expect(signature({ properties: { "a-b": { type: "boolean" } } }))
      .toBe("tools.t(args?: { \"a-b\"?: boolean }): Promise<string>")
    expect(signature({})).toBe("tools.t(args?: { [key: string]: unknown }): Promise<string>")
    expect(signature({ properties: {} }, undefined, "a.b")).toBe("tools[\"a.b\"](): Promise<string>")
  })

  it("has the types of JSON Schema", () => {
    expect(typeOf({ enum: ["a", 1, null] })).toBe("\"a\" | 1 | null")
    expect(typeOf({ const: "a" })).toBe("\"a\"")
    expect(typeOf({ type: ["string", "null"] })).toBe("string | null")
    expect(typeOf({ type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } }))
      .toBe("(string | number)[]")
    expect(typeOf({ type: "array", items: { properties: { a: { enum: [1, 2] } } } })).toBe("{ a?: 1 | 2 }[]")
    expect(typeOf({ type: "array" })).toBe("unknown[]")
    expect(typeOf({ allOf: [{ properties: { a: { type: "null" } } }, { oneOf: [{ type: "string" }, {}] }] }))
      .toBe("{ a?: null } & unknown")
    expect(typeOf({ type: "object", additionalProperties: { type: "number" } })).toBe("{ [key: string]: number }")
    expect(typeOf({ $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "string" } } })).toBe("string")
    expect(typeOf({ type: "toString" })).toBe("unknown")
    expect(typeOf({ $ref: "#/toString" })).toBe("unknown")
    expect(typeOf({ $ref: "https://example.com/schema" })).toBe("unknown")
  })

  it("has values that are lists and objects, and no more than the type of the schema", () => {
    expect(typeOf({ const: [1, "a", { b: null, "c-d": [] }] })).toBe("[1, \"a\", { b: null; \"c-d\": [] }]")
    expect(typeOf({ const: {} })).toBe("{}")
    expect(typeOf({ type: ["object", "null"], properties: { a: { type: "string" } } })).toBe("{ a?: string } | null")
    expect(typeOf({ const: JSON.parse("[".repeat(50_000) + "]".repeat(50_000)) })).toMatch(/^\[+unknown\]+$/)
  })

  it.each(hostileSchemas)("reads a schema about once, whatever it is long for: %s", (_, schema) => {
    for (const [inputSchema, outputSchema] of [[schema], [{}, schema]] as const) {
      const { reads, value } = counted({ name: "t", inputSchema, ...(outputSchema && { outputSchema }) })
      signatureOf(value as never, 1_000)
      expect(reads()).toBeLessThan(4 * sizeOf(schema) + 20_000)
    }
  })

  it("is left out for a part that is longer alone, without the rest", () => {
    const long = "x".repeat(1_001)
    expect(signature({ properties: { a: { const: long } } })).toBeUndefined()
    expect(signature({ properties: { [long]: {} } })).toBeUndefined()
    expect(signature({ properties: {} }, undefined, long)).toBeUndefined()
    expect(typeOf({ $ref: `#/${long}` })).toBe("unknown")
  })

  it("ends with schemas that refer to themselves, or double at each level", () => {
    expect(typeOf({ $ref: "#" })).toBe("unknown")
    const tree = { type: "object", properties: { next: { $ref: "#" } } }
    expect(typeOf(tree)).toMatch(/^\{ next\?: \{ next\?: .*unknown.*\}$/)
    const wide = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, { $ref: "#" }]))
    const started = process.cpuUsage().user
    expect(signature({ properties: wide })).toBeUndefined()
    expect(process.cpuUsage().user - started).toBeLessThan(5_000_000)
  })

  it("is left out beyond the bound", () => {
    const properties = { name: { type: "string" } }
    const text = signature({ properties })!
    expect(signature({ properties }, undefined, "t", text.length)).toBe(text)
    expect(signature({ properties }, undefined, "t", text.length - 1)).toBeUndefined()
  })
})
