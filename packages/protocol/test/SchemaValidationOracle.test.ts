/** Compares the validator with Ajv, and its patterns with `RegExp`, on random schemas, values and patterns. */
import { describe, expect, it } from "@effect/vitest"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Result from "effect/Result"
import { Compiler } from "../src/internal/validation/compiler.ts"
import type { SchemaNode } from "../src/internal/validation/schemaNode.ts"
import { begin, ValidationRun } from "../src/internal/validation/validationRun.ts"

/** Seeded random choices: the same in every run. */
const choices = (seed: number) => {
  let state = seed
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
  return { next, of: <A>(list: ReadonlyArray<A>): A => list[next(list.length)]! }
}

type Choices = ReturnType<typeof choices>

const names = ["a", "b", "ab", "x-c"]

const valueOf = ({ next, of }: Choices, depth: number): unknown => {
  const kind = next(depth > 0 ? 8 : 6)
  const few = Array.from({ length: next(4) })
  const inside = () => valueOf({ next, of }, depth - 1)
  return kind === 6 ? few.map(inside) : kind === 7
    ? Object.fromEntries(few.map(() => [of(names), inside()]))
    : [null, true, next(5), next(8) / 4, of(["", "a", "ab", "😀", "abc"]), -1][kind]
}

const schemaOf = (choose: Choices, depth: number): unknown => {
  const { next, of } = choose
  if (depth === 0) {
    return of<unknown>([true, {}, { type: "integer" }, { type: ["string", "array"] }, { $ref: "#/$defs/leaf" }])
  }
  const inner = () => schemaOf(choose, depth - 1)
  const few = () => Array.from({ length: 1 + next(2) }, inner)
  const named = () => Object.fromEntries(few().map((schema) => [of(names), schema]))
  const keywords: Record<string, () => unknown> = {
    type: () => of<unknown>(["object", "array", "number", "integer", ["string", "null"]]),
    const: () => valueOf(choose, 1),
    enum: () => [valueOf(choose, 1), valueOf(choose, 1)],
    minimum: () => next(3),
    exclusiveMaximum: () => next(4),
    multipleOf: () => of([0.25, 2, 3]),
    minLength: () => next(3),
    maxLength: () => next(3),
    pattern: () => of(["^a", "b$", "^(a|b)*$", "."]),
    items: inner,
    prefixItems: few,
    contains: inner,
    minContains: () => next(3),
    maxContains: () => 1 + next(2),
    minItems: () => next(3),
    maxItems: () => next(3),
    uniqueItems: () => true,
    properties: named,
    patternProperties: () => ({ [of(["^a", "-"])]: inner() }),
    additionalProperties: inner,
    propertyNames: () => ({ maxLength: 2 }),
    required: () => [of(names)],
    minProperties: () => next(2),
    maxProperties: () => 1 + next(2),
    dependentRequired: () => ({ [of(names)]: [of(names)] }),
    dependentSchemas: named,
    allOf: few,
    anyOf: few,
    oneOf: few,
    not: inner,
    ...Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, inner])),
    unevaluatedProperties: inner
  }
  const chosen = new Set(Array.from({ length: 1 + next(4) }, () => of(Object.keys(keywords))))
  // Ajv accepts an empty list for `contains` beside `prefixItems`, and does not count the members that an `if` without
  // `then` has evaluated.
  if (chosen.has("contains")) chosen.delete("prefixItems")
  if (chosen.has("if")) chosen.add("then")
  return Object.fromEntries([...chosen].map((keyword) => [keyword, keywords[keyword]!()]))
}

