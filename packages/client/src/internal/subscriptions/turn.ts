/**
 * One subscription of one run, from asking for it to its end.
 */
import type * as Duration from "effect/Duration"
import type { Honoured } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { ClientContext } from "../calls/context.ts"
import type { Inbox } from "./queue.ts"

/** One run of a stream of changes. */
export interface Run {
  readonly client: ClientContext
  readonly wanted: Honoured
  readonly inbox: Inbox
  /** How long the server may take to agree. */
  readonly timeout: Duration.Input
}

/** How a subscription ended. */
export interface Over {
  /** Whether it had begun. */
  readonly stood: boolean
  /** Whether the server ended it, or else it broke. */
  readonly reason: "Ended" | "Lost"
  /** What broke it, or kept it from beginning. */
  readonly cause: ClientError | undefined
}
