/**
 * Subscribes, and subscribes again when that has ended, until it is given up.
 */
import { EmptyResult } from "@skein/protocol/Message"
import { endOf } from "../errors.ts"
import * as Method from "@skein/protocol/Method"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Honoured } from "../../Changes.ts"
import { ClientError, Closed, type HttpError } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { ClientContext } from "../calls/context.ts"
import type { Line } from "../connection/connection.ts"
import type { ChangeQueue } from "./queue.ts"

/** One run of a stream of changes. */
export interface Run {
  readonly desk: ClientContext
  readonly wanted: Honoured
  readonly queue: ChangeQueue
  /** How long the server may take to acknowledge the subscription. */
  readonly timeout: Duration.Input
}

/** How one subscription of a run ended. */
export interface SubscriptionEnd {
  /** Whether the server had acknowledged it. */
  readonly isActive: boolean
  /** `Ended` by the server, or `Lost` with the connection or by an error. */
  readonly reason: "Ended" | "Lost"
  /** The error that ended it, or that kept it from starting. */
  readonly cause: ClientError | undefined
}

/** Statuses of HTTP below 500 after which it may go better another time. */
const passing: ReadonlySet<number> = new Set([408, 425, 429])

const mayPass = ({ status }: HttpError, undelivered: boolean | undefined): boolean =>
  // Nobody has looked at what was not delivered: the session was gone, say.
  undelivered === true || status === undefined || status >= 500 || passing.has(status)

/** Whether it would not go better another time. */
const isFinal = ({ reason, undelivered }: ClientError, begunBefore: boolean): boolean => {
  switch (reason._tag) {
    case "Closed":
    case "Timeout":
      return false
    case "HttpError":
      return !mayPass(reason, undelivered)
    case "ProtocolError":
      // A server that stumbles over what it has agreed to before is asked once more.
      return !begunBefore || reason.error.reason !== "InternalError"
    default:
      return true
  }
}

const gaveUp = (attempts: number, cause: ClientError | undefined): ClientError => {
  const why = cause === undefined ? "the server ended it" : cause.message
  const message = `The subscription was given up after ${attempts} attempts in a row: ${why}`
  return new ClientError({
    reason: new Closed({ message, cause: new Reconnect.ReconnectExhausted({ attempts, message, cause }) }),
    method: Method.SubscriptionsListen.name
  })
}

/** Asks the server for something, if what it speaks is only believed: where that was wrong, the next line is another one. */
const confirmed = (desk: ClientContext, line: Line): Effect.Effect<Line, ClientError> => {
  if (line.assumed !== true) return Effect.succeed(line)
  const asked = desk.call({ ...Method.Discover, result: EmptyResult }, {}, { cache: "bypass" })
  return Effect.andThen(Effect.ignore(asked), Effect.suspend(() => desk.keeper.line))
}

/** Runs one turn after the other, on the line that is open. It ends with the error of the stream. */
export const follow = (
  run: Run,
  policy: Reconnect.Resolved,
  turn: (line: Line) => Effect.Effect<SubscriptionEnd>
): Effect.Effect<never, ClientError> =>
  Effect.gen(function*() {
    const { desk: { keeper }, queue } = run
    let line = yield* keeper.line
    let attempts = 0
    let begun = false
    while (true) {
      line = yield* confirmed(run.desk, line)
      const startedAt = keeper.now()
      const { cause, reason, isActive } = yield* turn(line)
      if (isActive) queue.offer({ _tag: "Gap", reason, cause })
      begun ||= isActive
      if (cause !== undefined && isFinal(cause, begun)) return yield* cause
      if (cause !== undefined && endOf(cause) !== undefined) {
        // How often a line is opened again is its keeper's matter.
        line = yield* keeper.after(line)
        continue
      }
      if (isActive && keeper.now() - startedAt >= policy.stableAfter) attempts = 0
      if (attempts >= policy.maxAttempts) return yield* gaveUp(attempts, cause)
      attempts++
      const wait = Reconnect.delay(policy, attempts, yield* Random.next, Reconnect.retryAfter(cause))
      yield* Effect.raceFirst(Effect.sleep(wait), keeper.ended)
      line = yield* keeper.line
    }
  })
