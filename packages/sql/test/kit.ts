/** Helpers for the tests of both drivers. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** The tag of the reason for which an effect fails. */
export const reasonOf = <A, E>(effect: Effect.Effect<A, E | SqlError>) =>
  Effect.map(Effect.flip(effect), (error) => (error as SqlError).reason._tag)

/** Runs statements in a transaction, which stays open until its fiber is interrupted. Waits until they have run. */
export const openTransaction = <A, E>(
  sql: SqlClient.SqlClient,
  statements: Effect.Effect<A, E>
): Effect.Effect<Fiber.Fiber<never, E | SqlError>, E | SqlError> =>
  Effect.gen(function*() {
    const inside = yield* Deferred.make<void, E | SqlError>()
    const transaction = yield* Effect.forkChild(
      sql.withTransaction(statements.pipe(
        Effect.andThen(Deferred.succeed(inside, undefined)),
        Effect.andThen(Effect.never)
      )).pipe(Effect.onError((cause) => Deferred.failCause(inside, cause)))
    )
    yield* Deferred.await(inside)
    return transaction
  })
