/**
 * A subscription of 2026-07-28: one `subscriptions/listen` request, whose response is the end of the subscription.
 */
import { serverErrorOf, within } from "../../base/errors.ts"
import type { JsonObject, Notification } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Task from "@skein/protocol/Task"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { ClientError } from "../../../ClientError.ts"
import { declaring, send } from "../send.ts"
import { acknowledgedFilter, changeOf, isEmpty, toSubscriptionFilter, unsupported } from "./filter.ts"
import type { Run, Subscribe } from "./run.ts"

const acknowledged = Method.SubscriptionsAcknowledged.name
const name = Method.SubscriptionsListen.name

const missing = (error: ClientError): ClientError =>
  serverErrorOf(error)?.reason === "MethodNotFound" ? unsupported(`The server has no ${name}`, error) : error

/**
 * Runs until the server ends the subscription, or it fails. Notifications before the acknowledgment are ignored: the
 * server "MUST NOT send any notification on the subscription before it" (2026-07-28, subscriptions). Interrupting it
 * cancels the request.
 */
export const listen = ({ client, queue, timeout, wanted }: Run): Subscribe<void> => (connection, onActive) =>
  Effect.suspend(() => {
    let isActive = false
    const begun = Deferred.makeUnsafe<void, ClientError>()
    const onNotification = (notification: Notification): void => {
      if (isActive) {
        const change = changeOf(notification, wanted)
        if (change !== undefined) queue.offer(change)
        return
      }
      if (notification.method !== acknowledged) return
      const honoured = acknowledgedFilter(notification.params, wanted)
      if (isEmpty(honoured)) {
        Deferred.doneUnsafe(begun, Effect.fail(unsupported("The server acknowledged none of the requested changes")))
        return
      }
      isActive = true
      onActive(honoured)
      Deferred.doneUnsafe(begun, Effect.void)
    }
    // The content of the response does not matter.
    const filter: JsonObject = { notifications: toSubscriptionFilter(wanted) as JsonObject }
    const params = wanted.taskIds.length === 0 ? filter : declaring(connection, Task.extension, filter)
    const listening = send(connection, name, params, {
      timeout: Infinity,
      maxTimeout: Infinity,
      onNotification
    })
    const { callClock } = client.supervisor
    const begins = within(callClock, Deferred.await(begun), timeout, `The server did not acknowledge ${name}`, name)
    return Effect.mapError(Effect.raceFirst(Effect.asVoid(listening), Effect.andThen(begins, Effect.never)), missing)
  })
