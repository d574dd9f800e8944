/**
 * Changes in a session: the server announces changes of lists without a request, and resources are subscribed to.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Honoured } from "../../../Changes.ts"
import { ClientError, Closed, Unauthorized, Unsupported } from "../../../ClientError.ts"
import { endText } from "../../base/failure.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"
import { changeOf, isEmpty, unsupported } from "./filter.ts"
import type { Run, Subscribe } from "./run.ts"
import { isWithin, makeSessionSubscriptions, type SessionSubscriptions } from "./sessionSubscriptions.ts"

/** How many resources one run subscribes to at the same time. */
const concurrency = 16

interface Listener {
  readonly wanted: Honoured
  readonly onNotification: (notification: Notification) => void
  readonly onGap: (error: TransportError | undefined) => void
}

/** The session is open, but its standalone stream has ended or never existed, so notifications cannot arrive. */
const noStandaloneStream = (cause: TransportError): ClientError => {
  const { reason, status } = cause
  const message = `The server cannot send notifications about changes: ${cause.message}`
  return new ClientError({
    reason: status === 401 || status === 403
      ? new Unauthorized({ message, status, cause })
      : reason._tag === "MessageRejected"
      ? new Unsupported({ message, cause })
      : new Closed({ message, cause })
  })
}

/** Whether an update may belong to a run. A URI below no subscription may be a sub-resource of any. */
const concerns = (uri: unknown, { wanted: { uris } }: Listener, subscriptions: SessionSubscriptions): boolean =>
  typeof uri === "string" && (uris.some((whole) => isWithin(uri, whole)) || !subscriptions.covers(uri))

/** The part of the filter that the server declares. It never announces the rest. */
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

/** The runs of a session, and their resource subscriptions. */
export class SessionChanges {
  readonly #scope: Scope.Scope
  readonly #listeners = new Set<Listener>()
  #subscriptions: SessionSubscriptions | undefined = undefined

  constructor(scope: Scope.Scope) {
    this.#scope = scope
  }

  /** Handles each notification of the server. */
  onNotification(notification: Notification): void {
    const subscriptions = this.#subscriptions
    if (subscriptions === undefined) return
    const update = notification.method === Method.ResourceUpdated.name
    for (const listener of this.#listeners) {
      if (!update || concerns(notification.params?.["uri"], listener, subscriptions)) {
        listener.onNotification(notification)
      }
    }
  }

  #subscriptionsOf(connection: NegotiatedConnection): SessionSubscriptions {
    if (this.#subscriptions?.connection !== connection) {
      this.#subscriptions = makeSessionSubscriptions(connection, this.#scope)
    }
    return this.#subscriptions
  }

  /** Notifications may have been missed. With an error, no further ones will arrive. */
  onGap(error: TransportError | undefined): void {
    for (const listener of this.#listeners) listener.onGap(error)
  }

  /** Runs until the session ends or a subscription fails. Interrupting it unsubscribes. */
  watch({ client, queue, timeout, wanted }: Run): Subscribe<never> {
    return (connection, onActive) =>
      Effect.suspend(() => {
        let isActive = false
        const honoured = client.options.enforceCapabilities === false
          ? { ...wanted, taskIds: [] }
          : declared(connection, wanted)
        if (isEmpty(honoured)) {
          return Effect.fail(unsupported(
            isEmpty({ ...wanted, taskIds: [] })
              ? `${connection.revision} has no subscriptions to tasks`
              : "The server declares none of the requested changes (enforceCapabilities)"
          ))
        }
        if (connection.streamError !== undefined) return Effect.fail(noStandaloneStream(connection.streamError))
        const streamLost = Deferred.makeUnsafe<never, ClientError>()
        const subscriptions = this.#subscriptionsOf(connection)
        const listener: Listener = {
          wanted: honoured,
          onNotification: (notification) => {
            const change = isActive ? changeOf(notification, honoured) : undefined
            if (change !== undefined) queue.offer(change)
          },
          onGap: (error) => {
            if (error !== undefined) return void Deferred.doneUnsafe(streamLost, Effect.fail(noStandaloneStream(error)))
            if (!isActive) return
            queue.offer({ _tag: "Gap", reason: "Lost", cause: undefined })
            queue.offer({ _tag: "Subscribed", honoured })
          }
        }
        const listening = Effect.acquireRelease(
          Effect.sync(() => this.#listeners.add(listener)),
          () => Effect.sync(() => this.#listeners.delete(listener))
        )
        const subscribing = Effect.forEach(honoured.uris, (uri) => subscriptions.subscribe(uri, { timeout }), {
          concurrency,
          discard: true
        })
        const ended = Effect.flatMap(subscribing, () => {
          isActive = true
          onActive(honoured)
          return Effect.flatMap(connection.peer.ended, (end) =>
            Effect.fail(
              new ClientError({ reason: new Closed({ message: `The connection ended${endText(end)}`, end }) })
            ))
        })
        return Effect.scoped(Effect.andThen(listening, Effect.raceFirst(ended, Deferred.await(streamLost))))
      })
  }
}
