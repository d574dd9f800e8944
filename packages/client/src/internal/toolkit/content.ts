/**
 * Converts the result of a tool to the parts that a model receives.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ContentBlock } from "@skein/protocol/Content"
import * as Prompt from "effect/ai/Prompt"

/** The part for one block of content. */
const partOf = (block: ContentBlock): Prompt.ToolModelOutputPart => {
  switch (block.type) {
    case "text":
      return Prompt.textPart({ text: block.text })
    case "image":
    case "audio":
      return Prompt.filePart({ mediaType: block.mimeType, data: block.data })
    case "resource_link":
      return Prompt.textPart({ text: `[resource: ${block.title ?? block.name}] ${block.uri}` })
    case "resource": {
      const { resource } = block
      return "text" in resource
        ? Prompt.textPart({ text: resource.text })
        : Prompt.filePart({
          mediaType: resource.mimeType ?? "application/octet-stream",
          fileName: resource.uri,
          data: resource.blob
        })
    }
  }
}

/** Structured content as JSON text. Content that is nested too deeply for the stack can be parsed but not written. */
const structured = (content: unknown): string => {
  try {
    return JSON.stringify(content)
  } catch {
    return "(the structured content is nested too deeply to be shown)"
  }
}

/**
 * Makes the function that returns whether a text is the structured content as JSON, as servers are asked to send it. A
 * result can have many texts: the content is written once for all of them.
 */
const repeating = (content: unknown): (text: string) => boolean => {
  let written: string | undefined
  return (text) => {
    // Most texts are not JSON, and need not be parsed.
    if (!/^\s*[[{"\d\-tfn]/.test(text)) return false
    try {
      return CanonicalJson.stringify(JSON.parse(text)) === (written ??= CanonicalJson.stringify(content))
    } catch {
      return false
    }
  }
}

/**
 * The content of a result. Without content, the structured content as text. Not both by default: "a tool that returns
 * structured content SHOULD also return the serialized JSON in a TextContent block" (2025-06-18, tools), so the model
 * would receive everything twice. With `isBeside`, the structured content follows unless a text repeats it.
 */
export const partsOf = (
  { content, structuredContent }: CallToolResult,
  isBeside: boolean
): ReadonlyArray<Prompt.ToolModelOutputPart> => {
  const parts = content.map(partOf)
  if (structuredContent === undefined) return parts
  const repeats = repeating(structuredContent)
  const isShown = parts.length > 0 &&
    (!isBeside || parts.some((part) => part.type === "text" && repeats(part.text)))
  return isShown ? parts : [...parts, Prompt.textPart({ text: structured(structuredContent) })]
}
