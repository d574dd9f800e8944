/**
 * Listens for notifications of PostgreSQL through the client of an application: that of `@effect/sql-pg`, or that of
 * `@skein/sql`.
 */
import type { Client } from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { SqlError, UnknownError } from "effect/sql/SqlError"

/** The function that listens, as the client of `@skein/sql` has it. */
export type Listen = Client["listen"]

/** The client of `@effect/sql-pg`. A listener holds a connection of its pool, and its queue fails when that is lost. */
interface OfficialClient extends SqlClient {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<{ readonly payload: string }, SqlError>, SqlError, Scope.Scope>
}

const isOfficial = (client: SqlClient): client is OfficialClient => "~@effect/sql-pg/PgClient" in client

/** 100 ms, doubled each time, at most 5 s. Jitter keeps processes from reconnecting at the same moment. */
const backoff = Schedule.jittered(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]))

/** Adds the reconnecting to the client of `@effect/sql-pg`. */
const reconnecting = (client: OfficialClient): Listen => (channel, onNotification, onReconnected) =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    /** Listens in a scope of its own, so that a lost connection goes back to the pool. */
    const open = Effect.flatMap(Scope.fork(scope), (own) =>
      Effect.map(
        Effect.onError(Scope.provide(client.listen(channel), own), (cause) => Scope.close(own, Exit.failCause(cause))),
        (notifications) => ({ own, notifications })
      ))
    const follow = ({ notifications, own }: Effect.Success<typeof open>): Effect.Effect<never> =>
      Effect.map(Queue.take(notifications), ({ payload }) => onNotification(payload)).pipe(
        Effect.forever,
        Effect.ignoreCause,
        Effect.andThen(Scope.close(own, Exit.void)),
        Effect.andThen(Effect.orDie(Effect.retry(open, backoff))),
        Effect.tap(() => Effect.sync(onReconnected)),
        Effect.flatMap(follow)
      )
    const first = yield* open
    yield* Effect.forkIn(follow(first), scope)
  })

/** Returns the function that listens through a client, or `undefined` if it has none. */
export const listenOf = (client: SqlClient): Listen | undefined =>
  isOfficial(client)
    ? reconnecting(client)
    : "listen" in client && typeof client.listen === "function"
    ? client.listen as Listen
    : undefined

const notDelivered = () =>
  new SqlError({
    reason: new UnknownError({
      cause: undefined,
      operation: "listen",
      message:
        "notifications do not arrive: connect to the server, or to a pool in session mode (PgBouncer: pool_mode = " +
        "session), and give the client at least 4 connections"
    })
  })

/**
 * Fails where notifications do not arrive within 10 seconds: behind a pooler in transaction mode, or where the listeners
 * have taken all connections of the client.
 */
export const checkNotifications = (client: SqlClient, listen: Listen): Effect.Effect<void, SqlError> =>
  Effect.scoped(Effect.gen(function*() {
    const channel = `skein_check_${crypto.randomUUID().replaceAll("-", "")}`
    const received = yield* Queue.unbounded<string>()
    yield* listen(channel, (payload) => Queue.offerUnsafe(received, payload), () => {})
    yield* client.unsafe(`SELECT pg_notify('${channel}', 'check')`)
    yield* Queue.take(received)
  })).pipe(Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => Effect.fail(notDelivered()) }))
