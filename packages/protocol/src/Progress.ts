/**
 * What is said about a request while it runs: `notifications/progress` and `notifications/cancelled`.
 */
import * as Schema from "effect/Schema"
import { field, since } from "./Annotate.ts"
import { notificationFields, ProgressToken, RequestId } from "./Common.ts"

/** The params of `notifications/progress`. */
export class ProgressNotificationParams extends Schema.Opaque<ProgressNotificationParams>()(Schema.Struct({
  ...notificationFields,
  progressToken: ProgressToken,
  /** Grows with each notification. */
  progress: Schema.Finite,
  total: Schema.optionalKey(Schema.Finite),
  message: since("2025-03-26", Schema.optionalKey(Schema.String))
})) {}

/** The params of `notifications/cancelled`. Only 2025-11-25 lets `requestId` be absent. */
export class CancelledNotificationParams extends Schema.Opaque<CancelledNotificationParams>()(Schema.Struct({
  ...notificationFields,
  requestId: field(Schema.optionalKey(RequestId), {
    required: (revision) => revision !== "2025-11-25"
  }),
  reason: Schema.optionalKey(Schema.String)
})) {}
