/**
 * The table of methods: the sender, params and result of each, the revisions that have it, and the capability that it
 * needs.
 *
 * Look a method up with {@link request}, {@link notification} or {@link inputRequest}. A revision without the method
 * has no entry; the response to such a request is `-32601`. A name with two meanings, such as `tasks/get` of 2025-11-25
 * and of the tasks extension, has two entries whose revisions do not overlap.
 *
 * @example
 * Method.request("tools/call", "2025-11-25") // Method.CallTool
 * Method.request("server/discover", "2025-11-25") // undefined
 */
import type * as Schema from "effect/Schema"
import { alone, type Window } from "./Annotate.ts"
import { declares } from "./Capabilities.ts"
import { CallToolRequestParams, CallToolResult } from "./CallTool.ts"

import { CompleteRequestParams, CompleteResult } from "./Completion.ts"
import { DiscoverResult } from "./Discover.ts"
import { ElicitationCompleteNotificationParams, ElicitRequestParams, ElicitResult } from "./Elicitation.ts"
import { InitializeRequestParams, InitializeResult } from "./Initialize.ts"
import * as Legacy from "./LegacyTask.ts"
import { LoggingMessageNotificationParams, SetLevelRequestParams } from "./Logging.ts"
import { EmptyResult, NotificationParams, RequestParams } from "./Message.ts"
import { PaginatedRequestParams } from "./Pagination.ts"
import { CancelledNotificationParams, ProgressNotificationParams } from "./Progress.ts"
import { GetPromptRequestParams, GetPromptResult, ListPromptsResult } from "./Prompt.ts"
import { AnyObject } from "./Primitive.ts"
import * as Resource from "./Resource.ts"
import * as Revision from "./Revision.ts"
import { ListRootsRequestParams, ListRootsResult } from "./Roots.ts"
import { CreateMessageRequestParams, CreateMessageResult } from "./Sampling.ts"
import * as Subscription from "./Subscription.ts"
import * as Task from "./Task.ts"
import { ListToolsResult } from "./Tool.ts"

/** One of the two roles. */
export type Side = "client" | "server"

/** The sender of a message. */
export type Sender = Side | "both"

/** A capability that a method needs: `side` must have declared `path`. `receiver` is the side that gets the message. */
export interface Capability {
  readonly side: Side | "receiver"
  /**
   * The keys to the member of the capabilities, as in `["resources", "subscribe"]`. Absent and `false` mean not
   * declared.
   */
  readonly path: ReadonlyArray<string>
  /** The first revision that has the capability. In older ones the method does not need it. */
  readonly since?: Revision.Revision | undefined
}

interface BaseMethod<Params> extends Window {
  readonly name: string
  /** The sender, in any revision. {@link sender} has the sender in one revision. */
  readonly from: Sender
  /** The sender since 2026-07-28, where it differs. */
  readonly statelessFrom?: Sender | undefined
  /** The schema of the params. They may be absent if all members are optional. */
  readonly params: Schema.Codec<Params, unknown>
  readonly capability?: Capability | undefined
  /** The extension that defines the method. `undefined` for a method of the specification. */
  readonly extension?: string | undefined
}

/** A request. */
export interface RequestMethod<Params, Result> extends BaseMethod<Params> {
  readonly kind: "request"
  readonly result: Schema.Codec<Result, unknown>
  /** Whether the response may be `input_required`, since 2026-07-28. */
  readonly inputRequired: boolean
  /** Whether it is an input request inside such a response, and not a request, since 2026-07-28. */
  readonly asInput: boolean
  /** Whether the result may be cached: it has `ttlMs` and `cacheScope` since 2026-07-28. */
  readonly cacheable: boolean
  /** Whether it can be augmented with a task, in 2025-11-25. */
  readonly taskAugmented: boolean
  /** Whether the response may be a task of the extension, since 2026-07-28. */
  readonly taskAnswered: boolean
  /** The member of the params that the header `Mcp-Name` mirrors. */
  readonly nameHeader?: "name" | "uri" | "taskId" | undefined
}

