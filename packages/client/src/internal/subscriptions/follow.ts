/**
 * Subscribes, and subscribes again when a subscription ends, within the bounds of a policy.
 */
import { EmptyResult } from "@skein/protocol/Message"
import { endOf, isTransient } from "../errors.ts"
import * as Method from "@skein/protocol/Method"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Honoured } from "../../Changes.ts"
import { ClientError, Closed } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { ClientContext } from "../calls/context.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { ChangeQueue } from "./queue.ts"

/** One run of a stream of changes. */
export interface Run {
  readonly client: ClientContext
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

/**
 * Whether another subscription would fail as well. After an internal error the server is asked again if it has
 * acknowledged a subscription before.
 */
const isFinal = (error: ClientError, begunBefore: boolean): boolean =>
  !isTransient(error) || (error.reason._tag === "ProtocolError" && !begunBefore)

const gaveUp = (attempts: number, cause: ClientError | undefined): ClientError => {
  const why = cause === undefined ? "the server ended it" : cause.message
  const message = `The subscription was given up after ${attempts} attempts in a row: ${why}`
  return new ClientError({
    reason: new Closed({ message, cause: new Reconnect.ReconnectExhausted({ attempts, message, cause }) }),
    method: Method.SubscriptionsListen.name
  })
}

/**
 * Sends a request if the revision is only assumed. If the assumption was wrong, the supervisor has another connection
 * afterwards.
 */
const confirmed = (
  client: ClientContext,
  connection: NegotiatedConnection
): Effect.Effect<NegotiatedConnection, ClientError> => {
  if (connection.isAssumed !== true) return Effect.succeed(connection)
  const asked = client.call({ ...Method.Discover, result: EmptyResult }, {}, { cache: "bypass" })
  return Effect.andThen(Effect.ignore(asked), Effect.suspend(() => client.supervisor.connection))
}

/** Runs one subscription after the other on the open connection. Fails with the error that ends the stream. */
export const follow = (
  run: Run,
  policy: Reconnect.Resolved,
  turn: (connection: NegotiatedConnection) => Effect.Effect<SubscriptionEnd>
): Effect.Effect<never, ClientError> =>
  Effect.gen(function*() {
    const { client: { supervisor }, queue } = run
    let connection = yield* supervisor.connection
    let attempts = 0
    let begun = false
    while (true) {
      connection = yield* confirmed(run.client, connection)
      const startedAt = supervisor.now()
      const { cause, reason, isActive } = yield* turn(connection)
      if (isActive) queue.offer({ _tag: "Gap", reason, cause })
      begun ||= isActive
      if (cause !== undefined && isFinal(cause, begun)) return yield* cause
      if (cause !== undefined && endOf(cause) !== undefined) {
        // The supervisor bounds how often a connection is opened again.
        connection = yield* supervisor.after(connection)
        continue
      }
      if (isActive && supervisor.now() - startedAt >= policy.stableAfter) attempts = 0
      if (attempts >= policy.maxAttempts) return yield* gaveUp(attempts, cause)
      attempts++
      const wait = Reconnect.delay(policy, attempts, yield* Random.next, Reconnect.retryAfter(cause))
      yield* Effect.raceFirst(Effect.sleep(wait), supervisor.ended)
      connection = yield* supervisor.connection
    }
  })
