/**
 * The connection that a proxy lists with, and that serves all callers unless they have connections of their own. It is
 * opened again whenever it has ended.
 */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Reconnect from "@skein/client/Reconnect"
import * as McpError from "@skein/protocol/McpError"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Catalog from "@skein/server/Catalog"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { RemoteConnection } from "./connections.ts"
import { named, type RemoteName, toMcpError, unavailable, upper } from "./remoteError.ts"

/** Receives the changes of the connection. */
export interface Listener {
  /** A connection was opened. Runs until it ends. */
  readonly connected: (connection: RemoteConnection) => Effect.Effect<void, never, Scope.Scope>
  /** The client has opened its connection again: the remote server may be another one. */
  readonly reconnected: Effect.Effect<void>
  /** The remote server cannot be reached now. */
  readonly lost: Effect.Effect<void>
}

/** Whether a remote server can be reached. */
export interface RemoteStatus {
  /**
   * - `connecting`: the first attempt to connect, or the next one, is under way.
   * - `connected`: calls are answered.
   * - `reconnecting`: the client has lost its connection, and opens it again.
   * - `waiting`: the last attempt failed, and the next one follows at `nextAttempt`.
   * - `ended`: no further attempt follows.
   */
  readonly state: "connecting" | "connected" | "reconnecting" | "waiting" | "ended"
  /** When the state began, in milliseconds since 1970. */
  readonly since: number
  /** The number of attempts in a row that have failed. */
  readonly attempts: number
  /** When the next attempt begins, in milliseconds since 1970. */
  readonly nextAttempt: number | undefined
  /** Why the last attempt failed, or why the connection has ended; undefined while it is connected. */
  readonly failure: string | undefined
}

/** The connections that follow each other. */
export type Remote = ReturnType<typeof makeRemote>