/** A notification. */
export interface NotificationMethod<Params> extends BaseMethod<Params> {
  readonly kind: "notification"
}

/** Any request. */
export type AnyRequest = RequestMethod<unknown, unknown>

/** Any notification. */
export type AnyNotification = NotificationMethod<unknown>

/** The params of a method. */
export type Params<M> = M extends { readonly params: Schema.Codec<infer P, unknown> } ? P : never

/** The result of a request. */
export type Result<M> = M extends { readonly result: Schema.Codec<infer R, unknown> } ? R : never

type RequestOptions =
  & Partial<
    Pick<AnyRequest, "inputRequired" | "asInput" | "cacheable" | "taskAugmented" | "taskAnswered" | "nameHeader">
  >
  & Pick<BaseMethod<unknown>, "since" | "until" | "capability" | "extension">

const make = <P, R>(
  name: string,
  from: Sender,
  params: Schema.Codec<P, unknown>,
  result: Schema.Codec<R, unknown>,
  options: RequestOptions = {}
): RequestMethod<P, R> => ({
  kind: "request",
  name,
  from,
  params,
  result,
  inputRequired: false,
  asInput: false,
  cacheable: false,
  taskAugmented: false,
  taskAnswered: false,
  ...options
})

const notify = <P>(
  name: string,
  from: Sender,
  params: Schema.Codec<P, unknown>,
  options: Pick<BaseMethod<P>, "since" | "until" | "capability" | "extension" | "statelessFrom"> = {}
): NotificationMethod<P> => ({ kind: "notification", name, from, params, ...options })

const server = (...path: ReadonlyArray<string>): Capability => ({ side: "server", path })
const client = (...path: ReadonlyArray<string>): Capability => ({ side: "client", path })
const receiver = (...path: ReadonlyArray<string>): Capability => ({ side: "receiver", path })
const sessionBased = { until: "2026-07-28" } as const
const stateless = { since: "2026-07-28" } as const
const legacyTasks = alone("2025-11-25")
const tasks = {
  ...stateless,
  capability: server("extensions", Task.extension),
  extension: Task.extension,
  nameHeader: "taskId"
} as const

// Requests of the client.
export const Initialize = make("initialize", "client", InitializeRequestParams, InitializeResult, sessionBased)
export const Discover = make("server/discover", "client", RequestParams, DiscoverResult, {
  ...stateless,
  cacheable: true
})
export const Ping = make("ping", "both", RequestParams, EmptyResult, sessionBased)
export const ListTools = make("tools/list", "client", PaginatedRequestParams, ListToolsResult, {
  capability: server("tools"),
  cacheable: true
})
export const CallTool = make("tools/call", "client", CallToolRequestParams, CallToolResult, {
  capability: server("tools"),
  inputRequired: true,
  taskAugmented: true,
  taskAnswered: true,
  nameHeader: "name"
})
export const ListResources = make("resources/list", "client", PaginatedRequestParams, Resource.ListResourcesResult, {
  capability: server("resources"),
  cacheable: true
})
export const ListResourceTemplates = make(
  "resources/templates/list",
  "client",
  PaginatedRequestParams,
  Resource.ListResourceTemplatesResult,
  { capability: server("resources"), cacheable: true }
)
export const ReadResource = make(
  "resources/read",
  "client",
  Resource.ReadResourceRequestParams,
  Resource.ReadResourceResult,
  { capability: server("resources"), inputRequired: true, cacheable: true, nameHeader: "uri" }
)
export const Subscribe = make("resources/subscribe", "client", Resource.SubscribeRequestParams, EmptyResult, {
  ...sessionBased,
  capability: server("resources", "subscribe")
})
export const Unsubscribe = make("resources/unsubscribe", "client", Resource.UnsubscribeRequestParams, EmptyResult, {
  ...sessionBased,
  capability: server("resources", "subscribe")
})
export const SubscriptionsListen = make(
  "subscriptions/listen",
  "client",
  Subscription.SubscriptionsListenRequestParams,
  Subscription.SubscriptionsListenResult,
  stateless
)
export const ListPrompts = make("prompts/list", "client", PaginatedRequestParams, ListPromptsResult, {
  capability: server("prompts"),
  cacheable: true
})
export const GetPrompt = make("prompts/get", "client", GetPromptRequestParams, GetPromptResult, {
  capability: server("prompts"),
  inputRequired: true,
  nameHeader: "name"
})
export const Complete = make("completion/complete", "client", CompleteRequestParams, CompleteResult, {
  capability: { ...server("completions"), since: "2025-03-26" }
})
export const SetLevel = make("logging/setLevel", "client", SetLevelRequestParams, EmptyResult, {
  ...sessionBased,
  capability: server("logging")
})

