/**
 * The messages of a conversation with a model. They need no request to the client, so that programs can use them without
 * its code.
 */
import type * as Wire from "@skein/protocol/Sampling"
import * as SamplingMessages from "@skein/protocol/SamplingMessages"
import * as Content from "../../Content.ts"

/** One content block of a message: made by `Content`, or the use of a tool, or the result of one. */
export type Block = Wire.SamplingMessageContentBlock

/** A message of the user or of the assistant. */
export type Message = Wire.SamplingMessage

/** The content of a message: a text, a block, or several blocks (since 2025-11-25). */
export type Input = string | Block | ReadonlyArray<Block>

/** The answer of the model. Its content is always a list, even if the client sent a single block. */
export interface Answer extends Omit<Wire.CreateMessageResult, "content"> {
  readonly content: ReadonlyArray<Block>
}

const message = (role: Message["role"], content: Input): Message => ({
  role,
  content: typeof content === "string" ? Content.text(content) : content
})

/** Makes a message of the user. */
export const user = (content: Input): Message => message("user", content)

/** Makes a message of the assistant. */
export const assistant = (content: Input): Message => message("assistant", content)

/**
 * Turns the answer into a message, to continue the conversation.
 *
 * @example
 * const next = yield* Sampling.createMessage({
 *   messages: [...messages, Sampling.toMessage(answer), Sampling.user("Shorter, please")],
 *   maxTokens: 100
 * })
 */
export const toMessage = ({ content, role }: Answer): Message => ({
  role,
  content: content.length === 1 ? content[0]! : content
})

/**
 * Makes the result of a tool that the model has used. Answer all uses of tools in a message with one message: `user`
 * with a list of results.
 *
 * @example
 * const results = Sampling.toolUses(answer).map((use) => Sampling.toolResult(use, run(use.name, use.input)))
 * const next = [...messages, Sampling.toMessage(answer), Sampling.user(results)]
 */
export const toolResult = (
  use: Pick<Wire.ToolUseContent, "id">,
  content: Content.Input,
  rest: Pick<Wire.ToolResultContent, "isError" | "structuredContent"> = {}
): Wire.ToolResultContent => ({ type: "tool_result", toolUseId: use.id, content: Content.blocks(content), ...rest })

/** Returns the uses of tools in an answer. */
export const toolUses = ({ content }: Pick<Answer, "content">): ReadonlyArray<Wire.ToolUseContent> =>
  content.filter(SamplingMessages.isToolUse)

/** Returns the concatenated text blocks of an answer. */
export const text = ({ content }: Pick<Answer, "content">): string =>
  content.map((block) => block.type === "text" ? block.text : "").join("")
