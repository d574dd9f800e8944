/**
 * A subscription in the request era: one `subscriptions/listen`, which is answered when it ends.
 */
import { serverErrorOf } from "../errors.ts"
import type { JsonObject, Notification } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Task from "@skein/protocol/Task"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { ClientError, Timeout } from "../../ClientError.ts"
import { send } from "../calls/send.ts"
import { declaring } from "../calls/extension.ts"
import { agreed, changeOf, isEmpty, nothing, written } from "./filter.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { Over, Run } from "./turn.ts"

const acknowledged = Method.SubscriptionsAcknowledged.name
const name = Method.SubscriptionsListen.name

const unanswered = Effect.fail(
  new ClientError({ reason: new Timeout({ message: `The server did not acknowledge ${name}` }), method: name })
)

const missing = (error: ClientError): ClientError =>
  serverErrorOf(error)?.reason === "MethodNotFound" ? nothing(`The server has no ${name}`, error) : error

/**
 * Listens until the server ends it, or it breaks. Nothing counts before the acknowledgment: the server "MUST NOT send any notification on
 * the subscription before it" (2026-07-28, subscriptions). Interrupting it cancels the request as the transport does that.
 */
export const listen = ({ inbox, timeout, wanted }: Run, connection: NegotiatedConnection): Effect.Effect<Over> =>
  Effect.suspend(() => {
    let stood = false
    const begun = Deferred.makeUnsafe<void, ClientError>()
    const onNotification = (notification: Notification): void => {
      if (stood) {
        const change = changeOf(notification, wanted)
        if (change !== undefined) inbox.offer(change)
        return
      }
      if (notification.method !== acknowledged) return
      const honoured = agreed(notification.params, wanted)
      if (isEmpty(honoured)) {
        Deferred.doneUnsafe(begun, Effect.fail(nothing("The server tells nothing of what was asked for")))
        return
      }
      stood = true
      inbox.offer({ _tag: "Subscribed", honoured })
      Deferred.doneUnsafe(begun, Effect.void)
    }
    // What the answer says, beyond that it came, does not matter.
    const filter: JsonObject = { notifications: written(wanted) as JsonObject }
    const params = wanted.taskIds.length === 0 ? filter : declaring(connection, Task.extension, filter)
    const listening = send(connection, name, params, {
      timeout: Infinity,
      maxTimeout: Infinity,
      onNotification
    })
    const begins = Effect.timeoutOrElse(Deferred.await(begun), { duration: timeout, orElse: () => unanswered })
    return Effect.raceFirst(listening, Effect.andThen(begins, Effect.never)).pipe(
      Effect.match({
        onSuccess: (): Over => ({ stood, reason: "Ended", cause: undefined }),
        onFailure: (error): Over => ({ stood, reason: "Lost", cause: missing(error) })
      })
    )
  })
