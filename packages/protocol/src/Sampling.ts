/**
 * Sampling: the server asks the client's language model, `sampling/createMessage`. A request of its own in the session era,
 * an input request inside a result in the request era.
 */
import * as Schema from "effect/Schema"
import { member, refuse, since } from "./Annotate.ts"
import { answerFields, AnyObject, Meta, Role, structuredFields, taskFields } from "./Common.ts"
import { AudioContent, ContentBlock, ImageContent, TextContent } from "./Content.ts"
import { Tool } from "./Tool.ts"

const messageMeta = { _meta: since("2025-11-25", Schema.optionalKey(Meta)) }

/** The model calls a tool. Since 2025-11-25; older peers cannot be told. */
export class ToolUseContent extends Schema.Opaque<ToolUseContent>()(member(
  Schema.Struct({
    type: Schema.Literal("tool_use"),
    /** Ties the result to the call. */
    id: Schema.String,
    name: Schema.String,
    input: AnyObject,
    ...messageMeta
  }),
  { since: "2025-11-25", name: "tool use in sampling" }
)) {}

/** What a tool that the model called answered. Since 2025-11-25; older peers cannot be told. */
export class ToolResultContent extends Schema.Opaque<ToolResultContent>()(member(
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    toolUseId: Schema.String,
    content: Schema.Array(ContentBlock),
    ...structuredFields,
    isError: Schema.optionalKey(Schema.Boolean),
    ...messageMeta
  }),
  { since: "2025-11-25", name: "tool result in sampling" }
)) {}

/** One block of what is said to a model, or by it. */
export const SamplingMessageContentBlock = Schema.Union([
  TextContent,
  ImageContent,
  AudioContent,
  ToolUseContent,
  ToolResultContent
])
export type SamplingMessageContentBlock = typeof SamplingMessageContentBlock.Type

/** One block, or several since 2025-11-25. Several that are exactly one are written to older peers as that one. */
export const SamplingContent = Schema.Union([
  SamplingMessageContentBlock,
  member(Schema.Array(SamplingMessageContentBlock), {
    since: "2025-11-25",
    degrade: (blocks, revision) =>
      blocks.length === 1 ? blocks[0] : refuse(`${revision} has one block per sampling message, not ${blocks.length}`)
  })
])
export type SamplingContent = typeof SamplingContent.Type

/** Something said to a model, or by it. */
export class SamplingMessage extends Schema.Opaque<SamplingMessage>()(Schema.Struct({
  role: Role,
  content: SamplingContent,
  ...messageMeta
})) {}

/** Part of a model's name. */
export class ModelHint extends Schema.Opaque<ModelHint>()(Schema.Struct({
  name: Schema.optionalKey(Schema.String)
})) {}

const priority = Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })))

/** Which model the server would like. Each priority goes from 0, unimportant, to 1, most important. */
export class ModelPreferences extends Schema.Opaque<ModelPreferences>()(Schema.Struct({
  hints: Schema.optionalKey(Schema.Array(ModelHint)),
  costPriority: priority,
  speedPriority: priority,
  intelligencePriority: priority
})) {}

/** Whether the model may or must call tools. Absent means `auto`. */
export class ToolChoice extends Schema.Opaque<ToolChoice>()(Schema.Struct({
  mode: Schema.optionalKey(Schema.Literals(["auto", "required", "none"]))
})) {}

/** The params of `sampling/createMessage`. */
export class CreateMessageRequestParams extends Schema.Opaque<CreateMessageRequestParams>()(Schema.Struct({
  ...taskFields,
  messages: Schema.Array(SamplingMessage),
  modelPreferences: Schema.optionalKey(ModelPreferences),
  systemPrompt: Schema.optionalKey(Schema.String),
  includeContext: Schema.optionalKey(Schema.Literals(["none", "thisServer", "allServers"])),
  temperature: Schema.optionalKey(Schema.Finite),
  maxTokens: Schema.Int,
  stopSequences: Schema.optionalKey(Schema.Array(Schema.String)),
  metadata: Schema.optionalKey(AnyObject),
  tools: since("2025-11-25", Schema.optionalKey(Schema.Array(Tool)), { refuse: "tools in sampling" }),
  toolChoice: since("2025-11-25", Schema.optionalKey(ToolChoice))
})) {}

/** The answer to `sampling/createMessage`. */
export class CreateMessageResult extends Schema.Opaque<CreateMessageResult>()(Schema.Struct({
  ...answerFields,
  role: Role,
  content: SamplingContent,
  model: Schema.String,
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or whatever else the provider says. */
  stopReason: Schema.optionalKey(Schema.String)
})) {}
