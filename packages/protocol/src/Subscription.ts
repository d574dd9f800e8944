/**
 * Subscriptions to changes: `subscriptions/listen`, since 2026-07-28 (basic/patterns/subscriptions).
 */
import * as Schema from "effect/Schema"
import { Implementation } from "./Implementation.ts"
import { notificationFields, requestFields, RequestId, resultFields } from "./Message.ts"
import { Uri } from "./Primitive.ts"

/**
 * The changes that a client asks for, or that a server agrees to send. An absent member means that the changes are not
 * requested.
 */
export class SubscriptionFilter extends Schema.Opaque<SubscriptionFilter>()(Schema.Struct({
  toolsListChanged: Schema.optionalKey(Schema.Boolean),
  promptsListChanged: Schema.optionalKey(Schema.Boolean),
  resourcesListChanged: Schema.optionalKey(Schema.Boolean),
  /** The URIs of resources to watch. */
  resourceSubscriptions: Schema.optionalKey(Schema.Array(Uri)),
  /** The ids of tasks to watch (extension `io.modelcontextprotocol/tasks`). */
  taskIds: Schema.optionalKey(Schema.Array(Schema.String))
})) {}

/** The params of `subscriptions/listen`. */
export class SubscriptionsListenRequestParams extends Schema.Opaque<SubscriptionsListenRequestParams>()(Schema.Struct({
  ...requestFields,
  notifications: SubscriptionFilter
})) {}

/** The params of `notifications/subscriptions/acknowledged`. */
export class SubscriptionsAcknowledgedNotificationParams
  extends Schema.Opaque<SubscriptionsAcknowledgedNotificationParams>()(Schema.Struct({
    ...notificationFields,
    notifications: SubscriptionFilter
  }))
{}

/** The `_meta` of the result of `subscriptions/listen`. */
export class SubscriptionsListenResultMetaObject
  extends Schema.Opaque<SubscriptionsListenResultMetaObject>()(Schema.Struct({
    "io.modelcontextprotocol/subscriptionId": RequestId,
    "io.modelcontextprotocol/serverInfo": Schema.optionalKey(Implementation)
  }))
{}

/** The result of `subscriptions/listen`, which the server sends when it ends the subscription. */
export class SubscriptionsListenResult extends Schema.Opaque<SubscriptionsListenResult>()(Schema.Struct({
  ...resultFields,
  _meta: SubscriptionsListenResultMetaObject
})) {}

/** The `_meta` of a notification that belongs to a subscription. */
export class NotificationMetaObject extends Schema.Opaque<NotificationMetaObject>()(Schema.Struct({
  "io.modelcontextprotocol/subscriptionId": Schema.optionalKey(RequestId)
})) {}

/** The `_meta` of a result. */
export class ResultMetaObject extends Schema.Opaque<ResultMetaObject>()(Schema.Struct({
  "io.modelcontextprotocol/serverInfo": Schema.optionalKey(Implementation)
})) {}
