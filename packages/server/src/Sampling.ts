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
import * as inputs from "./internal/input/inputRequests.ts"
import { type Answer, type Message, user } from "./internal/input/conversation.ts"
import { requestInput, type TaskOptions } from "./internal/input/requestInput.ts"

export type { TaskOptions }
export {
  type Answer,
  assistant,
  type Block,
  type Input,
  type Message,
  text,
  toMessage,
  toolResult,
  toolUses,
  user
} from "./internal/input/conversation.ts"

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
