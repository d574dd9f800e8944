/** Numbers of every size, in schemas and in values, and counts of every size in patterns. */
import { assert, describe, it } from "@effect/vitest"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"

const isValid = (schema: unknown, value: unknown): boolean =>
  Result.getOrThrow(SchemaValidation.compile(schema)).problems(value).length === 0

const refusal = (schema: unknown): string => {
  const compiled = SchemaValidation.compile(schema)
  return Result.isFailure(compiled) ? compiled.failure.message : "none"
}

// As they arrive: `JSON.parse` reads the largest as infinities.
const texts = ["1e999", "-1e999", "-0", "0", "5e-324", "1.7976931348623157e308", "-1e308", "9007199254740993", "1e21"]
const others = ["1e-7", "0.1", "0.30000000000000004", "2147483648", "-2147483649", "4294967296", "1", "1.0"]
const numbers = [...texts, ...others].map((text) => JSON.parse(text) as number)
const finite = numbers.filter(Number.isFinite)

describe("a number of any size", () => {
  it("is compared by every keyword for numbers", () => {
    for (const limit of finite) {
      for (const value of numbers) {
        const name = `${value} and ${limit}`
        assert.strictEqual(isValid({ minimum: limit }, value), value >= limit, name)
        assert.strictEqual(isValid({ maximum: limit }, value), value <= limit, name)
        assert.strictEqual(isValid({ exclusiveMinimum: limit }, value), value > limit, name)
        assert.strictEqual(isValid({ exclusiveMaximum: limit }, value), value < limit, name)
        assert.strictEqual(isValid({ const: limit }, value), value === limit, name)
        assert.strictEqual(isValid({ enum: [limit] }, value), value === limit, name)
        assert.strictEqual(isValid({ enum: [{ a: [limit] }] }, { a: [value] }), value === limit, name)
        assert.strictEqual(isValid({ uniqueItems: true }, [limit, value]), value !== limit, name)
        assert.strictEqual(isValid({ uniqueItems: true }, [[limit], [value]]), value !== limit, name)
      }
    }
  })

  it("has a type", () => {
    for (const value of numbers) {
      assert.isTrue(isValid({ type: "number" }, value))
      assert.strictEqual(isValid({ type: "integer" }, value), Number.isInteger(value), String(value))
    }
  })

  it("is a multiple of a divisor or not, by its decimal digits", () => {
    for (const divisor of finite.filter((number) => number > 0)) {
      const { problems } = Result.getOrThrow(SchemaValidation.compile({ multipleOf: divisor }))
      for (const value of numbers) {
        if (!Number.isFinite(value)) assert.lengthOf(problems(value), 1)
        else if (value === 0 || value === divisor) assert.lengthOf(problems(value), 0, `${value} and ${divisor}`)
        else problems(value)
      }
    }
    assert.isTrue(isValid({ multipleOf: 0.1 }, 0.3))
    assert.isTrue(isValid({ multipleOf: 5e-324 }, 1.7976931348623157e308))
    assert.isFalse(isValid({ multipleOf: 1e308 }, 5e-324))
    assert.isFalse(isValid({ multipleOf: 0.1 }, 0.30000000000000004))
  })

  it("bounds lengths and counts", () => {
    for (const count of [0, 1e21, 1e308, Number.MAX_VALUE]) {
      for (
        const [min, max, value] of [
          ["minLength", "maxLength", "ab"],
          ["minItems", "maxItems", [1, 2]],
          ["minProperties", "maxProperties", { a: 1, b: 2 }]
        ] as const
      ) {
        assert.strictEqual(isValid({ [min]: count }, value), count === 0)
        assert.strictEqual(isValid({ [max]: count }, value), count > 0)
      }
      assert.strictEqual(isValid({ contains: true, minContains: count }, [1, 2]), count === 0)
      assert.strictEqual(isValid({ contains: true, maxContains: count }, [1, 2]), count > 0)
    }
  })

  it("is refused in a schema if it has no JSON form", () => {
    for (const keyword of ["const", "minimum", "multipleOf", "maxLength"]) {
      assert.include(refusal({ [keyword]: JSON.parse("1e999") }), "a number without a JSON form")
    }
    assert.include(refusal({ enum: [{ a: [JSON.parse("-1e999")] }] }), "a number without a JSON form")
    assert.strictEqual(refusal({ enum: [null] }), "none")
  })
})

describe("a count of any size in a pattern", () => {
  const huge = "9".repeat(400)
  const large = "9".repeat(300)
  const long = "a".repeat(500_000)

  it("is more than any text has", () => {
    for (const pattern of [`^a{${huge}}`, `^a{${large}}a{${large}}`, "^a{1000000000}"]) {
      assert.isFalse(isValid({ pattern }, long), pattern)
    }
    assert.isTrue(isValid({ pattern: `^a{0,${huge}}$` }, long))
  })

  it("is refused where each round needs instructions", () => {
    for (
      const pattern of [
        `(a|b){${huge}}`,
        `(?:(?:a|b){${large}}){${large}}`,
        `(a|b){0,${large}}`,
        `^a{${huge},}`,
        `a{${huge}}`
      ]
    ) {
      assert.include(refusal({ pattern }), "instructions", pattern)
    }
  })

  it("of zero does not end the count of the work to compile patterns", () => {
    const patterns = Array.from({ length: 500 }, (_, index) => ({ pattern: `(?:a?){900}b${index}` }))
    const expected = "the patterns of the schema are too large together"
    assert.include(refusal({ allOf: patterns }), expected)
    assert.include(refusal({ allOf: [{ pattern: `(?:(?:a|b){${huge}}){0}` }, ...patterns] }), expected)
  })
})
