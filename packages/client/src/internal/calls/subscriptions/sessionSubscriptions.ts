/**
 * The resource subscriptions of one session. Each resource is subscribed to once for all runs. The requests belong to
 * that session and are not repeated in another one.
 */
import * as Method from "@skein/protocol/Method"
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { ClientError } from "../../../ClientError.ts"
import { send } from "../send.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"

interface ResourceSubscription {
  readonly uri: string
  /** Requests for one resource are sent one after another: over HTTP they could overtake each other. */
  readonly lock: Semaphore.Semaphore
  holders: number
  /** Whether `resources/subscribe` was sent, and whether the server has accepted it. */
  isRequested: boolean
  isActive: boolean
}

export type SessionSubscriptions = ReturnType<typeof makeSessionSubscriptions>

/**
 * Counts the runs of each resource. `resources/unsubscribe` runs in the scope, so that a slow server does not delay the
 * end of a run.
 */
export const makeSessionSubscriptions = (connection: NegotiatedConnection, scope: Scope.Scope) => {
  const subscriptions = new Map<string, ResourceSubscription>()

  /** Whether a run has subscribed to the resource, or to one that contains it. */
  const covers = (uri: string): boolean => {
    for (const watched of subscriptions.keys()) {
      if (isWithin(uri, watched)) return true
    }
    return false
  }

  /** Subscribes to a resource until the scope closes, unless another run has. Fails with the error of the server. */
  const subscribe = (uri: string, options: CallOptions): Effect.Effect<void, ClientError, Scope.Scope> =>
    Effect.suspend(() => {
      const watch = subscriptions.get(uri) ??
        { uri, lock: Semaphore.makeUnsafe(1), holders: 0, isRequested: false, isActive: false }
      subscriptions.set(uri, watch)
      watch.holders++
      return Effect.andThen(
        Effect.addFinalizer(() => release(watch)),
        watch.lock.withPermit(request(watch, options))
      )
    })

  /** Subscribes, unless another run has done so in the meantime. */
  const request = Effect.fnUntraced(function*(watch: ResourceSubscription, options: CallOptions) {
    if (watch.isActive) return
    watch.isRequested = true
    const subscribing = send(connection, Method.Subscribe.name, { uri: watch.uri }, options)
    yield* Effect.tapError(subscribing, ({ reason }) =>
      Effect.sync(() => {
        if (reason._tag === "ProtocolError") watch.isRequested = false
      }))
    watch.isActive = true
  })

  const release = (watch: ResourceSubscription): Effect.Effect<void> =>
    Effect.suspend(() => {
      watch.holders--
      if (watch.holders > 0) return Effect.void
      const leaving = watch.lock.withPermit(unsubscribe(watch))
      return Effect.asVoid(Effect.forkIn(leaving, scope, { startImmediately: true }))
    })

  /** Unsubscribes, unless another run has subscribed in the meantime. */
  const unsubscribe = Effect.fnUntraced(function*(watch: ResourceSubscription) {
    if (watch.holders > 0) return
    const { isRequested, uri } = watch
    watch.isRequested = false
    watch.isActive = false
    if (isRequested) yield* Effect.ignore(send(connection, Method.Unsubscribe.name, { uri }, {}))
    if (watch.holders === 0) subscriptions.delete(uri)
  })

  return { connection, covers, subscribe }
}

/** Whether a URI equals another one or is below it. */
export const isWithin = (uri: string, whole: string): boolean =>
  uri.startsWith(whole) &&
  (uri.length === whole.length || whole.endsWith("/") || ["/", "?", "#"].includes(uri.charAt(whole.length)))
