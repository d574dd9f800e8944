/**
 * Subscribes, and subscribes again when that has ended, until it is given up.
 */
import { endOf, isTransient } from "../errors.ts"
import { EmptyResult } from "@skein/protocol/Common"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { ClientError, Closed } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { ClientContext } from "../calls/context.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { Over, Run } from "./turn.ts"

/** Whether another subscription would fail as well. A server that fails with an internal error is asked again if it has agreed before. */
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

/** Asks the server for something, if what it speaks is only believed: where that was wrong, the next line is another one. */
const confirmed = (
  client: ClientContext,
  connection: NegotiatedConnection
): Effect.Effect<NegotiatedConnection, ClientError> => {
  if (connection.isAssumed !== true) return Effect.succeed(connection)
  const asked = client.call({ ...Method.Discover, result: EmptyResult }, {}, { cache: "bypass" })
  return Effect.andThen(Effect.ignore(asked), Effect.suspend(() => client.supervisor.connection))
}

/** Runs one turn after the other, on the line that is open. It ends with the error of the stream. */
export const follow = (
  run: Run,
  policy: Reconnect.Resolved,
  turn: (connection: NegotiatedConnection) => Effect.Effect<Over>
): Effect.Effect<never, ClientError> =>
  Effect.gen(function*() {
    const { client: { supervisor }, inbox } = run
    let connection = yield* supervisor.connection
    let attempts = 0
    let begun = false
    while (true) {
      connection = yield* confirmed(run.client, connection)
      const startedAt = supervisor.now()
      const { cause, reason, stood } = yield* turn(connection)
      if (stood) inbox.offer({ _tag: "Gap", reason, cause })
      begun ||= stood
      if (cause !== undefined && isFinal(cause, begun)) return yield* cause
      if (cause !== undefined && endOf(cause) !== undefined) {
        // How often a line is opened again is its keeper's matter.
        connection = yield* supervisor.after(connection)
        continue
      }
      if (stood && supervisor.now() - startedAt >= policy.stableAfter) attempts = 0
      if (attempts >= policy.maxAttempts) return yield* gaveUp(attempts, cause)
      attempts++
      const wait = Reconnect.delay(policy, attempts, yield* Random.next, Reconnect.retryAfter(cause))
      yield* Effect.raceFirst(Effect.sleep(wait), supervisor.ended)
      connection = yield* supervisor.connection
    }
  })
