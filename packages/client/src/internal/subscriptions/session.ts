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
import { send } from "../calls/send.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"

interface Watch {
  readonly uri: string
  /** Of what is sent about one resource, the next waits for the answer to the one before: over HTTP they could overtake. */
  readonly turn: Semaphore.Semaphore
  holders: number
  /** The server was asked, and may have heard it; and it has agreed. */
  asked: boolean
  agreed: boolean
}

/** See the module's text. */
export class Watched {
  readonly connection: NegotiatedConnection
  /** What outlives the runs: a server that is slow to answer `resources/unsubscribe` holds nobody up. */
  readonly #scope: Scope.Scope
  readonly #watches = new Map<string, Watch>()

  constructor(connection: NegotiatedConnection, scope: Scope.Scope) {
    this.connection = connection
    this.#scope = scope
  }

  /** Whether a run watches the resource, or one that it is a part of. */
  covers(uri: string): boolean {
    for (const watched of this.#watches.keys()) {
      if (isWithin(uri, watched)) return true
    }
    return false
  }

  /** Subscribes to a resource, unless that was done; until the scope closes. Fails as the server does. */
  hold(uri: string, options: CallOptions): Effect.Effect<void, ClientError, Scope.Scope> {
    return Effect.suspend(() => {
      const watch = this.#watches.get(uri) ??
        { uri, turn: Semaphore.makeUnsafe(1), holders: 0, asked: false, agreed: false }
      this.#watches.set(uri, watch)
      watch.holders++
      return Effect.andThen(
        Effect.addFinalizer(() => this.#release(watch)),
        watch.turn.withPermit(Effect.suspend(() => watch.agreed ? Effect.void : this.#subscribe(watch, options)))
      )
    })
  }

  #subscribe(watch: Watch, options: CallOptions): Effect.Effect<void, ClientError> {
    watch.asked = true
    return send(this.connection, Method.Subscribe.name, { uri: watch.uri }, options).pipe(
      Effect.tapError(({ reason }) =>
        Effect.sync(() => {
          if (reason._tag === "ProtocolError") watch.asked = false
        })
      ),
      Effect.andThen(Effect.sync(() => {
        watch.agreed = true
      }))
    )
  }

  #release(watch: Watch): Effect.Effect<void> {
    return Effect.suspend(() => {
      watch.holders--
      if (watch.holders > 0) return Effect.void
      const leaving = watch.turn.withPermit(Effect.suspend(() => this.#leave(watch)))
      return Effect.asVoid(Effect.forkIn(leaving, this.#scope, { startImmediately: true }))
    })
  }

  /** Nobody watches it any more, unless somebody came in the meantime. */
  #leave(watch: Watch): Effect.Effect<void> {
    if (watch.holders > 0) return Effect.void
    const { asked, uri } = watch
    watch.asked = false
    watch.agreed = false
    const left = asked ? Effect.ignore(send(this.connection, Method.Unsubscribe.name, { uri }, {})) : Effect.void
    return Effect.andThen(
      left,
      Effect.sync(() => {
        if (watch.holders === 0) this.#watches.delete(uri)
      })
    )
  }
}

/** Whether a resource is another one or, as far as its URI says, a part of it. */
export const isWithin = (uri: string, whole: string): boolean =>
  uri.startsWith(whole) &&
  (uri.length === whole.length || whole.endsWith("/") || ["/", "?", "#"].includes(uri.charAt(whole.length)))
