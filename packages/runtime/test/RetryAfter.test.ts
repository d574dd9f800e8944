import { describe, expect, it } from "@effect/vitest"
import * as RetryAfter from "@skein/runtime/RetryAfter"

const now = Date.parse("Fri, 31 Dec 1999 23:59:00 GMT")

describe("RetryAfter.parse", () => {
  it.each([
    ["120", 120_000],
    ["0", 0],
    [" 7 ", 7_000],
    ["9".repeat(400), 999_999_999_000],
    ["Fri, 31 Dec 1999 23:59:59 GMT", 59_000],
    ["Fri, 31 Dec 1999 23:00:00 GMT", 0]
  ])("RFC 9110, 10.2.3 · reads %s", (header, delay) => {
    expect(RetryAfter.parse(header, now)).toBe(delay)
  })

  it.each([undefined, null, "", "soon", "-1s", "12 minutes"])("reads no delay in %s", (header) => {
    expect(RetryAfter.parse(header, now)).toBeUndefined()
  })
})
