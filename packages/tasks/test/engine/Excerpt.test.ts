/** The excerpt of a result that cannot be recorded. */
import { expect, it } from "@effect/vitest"
import { excerptOf } from "../../src/internal/base/excerpt.ts"

it("contains what JSON can hold of a value, and never throws", () => {
  const cycle: Record<string, unknown> = { id: 7n }
  cycle["self"] = cycle
  const value = {
    id: 7n,
    at: new Date(0),
    bad: new Date(NaN),
    nothing: undefined,
    none: NaN,
    run: () => 1,
    list: [1, () => 1],
    get gone(): never {
      throw new Error("gone")
    }
  }
  expect(excerptOf(value)).toEqual({
    id: "7",
    at: "1970-01-01T00:00:00.000Z",
    bad: null,
    none: "NaN",
    list: [1, null]
  })
  expect(JSON.stringify(excerptOf(cycle)).length).toBeLessThan(1000)
  expect(excerptOf(() => 1)).toBeNull()
  expect(excerptOf("x".repeat(5000))).toBe(`${"x".repeat(1000)}…`)
})

it("has at most 1,000 members and items, and 8 levels", () => {
  expect(excerptOf(Array.from({ length: 5000 }, (_, at) => at))).toHaveLength(1000)
  let deep: unknown = "end"
  for (let level = 0; level < 20; level++) deep = { deep }
  expect(JSON.stringify(excerptOf(deep))).toBe(`${`{"deep":`.repeat(7)}{}${"}".repeat(7)}`)
})
