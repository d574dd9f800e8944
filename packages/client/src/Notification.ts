/**
 * The notifications of a server, as `Client.notifications` returns them: tagged by `_tag`, with decoded params.
 *
 * @example
 * client.notifications.pipe(
 *   Stream.filter((notification) => notification._tag === "ElicitationComplete"),
 *   Stream.runForEach(({ params }) => Console.log(params.elicitationId))
 * )
 */
import type { NotificationParams } from "@skein/protocol/Message"
import type { ElicitationCompleteNotificationParams } from "@skein/protocol/Elicitation"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import type { ResourceUpdatedNotificationParams } from "@skein/protocol/Resource"
import type { SubscriptionsAcknowledgedNotificationParams } from "@skein/protocol/Subscription"

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
/** `notifications/resources/updated`: a resource that the client has subscribed to has changed. */
export interface ResourceUpdated extends Of<"ResourceUpdated", ResourceUpdatedNotificationParams> {}
/** `notifications/prompts/list_changed`. */
export interface PromptListChanged extends Of<"PromptListChanged", NotificationParams> {}
/** `notifications/elicitation/complete`, in 2025-11-25 only. */
export interface ElicitationComplete extends Of<"ElicitationComplete", ElicitationCompleteNotificationParams> {}
/** `notifications/subscriptions/acknowledged`, since 2026-07-28. */
export interface SubscriptionsAcknowledged
  extends Of<"SubscriptionsAcknowledged", SubscriptionsAcknowledgedNotificationParams>
{}
/**
 * Any notification that the core protocol of the negotiated revision does not define: of an extension or of a vendor.
 */
export interface Other extends Of<"Other", JsonRpc.JsonObject> {}

/** A notification of a server. Progress and cancellation belong to requests and are not included. */
export type Notification =
  | LoggingMessage
  | ToolListChanged
  | ResourceListChanged
  | ResourceUpdated
  | PromptListChanged
  | ElicitationComplete
  | SubscriptionsAcknowledged
  | Other