/** `isReopened`: whether another connection follows when the client has ended. */
export const makeRemote = (
  name: RemoteName,
  opening: Effect.Effect<RemoteConnection, ClientError, Scope.Scope>,
  reconnect: Reconnect.Policy | undefined,
  isReopened: boolean
) => {
  const policy = Reconnect.resolve(reconnect)
  let open: RemoteConnection | undefined = undefined
  /** The connection that calls use. They wait for it while it is pending. */
  let usable = Deferred.makeUnsafe<RemoteConnection, McpError.McpError>()
  /** The connection that is open, or the next one. */
  let next = Deferred.makeUnsafe<RemoteConnection>()
  let isWarned = false
  let status: RemoteStatus = {
    state: "connecting",
    since: 0,
    attempts: 0,
    nextAttempt: undefined,
    failure: undefined
  }
  const set = (changes: Partial<RemoteStatus>): Effect.Effect<void> =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const since = changes.state === undefined || changes.state === status.state ? status.since : now
      status = { ...status, nextAttempt: undefined, ...changes, since }
    })

  /**
   * Returns the connection. At the start, and after a connection is lost, it waits for the first attempt to open one.
   * After a failed attempt it fails at once. `ended` is a connection whose client has ended, which is perhaps not noticed
   * here yet.
   */
  const connect = (ended?: RemoteConnection): Effect.Effect<RemoteConnection, McpError.McpError> =>
    Effect.suspend(() => {
      if (ended !== undefined) forget(ended)
      return Deferred.await(usable)
    })

  /** Waits for the end of a connection, and for the next one, however many attempts that takes. */
  const nextAfter = (connection: RemoteConnection): Effect.Effect<RemoteConnection> =>
    Effect.flatMap(connection.client.ended, () => {
      forget(connection)
      return Deferred.await(next)
    })

  /**
   * Subscribes to a resource at the remote server until the scope closes, on one connection after the other. Returns once
   * the subscription is confirmed.
   */
  const watch = (
    uri: string,
    catalog: Catalog.Catalog["Service"]
  ): Effect.Effect<void, McpError.McpError, Scope.Scope> =>
    Effect.gen(function*() {
      const confirmed = Deferred.makeUnsafe<void, McpError.McpError>()
      const first = yield* connect()
      yield* Effect.forkScoped(watchFrom(first, uri, catalog, confirmed), { startImmediately: true })
      yield* Deferred.await(confirmed)
    })

  const watchFrom = (
    first: RemoteConnection,
    uri: string,
    catalog: Catalog.Catalog["Service"],
    confirmed: Deferred.Deferred<void, McpError.McpError>
  ): Effect.Effect<void> => {
    const updated = (changed: string) =>
      Effect.provideService(
        Catalog.updated(changed, changed === uri ? {} : { parent: uri }),
        Catalog.Catalog,
        catalog
      )
    let isConfirmed = false
    const subscribe = ({ client }: RemoteConnection): Effect.Effect<void, ClientError> =>
      Stream.runForEach(client.changes({ uris: [uri] }), (change) => {
        switch (change._tag) {
          case "Subscribed": {
            if (!change.honoured.uris.includes(uri)) {
              return Effect.asVoid(Deferred.fail(confirmed, McpError.resourceNotFound(uri)))
            }
            // Changes since the last subscription may have been missed.
            if (isConfirmed) return updated(uri)
            isConfirmed = true
            return Effect.asVoid(Deferred.succeed(confirmed, undefined))
          }
          case "ResourceUpdated":
            return updated(change.uri)
          default:
            return Effect.void
        }
      })
    return Effect.gen(function*() {
      let connection = first
      while (true) {
        const failure = yield* Effect.result(subscribe(connection))
        if (failure._tag === "Failure") {
          const { reason } = failure.failure
          const error = reason._tag === "Unsupported"
            ? McpError.methodNotFound("resources/subscribe")
            : toMcpError(failure.failure, name)
          if (yield* Deferred.fail(confirmed, error)) return
          if (reason._tag !== "Closed") {
            yield* Effect.logDebug("A subscription to a resource of a remote server has ended", failure.failure)
          }
        }
        connection = yield* nextAfter(connection)
      }
    })
  }

  /** Opens one connection after the other. `attempted` runs after each attempt that has failed. */
  const run = (listener: Listener, attempted: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.gen(function*() {
      let attempt = 0
      status = { ...status, since: yield* Clock.currentTimeMillis }
      while (true) {
        const scope = Scope.makeUnsafe()
        const served = yield* Effect.onExit(
          Effect.result(Scope.provide(serve(listener), scope)),
          () => Scope.close(scope, Exit.void)
        )
        if (Result.isFailure(served)) {
          yield* refuse
          yield* attempted
        } else {
          yield* listener.lost
          if (!isReopened) return yield* Effect.andThen(set({ state: "ended" }), Effect.asVoid(refuse))
          if (served.success >= Reconnect.stableAfter) attempt = 0
        }
        attempt++
        // Calls do not wait longer and longer for a remote server that fails again and again.
        if (attempt > 1) yield* refuse
        const delay = Reconnect.delay(policy, attempt, yield* Random.next)
        const nextAttempt = (yield* Clock.currentTimeMillis) + delay
        if (Result.isFailure(served)) {
          const { failure } = served
          const message = oneLine(failure.message)
          yield* set({ state: "waiting", nextAttempt, failure: message, attempts: status.attempts + 1 })
          // One warning for each loss of the connection, in one line: the next attempts fail for the same reason.
          if (!isWarned) yield* Effect.logWarning(`${upper(named(name))} cannot be reached: ${message}`)
          yield* Effect.logDebug(`${upper(named(name))} cannot be reached`, failure)
          isWarned = true
        } else yield* set({ state: "waiting", nextAttempt })
        yield* Effect.sleep(delay)
        yield* set({ state: "connecting" })
      }
    })

  /** Refuses calls until a connection is open. */
  const refuse = Effect.suspend(() => Deferred.fail(usable, unavailable(name)))

  /** Opens a connection, and waits for its end. Returns how long it was open, in milliseconds. */
  const serve = (listener: Listener): Effect.Effect<number, ClientError, Scope.Scope> =>
    Effect.gen(function*() {
      const connection = yield* opening
      const { client } = connection
      const openedAt = yield* Clock.currentTimeMillis
      isWarned = false
      open = connection
      yield* set({ state: "connected", attempts: 0, failure: undefined })
      // Calls that wait get it, and so do those that follow a failure.
      yield* Deferred.succeed(usable, connection)
      usable = Deferred.makeUnsafe()
      yield* Deferred.succeed(usable, connection)
      yield* Deferred.succeed(next, connection)
      const served = Effect.gen(function*() {
        yield* Effect.forkScoped(followStatus(client, listener, set), { startImmediately: true })
        yield* Effect.forkScoped(listener.connected(connection), { startImmediately: true })
        const end = yield* client.ended
        if (end._tag !== "ClosedByUs") {
          const text = endText(end)
          yield* set({ failure: `The connection has ended${text}` })
          yield* Effect.logWarning(`The connection to ${named(name)} has ended${text}`)
          yield* Effect.logDebug(`The connection to ${named(name)} has ended`, end)
        }
      })
      yield* Effect.ensuring(served, Effect.sync(() => forget(connection)))
      return (yield* Clock.currentTimeMillis) - openedAt
    })

  const forget = (connection: RemoteConnection): void => {
    if (open !== connection) return
    open = undefined
    usable = Deferred.makeUnsafe()
    next = Deferred.makeUnsafe()
  }

  return { connect, watch, run, status: () => ({ ...status, client: open?.client }) }
}

/** A message in one line. It may quote the stderr of a process. */
const oneLine = (message: string): string => message.replaceAll(/\s*\n\s*/g, " / ")

/** How a connection has ended. */
const endText = (end: SessionEnd): string => {
  switch (end._tag) {
    case "Lost":
      return `: ${oneLine(end.cause.message)}`
    case "Refused":
      return `: ${oneLine(end.message)}`
    case "ClosedByPeer":
      return ": the remote server ended it"
    default:
      return ""
  }
}

/** Reports that the client has lost its connection and opens it again itself. */
const followStatus = (
  client: Client,
  { lost, reconnected }: Listener,
  set: (changes: Partial<RemoteStatus>) => Effect.Effect<void>
): Effect.Effect<void> => {
  let isLost = false
  return Stream.runForEach(client.status, (status) => {
    if (status._tag === "Reconnecting") {
      const failed = set({ state: "reconnecting", attempts: status.attempt - 1 })
      if (isLost) return failed
      isLost = true
      return Effect.andThen(failed, lost)
    }
    if (status._tag !== "Connected" || !isLost) return Effect.void
    isLost = false
    return Effect.andThen(set({ state: "connected", attempts: 0, failure: undefined }), reconnected)
  })
}
