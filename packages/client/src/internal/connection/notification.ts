/**
 * Decodes the notifications of a server.
 */
import * as Codec from "@skein/protocol/Codec"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type * as Revision from "@skein/protocol/Revision"
import * as Result from "effect/Result"
import type { Notification } from "../../Notification.ts"

const tags: ReadonlyMap<string, Exclude<Notification["_tag"], "Other">> = new Map([
  [Method.LoggingMessage.name, "LoggingMessage"],
  [Method.ToolListChanged.name, "ToolListChanged"],
  [Method.ResourceListChanged.name, "ResourceListChanged"],
  [Method.ResourceUpdated.name, "ResourceUpdated"],
  [Method.PromptListChanged.name, "PromptListChanged"],
  [Method.ElicitationComplete.name, "ElicitationComplete"],
  [Method.SubscriptionsAcknowledged.name, "SubscriptionsAcknowledged"]
])

/**
 * Decodes a notification in a revision; returns a message about the problem if it is malformed. Malformed optional members
 * are left out: their sender would not learn of an error.
 */
export const decode = (
  message: JsonRpc.Notification,
  revision: Revision.Revision
): Result.Result<Notification, string> => {
  const { method, params = {} } = message
  const known = Method.notification(method, revision)
  const _tag = known === undefined ? undefined : tags.get(method)
  if (known === undefined || _tag === undefined) return Result.succeed({ _tag: "Other", method, params })
  return Result.map(
    Codec.decodeParams(known, revision, params, []),
    (params) => ({ _tag, method, params }) as Notification
  )
}
