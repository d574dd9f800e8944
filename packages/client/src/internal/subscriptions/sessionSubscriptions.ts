/**
 * The resources that one session is subscribed to: each once, however many runs watch it. What is sent is meant for that session,
 * and not made again in another one.
 */
import * as Method from "@skein/protocol/Method"
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { ClientError } from "../../ClientError.ts"
import { send } from "../calls/call.ts"
import type { Line } from "../connection/connection.ts"

interface ResourceSubscription {
  readonly uri: string
  /** Of what is sent about one resource, the next waits for the answer to the one before: over HTTP they could overtake. */
  readonly lock: Semaphore.Semaphore
  holders: number
  /** The server was asked, and may have heard it; and it has agreed. */
  isRequested: boolean
  isActive: boolean
}

/** See the module's text. */
export class SessionSubscriptions {
  readonly line: Line
  /** What outlives the runs: a server that is slow to answer `resources/unsubscribe` holds nobody up. */
  readonly #scope: Scope.Scope
  readonly #subscriptions = new Map<string, ResourceSubscription>()

  constructor(line: Line, scope: Scope.Scope) {
    this.line = line
    this.#scope = scope
  }

  /** Whether a run watches the resource, or one that it is a part of. */
  covers(uri: string): boolean {
    for (const watched of this.#subscriptions.keys()) {
      if (isWithin(uri, watched)) return true
    }
    return false
  }

  /** Subscribes to a resource, unless that was done; until the scope closes. Fails as the server does. */
  subscribe(uri: string, options: CallOptions): Effect.Effect<void, ClientError, Scope.Scope> {
    return Effect.suspend(() => {
      const watch = this.#subscriptions.get(uri) ??
        { uri, lock: Semaphore.makeUnsafe(1), holders: 0, isRequested: false, isActive: false }
      this.#subscriptions.set(uri, watch)
      watch.holders++
      return Effect.andThen(
        Effect.addFinalizer(() => this.#release(watch)),
        watch.lock.withPermit(Effect.suspend(() => watch.isActive ? Effect.void : this.#subscribe(watch, options)))
      )
    })
  }

  #subscribe(watch: ResourceSubscription, options: CallOptions): Effect.Effect<void, ClientError> {
    watch.isRequested = true
    return send(this.line, Method.Subscribe.name, { uri: watch.uri }, options).pipe(
      Effect.tapError(({ reason }) =>
        Effect.sync(() => {
          if (reason._tag === "ProtocolError") watch.isRequested = false
        })
      ),
      Effect.andThen(Effect.sync(() => {
        watch.isActive = true
      }))
    )
  }

  #release(watch: ResourceSubscription): Effect.Effect<void> {
    return Effect.suspend(() => {
      watch.holders--
      if (watch.holders > 0) return Effect.void
      const leaving = watch.lock.withPermit(Effect.suspend(() => this.#unsubscribe(watch)))
      return Effect.asVoid(Effect.forkIn(leaving, this.#scope, { startImmediately: true }))
    })
  }

  /** Nobody watches it any more, unless somebody came in the meantime. */
  #unsubscribe(watch: ResourceSubscription): Effect.Effect<void> {
    if (watch.holders > 0) return Effect.void
    const { isRequested, uri } = watch
    watch.isRequested = false
    watch.isActive = false
    const left = isRequested ? Effect.ignore(send(this.line, Method.Unsubscribe.name, { uri }, {})) : Effect.void
    return Effect.andThen(
      left,
      Effect.sync(() => {
        if (watch.holders === 0) this.#subscriptions.delete(uri)
      })
    )
  }
}

/** Whether a resource is another one or, as far as its URI says, a part of it. */
export const isWithin = (uri: string, whole: string): boolean =>
  uri.startsWith(whole) &&
  (uri.length === whole.length || whole.endsWith("/") || ["/", "?", "#"].includes(uri.charAt(whole.length)))
