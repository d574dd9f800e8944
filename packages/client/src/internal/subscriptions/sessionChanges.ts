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
import type { Line } from "../connection/connection.ts"
import { changeOf, isEmpty, unsupported } from "./filter.ts"
import type { Run, SubscriptionEnd } from "./follow.ts"
import { isWithin, SessionSubscriptions } from "./sessionSubscriptions.ts"

/** Resources that are subscribed to at the same time by one run. */
const concurrency = 16

interface Listener {
  readonly wanted: Honoured
  readonly onNotification: (notification: Notification) => void
  readonly onGap: (error: TransportError | undefined) => void
}

/** A session goes on, but the server has no stream any more, or never had one, on which it says anything unasked. */
const noStandaloneStream = (cause: TransportError): ClientError => {
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
const concerns = (uri: unknown, { wanted: { uris } }: Listener, subscriptions: SessionSubscriptions): boolean =>
  typeof uri === "string" && (uris.some((whole) => isWithin(uri, whole)) || !subscriptions.covers(uri))

/** What the server declared of what is wanted: the rest will never be told. */
const declared = ({ capabilities, revision }: Line, wanted: Honoured): Honoured => {
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
export class SessionChanges {
  readonly #scope: Scope.Scope
  #listeners: Set<Listener> | undefined = undefined
  #subscriptions: SessionSubscriptions | undefined = undefined

  constructor(scope: Scope.Scope) {
    this.#scope = scope
  }

  /** Hears every notification of the server. */
  onNotification(notification: Notification): void {
    const subscriptions = this.#subscriptions
    if (this.#listeners === undefined || subscriptions === undefined) return
    const update = notification.method === Method.ResourceUpdated.name
    for (const listener of this.#listeners) {
      if (!update || concerns(notification.params?.["uri"], listener, subscriptions)) {
        listener.onNotification(notification)
      }
    }
  }

  #subscriptionsOf(line: Line): SessionSubscriptions {
    if (this.#subscriptions?.line !== line) this.#subscriptions = new SessionSubscriptions(line, this.#scope)
    return this.#subscriptions
  }

  /** Hears that notifications may have been missed; with an error, that no more will come. */
  onGap(error: TransportError | undefined): void {
    for (const listener of this.#listeners ?? []) listener.onGap(error)
  }

  /** Watches until the session ends, or what was to be subscribed to cannot be. Interrupting it unsubscribes. */
  watch({ desk, queue, timeout, wanted }: Run, line: Line): Effect.Effect<SubscriptionEnd> {
    return Effect.suspend(() => {
      let isActive = false
      const honoured = desk.enforceCapabilities ? declared(line, wanted) : { ...wanted, taskIds: [] }
      if (isEmpty(honoured)) {
        const cause = unsupported(
          isEmpty({ ...wanted, taskIds: [] })
            ? `Tasks are not subscribed to in ${line.revision}`
            : "The server did not declare anything of what was asked for (enforceCapabilities)"
        )
        return Effect.succeed<SubscriptionEnd>({ isActive: isActive, reason: "Lost", cause })
      }
      if (line.deaf !== undefined) {
        return Effect.succeed<SubscriptionEnd>({
          isActive: isActive,
          reason: "Lost",
          cause: noStandaloneStream(line.deaf)
        })
      }
      const deaf = Deferred.makeUnsafe<never, ClientError>()
      const subscriptions = this.#subscriptionsOf(line)
      const listener: Listener = {
        wanted: honoured,
        onNotification: (notification) => {
          const change = isActive ? changeOf(notification, honoured) : undefined
          if (change !== undefined) queue.offer(change)
        },
        onGap: (error) => {
          if (error !== undefined) return void Deferred.doneUnsafe(deaf, Effect.fail(noStandaloneStream(error)))
          if (!isActive) return
          queue.offer({ _tag: "Gap", reason: "Lost", cause: undefined })
          queue.offer({ _tag: "Subscribed", honoured })
        }
      }
      const listening = Effect.acquireRelease(
        Effect.sync(() => (this.#listeners ??= new Set()).add(listener)),
        () => Effect.sync(() => this.#listeners?.delete(listener))
      )
      const subscribing = Effect.forEach(honoured.uris, (uri) => subscriptions.subscribe(uri, { timeout }), {
        concurrency,
        discard: true
      })
      const begun = Effect.sync(() => {
        isActive = true
        queue.offer({ _tag: "Subscribed", honoured })
      })
      const standing = Effect.andThen(Effect.andThen(subscribing, begun), line.peer.ended)
      return listening.pipe(
        Effect.andThen(Effect.raceFirst(standing, Deferred.await(deaf))),
        Effect.scoped,
        Effect.match({
          onSuccess: (end): SubscriptionEnd => {
            const message = `The connection ended${endText(end)}`
            return {
              isActive: isActive,
              reason: "Lost",
              cause: new ClientError({ reason: new Closed({ message, end }) })
            }
          },
          onFailure: (cause): SubscriptionEnd => ({ isActive: isActive, reason: "Lost", cause })
        })
      )
    })
  }
}
