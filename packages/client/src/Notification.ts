/**
 * What a server tells without being asked.
 */
import * as Codec from "@skein/protocol/Codec"
import type { NotificationParams } from "@skein/protocol/Common"
import type { ElicitationCompleteNotificationParams } from "@skein/protocol/Elicitation"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import * as Method from "@skein/protocol/Method"
import type { ResourceUpdatedNotificationParams } from "@skein/protocol/Resource"
import type * as Revision from "@skein/protocol/Revision"
import type { SubscriptionsAcknowledgedNotificationParams } from "@skein/protocol/Subscription"
import * as Result from "effect/Result"

interface Of<Tag extends string, Params> {
  readonly _tag: Tag
  readonly method: string
  readonly params: Params
}

/** `notifications/message`: a log message. */
export interface LoggingMessage extends Of<"LoggingMessage", LoggingMessageNotificationParams> {}
/** `notifications/tools/list_changed`. */
export interface ToolListChanged extends Of<"ToolListChanged", NotificationParams> {}
/** `notifications/resources/list_changed`. */
export interface ResourceListChanged extends Of<"ResourceListChanged", NotificationParams> {}
/** `notifications/resources/updated`: a resource that is watched has changed. */
export interface ResourceUpdated extends Of<"ResourceUpdated", ResourceUpdatedNotificationParams> {}
/** `notifications/prompts/list_changed`. */
export interface PromptListChanged extends Of<"PromptListChanged", NotificationParams> {}
/** `notifications/elicitation/complete`, in 2025-11-25 only. */
export interface ElicitationComplete extends Of<"ElicitationComplete", ElicitationCompleteNotificationParams> {}
/** `notifications/subscriptions/acknowledged`, since 2026-07-28. */
export interface SubscriptionsAcknowledged
  extends Of<"SubscriptionsAcknowledged", SubscriptionsAcknowledgedNotificationParams>
{}
/** Any notification that is not of the core protocol in the negotiated revision: of an extension, or of a vendor. */
export interface Other extends Of<"Other", JsonRpc.JsonObject> {}

/** A notification of a server, by its `_tag`. Progress and cancellation belong to requests and are not among them. */
export type Notification =
  | LoggingMessage
  | ToolListChanged
  | ResourceListChanged
  | ResourceUpdated
  | PromptListChanged
  | ElicitationComplete
  | SubscriptionsAcknowledged
  | Other

const tags: ReadonlyMap<string, Exclude<Notification["_tag"], "Other">> = new Map([
  [Method.LoggingMessage.name, "LoggingMessage"],
  [Method.ToolListChanged.name, "ToolListChanged"],
  [Method.ResourceListChanged.name, "ResourceListChanged"],
  [Method.ResourceUpdated.name, "ResourceUpdated"],
  [Method.PromptListChanged.name, "PromptListChanged"],
  [Method.ElicitationComplete.name, "ElicitationComplete"],
  [Method.SubscriptionsAcknowledged.name, "SubscriptionsAcknowledged"]
])

/** Reads a notification in a revision; a line that says what is wrong where it is malformed. */
export const decode = (
  message: JsonRpc.Notification,
  revision: Revision.Revision
): Result.Result<Notification, string> => {
  const { method, params = {} } = message
  const known = Method.notification(method, revision)
  const _tag = known === undefined ? undefined : tags.get(method)
  if (known === undefined || _tag === undefined) return Result.succeed({ _tag: "Other", method, params })
  return Result.map(
    Codec.decodeParams(known, revision, params),
    (params) => ({ _tag, method, params }) as Notification
  )
}
