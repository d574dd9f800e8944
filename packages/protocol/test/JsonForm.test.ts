/** The form of values after they were written as JSON and read again. */
import * as JsonForm from "@skein/protocol/JsonForm"
import * as Result from "effect/Result"
import { describe, expect, expectTypeOf, it } from "vitest"

class Money {
  cents = 5
  format(): string {
    return String(this.cents)
  }
}

describe("JsonForm.make", () => {
  it("returns what JSON makes of a value", () => {
    const values: ReadonlyArray<unknown> = [
      null,
      "a",
      -1.5,
      true,
      [],
      [1, undefined, [null]],
      { a: undefined, b: { c: [] } },
      { at: new Date(0), f: () => 1 },
      new Money(),
      new URL("https://example.com/a"),
      Buffer.from("ab"),
      Object.create(null),
      JSON.parse(`{"__proto__":{"a":1}}`),
      { same: [new Money(), new Money()] }
    ]
    for (const value of values) {
      const form = Result.getOrThrow(JsonForm.make(value, "value"))
      expect(form).toEqual(JSON.parse(JSON.stringify(value)))
      expect(JSON.stringify(form)).toBe(JSON.stringify(value))
    }
    const shared = { a: 1 }
    expect(JsonForm.make([shared, shared], "value")).toEqual(Result.succeed([shared, shared]))
  })

  it("names the place of a value that JSON cannot hold", () => {
    const cycle: Record<string, unknown> = {}
    cycle["list"] = [cycle]
    for (
      const [value, problem] of [
        [{ a: [{ id: 1n }] }, "result.a[0].id is a bigint, which JSON cannot hold"],
        [NaN, "result is NaN, which JSON cannot hold"],
        [{ a: -Infinity }, "result.a is -Infinity, which JSON cannot hold"],
        [new Map(), "result is an instance of Map, which JSON cannot hold"],
        [[new Set()], "result[0] is an instance of Set, which JSON cannot hold"],
        [new Uint8Array(1), "result is an instance of Uint8Array, which JSON cannot hold"],
        [new Error("no"), "result is an instance of Error, which JSON cannot hold"],
        [{ at: new Date(NaN) }, "result.at is an invalid Date, which JSON cannot hold"],
        [() => 1, "result is a function, which JSON cannot hold"],
        [cycle, "result.list[0] is part of itself, which JSON cannot hold"]
      ] as const
    ) {
      expect(JsonForm.make(value, "result")).toEqual(Result.fail(problem))
    }
  })

  it("fails for a value whose members throw, or that is too deep, and does not throw", () => {
    const thrower = {
      get a(): never {
        throw new Error("gone")
      }
    }
    expect(JsonForm.make(thrower, "result")).toEqual(Result.fail("result cannot be written as JSON: gone"))
    let deep: unknown = null
    for (let level = 0; level < 100_000; level++) deep = [deep]
    expect(Result.isFailure(JsonForm.make(deep, "result"))).toBe(true)
  })

  it("has the type of the form", () => {
    interface Row {
      readonly id: number
      readonly at: Date
      readonly note?: string | undefined
      readonly money: Money
      readonly tags: ReadonlyArray<Date>
      readonly problem: { readonly name: string; readonly message: string }
    }
    expectTypeOf<JsonForm.JsonForm<Row>>().toEqualTypeOf<{
      readonly id: number
      readonly at: string
      readonly note?: string | undefined
      readonly money: { cents: number }
      readonly tags: ReadonlyArray<string>
      readonly problem: { readonly name: string; readonly message: string }
    }>()
    expectTypeOf<JsonForm.JsonForm<bigint | string>>().toEqualTypeOf<string>()
    expectTypeOf<JsonForm.JsonForm<unknown>>().toEqualTypeOf<unknown>()
  })
})

describe("JsonForm.withoutUndefined", () => {
  it("copies plain objects only, and returns a value without undefined members as it is", () => {
    const date = new Date(0)
    const money = new Money()
    expect(JsonForm.withoutUndefined({ a: undefined, b: [{ c: undefined, date, money }] })).toEqual({
      b: [{ date, money }]
    })
    const whole = { a: [1, { b: null }], date }
    expect(JsonForm.withoutUndefined(whole)).toBe(whole)
  })
})
