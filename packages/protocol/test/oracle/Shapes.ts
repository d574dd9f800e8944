/** The official definitions that are parts of messages, and the revisions whose official schema names each. */
import * as Schema from "effect/Schema"
import * as BaseMetadata from "@skein/protocol/BaseMetadata"
import * as Caching from "@skein/protocol/Caching"
import * as CallTool from "@skein/protocol/CallTool"
import * as Capabilities from "@skein/protocol/Capabilities"
import * as Completion from "@skein/protocol/Completion"
import * as Content from "@skein/protocol/Content"
import * as Elicitation from "@skein/protocol/Elicitation"
import * as Implementation from "@skein/protocol/Implementation"
import * as Initialize from "@skein/protocol/Initialize"
import * as InputRequired from "@skein/protocol/InputRequired"
import * as LegacyTask from "@skein/protocol/LegacyTask"
import * as Logging from "@skein/protocol/Logging"
import * as Message from "@skein/protocol/Message"
import * as Pagination from "@skein/protocol/Pagination"
import * as Primitive from "@skein/protocol/Primitive"
import * as Progress from "@skein/protocol/Progress"
import * as Prompt from "@skein/protocol/Prompt"
import * as Resource from "@skein/protocol/Resource"
import { latest, type Revision, within } from "@skein/protocol/Revision"
import * as Roots from "@skein/protocol/Roots"
import * as Sampling from "@skein/protocol/Sampling"
import * as Stamp from "@skein/protocol/Stamp"
import * as Subscription from "@skein/protocol/Subscription"
import * as Task from "@skein/protocol/Task"
import * as TaskAugmentation from "@skein/protocol/TaskAugmentation"
import * as Tool from "@skein/protocol/Tool"
import { AnyInputRequiredResult, type Source, withRequestMeta } from "./Messages.ts"

/** Definitions that the same revisions have. */
interface Group {
  readonly since?: Revision
  readonly until?: Revision
  /** The official schema of the tasks extension repeats them. */
  readonly tasks?: true
  /** They are the params of requests, whose `_meta` has the request's metadata since 2026-07-28. */
  readonly requests?: true
  readonly schemas: { readonly [name: string]: object }
}

const error = (code: number) =>
  Schema.Struct({ code: Schema.Literal(code), message: Schema.String, data: Schema.optionalKey(Primitive.AnyValue) })

