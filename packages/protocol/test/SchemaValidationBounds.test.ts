/**
 * "Implementations SHOULD apply reasonable bounds, such as a maximum schema depth, a cap on the total number of
 * subschemas, or a per-validation time budget" (2026-07-28, composition-keyword resource use). Most bounds count steps,
 * so that the results are the same on a slow machine. The time limits are far above the measured times, and far below
 * the times without a bound.
 */
import { describe, expect, it } from "@effect/vitest"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"
import * as Timed from "./timed.ts"

type Schema = object | boolean

const check = (schema: Schema, value: unknown, options?: SchemaValidation.Options): string => {
  const [problem] = Timed.within(10, () => Result.getOrThrow(SchemaValidation.compile(schema, options)).problems(value))
  return problem?.message ?? "valid"
}

const refusal = (schema: Schema, options?: SchemaValidation.Options): string => {
  const compiled = SchemaValidation.compile(schema, options)
  return Result.isFailure(compiled) ? compiled.failure.message : "none"
}

const many = <A>(length: number, make: (index: number) => A): Array<A> =>
  Array.from({ length }, (_, index) => make(index))
const nested = (open: string, inner: string, close: string, depth: number) =>
  JSON.parse(open.repeat(depth) + inner + close.repeat(depth))

describe("the bounds of a schema", () => {
  it("refuse alternatives that multiply through references", () => {
    const $defs: Record<string, Schema> = { a30: {} }
    for (let i = 0; i < 30; i++) {
      const $ref = `#/$defs/a${i + 1}`
      $defs[`a${i}`] = { allOf: [{ $ref }, { $ref }] }
    }
    expect(refusal({ $ref: "#/$defs/a0", $defs })).toBe(
      "More than 10000 subschemas apply to the same value"
    )
  })

  it("refuse more than 10,000 subschemas", () => {
    expect(refusal({ anyOf: many(9_999, () => ({})) })).toBe("none")
    expect(refusal({ anyOf: many(10_000, () => ({})) })).toContain(
      "The schema has more than 10000 subschemas"
    )
  })

  it("refuse subschemas nested deeper than 64 levels", () => {
    expect(refusal(nested("{\"properties\":{\"a\":", "{}", "}}", 64))).toBe("none")
    expect(refusal(nested("{\"properties\":{\"a\":", "{}", "}}", 65))).toContain(
      "The schema is nested deeper than 64 levels"
    )
    expect(refusal(nested("{\"items\":", "{}", "}", 3_000))).toContain(
      "The schema is nested deeper than 64 levels"
    )
  })

  it("refuse more than maxSchemaChars characters, 262,144 by default", () => {
    expect(refusal({ description: "x".repeat(262_144) })).toBe(
      "The schema has more than 262144 characters (maxSchemaChars)"
    )
    expect(refusal({ description: "x" }, { maxSchemaChars: 10 })).toBe(
      "The schema has more than 10 characters (maxSchemaChars)"
    )
  })

  it("refuse a chain of more than 200 references", () => {
    const $defs = Object.fromEntries(many(300, (i) => [`a${i}`, i === 299 ? {} : { $ref: `#/$defs/a${i + 1}` }]))
    expect(refusal({ $ref: "#/$defs/a0", $defs })).toBe("A chain has more than 200 references")
  })
})

