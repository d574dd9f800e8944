import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import type { Client } from "pg"
import { isConnectionError, pgError } from "./pgError.ts"

interface Listener {
  readonly onNotification: (payload: string) => void
  readonly onReconnected: () => void
}

/** 100 ms, doubled each time, at most 5 s. Jitter keeps processes from reconnecting at the same moment. */
const backoff = Schedule.jittered(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]))

/**
 * Makes the function `listen`, which shares one connection for all channels. The first listener opens it. When it is
 * lost, it is opened again until `scope` closes. Notifications in between are lost, so `onReconnected` of each listener
 * is called.
 */
export const makeListen = (makeClient: () => Client, scope: Scope.Scope) => {
  const channels = new Map<string, Set<Listener>>()
  const turn = Semaphore.makeUnsafe(1)
  const listening = Latch.makeUnsafe(false)
  let current: Client | undefined
  let started = false

  const connect: Effect.Effect<Deferred.Deferred<void>, SqlError> = Effect.suspend(() => {
    const client = makeClient()
    const lost = Deferred.makeUnsafe<void>()
    const lose = () => {
      if (current === client) {
        current = undefined
        listening.closeUnsafe()
      }
      Deferred.doneUnsafe(lost, Effect.void)
    }
    client.on("error", lose)
    client.on("end", lose)
    client.on("notification", ({ channel, payload }) => {
      for (const listener of channels.get(channel) ?? []) listener.onNotification(payload ?? "")
    })
    return Effect.onError(
      Effect.gen(function*() {
        yield* attempt("connect", () => client.connect())
        // The iteration also visits a channel that is added meanwhile.
        for (const channel of channels.keys()) yield* run(client, `LISTEN ${client.escapeIdentifier(channel)}`)
        current = client
        listening.openUnsafe()
        return lost
      }),
      () => close(client)
    )
  })

  const supervise = (lost: Deferred.Deferred<void>): Effect.Effect<never> =>
    Effect.flatMap(Deferred.await(lost), () =>
      Effect.flatMap(Effect.orDie(Effect.retry(connect, backoff)), (lost) => {
        for (const listeners of channels.values()) {
          for (const listener of listeners) listener.onReconnected()
        }
        return supervise(lost)
      }))

  const start = Effect.suspend(() =>
    Effect.flatMap(connect, (lost) => {
      started = true
      return Effect.andThen(
        Scope.addFinalizer(scope, Effect.suspend(() => current === undefined ? Effect.void : close(current))),
        Effect.forkIn(supervise(lost), scope)
      )
    })
  )

  const add = (channel: string, listener: Listener): Effect.Effect<unknown, SqlError> =>
    turn.withPermit(Effect.suspend((): Effect.Effect<unknown, SqlError> => {
      const listeners = channels.get(channel) ?? new Set()
      channels.set(channel, listeners.add(listener))
      if (!started) return start
      return current === undefined || listeners.size > 1
        ? Effect.void
        // If the connection is lost, the next one listens to the channel.
        : runOrClose(current, `LISTEN ${current.escapeIdentifier(channel)}`)
    }))

  const remove = (channel: string, listener: Listener): Effect.Effect<void> =>
    turn.withPermit(Effect.suspend(() => {
      const listeners = channels.get(channel)
      if (listeners?.delete(listener) !== true || listeners.size > 0) return Effect.void
      channels.delete(channel)
      return current === undefined
        ? Effect.void
        : Effect.ignore(runOrClose(current, `UNLISTEN ${current.escapeIdentifier(channel)}`))
    }))

  return (
    channel: string,
    onNotification: (payload: string) => void,
    onReconnected: () => void
  ): Effect.Effect<void, SqlError, Scope.Scope> => {
    const listener = { onNotification, onReconnected }
    return Effect.andThen(
      Effect.acquireRelease(Effect.void, () => remove(channel, listener)),
      Effect.andThen(add(channel, listener), listening.await)
    )
  }
}

const attempt = <A>(operation: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => pgError(cause, operation) })

const run = (client: Client, sql: string) => attempt("listen", () => client.query(sql))

/** Runs a statement. If the server does not answer it in time, or the connection is lost, the connection is closed. */
const runOrClose = (client: Client, sql: string): Effect.Effect<unknown, SqlError> =>
  Effect.catchTag(
    run(client, sql),
    "SqlError",
    (error) => isConnectionError(error) ? close(client) : Effect.fail(error)
  )

/** Closes a connection. Waits at most 2 seconds for the server. */
const close = (client: Client) => Effect.ignoreCause(Effect.timeout(attempt("close", () => client.end()), "2 seconds"))
