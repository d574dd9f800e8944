/**
 * Sampling: messages from the client's language model. The specification deprecates it since 2026-07-28 (SEP-2577), but
 * it still works. New servers should call a model themselves.
 *
 * `Elicitation` describes what an input request means for a handler. It is the same effect in all revisions. In the
 * stateless revision the handler runs again with the answer, so that in a loop of tool calls each turn of the model
 * costs a round. Wrap the work of the tools in `Once.once` unless it may repeat.
 *
 * @example
 * const summarize = Tool.layer(Tool.make("summarize", { input: { text: Schema.String } }), ({ text }) =>
 *   Effect.map(
 *     Sampling.createMessage({ messages: `Summarize: ${text}`, maxTokens: 500 }),
 *     (answer) => Sampling.text(answer)
 *   ))
 */
import type * as Wire from "@skein/protocol/Sampling"
import * as SamplingMessages from "@skein/protocol/SamplingMessages"
import type { CallOptions, McpRequest } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { InputError } from "./InputError.ts"
import * as Content from "./Content.ts"
import * as inputs from "./internal/input/inputRequests.ts"
import { requestInput, type TaskOptions } from "./internal/input/requestInput.ts"

export type { TaskOptions }

/** One content block of a message: made by `Content`, or the use of a tool, or the result of one. */
export type Block = Wire.SamplingMessageContentBlock

/** A message of the user or of the assistant. */
export type Message = Wire.SamplingMessage

/** The content of a message: a text, a block, or several blocks (since 2025-11-25). */
export type Input = string | Block | ReadonlyArray<Block>

/** The request to the model. */
export interface Request extends Omit<Wire.CreateMessageRequestParams, "messages" | "_meta" | "task"> {
  /** The conversation so far. A text is one message of the user. */
  readonly messages: string | ReadonlyArray<Message>
}

/** Options of the input request. */
export interface Options extends CallOptions {
  /**
   * In the stateless revision: identifies the input request when the handler runs again, instead of a digest of its
   * content.
   */
  readonly key?: string | undefined
  /**
   * How long to wait: 10 minutes by default, because the client may ask a person for approval. See
   * `Elicitation.Options`.
   */
  readonly timeout?: Duration.Input | undefined
  /** Sends the input request as a task, in 2025-11-25. See `Elicitation.Options`. */
  readonly task?: TaskOptions | undefined
}

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

/**
 * Requests a message from the client's model (`sampling/createMessage`).
 *
 * Fails with `InputError`:
 * - `MissingCapability` if the client has not declared `sampling`. A request with tools, tool uses or tool results also
 *   needs `sampling.tools`, and one with `includeContext` needs `sampling.context` (2025-11-25 and later).
 * - `Unsupported` if the revision does not have a part of the request, such as tools or several blocks in one message.
 * - `InvalidRequest` if tool uses and tool results do not match.
 * - `Timeout`, `LimitExceeded`, `Closed`, `ProtocolError`, `InvalidResponse`.
 *
 * @example
 * const answer = yield* Sampling.createMessage({ messages: "Name a tea", maxTokens: 20 })
 */
export const createMessage = (request: Request, options?: Options): Effect.Effect<Answer, InputError, McpRequest> => {
  const messages = typeof request.messages === "string" ? [user(request.messages)] : request.messages
  return Effect.map(
    requestInput(inputs.createMessage({ ...request, messages }), options, true),
    (result): Answer => ({ ...result, content: SamplingMessages.blocksOf(result.content) })
  )
}
