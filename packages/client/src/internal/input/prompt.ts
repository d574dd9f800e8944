/**
 * Converts sampling requests and responses between the Model Context Protocol and `effect/ai`.
 */
import type { ContentBlock } from "@skein/protocol/Content"
import type { Revision } from "@skein/protocol/Revision"
import type { CreateMessageRequestParams, SamplingMessage, SamplingMessageContentBlock } from "@skein/protocol/Sampling"
import { blocksOf } from "@skein/protocol/SamplingMessages"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as AiTool from "effect/ai/Tool"
import * as Base64 from "effect/encoding/Base64"
import type { JsonSchema } from "effect/JsonSchema"

const text = (text: string) => Prompt.textPart({ text })

const file = ({ data, mimeType }: { readonly data: string; readonly mimeType: string }) =>
  Prompt.filePart({ mediaType: mimeType, data })

/** The result of a tool for a model: its structured content, or its blocks as text. */
const resultOf = (content: ReadonlyArray<ContentBlock>, structured: unknown): unknown =>
  structured ?? content.map((block) => block.type === "text" ? block.text : JSON.stringify(block)).join("\n")

/** The messages of a request as a prompt. */
export const prompt = (
  { messages, systemPrompt }: Pick<CreateMessageRequestParams, "messages" | "systemPrompt">
): Prompt.Prompt => {
  // A tool result has the id of its call, but models need the name as well.
  const names = new Map<string, string>()
  const converted = messages.map(({ content, role }: SamplingMessage): Prompt.Message => {
    const results: Array<Prompt.ToolResultPart> = []
    const parts: Array<Prompt.UserMessagePart> = []
    const calls: Array<Prompt.ToolCallPart> = []
    for (const block of blocksOf(content)) {
      switch (block.type) {
        case "text":
          parts.push(text(block.text))
          break
        case "image":
        case "audio":
          parts.push(file(block))
          break
        case "tool_use":
          names.set(block.id, block.name)
          calls.push(
            Prompt.toolCallPart({ id: block.id, name: block.name, params: block.input, providerExecuted: false })
          )
          break
        case "tool_result":
          results.push(Prompt.toolResultPart({
            id: block.toolUseId,
            name: names.get(block.toolUseId) ?? block.toolUseId,
            isFailure: block.isError === true,
            result: resultOf(block.content, block.structuredContent),
            providerExecuted: false
          }))
      }
    }
    if (results.length > 0) return Prompt.toolMessage({ content: results })
    return role === "user"
      ? Prompt.userMessage({ content: parts })
      : Prompt.assistantMessage({ content: [...parts, ...calls] })
  })
  return Prompt.fromMessages(
    systemPrompt === undefined ? converted : [Prompt.systemMessage({ content: systemPrompt }), ...converted]
  )
}

/** The tools of a request. They have no handlers, since the server runs them. */
export const toolsOf = (tools: CreateMessageRequestParams["tools"]) =>
  Object.fromEntries((tools ?? []).map(({ description, inputSchema, name }) => [
    name,
    AiTool.dynamic(name, {
      ...(description === undefined ? undefined : { description }),
      parameters: inputSchema as JsonSchema
    })
  ]))

const isImage = ({ mediaType }: { readonly mediaType: string }) => mediaType.startsWith("image/")

/**
 * The response of a model as content. Consecutive texts are joined into one block. Parts that the revision does not
 * support are left out.
 */
export const contentOf = (
  parts: ReadonlyArray<Response.AnyPart>,
  revision: Revision
): SamplingMessageContentBlock | ReadonlyArray<SamplingMessageContentBlock> => {
  const blocks: Array<SamplingMessageContentBlock> = []
  for (const part of parts) {
    const last = blocks.at(-1)
    if (part.type === "text" && last?.type === "text") {
      blocks[blocks.length - 1] = { ...last, text: last.text + part.text }
    } else if (part.type === "text") blocks.push({ type: "text", text: part.text })
    else if (part.type === "tool-call") {
      blocks.push({ type: "tool_use", id: part.id, name: part.name, input: { ...part.params as object } })
    } else if (part.type === "file" && (isImage(part) || part.mediaType.startsWith("audio/"))) {
      const data = Base64.encode(part.data)
      blocks.push({ type: isImage(part) ? "image" : "audio", data, mimeType: part.mediaType })
    }
  }
  if (blocks.length === 0) return { type: "text", text: "" }
  if (blocks.length === 1) return blocks[0]!
  if (revision >= "2025-11-25") return blocks
  // Before 2025-11-25 a message has one block only.
  const texts = blocks.flatMap((block) => block.type === "text" ? [block.text] : [])
  return texts.length === 0 ? blocks[0]! : { type: "text", text: texts.join("\n") }
}

const reasons: { readonly [reason in Response.FinishReason]?: string } = {
  stop: "endTurn",
  length: "maxTokens",
  "tool-calls": "toolUse"
}

/** The stop reason in the words of the protocol, or as the model gives it if the protocol has no word for it. */
export const stopReason = (reason: Response.FinishReason): string => reasons[reason] ?? reason