describe("the validator", () => {
  it("agrees with Ajv on 500 schemas with 24 values each", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
    const counts = { valid: 0, invalid: 0 }
    for (let seed = 1; seed <= 500; seed++) {
      const choose = choices(seed)
      const made = schemaOf(choose, 3)
      const schema = { allOf: [made], $defs: { leaf: { type: ["integer", "object"] } } } as const
      const mine = Result.getOrThrow(SchemaValidation.compile(schema))
      const theirs = ajv.compile(schema)
      for (let i = 0; i < 24; i++) {
        const value = valueOf(choose, 3)
        const faults = mine.problems(value)
        let valid: boolean
        try {
          valid = theirs(value)
        } catch {
          // Some functions that Ajv compiles for `unevaluatedProperties` throw.
          continue
        }
        counts[valid ? "valid" : "invalid"]++
        if ((faults.length === 0) !== valid) {
          expect([schema, value, faults.length === 0]).toEqual([schema, value, valid])
        }
      }
      ajv.removeSchema()
    }
    // Both outcomes occur often.
    expect(Math.min(counts.valid, counts.invalid)).toBeGreaterThan(3_000)
  }, 60_000)
})

describe("a validation that pauses", () => {
  /** Validates in slices of a size. Returns the problems and the number of slices. */
  const validate = (node: SchemaNode, value: unknown, sliceSteps: number) => {
    const budget = { steps: 1_000_000, stepsPerChar: 0 }
    let found = begin(node, value, budget, sliceSteps)
    for (let slices = 1;; slices++) {
      if (!(found instanceof ValidationRun)) return { found, slices }
      found = found.next(sliceSteps) ?? found
    }
  }

  it("returns the same problems in small slices as in one", () => {
    let pauses = 0
    for (let seed = 1; seed <= 600; seed++) {
      const choose = choices(seed)
      const schema = { allOf: [schemaOf(choose, 4)], $defs: { leaf: { type: ["integer", "object"] } } }
      const compiling = new Compiler(schema, "2020-12", false).compile()
      let compiled = compiling.next()
      while (compiled.done !== true) compiled = compiling.next()
      const node = compiled.value
      for (let i = 0; i < 8; i++) {
        const value = valueOf(choose, 4)
        const { found: expected } = validate(node, value, 1_000_000)
        const { found, slices } = validate(node, value, 4 + choose.next(4))
        expect([schema, value, found]).toEqual([schema, value, expected])
        pauses += slices - 1
      }
    }
    expect(pauses).toBeGreaterThan(1_000)
  }, 60_000)
})

describe("a pattern", () => {
  const patternOf = (choose: Choices, depth: number): string => {
    const { next, of } = choose
    if (depth === 0) {
      return of(["a", "b", ".", "[ab]", "[^a]", "\\w", "\\d", "\\u{1F600}", "\\-", "[\\]a]", "\\b", "^", "$", ""])
    }
    const inner = () => patternOf(choose, depth - 1)
    return [
      () => `${inner()}${inner()}`,
      () => `(?:${inner()}|${inner()})`,
      () => `(${inner()})${of(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])}`,
      () => `${of(["a", ".", "[a-c]"])}${of(["*", "+", "?", "{2}", "{1,3}"])}`,
      () => `(?<n${next(1000)}>${inner()})`,
      inner
    ][next(6)]!()
  }

  it("agrees with RegExp on 3,000 patterns with 8 texts each", () => {
    let found = 0
    let tried = 0
    for (let seed = 1; seed <= 3_000; seed++) {
      const choose = choices(seed)
      const source = patternOf(choose, 4)
      let native: RegExp
      try {
        native = new RegExp(source, "u")
      } catch {
        continue
      }
      const mine = Result.getOrThrow(SchemaValidation.compile({ pattern: source }))
      for (let i = 0; i < 8; i++) {
        const text = Array.from({ length: choose.next(7) }, () => choose.of(["a", "b", "c", "1", "-", "😀", " ", "\n"]))
          .join("")
        const faults = mine.problems(text)
        const matches = native.test(text)
        if ((faults.length === 0) !== matches) {
          expect([source, text, faults.length === 0]).toEqual([source, text, matches])
        }
        tried++
        if (matches) found++
      }
    }
    expect(tried).toBeGreaterThan(10_000)
    expect(Math.min(found, tried - found)).toBeGreaterThan(2_000)
  }, 60_000)
})
