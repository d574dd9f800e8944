/**
 * Logging: `notifications/message`, and `logging/setLevel` until 2026-07-28. Since then each request carries its level
 * in `_meta` (see `RequestMeta`). Deprecated since 2026-07-28 (SEP-2577), in favor of stderr and OpenTelemetry.
 */
import * as Schema from "effect/Schema"
import { notificationFields, requestFields } from "./Message.ts"
import { AnyValue } from "./Primitive.ts"
import { logLevels } from "./RequestMeta.ts"

/** The severity of a log message, as in syslog (RFC 5424); the least severe first. */
export const LoggingLevel = Schema.Literals(logLevels)
export type LoggingLevel = typeof LoggingLevel.Type

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
