/**
 * The connection that a proxy lists with, and that serves all callers unless they have connections of their own. It is
 * opened again whenever it has ended.
 */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Reconnect from "@skein/client/Reconnect"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { RemoteConnection } from "./forward.ts"
import { named, unavailable, upper } from "./remoteError.ts"

/** What happens when the connection changes. */
export interface Listener {
  /** A connection was opened. Runs until it ends. */
  readonly connected: (connection: RemoteConnection) => Effect.Effect<void, never, Scope.Scope>
  /** The client has opened its connection again: the remote server may be another one. */
  readonly reconnected: Effect.Effect<void>
  /** The remote server cannot be reached now. */
  readonly lost: Effect.Effect<void>
}

export class Remote {
  readonly label: string | undefined
  readonly #opening: Effect.Effect<RemoteConnection, ClientError, Scope.Scope>
  readonly #policy: Reconnect.Resolved
  /** Whether another connection follows when the client has ended. */
  readonly #isReopened: boolean
  #current: RemoteConnection | undefined = undefined
  #opened = Deferred.makeUnsafe<RemoteConnection>()
  #isWarned = false

  constructor(
    label: string | undefined,
    open: Effect.Effect<RemoteConnection, ClientError, Scope.Scope>,
    policy: Reconnect.Policy | undefined,
    isReopened: boolean
  ) {
    this.label = label
    this.#opening = open
    this.#policy = Reconnect.resolve(policy)
    this.#isReopened = isReopened
  }

  /** The connection. Fails at once while there is none. */
  get connection() {
    return Effect.suspend(() =>
      this.#current === undefined ? Effect.fail(unavailable(this.label)) : Effect.succeed(this.#current)
    )
  }

  /** The connection that is open, or the next one. */
  get nextConnection(): Effect.Effect<RemoteConnection> {
    return Effect.suspend(() =>
      this.#current === undefined ? Deferred.await(this.#opened) : Effect.succeed(this.#current)
    )
  }

  /** Opens one connection after the other. `attempted` runs after each attempt that has failed. */
  run(listener: Listener, attempted: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      let attempt = 0
      while (true) {
        const scope = Scope.makeUnsafe()
        const served = yield* Effect.onExit(
          Effect.result(Scope.provide(this.#serve(listener), scope)),
          () => Scope.close(scope, Exit.void)
        )
        if (Result.isFailure(served)) {
          // One warning for each time that it is lost.
          const log = this.#isWarned ? Effect.logDebug : Effect.logWarning
          this.#isWarned = true
          yield* log(`${upper(named(this.label))} cannot be reached`, served.failure)
          yield* attempted
        } else {
          yield* listener.lost
          if (!this.#isReopened) return
          if (served.success >= this.#policy.stableAfter) attempt = 0
        }
        yield* Effect.sleep(Reconnect.delay(this.#policy, ++attempt, yield* Random.next))
      }
    })
  }

  /** Opens a connection, and waits for its end. Returns how long it was open, in milliseconds. */
  #serve(listener: Listener): Effect.Effect<number, ClientError, Scope.Scope> {
    return Effect.gen({ self: this }, function*() {
      const connection = yield* Effect.suspend(() => this.#opening)
      const { client } = connection
      const openedAt = yield* Clock.currentTimeMillis
      this.#isWarned = false
      this.#current = connection
      const waiting = this.#opened
      this.#opened = Deferred.makeUnsafe()
      yield* Deferred.succeed(waiting, connection)
      const served = Effect.gen(function*() {
        yield* Effect.forkScoped(followStatus(client, listener), { startImmediately: true })
        yield* listener.connected(connection)
        yield* client.ended
      })
      yield* Effect.ensuring(
        served,
        Effect.sync(() => {
          if (this.#current === connection) this.#current = undefined
        })
      )
      return (yield* Clock.currentTimeMillis) - openedAt
    })
  }
}

/** Reports that the client has lost its connection and opens it again itself. */
const followStatus = (client: Client, { lost, reconnected }: Listener): Effect.Effect<void> => {
  let isLost = false
  return Stream.runForEach(client.status, ({ _tag }) => {
    if (_tag === "Reconnecting" && !isLost) {
      isLost = true
      return lost
    }
    if (_tag !== "Connected" || !isLost) return Effect.void
    isLost = false
    return reconnected
  })
}
