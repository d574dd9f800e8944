/**
 * Checks the order of tool uses and tool results in sampling messages (2025-11-25 and later, sampling, message content
 * constraints).
 */
import type { SamplingMessage } from "@skein/protocol/Sampling"
import { blocksOf } from "@skein/protocol/SamplingMessages"

/** Describes the first violation of the order. `undefined` for a valid order. */
export const imbalance = (messages: ReadonlyArray<SamplingMessage>): string | undefined => {
  // The ids of the tool uses in the previous message, for which this message must have the results.
  let open: ReadonlySet<string> | undefined
  for (const [index, { content, role }] of messages.entries()) {
    const blocks = blocksOf(content)
    const results = new Set<string>()
    const uses = new Set<string>()
    for (const block of blocks) {
      if (block.type === "tool_result") results.add(block.toolUseId)
      else if (block.type === "tool_use") uses.add(block.id)
    }
    const pure = blocks.every(({ type }) => type === "tool_result")
    if (open !== undefined) {
      // "every assistant message containing `ToolUseContent` blocks MUST be followed by a user message that consists
      // entirely of `ToolResultContent` blocks, with each tool use […] matched by a corresponding tool result […],
      // before any other message"
      if (role !== "user" || results.size === 0) return `messages[${index}]: the results of the tools are missing`
      if (!pure) return `messages[${index}]: tool results are mixed with other content`
      for (const id of open) {
        if (!results.has(id)) return `messages[${index}]: a tool result is missing`
      }
    }
    // "When a user message contains tool results (type: "tool_result"), it MUST contain ONLY tool results."
    if (role === "user" && results.size > 0 && !pure) {
      return `messages[${index}]: tool results are mixed with other content`
    }
    open = role === "assistant" && uses.size > 0 ? uses : undefined
  }
  return open === undefined ? undefined : `messages[${messages.length - 1}]: the results of the tools are missing`
}
