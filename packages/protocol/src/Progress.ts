/**
 * Notifications about a running request: `notifications/progress` and `notifications/cancelled`.
 */
import * as Schema from "effect/Schema"
import { field, since } from "./Annotate.ts"
import { notificationFields, RequestId } from "./Message.ts"

/** The token that ties progress notifications to the request that asked for them. */
export const ProgressToken = Schema.Union([Schema.String, Schema.Int])
export type ProgressToken = typeof ProgressToken.Type

/** The params of `notifications/progress`. */
export class ProgressNotificationParams extends Schema.Opaque<ProgressNotificationParams>()(Schema.Struct({
  ...notificationFields,
  progressToken: ProgressToken,
  /** "MUST increase with each notification, even if the total is unknown." */
  progress: Schema.Finite,
  total: Schema.optionalKey(Schema.Finite),
  message: since("2025-03-26", Schema.optionalKey(Schema.String))
})) {}

/** The params of `notifications/cancelled`. Every revision but 2025-11-25 requires `requestId`. */
export class CancelledNotificationParams extends Schema.Opaque<CancelledNotificationParams>()(Schema.Struct({
  ...notificationFields,
  requestId: field(Schema.optionalKey(RequestId), {
    required: (revision) => revision !== "2025-11-25"
  }),
  reason: Schema.optionalKey(Schema.String)
})) {}
