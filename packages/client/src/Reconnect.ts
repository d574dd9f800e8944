/**
 * When a connection that was lost is opened anew, and when it is given up: a policy, as data.
 *
 * What the policy counts are the connections opened anew in a row, whether they failed to open or opened and were lost again, and
 * however politely: a server that closes each connection at once must not be connected to for ever. One that lived for `stableAfter`
 * starts the count anew.
 *
 * 2026-07-28, stdio: "If the server process exits unexpectedly, the client SHOULD restart it." 2025-11-25, transports: a client
 * whose session is gone "MUST start a new session".
 */
import { TransportError } from "@skein/runtime/TransportError"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"

/** How a lost connection is opened anew. Every member is optional; the defaults stand beside it. */
export interface Policy {
  /** How long to wait before the first attempt: 500 milliseconds by default. */
  readonly initialDelay?: Duration.Input | undefined
  /** By how much the wait grows with each attempt: 2 by default. */
  readonly factor?: number | undefined
  /** The longest wait: 30 seconds by default. It grows no further then. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * How much of each wait is left to chance, so that the clients of one server do not come back all at once: all of it (`full`),
   * the second half of it (`half`, the default), or nothing (`none`).
   */
  readonly jitter?: "full" | "half" | "none" | undefined
  /** How many attempts are made in a row: 8 by default. After the last one the client ends with {@link ReconnectExhausted}. */
  readonly maxAttempts?: number | undefined
  /** How long a connection has to live to start the count anew: 30 seconds by default. */
  readonly stableAfter?: Duration.Input | undefined
  /**
   * How long the server may ask to be left alone (`Retry-After`): 10 minutes by default. What it asks for is waited for even where it
   * is longer than `maxDelay`; more than this counts as this.
   */
  readonly maxRetryAfter?: Duration.Input | undefined
}

/** A policy with its defaults filled in; durations in milliseconds. */
export interface Resolved {
  readonly initialDelay: number
  readonly factor: number
  readonly maxDelay: number
  readonly jitter: "full" | "half" | "none"
  readonly maxAttempts: number
  readonly stableAfter: number
  readonly maxRetryAfter: number
}

const fill = (policy: Policy): Resolved => ({
  initialDelay: Duration.toMillis(policy.initialDelay ?? 500),
  factor: policy.factor ?? 2,
  maxDelay: Duration.toMillis(policy.maxDelay ?? 30_000),
  jitter: policy.jitter ?? "half",
  maxAttempts: policy.maxAttempts ?? 8,
  stableAfter: Duration.toMillis(policy.stableAfter ?? 30_000),
  maxRetryAfter: Duration.toMillis(policy.maxRetryAfter ?? 600_000)
})

const defaults = fill({})

/** Fills the defaults in. */
export const resolve = (policy?: Policy): Resolved => policy === undefined ? defaults : fill(policy)

/**
 * How long to wait before an attempt, in milliseconds. Attempts count from 1; `random` is at least 0 and below 1; `retryAfter` is
 * what the server asked for, in milliseconds.
 */
export const delay = (policy: Resolved, attempt: number, random: number, retryAfter = 0): number => {
  const most = Math.min(policy.maxDelay, policy.initialDelay * policy.factor ** (attempt - 1))
  const wait = policy.jitter === "none" ? most : policy.jitter === "full" ? most * random : most * (1 + random) / 2
  return Math.max(wait, Math.min(retryAfter, policy.maxRetryAfter))
}

/** How long a failure says to wait before the server is tried again, in milliseconds, where it says so. */
export const retryAfter = (failure: unknown): number | undefined => {
  let at = failure
  // An error that is its own cause says nothing new.
  for (let depth = 0; depth < 4; depth++) {
    if (at instanceof TransportError && at.retryAfter !== undefined) return at.retryAfter
    if (typeof at !== "object" || at === null || !("cause" in at)) return undefined
    at = at.cause
  }
  return undefined
}

/**
 * The connection was opened anew as often as the policy allows, to no avail: the `cause` of the `ClientError` `Closed` that calls
 * fail with from then on, and of the client's end.
 */
export class ReconnectExhausted extends Data.TaggedError("ReconnectExhausted")<{
  /** How many attempts were made in a row. */
  readonly attempts: number
  readonly message: string
  /** Why the last one failed: a `ClientError`; or how the last connection ended: a `SessionEnd`. */
  readonly cause: unknown
}> {}
