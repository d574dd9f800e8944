/** The shapes among the official definitions that are no messages of their own, and when each has a name. */
import * as Schema from "effect/Schema"
import * as CallTool from "../CallTool.ts"
import * as Capabilities from "../Capabilities.ts"
import * as Common from "../Common.ts"
import * as Completion from "../Completion.ts"
import * as Content from "../Content.ts"
import * as Elicitation from "../Elicitation.ts"
import * as Initialize from "../Initialize.ts"
import * as InputRequired from "../InputRequired.ts"
import * as LegacyTask from "../LegacyTask.ts"
import * as Logging from "../Logging.ts"
import * as Progress from "../Progress.ts"
import * as Prompt from "../Prompt.ts"
import * as RequestMeta from "../RequestMeta.ts"
import * as Resource from "../Resource.ts"
import { latest, type Revision, within } from "../Revision.ts"
import * as Roots from "../Roots.ts"
import * as Sampling from "../Sampling.ts"
import * as Subscription from "../Subscription.ts"
import * as Task from "../Task.ts"
import * as Tool from "../Tool.ts"
import { AnyInputRequiredResult, withRequestMeta } from "./messages.ts"
import type { Source } from "./source.ts"

/** Some names that come and go together. `tasks`: the extension's schema repeats them. */
interface Group {
  readonly since?: Revision
  readonly until?: Revision
  readonly tasks?: true
  /** The params of requests: since 2026-07-28 their `_meta` holds the request's metadata. */
  readonly requests?: true
  readonly schemas: { readonly [name: string]: object }
}

const TaskAugmentedRequestParams = Schema.Struct(Common.taskFields)
const error = (code: number) =>
  Schema.Struct({ code: Schema.Literal(code), message: Schema.String, data: Schema.optionalKey(Common.AnyValue) })

const groups = (): ReadonlyArray<Group> => [
  {
    tasks: true,
    schemas: {
      BlobResourceContents: Content.BlobResourceContents,
      EmbeddedResource: Content.EmbeddedResource,
      ImageContent: Content.ImageContent,
      Implementation: Common.Implementation,
      ModelHint: Sampling.ModelHint,
      ModelPreferences: Sampling.ModelPreferences,
      RequestId: Common.RequestId,
      Result: Common.EmptyResult,
      Role: Common.Role,
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
      Cursor: Common.Cursor,
      EmptyResult: Common.EmptyResult,
      LoggingLevel: Common.LoggingLevel,
      PaginatedResult: Common.PaginatedResult,
      ProgressToken: Common.ProgressToken,
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
    schemas: { Annotated: Schema.Struct({ annotations: Schema.optionalKey(Common.Annotations) }) }
  },
  { until: "2025-06-18", schemas: { ResourceReference: Completion.ResourceTemplateReference } },
  {
    since: "2025-03-26",
    tasks: true,
    schemas: {
      Annotations: Common.Annotations,
      AudioContent: Content.AudioContent,
      ToolAnnotations: Tool.ToolAnnotations
    }
  },
  {
    since: "2025-06-18",
    schemas: {
      BaseMetadata: Common.BaseMetadata,
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
      Icon: Common.Icon,
      LegacyTitledEnumSchema: Elicitation.LegacyTitledEnumSchema,
      NotificationParams: Common.NotificationParams,
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
      PaginatedRequestParams: Common.PaginatedRequestParams,
      ReadResourceRequestParams: Resource.ReadResourceRequestParams,
      RequestParams: Common.RequestParams,
      ResourceRequestParams: Resource.ResourceRequestParams
    }
  },
  {
    since: "2025-11-25",
    schemas: {
      CancelledNotificationParams: Progress.CancelledNotificationParams,
      Icons: Schema.Struct(Common.iconFields),
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
      TaskAugmentedRequestParams,
      TaskMetadata: Common.TaskMetadata,
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
      JSONObject: Common.AnyObject,
      JSONValue: Common.AnyValue,
      MetaObject: Common.Meta,
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
      CacheableResult: Common.CacheableResult,
      InputRequiredResult: AnyInputRequiredResult,
      InternalError: error(-32603),
      InvalidParamsError: error(-32602),
      InvalidRequestError: error(-32600),
      JSONArray: Schema.Array(Common.AnyValue),
      MethodNotFoundError: error(-32601),
      ParseError: error(-32700),
      RequestMetaObject: RequestMeta.RequestMetaObject,
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

/** The shapes of a source. */
export const of = (source: Source): Iterable<readonly [name: string, schema: Schema.Codec<unknown>]> => {
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
