import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { DeadlineError, withDeadline } from "./deadline.ts"

const never = () => new Promise<never>(() => {})

/** The failure of a check that does not end, after `milliseconds` of a fake clock. */
const failureAfter = async (milliseconds: number, describe?: () => string | Promise<string>): Promise<unknown> => {
  const failure = withDeadline("the check", { milliseconds: 1000, describe }, never).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(milliseconds)
  return failure
}

describe("withDeadline", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("returns the result of a check that ends in time, and leaves no timer", async () => {
    expect(await withDeadline("the check", { milliseconds: 1000 }, () => Promise.resolve(7))).toBe(7)
    expect(vi.getTimerCount()).toBe(0)
  })

  it("fails with the error of a check that fails in time, and leaves no timer", async () => {
    const broken = new Error("broken")
    const failing = withDeadline("the check", { milliseconds: 1000 }, () => Promise.reject(broken))
    await expect(failing).rejects.toBe(broken)
    expect(vi.getTimerCount()).toBe(0)
  })

  it("fails a check that does not end, with its state", async () => {
    const failure = await failureAfter(1000, () => Promise.resolve("two tasks are left"))
    expect(failure).toBeInstanceOf(DeadlineError)
    expect(failure).toHaveProperty("message", "the check has not ended within 1000 ms\ntwo tasks are left")
  })

  it("does not fail a check before the deadline", async () => {
    const ended = vi.fn()
    withDeadline("the check", { milliseconds: 1000 }, never).catch(ended)
    await vi.advanceTimersByTimeAsync(999)
    expect(ended).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(ended).toHaveBeenCalledOnce()
  })

  it("fails a check whose state cannot be described", async () => {
    const describe = () => Promise.reject(new Error("the database is down"))
    expect(await failureAfter(1000, describe)).toHaveProperty(
      "message",
      expect.stringContaining(
        "the check has not ended within 1000 ms\nits state is unknown: Error: the database is down"
      )
    )
  })

  it("fails a check the description of whose state does not end", async () => {
    expect(await failureAfter(61_000, never)).toHaveProperty(
      "message",
      "the check has not ended within 1000 ms\nthe description of its state did not end within 60000 ms"
    )
  })

  it("ignores the failure of a check after its deadline", async () => {
    const running = Promise.withResolvers<never>()
    const failing = withDeadline("the check", { milliseconds: 1000 }, () => running.promise).catch(() => "late")
    await vi.advanceTimersByTimeAsync(1000)
    expect(await failing).toBe("late")
    // An unhandled rejection fails the run of the tests.
    running.reject(new Error("the process was killed"))
    await vi.advanceTimersByTimeAsync(1)
  })
})