// Requests of the server in a session-based revision; input requests inside results in the stateless revision.
export const CreateMessage = make("sampling/createMessage", "server", CreateMessageRequestParams, CreateMessageResult, {
  ...sessionBased,
  asInput: true,
  taskAugmented: true,
  capability: client("sampling")
})
export const ListRoots = make("roots/list", "server", ListRootsRequestParams, ListRootsResult, {
  ...sessionBased,
  asInput: true,
  capability: client("roots")
})
export const Elicit = make("elicitation/create", "server", ElicitRequestParams, ElicitResult, {
  since: "2025-06-18",
  until: "2026-07-28",
  asInput: true,
  taskAugmented: true,
  capability: client("elicitation")
})

// Requests about tasks: those of 2025-11-25, in both directions, and those of the extension.
export const LegacyGetTask = make("tasks/get", "both", Task.TaskRequestParams, Legacy.GetTaskResult, {
  ...legacyTasks,
  capability: receiver("tasks")
})
export const LegacyGetTaskPayload = make("tasks/result", "both", Task.TaskRequestParams, Legacy.GetTaskPayloadResult, {
  ...legacyTasks,
  capability: receiver("tasks")
})
export const LegacyListTasks = make("tasks/list", "both", PaginatedRequestParams, Legacy.ListTasksResult, {
  ...legacyTasks,
  capability: receiver("tasks", "list")
})
export const LegacyCancelTask = make("tasks/cancel", "both", Task.TaskRequestParams, Legacy.CancelTaskResult, {
  ...legacyTasks,
  capability: receiver("tasks", "cancel")
})
export const GetTask = make("tasks/get", "client", Task.TaskRequestParams, Task.GetTaskResult, tasks)
export const UpdateTask = make("tasks/update", "client", Task.UpdateTaskRequestParams, Task.UpdateTaskResult, tasks)
export const CancelTask = make("tasks/cancel", "client", Task.TaskRequestParams, Task.CancelTaskResult, tasks)

// Notifications.
export const Initialized = notify("notifications/initialized", "client", NotificationParams, sessionBased)
export const Cancelled = notify("notifications/cancelled", "both", CancelledNotificationParams)
export const Progress = notify("notifications/progress", "both", ProgressNotificationParams, {
  statelessFrom: "server"
})
export const LoggingMessage = notify("notifications/message", "server", LoggingMessageNotificationParams, {
  capability: server("logging")
})
export const ToolListChanged = notify("notifications/tools/list_changed", "server", NotificationParams, {
  capability: server("tools", "listChanged")
})
export const ResourceListChanged = notify("notifications/resources/list_changed", "server", NotificationParams, {
  capability: server("resources", "listChanged")
})
export const ResourceUpdated = notify(
  "notifications/resources/updated",
  "server",
  Resource.ResourceUpdatedNotificationParams,
  { capability: server("resources", "subscribe") }
)
export const PromptListChanged = notify("notifications/prompts/list_changed", "server", NotificationParams, {
  capability: server("prompts", "listChanged")
})
export const RootsListChanged = notify("notifications/roots/list_changed", "client", NotificationParams, {
  ...sessionBased,
  capability: client("roots", "listChanged")
})
export const ElicitationComplete = notify(
  "notifications/elicitation/complete",
  "server",
  ElicitationCompleteNotificationParams,
  { ...alone("2025-11-25"), capability: client("elicitation", "url") }
)
export const SubscriptionsAcknowledged = notify(
  "notifications/subscriptions/acknowledged",
  "server",
  Subscription.SubscriptionsAcknowledgedNotificationParams,
  stateless
)
export const LegacyTaskStatus = notify(
  "notifications/tasks/status",
  "both",
  Legacy.TaskStatusNotificationParams,
  legacyTasks
)
export const TaskStatus = notify("notifications/tasks", "server", Task.TaskStatusNotificationParams, {
  ...stateless,
  extension: Task.extension
})

