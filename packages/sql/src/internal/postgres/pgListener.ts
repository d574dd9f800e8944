import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import { makeWatch, onClose, type Watch } from "./pgConnection.ts"
import { isConnectionError, toPgError } from "./pgError.ts"

interface Listener {
  readonly onNotification: (payload: string) => void
  readonly onReconnected: () => void
}

type Check = (listening: PgConnection.PgConnection, watch: Watch) => Effect.Effect<void, SqlError>

/** An open connection that listens. */
interface Connected {
  readonly pinned: PgConnection.PgConnection
  readonly watch: Watch
  readonly close: Effect.Effect<void>
  readonly lost: Deferred.Deferred<void>
  /** The parent of the scopes in `channels`. */
  readonly scope: Scope.Scope
  /** The scopes of the channels that the connection listens to. */
  readonly channels: Map<string, Scope.Closeable>
}

/** 100 ms, doubled each time, at most 5 s. Jitter keeps processes from reconnecting at the same moment. */
const backoff = Schedule.jittered(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]))

/**
 * Makes the function `listen`, which shares one connection for all channels. The first listener opens it, and `check`
 * examines it. When it is lost, it is opened again until `scope` closes. Notifications in between are lost, so
 * `onReconnected` of each listener is called. When the server does not answer `LISTEN` for `maxSilenceMillis`, the
 * connection is closed.
 */
export const makeListen = (
  open: Effect.Effect<PgConnection.PgConnection, SqlError, Scope.Scope>,
  options: {
    readonly check: Check
    readonly maxSilenceMillis: number
    readonly scope: Scope.Scope
  }
) => {
  const { maxSilenceMillis, scope } = options
  const channels = new Map<string, Set<Listener>>()
  const turn = Semaphore.makeUnsafe(1)
  const listening = Latch.makeUnsafe(false)
  let current: Connected | undefined
  let started = false

  const lose = (connected: Connected) => {
    if (current === connected) {
      current = undefined
      listening.closeUnsafe()
    }
    Deferred.doneUnsafe(connected.lost, Effect.void)
  }

  const listenOn = Effect.fnUntraced(function*({ channels: scopes, pinned, scope, watch }: Connected, channel: string) {
    const own = yield* Scope.fork(scope)
    const notifications = yield* Effect.mapError(watch(Scope.provide(pinned.listen(channel), own)), toPgError)
    scopes.set(channel, own)
    const notify = Effect.map(Queue.take(notifications), ({ payload }) => {
      for (const listener of channels.get(channel) ?? []) listener.onNotification(payload)
    })
    // The queue fails when the connection is lost, which `onClose` reports.
    yield* Effect.forkIn(Effect.ignore(Effect.forever(notify)), own)
  })

  const connect = Effect.fnUntraced(function*(check: Check) {
    // The connection closes first: a server that has stopped does not answer `UNLISTEN`.
    const connectionScope = yield* Scope.make()
    const scope = yield* Scope.make()
    const close = Effect.andThen(Scope.close(connectionScope, Exit.void), Scope.close(scope, Exit.void))
    return yield* Effect.gen(function*() {
      const connection = yield* Effect.mapError(Scope.provide(open, connectionScope), toPgError)
      const watch = makeWatch(connection, maxSilenceMillis)
      // Only a reserved connection can listen to several channels.
      const pinned = yield* connection.pin
      const connected: Connected = { pinned, watch, close, scope, lost: Deferred.makeUnsafe(), channels: new Map() }
      onClose(connection, () => lose(connected))
      yield* check(pinned, watch)
      // The iteration also visits a channel that is added meanwhile.
      for (const channel of channels.keys()) yield* listenOn(connected, channel)
      current = connected
      listening.openUnsafe()
      return connected
    }).pipe(Scope.provide(scope), Effect.onError(() => close))
  })

  const reconnect = Effect.orDie(Effect.retry(connect(() => Effect.void), backoff))

  const supervise = ({ close, lost }: Connected): Effect.Effect<never> =>
    Effect.andThen(
      Deferred.await(lost),
      Effect.flatMap(Effect.andThen(close, reconnect), (connected) => {
        for (const listeners of channels.values()) {
          for (const listener of listeners) listener.onReconnected()
        }
        return supervise(connected)
      })
    )

  const start = Effect.suspend(() =>
    Effect.flatMap(connect(options.check), (connected) => {
      started = true
      return Effect.andThen(
        Scope.addFinalizer(scope, Effect.suspend(() => current === undefined ? Effect.void : current.close)),
        Effect.forkIn(supervise(connected), scope)
      )
    })
  )

  const add = (channel: string, listener: Listener): Effect.Effect<unknown, SqlError> =>
    turn.withPermit(Effect.suspend((): Effect.Effect<unknown, SqlError> => {
      const listeners = channels.get(channel) ?? new Set()
      channels.set(channel, listeners.add(listener))
      if (!started) return start
      const connected = current
      return connected === undefined || listeners.size > 1
        ? Effect.void
        // If the connection is lost, the next one listens to the channel.
        : Effect.catchIf(listenOn(connected, channel), isConnectionError, () => Effect.sync(() => lose(connected)))
    }))

  const remove = (channel: string, listener: Listener): Effect.Effect<void> =>
    turn.withPermit(Effect.suspend(() => {
      const listeners = channels.get(channel)
      if (listeners?.delete(listener) !== true || listeners.size > 0) return Effect.void
      channels.delete(channel)
      const own = current?.channels.get(channel)
      if (current === undefined || own === undefined) return Effect.void
      current.channels.delete(channel)
      // Stops listening to the channel.
      return current.watch(Scope.close(own, Exit.void))
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
