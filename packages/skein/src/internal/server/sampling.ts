/**
 * The messages of a conversation with the client's model.
 */
import * as Core from "@skein/server/AsyncDefinition"
import type { SamplingMessage, ToolResultContent, ToolUseContent } from "../base/messages.ts"
import type { ContentInput } from "./content.ts"
import type { SampleAnswer, SampleInput } from "./handlerContext.ts"

/** The functions of `Sampling`. */
export interface Sampling {
  /** Makes a message of the user. */
  readonly user: (content: SampleInput) => SamplingMessage
  /** Makes a message of the assistant. */
  readonly assistant: (content: SampleInput) => SamplingMessage
  /** Turns the answer into a message, to continue the conversation. */
  readonly toMessage: (answer: SampleAnswer) => SamplingMessage
  /** Makes the result of a tool that the model has used. Answer all uses in a message with one message of the user. */
  readonly toolResult: (
    use: { readonly id: string },
    content: ContentInput,
    rest?: { readonly isError?: boolean; readonly structuredContent?: unknown }
  ) => ToolResultContent
  /** Returns the uses of tools in an answer. */
  readonly toolUses: (answer: Pick<SampleAnswer, "content">) => ReadonlyArray<ToolUseContent>
  /** Returns the joined text blocks of an answer. */
  readonly text: (answer: Pick<SampleAnswer, "content">) => string
}

/**
 * Makes messages for `sample` of a handler's context, and reads its answers.
 *
 * @example
 * const answer = await sample({ messages: [Sampling.user("Name a tea")], maxTokens: 20 })
 * return Sampling.text(answer)
 */
export const Sampling: Sampling = Core.samplingMessages as never