/** Every request of every revision. */
export const requests: ReadonlyArray<AnyRequest> = [
  Initialize,
  Discover,
  Ping,
  ListTools,
  CallTool,
  ListResources,
  ListResourceTemplates,
  ReadResource,
  Subscribe,
  Unsubscribe,
  SubscriptionsListen,
  ListPrompts,
  GetPrompt,
  Complete,
  SetLevel,
  CreateMessage,
  ListRoots,
  Elicit,
  LegacyGetTask,
  LegacyGetTaskPayload,
  LegacyListTasks,
  LegacyCancelTask,
  GetTask,
  UpdateTask,
  CancelTask
]

/** Every notification of every revision. */
export const notifications: ReadonlyArray<AnyNotification> = [
  Initialized,
  Cancelled,
  Progress,
  LoggingMessage,
  ToolListChanged,
  ResourceListChanged,
  ResourceUpdated,
  PromptListChanged,
  RootsListChanged,
  ElicitationComplete,
  SubscriptionsAcknowledged,
  LegacyTaskStatus,
  TaskStatus
]

const exists = (method: Window, revision: Revision.Revision): boolean =>
  Revision.within(revision, method.since, method.until)

const table = <M extends Window & { readonly name: string }>(all: ReadonlyArray<M>) => {
  const byRevision = new Map<Revision.Revision, ReadonlyMap<string, M>>()
  return (name: string, revision: Revision.Revision): M | undefined => {
    let methods = byRevision.get(revision)
    if (methods === undefined) {
      methods = new Map(all.filter((method) => exists(method, revision)).map((method) => [method.name, method]))
      byRevision.set(revision, methods)
    }
    return methods.get(name)
  }
}

/** Returns the request with a name in a revision, or `undefined`. */
export const request: (name: string, revision: Revision.Revision) => AnyRequest | undefined = table(requests)

/**
 * Returns the request with a name: that of the revision, or else that of another revision, or else a request of an extension,
 * whose params and result are any objects.
 *
 * @example
 * Method.named("com.example/jobs", "2026-07-28").capability // undefined
 */
export const named = (name: string, revision: Revision.Revision): AnyRequest =>
  request(name, revision) ?? requests.find((method) => method.name === name) ??
    make(name, "both", AnyObject, AnyObject)

/** Returns the notification with a name in a revision, or `undefined`. */
export const notification: (name: string, revision: Revision.Revision) => AnyNotification | undefined = table(
  notifications
)

/** Returns the input request with a name in a revision, or `undefined`: the methods allowed in `inputRequests`. */
export const inputRequest = (name: string, revision: Revision.Revision): AnyRequest | undefined =>
  revision < "2026-07-28" ? undefined : requests.find((method) => method.asInput && method.name === name)

/** Returns the sender of a message in a revision. */
export const sender = (method: AnyRequest | AnyNotification, revision: Revision.Revision): Sender =>
  revision >= "2026-07-28" && method.statelessFrom !== undefined ? method.statelessFrom : method.from

/**
 * Returns the capability for augmenting a request with a task, in 2025-11-25: for `tools/call`,
 * `tasks.requests.tools.call`.
 */
export const taskCapability = (method: AnyRequest): Capability =>
  receiver("tasks", "requests", ...method.name.split("/"))

/** Whether the declared capabilities contain the needed one. */
export const has = (capabilities: unknown, needed: Capability, revision: Revision.Revision): boolean =>
  (needed.since !== undefined && revision < needed.since) || declares(capabilities, ...needed.path)
