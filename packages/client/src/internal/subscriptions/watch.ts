/**
 * A subscription in the session era: lists are announced on the connection without being asked, and resources are subscribed to.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Honoured } from "../../Changes.ts"
import { ClientError, Closed, Unauthorized, Unsupported } from "../../ClientError.ts"
import { endText } from "../calls/failure.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { changeOf, isEmpty, nothing } from "./filter.ts"
import type { Over, Run } from "./turn.ts"
import { isWithin, Watched } from "./session.ts"

/** Resources that are subscribed to at the same time by one run. */
const concurrency = 16

interface Listener {
  readonly wanted: Honoured
  readonly hears: (notification: Notification) => void
  readonly misses: (error: TransportError | undefined) => void
}

/** A session goes on, but the server has no stream any more, or never had one, on which it says anything unasked. */
const deafness = (cause: TransportError): ClientError => {
  const { reason, status } = cause
  const message = `Nothing is heard of what changes on the server: ${cause.message}`
  return new ClientError({
    reason: status === 401 || status === 403
      ? new Unauthorized({ message, status, cause })
      : reason._tag === "MessageRejected"
      ? new Unsupported({ message, cause })
      : new Closed({ message, cause })
  })
}

/** Whether an update may be meant for a run: one that names nothing that anybody watches may be of a part of anything. */
const concerns = (uri: unknown, { wanted: { uris } }: Listener, watched: Watched): boolean =>
  typeof uri === "string" && (uris.some((whole) => isWithin(uri, whole)) || !watched.covers(uri))

/** What the server declared of what is wanted: the rest will never be told. */
const declared = ({ capabilities, revision }: NegotiatedConnection, wanted: Honoured): Honoured => {
  const has = ({ capability }: Pick<Method.AnyNotification, "capability">) =>
    Method.has(capabilities, capability!, revision)
  return {
    tools: wanted.tools && has(Method.ToolListChanged),
    prompts: wanted.prompts && has(Method.PromptListChanged),
    resources: wanted.resources && has(Method.ResourceListChanged),
    uris: has(Method.ResourceUpdated) ? wanted.uris : [],
    taskIds: []
  }
}

/** The runs that listen on a session, and the resources that they watch together. */
export class Watchers {
  readonly #scope: Scope.Scope
  #listeners: Set<Listener> | undefined = undefined
  #watched: Watched | undefined = undefined

  constructor(scope: Scope.Scope) {
    this.#scope = scope
  }

  /** Hears every notification of the server. */
  hear(notification: Notification): void {
    const watched = this.#watched
    if (this.#listeners === undefined || watched === undefined) return
    const update = notification.method === Method.ResourceUpdated.name
    for (const listener of this.#listeners) {
      if (!update || concerns(notification.params?.["uri"], listener, watched)) listener.hears(notification)
    }
  }

  #of(connection: NegotiatedConnection): Watched {
    if (this.#watched?.connection !== connection) this.#watched = new Watched(connection, this.#scope)
    return this.#watched
  }

  /** Hears that notifications may have been missed; with an error, that no more will come. */
  missed(error: TransportError | undefined): void {
    for (const listener of this.#listeners ?? []) listener.misses(error)
  }

  /** Watches until the session ends, or what was to be subscribed to cannot be. Interrupting it unsubscribes. */
  watch({ client, inbox, timeout, wanted }: Run, connection: NegotiatedConnection): Effect.Effect<Over> {
    return Effect.suspend(() => {
      let stood = false
      const honoured = client.enforceCapabilities ? declared(connection, wanted) : { ...wanted, taskIds: [] }
      if (isEmpty(honoured)) {
        const cause = nothing(
          isEmpty({ ...wanted, taskIds: [] })
            ? `Tasks are not subscribed to in ${connection.revision}`
            : "The server did not declare anything of what was asked for (enforceCapabilities)"
        )
        return Effect.succeed<Over>({ stood, reason: "Lost", cause })
      }
      if (connection.streamError !== undefined) {
        return Effect.succeed<Over>({ stood, reason: "Lost", cause: deafness(connection.streamError) })
      }
      const deaf = Deferred.makeUnsafe<never, ClientError>()
      const watched = this.#of(connection)
      const listener: Listener = {
        wanted: honoured,
        hears: (notification) => {
          const change = stood ? changeOf(notification, honoured) : undefined
          if (change !== undefined) inbox.offer(change)
        },
        misses: (error) => {
          if (error !== undefined) return void Deferred.doneUnsafe(deaf, Effect.fail(deafness(error)))
          if (!stood) return
          inbox.offer({ _tag: "Gap", reason: "Lost", cause: undefined })
          inbox.offer({ _tag: "Subscribed", honoured })
        }
      }
      const listening = Effect.acquireRelease(
        Effect.sync(() => (this.#listeners ??= new Set()).add(listener)),
        () => Effect.sync(() => this.#listeners?.delete(listener))
      )
      const subscribing = Effect.forEach(honoured.uris, (uri) => watched.hold(uri, { timeout }), {
        concurrency,
        discard: true
      })
      const begun = Effect.sync(() => {
        stood = true
        inbox.offer({ _tag: "Subscribed", honoured })
      })
      const standing = Effect.andThen(Effect.andThen(subscribing, begun), connection.peer.ended)
      return listening.pipe(
        Effect.andThen(Effect.raceFirst(standing, Deferred.await(deaf))),
        Effect.scoped,
        Effect.match({
          onSuccess: (end): Over => {
            const message = `The connection ended${endText(end)}`
            return { stood, reason: "Lost", cause: new ClientError({ reason: new Closed({ message, end }) }) }
          },
          onFailure: (cause): Over => ({ stood, reason: "Lost", cause })
        })
      )
    })
  }
}
