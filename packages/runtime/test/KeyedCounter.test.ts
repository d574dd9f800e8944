import { describe, expect, it } from "@effect/vitest"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"

describe("KeyedCounter", () => {
  it("refuses a key at its bound, and leaves the others their part", () => {
    const counter = new KeyedCounter()
    expect([counter.acquire("a", 3, 2), counter.acquire("a", 3, 2), counter.acquire("a", 3, 2)]).toEqual([
      undefined,
      undefined,
      "maxPerKey"
    ])
    expect(counter.acquire("b", 3, 2)).toBeUndefined()
    expect(counter.acquire("b", 3, 2)).toBe("max")
    counter.release("a")
    expect(counter.acquire("b", 3, 2)).toBeUndefined()
    expect([counter.of("a"), counter.of("b"), counter.total]).toEqual([1, 2, 3])
  })

  it("counts callers without a key in the total only", () => {
    const counter = new KeyedCounter()
    for (let i = 0; i < 5; i++) expect(counter.acquire(undefined, 5, 1)).toBeUndefined()
    expect(counter.acquire(undefined, 5, 1)).toBe("max")
    expect(counter.acquire("a", 5, 1)).toBe("max")
    expect(counter.of(undefined)).toBe(0)
    counter.release(undefined)
    expect(counter.acquire("a", 5, 1)).toBeUndefined()
  })

  it("stores no key whose count is 0", () => {
    const counter = new KeyedCounter()
    counter.add("a", 2)
    counter.add("b", 1)
    expect(counter.largest).toBe("a")
    counter.add("a", -2)
    expect([...counter.entries]).toEqual([["b", 1]])
    counter.add("b", -5)
    expect([...counter.entries, counter.largest, counter.total]).toEqual([undefined, 0])
  })
})
