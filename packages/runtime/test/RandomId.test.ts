import { describe, expect, it } from "@effect/vitest"
import * as RandomId from "@skein/runtime/RandomId"

describe("RandomId.make", () => {
  it("returns letters and digits only, each in every position", () => {
    const ids = Array.from({ length: 5_000 }, () => RandomId.make(22))
    expect(ids.every((id) => /^[A-Za-z0-9]{22}$/.test(id))).toBe(true)
    expect(new Set(ids).size).toBe(ids.length)
    for (const at of [0, 21]) expect(new Set(ids.map((id) => id[at])).size).toBe(62)
  })

  it("returns ids of any length", () => {
    expect([0, 1, 32, 1_000].map((length) => RandomId.make(length).length)).toEqual([0, 1, 32, 1_000])
  })
})
