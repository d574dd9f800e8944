/**
 * Subscribes, and subscribes again when a subscription ends, within the bounds of a policy.
 */
import { EmptyResult } from "@skein/protocol/Message"
import * as Method from "@skein/protocol/Method"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Honoured } from "../../Changes.ts"
import { ClientError, Closed } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import { delayAfter } from "../backoff.ts"
import type { ClientContext } from "../calls/context.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { endOf, isTransient } from "../errors.ts"
import type { ChangeQueue } from "./queue.ts"

/** One run of a stream of changes. */
export interface Run {
  readonly client: ClientContext
  readonly wanted: Honoured
  readonly queue: ChangeQueue
  /** How long the server may take to acknowledge the subscription. */
  readonly timeout: Duration.Input
}

/**
 * Runs one subscription until the server ends it, or it fails. Calls `onActive` when the server has acknowledged it.
 */
export type Subscribe<A> = (
  connection: NegotiatedConnection,
  onActive: (honoured: Honoured) => void
) => Effect.Effect<A, ClientError>

/**
 * Whether another subscription would fail as well. After an internal error the server is asked again if it has
 * acknowledged a subscription before.
 */
const isFinal = (error: ClientError, wasActive: boolean): boolean =>
  !isTransient(error) || (error.reason._tag === "ProtocolError" && !wasActive)

const gaveUp = (attempts: number, cause: ClientError | undefined): ClientError => {
  const why = cause === undefined ? "the server ended it" : cause.message
  const message = `Gave up the subscription after ${attempts} attempts in a row: ${why}`
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
  subscribe: Subscribe<unknown>
): Effect.Effect<never, ClientError> =>
  Effect.gen(function*() {
    const { client: { supervisor }, queue } = run
    let connection = yield* supervisor.connection
    let attempts = 0
    let wasActive = false
    while (true) {
      connection = yield* confirmed(run.client, connection)
      const startedAt = supervisor.now()
      let isActive = false
      const subscription = yield* Effect.result(subscribe(connection, (honoured) => {
        isActive = wasActive = true
        queue.offer({ _tag: "Subscribed", honoured })
      }))
      const cause = Result.isFailure(subscription) ? subscription.failure : undefined
      if (isActive) queue.offer({ _tag: "Gap", reason: cause === undefined ? "Ended" : "Lost", cause })
      if (cause !== undefined && isFinal(cause, wasActive)) return yield* cause
      if (cause !== undefined && endOf(cause) !== undefined) {
        // The supervisor bounds how often a connection is opened again.
        connection = yield* supervisor.after(connection)
        continue
      }
      if (isActive && supervisor.now() - startedAt >= policy.stableAfter) attempts = 0
      if (attempts >= policy.maxAttempts) return yield* gaveUp(attempts, cause)
      const delay = yield* delayAfter(cause, policy, ++attempts)
      yield* Effect.raceFirst(Effect.sleep(delay), supervisor.ended)
      connection = yield* supervisor.connection
    }
  })
