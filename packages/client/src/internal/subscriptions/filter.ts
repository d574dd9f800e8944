/**
 * What is asked for, what is agreed to, and which notifications that is about.
 */
import * as Codec from "@skein/protocol/Codec"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { SubscriptionFilter } from "@skein/protocol/Subscription"
import * as Result from "effect/Result"
import type { Change, Filter, Honoured } from "../../Changes.ts"
import { ClientError, Unsupported } from "../../ClientError.ts"

/** What a filter asks for: each resource and each task once. */
export const wantedOf = ({ prompts, resources, taskIds, tools, uris }: Filter): Honoured => ({
  tools: tools === true,
  prompts: prompts === true,
  resources: resources === true,
  uris: [...new Set(uris)],
  taskIds: [...new Set(taskIds)]
})

/** Whether there is nothing in it. */
export const isEmpty = ({ prompts, resources, taskIds, tools, uris }: Honoured): boolean =>
  !tools && !prompts && !resources && uris.length === 0 && taskIds.length === 0

/** The error of a stream that would never say anything. */
export const unsupported = (message: string, cause?: ClientError): ClientError =>
  new ClientError({ reason: new Unsupported({ message, cause }), method: Method.SubscriptionsListen.name })

/** A filter as `subscriptions/listen` has it. */
export const toSubscriptionFilter = ({ prompts, resources, taskIds, tools, uris }: Honoured): SubscriptionFilter => ({
  ...(tools ? { toolsListChanged: true } : undefined),
  ...(prompts ? { promptsListChanged: true } : undefined),
  ...(resources ? { resourcesListChanged: true } : undefined),
  ...(uris.length === 0 ? undefined : { resourceSubscriptions: uris }),
  ...(taskIds.length === 0 ? undefined : { taskIds })
})

/**
 * Reads what an acknowledgment agrees to, as far as it was asked for. By hand, for a member that is malformed is only not agreed to.
 * A server may write a URI otherwise than it was asked for, but not more of them; what names a task is never rewritten.
 */
export const acknowledgedFilter = (params: JsonRpc.JsonObject | undefined, wanted: Honoured): Honoured => {
  const raw = params?.["notifications"]
  const said = JsonRpc.isObject(raw) ? raw : {}
  const { resourceSubscriptions: uris, taskIds } = said
  return {
    tools: wanted.tools && said["toolsListChanged"] === true,
    prompts: wanted.prompts && said["promptsListChanged"] === true,
    resources: wanted.resources && said["resourcesListChanged"] === true,
    uris: Array.isArray(uris)
      ? uris.filter((uri) => typeof uri === "string").slice(0, wanted.uris.length)
      : [],
    taskIds: Array.isArray(taskIds) ? wanted.taskIds.filter((id) => taskIds.includes(id)) : []
  }
}

/** What a notification says about a task, without what belongs to the message. */
const taskOf = (params: JsonRpc.JsonObject | undefined, { taskIds }: Honoured): Change | undefined => {
  const taskId = params?.["taskId"]
  if (typeof taskId !== "string" || !taskIds.includes(taskId)) return undefined
  const read = Codec.decodeParams(Method.TaskStatus, "2026-07-28", params)
  if (Result.isFailure(read)) return undefined
  const { _meta, ...task } = read.success
  return { _tag: "TaskChanged", task }
}

/** What a notification says has changed, if that was asked for; what is malformed says nothing. */
export const changeOf = ({ method, params }: JsonRpc.Notification, wanted: Honoured): Change | undefined => {
  switch (method) {
    case Method.TaskStatus.name:
      return taskOf(params, wanted)
    case Method.ToolListChanged.name:
      return wanted.tools ? { _tag: "ToolListChanged" } : undefined
    case Method.PromptListChanged.name:
      return wanted.prompts ? { _tag: "PromptListChanged" } : undefined
    case Method.ResourceListChanged.name:
      return wanted.resources ? { _tag: "ResourceListChanged" } : undefined
    case Method.ResourceUpdated.name: {
      const uri = params?.["uri"]
      return wanted.uris.length > 0 && typeof uri === "string" ? { _tag: "ResourceUpdated", uri } : undefined
    }
    default:
      return undefined
  }
}
