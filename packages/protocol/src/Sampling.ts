/**
 * Sampling: the server asks the client's language model for a message (`sampling/createMessage`). In a session-based
 * revision it is a request; in the stateless revision it is an input request inside a result (see `InputRequired`).
 * `SamplingMessages` has the rules for tool uses and tool results in a list of messages.
 */
import * as Schema from "effect/Schema"
import { essential, field, member, refuse, since } from "./Annotate.ts"
import { AudioContent, ContentBlock, ImageContent, Role, structuredFields, TextContent } from "./Content.ts"
import { answerFields, Meta } from "./Message.ts"
import { AnyObject } from "./Primitive.ts"
import { taskFields } from "./TaskAugmentation.ts"
import { Tool } from "./Tool.ts"

const messageMeta = { _meta: since("2025-11-25", Schema.optionalKey(Meta)) }

/** A call of a tool by the model, since 2025-11-25. Writing it for an older peer is refused. */
export class ToolUseContent extends Schema.Opaque<ToolUseContent>()(member(
  Schema.Struct({
    type: Schema.Literal("tool_use"),
    /** The id that the matching {@link ToolResultContent} repeats as `toolUseId`. */
    id: Schema.String,
    name: Schema.String,
    input: AnyObject,
    ...messageMeta
  }),
  { since: "2025-11-25", name: "tool use in sampling" }
)) {}

/** The result of a tool that the model called, since 2025-11-25. Writing it for an older peer is refused. */
export class ToolResultContent extends Schema.Opaque<ToolResultContent>()(member(
  Schema.Struct({
    type: Schema.Literal("tool_result"),
    toolUseId: Schema.String,
    content: field(Schema.Array(ContentBlock), { absent: [] }),
    ...structuredFields,
    isError: Schema.optionalKey(Schema.Boolean),
    ...messageMeta
  }),
  { since: "2025-11-25", name: "tool result in sampling" }
)) {}

/** One block of a message to or from the model. */
export const SamplingMessageContentBlock = Schema.Union([
  TextContent,
  ImageContent,
  AudioContent,
  ToolUseContent,
  ToolResultContent
])
export type SamplingMessageContentBlock = typeof SamplingMessageContentBlock.Type

/**
 * One block, or an array of blocks since 2025-11-25. For older peers an array of one block is written as that block.
 */
export const SamplingContent = Schema.Union([
  SamplingMessageContentBlock,
  member(Schema.Array(SamplingMessageContentBlock), {
    since: "2025-11-25",
    degrade: (blocks, revision) =>
      blocks.length === 1
        ? blocks[0]
        : refuse(`${revision} allows one block per sampling message, not ${blocks.length}`)
  })
])
export type SamplingContent = typeof SamplingContent.Type

/** A message to or from the model. */
export class SamplingMessage extends Schema.Opaque<SamplingMessage>()(Schema.Struct({
  role: Role,
  content: SamplingContent,
  ...messageMeta
})) {}

/** A part of a model's name, as a preference. */
export class ModelHint extends Schema.Opaque<ModelHint>()(Schema.Struct({
  name: Schema.optionalKey(Schema.String)
})) {}

const priority = Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })))

/** The server's preferences for a model. Each priority is a number from 0 (unimportant) to 1 (most important). */
export class ModelPreferences extends Schema.Opaque<ModelPreferences>()(Schema.Struct({
  hints: Schema.optionalKey(Schema.Array(ModelHint)),
  costPriority: priority,
  speedPriority: priority,
  intelligencePriority: priority
})) {}

/** Whether the model may, must or must not call tools. The default is `auto`. */
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

/** The result of `sampling/createMessage`. */
export class CreateMessageResult extends Schema.Opaque<CreateMessageResult>()(Schema.Struct({
  ...answerFields,
  role: Role,
  content: essential(SamplingContent),
  model: Schema.String,
  /** `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a value of the model's provider. */
  stopReason: Schema.optionalKey(Schema.String)
})) {}