describe("the bounds of a validation", () => {
  const tooMany = "steps (maxSteps)"
  const tooDeep = "The value is nested too deep: more than 500 subschemas apply within each other"

  it("stop where alternatives multiply with the depth of the value", () => {
    const schema = { items: { allOf: [{ $ref: "#" }, { $ref: "#" }] } }
    expect(check(schema, nested("[", "", "]", 3))).toBe("valid")
    expect(check(schema, nested("[", "", "]", 100))).toContain(tooMany)
  })

  it("stop for a value nested deeper than the stack", () => {
    const deep = nested("[", "", "]", 100_000)
    expect(check({ items: { $ref: "#" } }, deep)).toBe(tooDeep)
    expect(check({ items: { uniqueItems: true } }, [deep])).toBe("valid")
    expect(check({ const: deep.length }, deep)).toBe("Expected 1")
    expect(check({ items: { $ref: "#" } }, nested("[", "", "]", 200))).toBe("valid")
  })

  it("stop after maxSteps, and 10 for each character of the schema and the value", () => {
    // One step for the array, and two for each item: the schema of the items, and its keyword.
    const items = (keywords: number) => ({ items: { allOf: many(keywords, () => ({})) } })
    const ones = many(200, () => 1)
    const within = (steps: number) => {
      const { problems } = Result.getOrThrow(SchemaValidation.compile({ items: { type: "integer" } }))
      return problems(ones, steps)[0]?.message ?? "valid"
    }
    expect(within(1_000)).toBe("valid")
    expect(within(100)).toBe("The validation takes more than 100 steps (maxSteps)")
    expect(check(items(10), ones, { maxSteps: 0 })).toBe("valid")
    expect(check(items(60), ones, { maxSteps: 0 })).toContain(tooMany)
    expect(check(items(60), ones, { maxSteps: 10_000 })).toBe("valid")
  })

  it("allow a million valid or invalid items", () => {
    const list = { items: { anyOf: [{ type: "integer" }, { type: "null" }] } }
    expect(check(list, many(1_000_000, () => 1))).toBe("valid")
    expect(check(list, many(1_000_000, () => "x"))).toBe("Expected a value that matches at least one schema in `anyOf`")
    expect(check({ additionalProperties: false }, Object.fromEntries(many(100_000, (i) => [`k${i}`, 1])))).toBe(
      "Unexpected value"
    )
    expect(check({ contains: { type: "integer" } }, many(1_000_000, () => "x"))).toContain("`contains`")
  })

  it("do not include the messages of problems that are not reported", () => {
    const long = many(2_500, (i) => `a long name of its own, number ${i}`)
    const schema = { items: { anyOf: [{ enum: long }, { const: long }, { type: "null" }] } }
    expect(check(schema, many(300_000, () => null))).toBe("valid")
  })

  it("count evaluated members each time they are merged", () => {
    const chain = (depth: number): Schema =>
      depth === 0 ? { additionalProperties: true } : { allOf: [chain(depth - 1)] }
    const value = Object.fromEntries(many(30_000, (i) => [`k${i}`, 1]))
    expect(check({ ...chain(5) as object, unevaluatedProperties: false }, value)).toBe("valid")
    expect(check({ ...chain(60) as object, unevaluatedProperties: false }, value)).toBe("valid")
    const merged = { allOf: many(900, () => ({ additionalProperties: true })), unevaluatedProperties: false }
    expect(check(merged, value)).toContain(tooMany)
  })

  it("check uniqueItems in linear time", () => {
    expect(check({ uniqueItems: true }, many(300_000, (i) => i))).toBe("valid")
    expect(check({ uniqueItems: true }, many(50_000, (i) => ({ a: [i] })))).toBe("valid")
  })

  it("count the length of long keywords for every item", () => {
    const names = many(9_000, (i) => `a${i}`)
    const list = many(20_000, () => ({ a0: 1 }))
    expect(check({ items: { not: { required: ["a0", ...names.slice(1)] } } }, list)).toContain(tooMany)
    expect(check({ items: { enum: [...many(5_000, (i) => ({ a0: -i })), { a0: 1 }] } }, list)).toContain(tooMany)
    const patternProperties = Object.fromEntries(many(1_000, (i) => [`^x${i}$`, true]))
    expect(check({ items: { patternProperties } }, list)).toContain(tooMany)
    const dependentSchemas = Object.fromEntries(many(5_000, (i) => [`x${i}`, {}]))
    expect(check({ items: { dependentSchemas } }, list)).toContain(tooMany)
  })

  for (
    const [pattern, text, outcome] of [
      ["^(a+)+$", `${"a".repeat(50)}!`, "Expected a string that matches the pattern"],
      ["^(a|aa)+$", `${"a".repeat(50)}!`, "Expected a string that matches the pattern"],
      ["^(a?){30}a{30}$", "a".repeat(30), "valid"],
      ["^.*.*.*=.*$", "a".repeat(50_000), "Expected a string that matches the pattern"],
      ["a+b", "a".repeat(100_000), "Expected a string that matches the pattern"],
      ["\\s+$", `${" ".repeat(100_000)}x`, "Expected a string that matches the pattern"],
      ["^([a-z0-9]+-)*[a-z0-9]+$", `${"a".repeat(5_000)}!`, "Expected a string that matches the pattern"],
      ["(a|a|a|a|a|a|a|a)+b", "a".repeat(200_000), tooMany]
    ] as const
  ) {
    it(`run the pattern ${pattern} on ${text.length} characters`, () => {
      expect(check({ pattern }, text)).toContain(outcome)
      expect(check({ patternProperties: { [pattern]: false } }, { [text]: 1 })).toContain(
        outcome === "valid" ? "Unexpected value" : outcome === tooMany ? tooMany : "valid"
      )
    })
  }
})
