/**
 * Change notices on request: `subscriptions/listen`, since 2026-07-28.
 */
import * as Schema from "effect/Schema"
import { Implementation, notificationFields, requestFields, RequestId, resultFields, Uri } from "./Common.ts"

/** Which changes are asked for, or agreed to. What is absent is not. */
export class SubscriptionFilter extends Schema.Opaque<SubscriptionFilter>()(Schema.Struct({
  toolsListChanged: Schema.optionalKey(Schema.Boolean),
  promptsListChanged: Schema.optionalKey(Schema.Boolean),
  resourcesListChanged: Schema.optionalKey(Schema.Boolean),
  /** Resources to watch. */
  resourceSubscriptions: Schema.optionalKey(Schema.Array(Uri)),
  /** Tasks to watch, of the extension `io.modelcontextprotocol/tasks`. */
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

/** The `_meta` of the answer to `subscriptions/listen`. */
export class SubscriptionsListenResultMetaObject
  extends Schema.Opaque<SubscriptionsListenResultMetaObject>()(Schema.Struct({
    "io.modelcontextprotocol/subscriptionId": RequestId,
    "io.modelcontextprotocol/serverInfo": Schema.optionalKey(Implementation)
  }))
{}

/** The answer to `subscriptions/listen`, when the server ends it. */
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
