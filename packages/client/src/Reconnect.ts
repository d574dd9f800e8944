/**
 * The policy for reopening a lost connection, and for giving up.
 *
 * The policy counts the attempts to reconnect in a row. An attempt counts if the connection fails to open or is lost
 * again, even if the server closed it gracefully. Otherwise the client would reconnect without end to a server that
 * closes each connection at once. A connection that stays open for 30 seconds resets the count.
 *
 * 2026-07-28, stdio: "If the server process exits unexpectedly, the client SHOULD restart it." 2025-11-25, transports:
 * a client whose session is gone "MUST start a new session".
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Options from "@skein/runtime/Options"
import type * as Duration from "effect/Duration"

/** How a lost connection is reopened. All members are optional. */
export interface Policy {
  /** The delay before the first attempt: 500 milliseconds by default. Lower it for a server that restarts fast. */
  readonly initialDelay?: Duration.Input | undefined
  /** The factor by which the delay grows with each attempt: 2 by default. */
  readonly factor?: number | undefined
  /**
   * The longest delay: 30 seconds by default. Lower it where a person waits. A server that requests a longer one
   * (`Retry-After`) gets it, up to 10 minutes.
   */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * Which part of each delay is random, so that the clients of one server do not reconnect at the same time: all of it
   * (`full`), the second half (`half`, the default), or nothing (`none`).
   */
  readonly jitter?: "full" | "half" | "none" | undefined
  /**
   * How many attempts are made in a row: 8 by default. After the last one the client ends with {@link ReconnectExhausted}.
   * Raise it for a server that may be gone for long.
   */
  readonly maxAttempts?: number | undefined
}

/** How long a connection must stay open to reset the count of attempts, in milliseconds: 30 seconds. */
export const stableAfter = 30_000

/** A policy with its defaults; durations in milliseconds. */
export type Resolved = Options.Resolved<Policy>

const fill = (policy: Policy): Resolved =>
  Options.resolve(policy, { factor: 2, jitter: "half", maxAttempts: 8 }, {
    initialDelay: 500,
    maxDelay: 30_000
  })

const defaults = fill({})

/** Applies the defaults to a policy. */
export const resolve = (policy?: Policy): Resolved => policy === undefined ? defaults : fill(policy)

export { delay } from "@skein/runtime/Backoff"
export { retryAfter } from "./internal/base/errors.ts"

/**
 * The last attempt that the policy allows has failed. It is the `cause` of the `ClientError` with the reason `Closed`
 * with which all later calls fail, and of the end of the client.
 */
export class ReconnectExhausted extends PrintableError.tagged("ReconnectExhausted")<{
  /** How many attempts were made in a row. */
  readonly attempts: number
  /** The failure of the last attempt, a `ClientError`, or the end of the last connection, a `SessionEnd`. */
  readonly cause: unknown
}> {}
