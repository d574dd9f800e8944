/**
 * The plain types of messages mean the same as the schemas of `@skein/protocol`: what a program writes is accepted there, and what
 * it reads from there has these types.
 */
import { describe, expectTypeOf, it } from "@effect/vitest"
import type * as CallTool from "@skein/protocol/CallTool"
import type * as Base from "@skein/protocol/BaseMetadata"
import type * as Completion from "@skein/protocol/Completion"
import type * as Content from "@skein/protocol/Content"
import type * as Elicitation from "@skein/protocol/Elicitation"
import type * as Implementation from "@skein/protocol/Implementation"
import type * as Logging from "@skein/protocol/Logging"
import type * as Prompt from "@skein/protocol/Prompt"
import type * as Resource from "@skein/protocol/Resource"
import type * as Revision from "@skein/protocol/Revision"
import type * as Roots from "@skein/protocol/Roots"
import type * as Sampling from "@skein/protocol/Sampling"
import type * as Tool from "@skein/protocol/Tool"
import type * as RequestContext from "@skein/runtime/RequestContext"
import type * as Plain from "skein"

/** Each type of this package, and the type of `@skein/protocol` that it stands for. */
interface Pairs {
  readonly Annotations: [Plain.Annotations, Content.Annotations]
  readonly AudioContent: [Plain.AudioContent, Content.AudioContent]
  readonly BlobResourceContents: [Plain.BlobResourceContents, Content.BlobResourceContents]
  readonly CallToolResult: [Plain.CallToolResult, CallTool.CallToolResult]
  readonly CompleteResult: [Plain.CompleteResult, Completion.CompleteResult]
  readonly ContentBlock: [Plain.ContentBlock, Content.ContentBlock]
  readonly CreateMessageRequestParams: [Plain.CreateMessageRequestParams, Sampling.CreateMessageRequestParams]
  readonly CreateMessageResult: [Plain.CreateMessageResult, Sampling.CreateMessageResult]
  readonly ElicitResult: [Plain.ElicitResult, Elicitation.ElicitResult]
  readonly ElicitValue: [Plain.ElicitValue, typeof Elicitation.ElicitValue.Type]
  readonly EmbeddedResource: [Plain.EmbeddedResource, Content.EmbeddedResource]
  readonly GetPromptResult: [Plain.GetPromptResult, Prompt.GetPromptResult]
  readonly Icon: [Plain.Icon, Base.Icon]
  readonly ImageContent: [Plain.ImageContent, Content.ImageContent]
  readonly Implementation: [Plain.Implementation, Implementation.Implementation]
  readonly LoggingLevel: [Plain.LoggingLevel, Logging.LoggingLevel]
  readonly LoggingMessage: [Plain.LoggingMessage, Logging.LoggingMessageNotificationParams]
  readonly ModelPreferences: [Plain.ModelPreferences, Sampling.ModelPreferences]
  readonly Progress: [Plain.Progress, RequestContext.Progress]
  readonly Prompt: [Plain.Prompt, Prompt.Prompt]
  readonly PromptArgument: [Plain.PromptArgument, Prompt.PromptArgument]
  readonly PromptMessage: [Plain.PromptMessage, Prompt.PromptMessage]
  readonly ReadResourceResult: [Plain.ReadResourceResult, Resource.ReadResourceResult]
  readonly Resource: [Plain.Resource, Resource.Resource]
  readonly ResourceContents: [Plain.ResourceContents, Content.AnyResourceContents]
  readonly ResourceLink: [Plain.ResourceLink, Content.ResourceLink]
  readonly ResourceTemplate: [Plain.ResourceTemplate, Resource.ResourceTemplate]
  readonly Revision: [Plain.Revision, Revision.Revision]
  readonly Role: [Plain.Role, typeof Content.Role.Type]
  readonly Root: [Plain.Root, Roots.Root]
  readonly SamplingMessage: [Plain.SamplingMessage, Sampling.SamplingMessage]
  readonly SamplingMessageContentBlock: [
    Plain.SamplingMessageContentBlock,
    Sampling.SamplingMessageContentBlock
  ]
  readonly TextContent: [Plain.TextContent, Content.TextContent]
  readonly TextResourceContents: [Plain.TextResourceContents, Content.TextResourceContents]
  readonly Tool: [Plain.Tool, Tool.Tool]
  readonly ToolAnnotations: [Plain.ToolAnnotations, Tool.ToolAnnotations]
  readonly ToolResultContent: [Plain.ToolResultContent, Sampling.ToolResultContent]
  readonly ToolUseContent: [Plain.ToolUseContent, Sampling.ToolUseContent]
}

/** The names of the pairs whose first type is not assignable to the second, and the other way. */
type Differing = {
  readonly [Name in keyof Pairs]: Pairs[Name] extends [infer A, infer B]
    ? [A] extends [B] ? [B] extends [A] ? never : `${Name} of the protocol is not assignable to ${Name}`
    : `${Name} is not assignable to that of the protocol`
    : never
}[keyof Pairs]

/** The members of the protocol's types that those of this package lack. */
type Lacking = {
  readonly [Name in keyof Pairs]: Pairs[Name] extends [infer A, infer B]
    ? [B] extends [object] ? `${Name}.${Exclude<keyof B, keyof A> & string}` : never
    : never
}[keyof Pairs]

describe("messages", () => {
  it("are assignable to those of the protocol, and from them", () => {
    expectTypeOf<Differing>().toEqualTypeOf<never>()
  })

  it("have all members but those that the server and the client write", () => {
    expectTypeOf<Lacking>().toEqualTypeOf<
      | "CallToolResult.resultType"
      | "CompleteResult.resultType"
      | "CreateMessageRequestParams.task"
      | "GetPromptResult.resultType"
      | "ReadResourceResult.resultType"
    >()
  })
})
