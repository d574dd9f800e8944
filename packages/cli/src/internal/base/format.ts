/**
 * Text from servers, for a terminal: tools, results, and the parts of questions.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { ContentBlock } from "@skein/protocol/Content"
import * as Json from "@skein/protocol/Json"
import { isObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { cut, printable, withoutColors } from "@skein/protocol/Text"
import type { Tool } from "@skein/protocol/Tool"
import type { Console } from "./process.ts"

// How much of one line from a server is shown, in characters.
const maxLine = 8_192

/** Escapes the characters of a text that control the terminal, except for line ends and tabs. */
export const sanitize = (text: string): string =>
  text.split(/\r?\n/).map((line) => line.split("\t").map((part) => printable(part, maxLine)).join("\t")).join("\n")

/** As {@link sanitize}, for the output of another program, without its colors. */
export const sanitizeOutput = (text: string): string => sanitize(withoutColors(text))

// The colors of `colors.ts`.
const escape = "\u001b"
const sgr = /* @__PURE__ */ new RegExp(`(${escape}\\[(?:1|22|31|32|39)m)`)

/** As {@link sanitize}, for a text of this program with colors: its untrusted parts must be printable already. */
export const sanitizeColored = (text: string): string =>
  text.split(sgr).map((part, at) => at % 2 === 0 ? sanitize(part) : part).join("")

/**
 * The use of the stderr of a server's process. With `--verbose` it is written to stderr, each part that arrives on lines
 * of its own: a server that writes to the terminal itself could control it, and imitate this program. Otherwise `read`
 * receives it.
 */
export const serverStderr = (
  verbose: boolean,
  { warn }: Pick<Console, "warn">,
  read?: (text: string) => void
): "capture" | ((text: string) => void) =>
  verbose ? (text) => warn(sanitizeOutput(text.replace(/\r?\n$/, ""))) : read ?? "capture"

// How much of a name is shown, in characters. A longer one would wrap into lines that look like those of this program.
const maxName = 200

/** A name from a server, within a line of this program: each run of white space becomes one space. */
export const quoteName = (text: string): string =>
  printable(cut(text, 4 * maxName).replace(/\s+/g, " ").trim(), maxName)

/** A value from a server, within a line of this program: each character of it can be recognized. */
export const quoteLine = (text: string): string => printable(text, maxLine)

/**
 * A text from a server, after the start of a line of this program. Its further lines are marked, so that none can pass
 * for the program's.
 */
export const quoteBlock = (text: string): string => sanitize(text).replaceAll("\n", "\n  | ")

const isPrintable = /* @__PURE__ */ Nesting.refusing(
  (value: unknown) => JSON.stringify(value, undefined, 2) !== undefined,
  () => false
)

/**
 * The JSON of an answer of at most `maxChars`. Rejects for a longer one, for other text, and for values that are nested
 * deeper than the stack, which could not be printed.
 */
export const readJsonBody = async (response: Response, maxChars: number): Promise<unknown> => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let text = ""
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length > maxChars) throw new Error(`it has more than ${maxChars} characters`)
  }
  const value: unknown = JSON.parse(text + decoder.decode())
  if (!isPrintable(value)) throw new Error(`it ${Nesting.problem}`)
  return value
}

/** The size of the decoded data, in bytes. */
const decodedBytes = (base64: string): number => Math.floor(base64.replace(/=+$/, "").length * 3 / 4)

const media = (kind: string, mimeType: string | undefined, data: string): string =>
  `[${kind}: ${mimeType ?? "application/octet-stream"}, ${decodedBytes(data)} bytes]`

/** The name of the status of a task. A result with `isError`, such as that of a person who declined, is not a failure. */
export const taskStatus = (status: string, isError: boolean): string =>
  isError && status === "completed" ? "completed (error)" : status

/** A block of content as text. */
export const blockText = (block: ContentBlock): string => {
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

/** A result as text: its content, or its structured content when the content is empty. */
export const resultText = ({ content, structuredContent }: CallToolResult): string =>
  content.length === 0 && structuredContent !== undefined
    ? Json.stringify(structuredContent, undefined, 2)!
    : content.map(blockText).join("\n")

const valueText = (value: unknown): string => {
  try {
    return JSON.stringify(value)
  } catch {
    // The value is nested deeper than the stack.
    return "…"
  }
}

const typeText = (schema: unknown, depth = 0): string => {
  if (!isObject(schema) || depth > 2) return "any"
  const { anyOf, const: only, enum: values, items, oneOf, type } = schema
  if (only !== undefined) return valueText(only)
  if (Array.isArray(values)) return values.slice(0, 8).map(valueText).join("|")
  const some = anyOf ?? oneOf
  if (Array.isArray(some)) {
    return [...new Set(some.slice(0, 8).map((each) => typeText(each, depth + 1)))].join("|")
  }
  if (type === "array") return `${typeText(items, depth + 1)}[]`
  if (Array.isArray(type)) return type.filter((each) => typeof each === "string").slice(0, 8).join("|")
  return typeof type === "string" ? type : "any"
}

// How many arguments of a tool or a prompt a list shows.
const maxArguments = 24

/** Makes the texts of the first arguments, and a mark in place of the others. */
export const firstArguments = <A>(all: ReadonlyArray<A>, text: (argument: A) => string): ReadonlyArray<string> =>
  all.length > maxArguments ? [...all.slice(0, maxArguments).map(text), "…"] : all.map(text)

/** The arguments of a tool with their types, as texts of the server. `?` marks an optional one. */
export const argumentsOf = ({ inputSchema: { properties, required } }: Tool): ReadonlyArray<string> => {
  const named = isObject(properties) ? Object.entries(properties) : []
  const needed = Array.isArray(required) ? required : []
  return firstArguments(
    named,
    ([argument, schema]) => `${argument}${needed.includes(argument) ? "" : "?"}: ${typeText(schema)}`
  )
}

/**
 * A tool in one line: its name, its arguments with their types (`?` marks an optional one), and the first line of its
 * description.
 */
export const toolLine = (tool: Tool): string => {
  const { description, name, title } = tool
  const about = (description ?? title ?? "").trim().split(/\r?\n/, 1)[0]!
  return printable(`${name}(${argumentsOf(tool).join(", ")})${about === "" ? "" : `  ${about}`}`, 512)
}