const groups = (): ReadonlyArray<Group> => [
  {
    tasks: true,
    schemas: {
      BlobResourceContents: Content.BlobResourceContents,
      EmbeddedResource: Content.EmbeddedResource,
      ImageContent: Content.ImageContent,
      Implementation: Implementation.Implementation,
      ModelHint: Sampling.ModelHint,
      ModelPreferences: Sampling.ModelPreferences,
      RequestId: Message.RequestId,
      Result: Message.EmptyResult,
      Role: Content.Role,
      Root: Roots.Root,
      SamplingMessage: Sampling.SamplingMessage,
      TextContent: Content.TextContent,
      TextResourceContents: Content.TextResourceContents,
      Tool: Tool.Tool
    }
  },
  {
    schemas: {
      ClientCapabilities: Capabilities.ClientCapabilities,
      Cursor: Pagination.Cursor,
      EmptyResult: Message.EmptyResult,
      LoggingLevel: Logging.LoggingLevel,
      PaginatedResult: Pagination.PaginatedResult,
      ProgressToken: Progress.ProgressToken,
      Prompt: Prompt.Prompt,
      PromptArgument: Prompt.PromptArgument,
      PromptMessage: Prompt.PromptMessage,
      PromptReference: Completion.PromptReference,
      Resource: Resource.Resource,
      ResourceContents: Content.ResourceContents,
      ResourceTemplate: Resource.ResourceTemplate,
      ServerCapabilities: Capabilities.ServerCapabilities
    }
  },
  {
    until: "2025-03-26",
    schemas: { Annotated: Schema.Struct({ annotations: Schema.optionalKey(Content.Annotations) }) }
  },
  { until: "2025-06-18", schemas: { ResourceReference: Completion.ResourceTemplateReference } },
  {
    since: "2025-03-26",
    tasks: true,
    schemas: {
      Annotations: Content.Annotations,
      AudioContent: Content.AudioContent,
      ToolAnnotations: Tool.ToolAnnotations
    }
  },
  {
    since: "2025-06-18",
    schemas: {
      BaseMetadata: BaseMetadata.BaseMetadata,
      EnumSchema: Elicitation.EnumSchema,
      ResourceTemplateReference: Completion.ResourceTemplateReference
    }
  },
  {
    since: "2025-06-18",
    tasks: true,
    schemas: {
      BooleanSchema: Elicitation.BooleanSchema,
      ContentBlock: Content.ContentBlock,
      NumberSchema: Elicitation.NumberSchema,
      PrimitiveSchemaDefinition: Elicitation.PrimitiveSchemaDefinition,
      ResourceLink: Content.ResourceLink,
      StringSchema: Elicitation.StringSchema
    }
  },
  {
    since: "2025-11-25",
    tasks: true,
    schemas: {
      CreateMessageRequestParams: Sampling.CreateMessageRequestParams,
      ElicitRequestFormParams: Elicitation.ElicitRequestFormParams,
      ElicitRequestParams: Elicitation.ElicitRequestParams,
      ElicitRequestURLParams: Elicitation.ElicitRequestURLParams,
      Error: Task.ErrorObject,
      Icon: BaseMetadata.Icon,
      LegacyTitledEnumSchema: Elicitation.LegacyTitledEnumSchema,
      NotificationParams: Message.NotificationParams,
      SamplingMessageContentBlock: Sampling.SamplingMessageContentBlock,
      TitledMultiSelectEnumSchema: Elicitation.TitledMultiSelectEnumSchema,
      TitledSingleSelectEnumSchema: Elicitation.TitledSingleSelectEnumSchema,
      ToolChoice: Sampling.ToolChoice,
      ToolResultContent: Sampling.ToolResultContent,
      ToolUseContent: Sampling.ToolUseContent,
      UntitledMultiSelectEnumSchema: Elicitation.UntitledMultiSelectEnumSchema,
      UntitledSingleSelectEnumSchema: Elicitation.UntitledSingleSelectEnumSchema
    }
  },
  {
    since: "2025-11-25",
    requests: true,
    schemas: {
      CallToolRequestParams: CallTool.CallToolRequestParams,
      CompleteRequestParams: Completion.CompleteRequestParams,
      GetPromptRequestParams: Prompt.GetPromptRequestParams,
      PaginatedRequestParams: Pagination.PaginatedRequestParams,
      ReadResourceRequestParams: Resource.ReadResourceRequestParams,
      RequestParams: Message.RequestParams,
      ResourceRequestParams: Resource.ResourceRequestParams
    }
  },
  {
    since: "2025-11-25",
    schemas: {
      CancelledNotificationParams: Progress.CancelledNotificationParams,
      Icons: Schema.Struct(BaseMetadata.iconFields),
      LoggingMessageNotificationParams: Logging.LoggingMessageNotificationParams,
      MultiSelectEnumSchema: Elicitation.MultiSelectEnumSchema,
      ProgressNotificationParams: Progress.ProgressNotificationParams,
      ResourceUpdatedNotificationParams: Resource.ResourceUpdatedNotificationParams,
      SingleSelectEnumSchema: Elicitation.SingleSelectEnumSchema
    }
  },
  {
    since: "2025-11-25",
    until: "2026-07-28",
    schemas: {
      CreateTaskResult: LegacyTask.CreateTaskResult,
      InitializeRequestParams: Initialize.InitializeRequestParams,
      RelatedTaskMetadata: LegacyTask.RelatedTaskMetadata,
      SetLevelRequestParams: Logging.SetLevelRequestParams,
      SubscribeRequestParams: Resource.SubscribeRequestParams,
      Task: Task.Task,
      TaskAugmentedRequestParams: TaskAugmentation.TaskAugmentedRequestParams,
      TaskMetadata: TaskAugmentation.TaskMetadata,
      TaskStatus: Task.TaskStatus,
      TaskStatusNotificationParams: LegacyTask.TaskStatusNotificationParams,
      ToolExecution: Tool.ToolExecution,
      UnsubscribeRequestParams: Resource.UnsubscribeRequestParams
    }
  },
  {
    since: "2026-07-28",
    tasks: true,
    schemas: {
      InputRequest: InputRequired.InputRequest,
      InputRequests: InputRequired.InputRequests,
      InputResponse: InputRequired.InputResponse,
      InputResponses: InputRequired.InputResponses,
      JSONObject: Primitive.AnyObject,
      JSONValue: Primitive.AnyValue,
      MetaObject: Message.Meta,
      NotificationMetaObject: Subscription.NotificationMetaObject,
      ResultMetaObject: Subscription.ResultMetaObject
    }
  },
  {
    since: "2026-07-28",
    requests: true,
    schemas: {
      InputResponseRequestParams: InputRequired.InputResponseRequestParams,
      SubscriptionsListenRequestParams: Subscription.SubscriptionsListenRequestParams
    }
  },
  {
    since: "2026-07-28",
    schemas: {
      CacheableResult: Caching.CacheableResult,
      InputRequiredResult: AnyInputRequiredResult,
      InternalError: error(-32603),
      InvalidParamsError: error(-32602),
      InvalidRequestError: error(-32600),
      JSONArray: Schema.Array(Primitive.AnyValue),
      MethodNotFoundError: error(-32601),
      ParseError: error(-32700),
      RequestMetaObject: Stamp.RequestMetaObject,
      ResultType: Schema.String,
      SubscriptionFilter: Subscription.SubscriptionFilter,
      SubscriptionsAcknowledgedNotificationParams: Subscription.SubscriptionsAcknowledgedNotificationParams,
      SubscriptionsListenResultMetaObject: Subscription.SubscriptionsListenResultMetaObject
    }
  }
]

const extension = {
  CancelledTask: Task.CancelledTask,
  CompletedTask: Task.CompletedTask,
  CreateTaskResult: Task.CreateTaskResult,
  DetailedTask: Task.DetailedTask,
  FailedTask: Task.FailedTask,
  InputRequiredTask: Task.InputRequiredTask,
  Task: Task.Task,
  TaskStatus: Task.TaskStatus,
  TaskStatusNotificationParams: Task.TaskStatusNotificationParams,
  TaskSubscriptionAcknowledgedNotifications: Task.TaskSubscriptionNotifications,
  TaskSubscriptionNotifications: Task.TaskSubscriptionNotifications,
  TasksExtensionCapability: Task.TasksExtensionCapability,
  WorkingTask: Task.WorkingTask
}

/** Returns the shapes of a source, by their official names. */
export const shapes = (source: Source): Iterable<readonly [name: string, schema: Schema.Codec<unknown>]> => {
  const revision = source === "tasks" ? latest : source
  const entries: Array<readonly [string, object]> = source === "tasks" ? Object.entries(extension) : []
  for (const group of groups()) {
    if (!within(revision, group.since, group.until)) continue
    if (source === "tasks" && group.tasks !== true) continue
    for (const [name, schema] of Object.entries(group.schemas)) {
      entries.push([name, group.requests === true && source === latest ? withRequestMeta(schema) : schema])
    }
  }
  return entries as ReadonlyArray<readonly [string, Schema.Codec<unknown>]>
}
