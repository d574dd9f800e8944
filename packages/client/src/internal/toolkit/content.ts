/**
 * Converts the result of a tool to the parts that a model receives.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ContentBlock } from "@skein/protocol/Content"
import * as Prompt from "effect/ai/Prompt"

/** The part for one block of content. */
export const partOf = (block: ContentBlock): Prompt.ToolModelOutputPart => {
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
export const structured = (content: unknown): string => {
  try {
    return JSON.stringify(content)
  } catch {
    return "(the structured content is nested too deeply to be shown)"
  }
}

/**
 * The content of a result. Without content, the structured content as text. Not both: "a tool that returns structured
 * content SHOULD also return the serialized JSON in a TextContent block" (2025-06-18, tools), so the model would
 * receive everything twice.
 */
export const partsOf = ({ content, structuredContent }: CallToolResult): ReadonlyArray<Prompt.ToolModelOutputPart> =>
  content.length > 0 || structuredContent === undefined
    ? content.map(partOf)
    : [Prompt.textPart({ text: structured(structuredContent) })]
