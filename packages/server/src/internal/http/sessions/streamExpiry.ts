/**
 * Ends long-lived streams when the credentials of their principals expire.
 */
import type { Principal } from "@skein/runtime/Connection"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RequestRunner } from "@skein/runtime/RequestRunner"
import type { Claim } from "../limits/load.ts"
import { ExpiryTimer } from "./sessionExpiry.ts"

/**
 * The streams that end with the credentials of their principals. One timer serves all of them; it runs only while there
 * are such streams, and at most once per second.
 */
export class StreamExpiry {
  /** When each stream ends, in milliseconds of the monotonic clock. */
  readonly #deadlines = new Map<Claim, number>()
  readonly #clock: Clock.Clock
  readonly #runner: RequestRunner
  readonly #timer: ExpiryTimer
  readonly #isOn: boolean

  constructor(expiredStreams: "end" | "keep", runner: RequestRunner, context: Context.Context<never>) {
    this.#isOn = expiredStreams === "end"
    this.#runner = runner
    this.#clock = Context.get(context, Clock.Clock)
    this.#timer = new ExpiryTimer(() => runner.now(), Effect.runForkWith(context), (now) => this.#expire(now))
  }

  /** Adds a stream, if the credentials of its principal expire. */
  add(stream: Claim, principal: Principal | undefined): void {
    const expiresAt = principal?.expiresAt
    if (expiresAt === undefined || !this.#isOn || !Number.isFinite(expiresAt)) return
    const deadline = this.#runner.now() + expiresAt * 1_000 - this.#clock.currentTimeMillisUnsafe()
    this.#deadlines.set(stream, deadline)
    this.#timer.arm(deadline)
  }

  /** Postpones the end of a stream: its client has sent later credentials. */
  postpone(stream: Claim, principal: Principal | undefined): void {
    const deadline = this.#deadlines.get(stream)
    if (deadline === undefined) return
    // Credentials without an end are later than any.
    if (principal?.expiresAt === undefined) return this.remove(stream)
    this.add(stream, principal)
    if (this.#deadlines.get(stream)! < deadline) this.#deadlines.set(stream, deadline)
  }

  remove(stream: Claim): void {
    if (this.#deadlines.delete(stream) && this.#deadlines.size === 0) this.#timer.disarm()
  }

  /** Ends the streams that have expired. Returns the time of the next check. */
  #expire(now: number): number {
    let next = Infinity
    for (const [stream, deadline] of Array.from(this.#deadlines)) {
      if (deadline > now) next = Math.min(next, deadline)
      else {
        this.#deadlines.delete(stream)
        stream.evict()
      }
    }
    return next
  }
}
