/**
 * Ends long-lived streams when the credentials of their principals expire.
 */
import type { Principal } from "@skein/runtime/Connection"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RequestRunner } from "@skein/runtime/RequestRunner"
import type { Claim } from "../limits/load.ts"
import { ExpiryTimer } from "../limits/expiryTimer.ts"

/**
 * The streams that end with the credentials of their principals. One timer serves all of them; it runs only while there
 * are such streams, and at most once per second.
 */
export const makeStreamExpiry = (
  expiredStreams: "end" | "keep",
  runner: RequestRunner,
  context: Context.Context<never>
) => {
  const clock = Context.get(context, Clock.Clock)
  const timer = new ExpiryTimer(() => runner.now(), Effect.runForkWith(context), (now) => expire(now))
  /** When each stream ends, in milliseconds of the monotonic clock. */
  const deadlines = new Map<Claim, number>()

  /** Adds a stream, if the credentials of its principal expire. */
  const add = (stream: Claim, principal: Principal | undefined): void => {
    const expiresAt = principal?.expiresAt
    if (expiresAt === undefined || expiredStreams === "keep" || !Number.isFinite(expiresAt)) return
    const deadline = runner.now() + expiresAt * 1_000 - clock.currentTimeMillisUnsafe()
    deadlines.set(stream, deadline)
    timer.arm(deadline)
  }

  /** Postpones the end of a stream: its client has sent later credentials. */
  const postpone = (stream: Claim, principal: Principal | undefined): void => {
    const deadline = deadlines.get(stream)
    if (deadline === undefined) return
    // Credentials without an end are later than any.
    if (principal?.expiresAt === undefined) return remove(stream)
    add(stream, principal)
    if (deadlines.get(stream)! < deadline) deadlines.set(stream, deadline)
  }

  const remove = (stream: Claim): void => {
    if (deadlines.delete(stream) && deadlines.size === 0) timer.disarm()
  }

  /** Ends the streams that have expired. Returns the time of the next check. */
  const expire = (now: number): number => {
    let next = Infinity
    for (const [stream, deadline] of Array.from(deadlines)) {
      if (deadline > now) next = Math.min(next, deadline)
      else {
        deadlines.delete(stream)
        stream.evict()
      }
    }
    return next
  }

  return { add, postpone, remove }
}

export type StreamExpiry = ReturnType<typeof makeStreamExpiry>
