/**
 * Logging: `notifications/message`, and `logging/setLevel` until 2026-07-28, where each request carries its level instead.
 */
import * as Schema from "effect/Schema"
import { AnyValue, LoggingLevel, notificationFields, requestFields } from "./Common.ts"

/** The params of `logging/setLevel`. */
export class SetLevelRequestParams extends Schema.Opaque<SetLevelRequestParams>()(Schema.Struct({
  ...requestFields,
  level: LoggingLevel
})) {}

/** The params of `notifications/message`. */
export class LoggingMessageNotificationParams extends Schema.Opaque<LoggingMessageNotificationParams>()(Schema.Struct({
  ...notificationFields,
  level: LoggingLevel,
  logger: Schema.optionalKey(Schema.String),
  data: AnyValue
})) {}
