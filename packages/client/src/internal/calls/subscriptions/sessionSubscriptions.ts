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

/** Counts the runs of each resource. */
export class SessionSubscriptions {
  readonly connection: NegotiatedConnection
  /** `resources/unsubscribe` runs in this scope, so that a slow server does not delay the end of a run. */
  readonly #scope: Scope.Scope
  readonly #subscriptions = new Map<string, ResourceSubscription>()

  constructor(connection: NegotiatedConnection, scope: Scope.Scope) {
    this.connection = connection
    this.#scope = scope
  }

  /** Whether a run has subscribed to the resource, or to one that contains it. */
  covers(uri: string): boolean {
    for (const watched of this.#subscriptions.keys()) {
      if (isWithin(uri, watched)) return true
    }
    return false
  }

  /** Subscribes to a resource until the scope closes, unless another run has. Fails with the error of the server. */
  subscribe(uri: string, options: CallOptions): Effect.Effect<void, ClientError, Scope.Scope> {
    return Effect.suspend(() => {
      const watch = this.#subscriptions.get(uri) ??
        { uri, lock: Semaphore.makeUnsafe(1), holders: 0, isRequested: false, isActive: false }
      this.#subscriptions.set(uri, watch)
      watch.holders++
      return Effect.andThen(
        Effect.addFinalizer(() => this.#release(watch)),
        watch.lock.withPermit(this.#subscribe(watch, options))
      )
    })
  }

  /** Subscribes, unless another run has done so in the meantime. */
  #subscribe(watch: ResourceSubscription, options: CallOptions): Effect.Effect<void, ClientError> {
    return Effect.gen({ self: this }, function*() {
      if (watch.isActive) return
      watch.isRequested = true
      const subscribing = send(this.connection, Method.Subscribe.name, { uri: watch.uri }, options)
      yield* Effect.tapError(subscribing, ({ reason }) =>
        Effect.sync(() => {
          if (reason._tag === "ProtocolError") watch.isRequested = false
        }))
      watch.isActive = true
    })
  }

  #release(watch: ResourceSubscription): Effect.Effect<void> {
    return Effect.suspend(() => {
      watch.holders--
      if (watch.holders > 0) return Effect.void
      const leaving = watch.lock.withPermit(this.#unsubscribe(watch))
      return Effect.asVoid(Effect.forkIn(leaving, this.#scope, { startImmediately: true }))
    })
  }

  /** Unsubscribes, unless another run has subscribed in the meantime. */
  #unsubscribe(watch: ResourceSubscription): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      if (watch.holders > 0) return
      const { isRequested, uri } = watch
      watch.isRequested = false
      watch.isActive = false
      if (isRequested) yield* Effect.ignore(send(this.connection, Method.Unsubscribe.name, { uri }, {}))
      if (watch.holders === 0) this.#subscriptions.delete(uri)
    })
  }
}

/** Whether a URI equals another one or is below it. */
export const isWithin = (uri: string, whole: string): boolean =>
  uri.startsWith(whole) &&
  (uri.length === whole.length || whole.endsWith("/") || ["/", "?", "#"].includes(uri.charAt(whole.length)))
