/**
 * The rules for tool uses and tool results in the messages of a sampling request (2025-11-25 and later,
 * client/sampling, message content constraints). A server checks them before it sends a request, a client before it
 * asks its model.
 */
import type {
  SamplingContent,
  SamplingMessage,
  SamplingMessageContentBlock,
  ToolResultContent,
  ToolUseContent
} from "./Sampling.ts"
import { quote } from "./Text.ts"

/** The content of a message as a list, even if it is a single block. */
export const blocksOf = (content: SamplingContent): ReadonlyArray<SamplingMessageContentBlock> =>
  Array.isArray(content) ? content : [content as SamplingMessageContentBlock]

/** Whether a block is a tool use. */
export const isToolUse = (block: SamplingMessageContentBlock): block is ToolUseContent => block.type === "tool_use"

/** Whether a block is a tool result. */
export const isToolResult = (block: SamplingMessageContentBlock): block is ToolResultContent =>
  block.type === "tool_result"

/** Whether the content has a tool use, as the answer of a model that wants to call tools. */
export const hasToolUse = (content: SamplingContent): boolean => blocksOf(content).some(isToolUse)

/**
 * Whether the content has a tool use or a tool result, so that its message needs the client capability
 * `sampling.tools`: "Servers MUST NOT send tool-enabled sampling requests to Clients that have not declared support for
 * tool use via the `sampling.tools` capability."
 */
export const hasTools = (content: SamplingContent): boolean =>
  blocksOf(content).some((block) => isToolUse(block) || isToolResult(block))

/**
 * Checks the messages of a sampling request. Returns the first problem as one line that starts with the message's
 * index, or `undefined` where there is none. Both revisions with tools in sampling require:
 *
 * - "When a user message contains tool results (type: "tool_result"), it MUST contain ONLY tool results."
 * - "Every assistant message containing `ToolUseContent` blocks MUST be followed by a user message that consists
 *   entirely of `ToolResultContent` blocks, with each tool use […] matched by a corresponding tool result […], before
 *   any other message."
 * - "Tool use requests are sent in `CreateMessageResult` with the "assistant" role. Tool results are sent back in
 *   messages with the "user" role." (message roles)
 * - The `toolUseId` of a tool result "MUST match the ID from a previous `ToolUseContent`" (schema). All results of a
 *   tool use are in the message directly after it, so a result in any other message matches nothing.
 *
 * The response to a request with a problem is `-32602` ("Tool result missing in request", "Tool results mixed with
 * other content"). Providers of models refuse such messages too.
 *
 * @example
 * SamplingMessages.problemOf([{ role: "assistant", content: { type: "tool_use", id: "1", name: "add", input: {} } }])
 * // messages[0]: tool result missing for the tool use "1"
 */
export const problemOf = (messages: ReadonlyArray<SamplingMessage>): string | undefined => {
  let uses: ReadonlyArray<string> = []
  for (const [index, { content, role }] of messages.entries()) {
    const blocks = blocksOf(content)
    const results = new Set(blocks.filter(isToolResult).map(({ toolUseId }) => toolUseId))
    const problem = problemOfBlocks(blocks, role) ?? problemOfResults(uses, results)
    if (problem !== undefined) return `messages[${index}]: ${problem}`
    uses = blocks.filter(isToolUse).map(({ id }) => id)
  }
  return uses.length === 0
    ? undefined
    : `messages[${messages.length - 1}]: tool result missing for the tool use ${quote(uses[0]!)}`
}

const problemOfBlocks = (
  blocks: ReadonlyArray<SamplingMessageContentBlock>,
  role: SamplingMessage["role"]
): string | undefined => {
  if (role === "user" && blocks.some(isToolUse)) return "a tool use must be in a message of the assistant"
  if (!blocks.some(isToolResult)) return undefined
  if (role !== "user") return "a tool result must be in a message of the user"
  return blocks.every(isToolResult) ? undefined : "tool results mixed with other content"
}

const problemOfResults = (uses: ReadonlyArray<string>, results: ReadonlySet<string>): string | undefined => {
  const missing = uses.find((id) => !results.has(id))
  if (missing !== undefined) return `tool result missing for the tool use ${quote(missing)}`
  if (results.size === 0) return undefined
  const known = new Set(uses)
  const orphan = [...results].find((id) => !known.has(id))
  return orphan === undefined ? undefined : `the tool result ${quote(orphan)} matches no tool use of the message before`
}
