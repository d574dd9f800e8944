/**
 * What a terminal is shown of tools and of what they answer.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ContentBlock } from "@skein/protocol/Content"
import { isObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import { printable } from "../text.ts"

// How much of one line of a stranger's is shown, in characters.
const maxLine = 8_192

/** Text of a stranger's, for a terminal: its lines stay, and nothing in them steers the terminal. */
export const tame = (text: string): string =>
  text.split(/\r?\n/).map((line) => line.split("\t").map((part) => printable(part, maxLine)).join("\t")).join("\n")

// How much of a name is shown, in characters: more would go on in lines that look like others.
const maxLabel = 200

/** A name of a stranger's, in what is a line of ours: it has no lines of its own, and no gaps. */
export const label = (text: string): string =>
  printable(text.slice(0, 4 * maxLabel).replace(/\s+/g, " ").trim(), maxLabel)

/** A value of a stranger's, in what is a line of ours: each character of it can be told. */
export const exact = (text: string): string => printable(text, maxLine)

/** Text of a stranger's below a line of ours: its further lines are marked, so that none looks like ours. */
export const remark = (text: string): string => tame(text).replaceAll("\n", "\n  | ")

/** What decodes to so many bytes. */
const bytes = (base64: string): number => Math.floor(base64.replace(/=+$/, "").length * 3 / 4)

const media = (kind: string, mimeType: string | undefined, data: string): string =>
  `[${kind}: ${mimeType ?? "application/octet-stream"}, ${bytes(data)} bytes]`

const blockText = (block: ContentBlock): string => {
  switch (block.type) {
    case "text":
      return block.text
    case "image":
    case "audio":
      return media(block.type, block.mimeType, block.data)
    case "resource_link":
      return `[resource: ${block.title ?? block.name}] ${block.uri}`
    case "resource":
      return "text" in block.resource
        ? block.resource.text
        : media(block.resource.uri, block.resource.mimeType, block.resource.blob)
  }
}

/** A result as text: its content, or else its structured content. */
export const resultText = ({ content, structuredContent }: CallToolResult): string =>
  content.length === 0 && structuredContent !== undefined
    ? JSON.stringify(structuredContent, undefined, 2)
    : content.map(blockText).join("\n")

const typeText = (schema: unknown, depth = 0): string => {
  if (!isObject(schema) || depth > 2) return "any"
  const { anyOf, const: only, enum: values, items, oneOf, type } = schema
  if (only !== undefined) return JSON.stringify(only)
  if (Array.isArray(values)) return values.slice(0, 8).map((value) => JSON.stringify(value)).join("|")
  const some = anyOf ?? oneOf
  if (Array.isArray(some)) {
    return [...new Set(some.slice(0, 8).map((each) => typeText(each, depth + 1)))].join("|")
  }
  if (type === "array") return `${typeText(items, depth + 1)}[]`
  if (Array.isArray(type)) return type.slice(0, 8).join("|")
  return typeof type === "string" ? type : "any"
}

// How many arguments of a tool are named in a list.
const maxArguments = 24

/** A tool in one line: its name, its arguments with their types (`?`: may be left out), and what it is for. */
export const toolLine = ({ description, inputSchema, name, title }: Tool): string => {
  const { properties, required } = inputSchema
  const named = isObject(properties) ? Object.entries(properties) : []
  const needed = Array.isArray(required) ? required : []
  const shown = named.slice(0, maxArguments).map(([argument, schema]) =>
    `${argument}${needed.includes(argument) ? "" : "?"}: ${typeText(schema)}`
  )
  if (named.length > maxArguments) shown.push("…")
  const about = (description ?? title ?? "").trim().split(/\r?\n/, 1)[0]!
  return printable(`${name}(${shown.join(", ")})${about === "" ? "" : `  ${about}`}`, 512)
}
