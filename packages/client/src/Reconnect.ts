/**
 * The policy for reopening a lost connection, and for giving up.
 *
 * The policy counts the connections that were reopened in a row, whether they failed to open or were lost again, even
 * if the server closed them in an orderly way. A server that closes each connection at once must not be reconnected to
 * without end. A connection that stays open for `stableAfter` resets the count.
 *
 * 2026-07-28, stdio: "If the server process exits unexpectedly, the client SHOULD restart it." 2025-11-25, transports:
 * a client whose session is gone "MUST start a new session".
 */
import { TransportError } from "@skein/runtime/TransportError"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"

/** How a lost connection is reopened. All members are optional. */
export interface Policy {
  /** The delay before the first attempt: 500 milliseconds by default. */
  readonly initialDelay?: Duration.Input | undefined
  /** The factor by which the delay grows with each attempt: 2 by default. */
  readonly factor?: number | undefined
  /** The longest delay: 30 seconds by default. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * Which part of each delay is random, so that the clients of one server do not reconnect at the same time: all of it
   * (`full`), the second half (`half`, the default), or nothing (`none`).
   */
  readonly jitter?: "full" | "half" | "none" | undefined
  /**
   * How many attempts are made in a row: 8 by default. After the last one the client ends with {@link ReconnectExhausted}.
   */
  readonly maxAttempts?: number | undefined
  /** How long a connection must stay open to reset the count of attempts: 30 seconds by default. */
  readonly stableAfter?: Duration.Input | undefined
  /**
   * The longest delay that the server may request (`Retry-After`): 10 minutes by default. The client waits as long as the
   * server requests even if that is longer than `maxDelay`, but not longer than this.
   */
  readonly maxRetryAfter?: Duration.Input | undefined
}

/** A policy with its defaults; durations in milliseconds. */
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

/** Applies the defaults to a policy. */
export const resolve = (policy?: Policy): Resolved => policy === undefined ? defaults : fill(policy)

/**
 * The delay before an attempt, in milliseconds. Attempts count from 1. `random` is at least 0 and below 1. `retryAfter`
 * is the delay that the server requested, in milliseconds.
 */
export const delay = (policy: Resolved, attempt: number, random: number, retryAfter = 0): number => {
  const most = Math.min(policy.maxDelay, policy.initialDelay * policy.factor ** (attempt - 1))
  const wait = policy.jitter === "none" ? most : policy.jitter === "full" ? most * random : most * (1 + random) / 2
  return Math.max(wait, Math.min(retryAfter, policy.maxRetryAfter))
}

/** The delay that the server requested with a failure, in milliseconds; undefined if it requested none. */
export const retryAfter = (failure: unknown): number | undefined => {
  let at = failure
  // The depth is bounded because an error may be its own cause.
  for (let depth = 0; depth < 4; depth++) {
    if (at instanceof TransportError && at.retryAfter !== undefined) return at.retryAfter
    if (typeof at !== "object" || at === null || !("cause" in at)) return undefined
    at = at.cause
  }
  return undefined
}

/**
 * The last attempt that the policy allows has failed. It is the `cause` of the `ClientError` with the reason `Closed`
 * with which all later calls fail, and of the end of the client.
 */
export class ReconnectExhausted extends Data.TaggedError("ReconnectExhausted")<{
  /** How many attempts were made in a row. */
  readonly attempts: number
  readonly message: string
  /** The failure of the last attempt, a `ClientError`, or the end of the last connection, a `SessionEnd`. */
  readonly cause: unknown
}> {}
