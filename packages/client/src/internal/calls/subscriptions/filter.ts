/**
 * The filter of a subscription: as requested, as acknowledged, and as notifications match it.
 */
import * as Codec from "@skein/protocol/Codec"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { SubscriptionFilter } from "@skein/protocol/Subscription"
import * as Result from "effect/Result"
import type { Change, Filter, Honoured } from "../../../Changes.ts"
import { type ClientError, Unsupported } from "../../../ClientError.ts"
import { clientError } from "../../base/errors.ts"

/** A filter with each resource and each task once. */
export const wantedOf = ({ prompts, resources, taskIds, tools, uris }: Filter): Honoured => ({
  tools: tools === true,
  prompts: prompts === true,
  resources: resources === true,
  uris: [...new Set(uris)],
  taskIds: [...new Set(taskIds)]
})

/** Whether the filter selects nothing. */
export const isEmpty = ({ prompts, resources, taskIds, tools, uris }: Honoured): boolean =>
  !tools && !prompts && !resources && uris.length === 0 && taskIds.length === 0

/** The error of a stream that would never have an element. */
export const unsupported = (message: string, cause?: ClientError): ClientError =>
  clientError(Unsupported, message, Method.SubscriptionsListen.name, cause)

/** The filter in the form of `subscriptions/listen`. */
export const toSubscriptionFilter = ({ prompts, resources, taskIds, tools, uris }: Honoured): SubscriptionFilter => ({
  ...(tools ? { toolsListChanged: true } : undefined),
  ...(prompts ? { promptsListChanged: true } : undefined),
  ...(resources ? { resourcesListChanged: true } : undefined),
  ...(uris.length === 0 ? undefined : { resourceSubscriptions: uris }),
  ...(taskIds.length === 0 ? undefined : { taskIds })
})

/**
 * Reads the acknowledged part of a filter. A malformed member counts as not acknowledged, so no schema is used. A
 * server may write a URI in another form, but not more URIs than were requested. Ids of tasks must be equal.
 */
export const acknowledgedFilter = (params: JsonRpc.JsonObject | undefined, wanted: Honoured): Honoured => {
  const raw = params?.["notifications"]
  const acknowledged = JsonRpc.isObject(raw) ? raw : {}
  const { resourceSubscriptions: uris, taskIds } = acknowledged
  return {
    tools: wanted.tools && acknowledged["toolsListChanged"] === true,
    prompts: wanted.prompts && acknowledged["promptsListChanged"] === true,
    resources: wanted.resources && acknowledged["resourcesListChanged"] === true,
    uris: Array.isArray(uris)
      ? uris.filter((uri) => typeof uri === "string").slice(0, wanted.uris.length)
      : [],
    taskIds: Array.isArray(taskIds) ? wanted.taskIds.filter((id) => taskIds.includes(id)) : []
  }
}

/** The task of a notification, without `_meta`. */
const taskOf = (params: JsonRpc.JsonObject | undefined, { taskIds }: Honoured): Change | undefined => {
  const taskId = params?.["taskId"]
  if (typeof taskId !== "string" || !taskIds.includes(taskId)) return undefined
  const read = Codec.decodeParams(Method.TaskStatus, "2026-07-28", params, [])
  if (Result.isFailure(read)) return undefined
  const { _meta, ...task } = read.success
  return { _tag: "TaskChanged", task }
}

/** The change of a notification, if it was requested. A malformed notification gives none. */
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
