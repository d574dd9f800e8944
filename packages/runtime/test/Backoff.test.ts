import { describe, expect, it } from "@effect/vitest"
import * as Backoff from "@skein/runtime/Backoff"

const backoff: Backoff.Backoff = { initialDelay: 100, maxDelay: 1_000 }

describe("Backoff.delay", () => {
  it("doubles up to the longest delay by default", () => {
    expect([1, 2, 3, 4, 5, 2_000].map((attempt) => Backoff.delay(backoff, attempt))).toEqual([
      100,
      200,
      400,
      800,
      1_000,
      1_000
    ])
    expect(Backoff.delay({ ...backoff, factor: 3 }, 3)).toBe(900)
  })

  it("makes all of the delay random, its second half, or nothing", () => {
    const at = (jitter: "full" | "half" | "none") =>
      [0, 0.5].map((random) => Backoff.delay({ ...backoff, jitter }, 2, random))
    expect([at("full"), at("half"), at("none")]).toEqual([[0, 100], [100, 150], [200, 200]])
  })

  it("is as long as a server requests, up to 10 minutes", () => {
    expect(Backoff.delay(backoff, 1, 0, 5_000)).toBe(5_000)
    expect(Backoff.delay(backoff, 1, 0, 1e12)).toBe(600_000)
    expect(Backoff.delay(backoff, 3, 0, 50)).toBe(400)
  })
})
