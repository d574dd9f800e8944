/**
 * A listener that receives each notification of a server in the turn in which it arrives, with the request that it
 * belongs to.
 *
 * Use it for a proxy, which must forward what a server reports about a request before the response to that request. A
 * program that shows or stores notifications uses the streams of the client instead (`Client.notifications`,
 * `Client.logs`, `Client.changes`): they have buffers, and their readers may wait.
 *
 * Provide the service where the client is made. One listener may serve several clients.
 *
 * @example
 * const Listening = Layer.succeed(NotificationListener, {
 *   onNotification: ({ method }, requestId) => { counts.set(method, requestId) }
 * })
 * const Live = Client.layer(transport).pipe(Layer.provide(Listening))
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"

/** The service of the listener. */
export class NotificationListener extends Context.Service<NotificationListener, {
  /**
   * Receives a notification as the server sent it, except for progress and cancellation. It must return at once. An
   * exception is logged.
   *
   * `requestId` is the id of the request on whose stream it arrived, as `RequestOptions.onSend` received it. It is
   * undefined on a transport without a stream for each request (stdio, in memory), and for notifications on the
   * standalone stream of a session.
   */
  readonly onNotification: (notification: JsonRpc.Notification, requestId: number | undefined) => void
}>()("@skein/client/NotificationListener") {}
