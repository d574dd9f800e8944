/**
 * Asking the client's language model. Deprecated since 2026-07-28 (SEP-2577), where it still works: new servers better ask a
 * model of their own.
 *
 * @example
 * const summarize = Tool.layer(Tool.make("summarize", { input: { text: Schema.String } }), ({ text }) =>
 *   Effect.map(
 *     Sampling.createMessage({ messages: `Summarize: ${text}`, maxTokens: 500 }),
 *     (answer) => Sampling.text(answer)
 *   ))
 *
 * See `Elicitation` for what a question means for a handler: it is the same effect in all revisions, and in the request era the
 * handler is run again with the answer. In a loop of tool calls each turn of the model costs a round there; what the tools do
 * belongs in a `Once.once`, unless it may happen again.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import type * as Wire from "@skein/protocol/Sampling"
import type { CallOptions, McpRequest } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { InputError } from "./InputError.ts"
import * as Content from "./Content.ts"
import { requestInput, type TaskOptions } from "./internal/input/requestInput.ts"

export type { TaskOptions }

/** One block of what is said to a model, or by it: made by `Content`, or a use of a tool, or its result. */
export type Block = Wire.SamplingMessageContentBlock

/** Something said to a model, or by it. */
export type Message = Wire.SamplingMessage

/** A text, a block, or several of them (since 2025-11-25). */
export type Input = string | Block | ReadonlyArray<Block>

/** What the model is asked. */
export interface Request extends Omit<Wire.CreateMessageRequestParams, "messages" | "_meta" | "task"> {
  /** What was said so far. A text is one message of the user's. */
  readonly messages: string | ReadonlyArray<Message>
}

/** How the client is asked. */
export interface Options extends CallOptions {
  /** In the request era: what the question is known by when the handler runs again, instead of a digest of what is asked. */
  readonly key?: string | undefined
  /** How long to wait: 10 minutes by default, since a human may be in the loop. See `Elicitation.Options`. */
  readonly timeout?: Duration.Input | undefined
  /** Asks for the answer as a task, in 2025-11-25. See `Elicitation.Options`. */
  readonly task?: TaskOptions | undefined
}

/** What the model answered. Its content is a list here, also where the client sent a single block. */
export interface Answer extends Omit<Wire.CreateMessageResult, "content"> {
  readonly content: ReadonlyArray<Block>
}

const message = (role: Message["role"], content: Input): Message => ({
  role,
  content: typeof content === "string" ? Content.text(content) : content
})

/** Something that the user says. */
export const user = (content: Input): Message => message("user", content)

/** Something that the model said. */
export const assistant = (content: Input): Message => message("assistant", content)

/** What the model said, as the message to go on from. */
export const toMessage = ({ content, role }: Answer): Message => ({
  role,
  content: content.length === 1 ? content[0]! : content
})

/** What a tool answered that the model has used. All uses of one message are answered by one message: {@link user} of a list. */
export const toolResult = (
  use: Pick<Wire.ToolUseContent, "id">,
  content: Content.Input,
  rest: Pick<Wire.ToolResultContent, "isError" | "structuredContent"> = {}
): Wire.ToolResultContent => ({ type: "tool_result", toolUseId: use.id, content: Content.blocks(content), ...rest })

const isUse = (block: Block): block is Wire.ToolUseContent => block.type === "tool_use"
const isResult = (block: Block): block is Wire.ToolResultContent => block.type === "tool_result"

/** The tools that the model wants to use. */
export const toolUses = ({ content }: Pick<Answer, "content">): ReadonlyArray<Wire.ToolUseContent> =>
  content.filter(isUse)

/** The texts of an answer, one after the other. */
export const text = ({ content }: Pick<Answer, "content">): string =>
  content.map((block) => block.type === "text" ? block.text : "").join("")

const blocksOf = ({ content }: { readonly content: Wire.SamplingContent }): ReadonlyArray<Block> =>
  Array.isArray(content) ? content as ReadonlyArray<Block> : [content as Block]

/**
 * "Every assistant message containing `ToolUseContent` blocks MUST be followed by a user message that consists entirely of
 * `ToolResultContent` blocks, with each tool use … matched by a corresponding tool result" (2025-11-25 and later).
 */
const imbalance = (messages: ReadonlyArray<Message>): string | undefined => {
  let open: ReadonlyArray<string> = []
  for (const message of messages) {
    const blocks = blocksOf(message)
    const results = blocks.filter(isResult).map(({ toolUseId }) => toolUseId)
    const uses = blocks.filter(isUse).map(({ id }) => id)
    if (results.length > 0 && (message.role !== "user" || results.length < blocks.length)) {
      return "The results of tools stand in a message of the user's that has nothing else"
    }
    if (uses.length > 0 && message.role !== "assistant") return "Only the assistant uses tools"
    const unmatched = open.find((id) => !results.includes(id)) ?? results.find((id) => !open.includes(id))
    if (unmatched !== undefined) return `The use of a tool and its result do not match: ${JSON.stringify(unmatched)}`
    open = uses
  }
  return open.length > 0 ? `The use of a tool has no result: ${JSON.stringify(open[0])}` : undefined
}

/** Whether the client must know of tools: "Servers MUST NOT send tool-enabled sampling requests to Clients that have not declared" it. */
const hasTools = ({ toolChoice, tools }: Request, messages: ReadonlyArray<Message>): boolean =>
  tools !== undefined || toolChoice !== undefined ||
  messages.some((message) => blocksOf(message).some((block) => isUse(block) || isResult(block)))

/**
 * Asks the client's model for a message (`sampling/createMessage`).
 *
 * Fails with `InputError`:
 * - `MissingCapability` where the client has no `sampling`; no `sampling.tools`, and tools are given, or their uses and results; no
 *   `sampling.context`, and `includeContext` asks for some (2025-11-25 and later).
 * - `Unsupported` for tools, for several blocks in a message and the like where the revision does not have them.
 * - `InvalidQuestion` where the uses of tools and their results do not match.
 */
export const createMessage = (request: Request, options?: Options): Effect.Effect<Answer, InputError, McpRequest> => {
  const messages = typeof request.messages === "string" ? [user(request.messages)] : request.messages
  const tools = hasTools(request, messages)
  const context = request.includeContext !== undefined && request.includeContext !== "none"

  const missing = ({ sampling }: JsonObject, revision: Revision): JsonObject | undefined => {
    const has = sampling as JsonObject | undefined
    const needed = {
      ...(tools && has?.["tools"] === undefined ? { tools: {} } : undefined),
      ...(context && revision >= "2025-11-25" && has?.["context"] === undefined ? { context: {} } : undefined)
    }
    return has === undefined || Object.keys(needed).length > 0 ? { sampling: needed } : undefined
  }

  const question = {
    method: Method.CreateMessage,
    params: { ...request, messages },
    missing,
    problem: imbalance(messages)
  }
  return Effect.map(
    requestInput(question, options, true),
    (result): Answer => ({ ...result, content: blocksOf(result) })
  )
}
