/**
 * Adds an entry to a configuration of JSON with comments. Comments, other entries, the indentation and the line ends of
 * the file are kept.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { cut, quote } from "@skein/protocol/Text"
import { equals } from "effect/Equal"
import * as Result from "effect/Result"
import { createScanner, getNodeValue, type Node, type ParseError, parseTree } from "jsonc-parser"

const byteOrderMark = "\uFEFF"

/** The line and the column of a position. A message has no part of the text, which can contain secrets. */
const positionOf = (text: string, offset: number): string => {
  const before = text.slice(0, offset).split("\n")
  return `line ${before.length}, column ${before.at(-1)!.length + 1}`
}

const parse = (text: string): Result.Result<Node | undefined, string> => {
  const errors: Array<ParseError> = []
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true })
  const [error] = errors
  return error === undefined
    ? Result.succeed(root)
    : Result.fail(`is not valid JSON with comments (${positionOf(text, error.offset)})`)
}

/** The values of a member of an object. JSON allows a member several times, and hosts differ in which one they take. */
const membersOf = (node: Node, name: string): ReadonlyArray<Node> =>
  (node.children ?? []).flatMap(({ children }) =>
    children?.[0]?.value === name && children[1] !== undefined ? [children[1]] : []
  )

/** Why an entry cannot be added. */
const problemOf = (root: Node, member: string, name: string): string | undefined => {
  if (root.type !== "object") return "must be a JSON object"
  const [servers, ...more] = membersOf(root, member)
  if (more.length > 0) return `has the member ${member} more than once`
  if (servers === undefined) return undefined
  if (servers.type !== "object") return `must have an object as ${member}`
  return membersOf(servers, name).length > 1 ? `has the server ${quote(name)} more than once` : undefined
}

/** The indentation and the line ends of a text. */
interface Format {
  readonly unit: string
  readonly eol: string
}

/** The indentation is that of the first line that has one: two spaces by default. */
const formatOf = (text: string): Format => {
  const [, indent = "  "] = /^([ \t]+)\S/m.exec(text) ?? []
  return { unit: indent.startsWith("\t") ? "\t" : cut(indent, 8), eol: /\r\n/.test(text) ? "\r\n" : "\n" }
}

/** The white space at the beginning of the line of a position. */
const indentAt = (text: string, offset: number): string => {
  const start = text.lastIndexOf("\n", offset - 1) + 1
  return /^[ \t]*/.exec(text.slice(start, offset))![0]
}

const jsonText = (value: unknown, indent: string, { eol, unit }: Format): string =>
  JSON.stringify(value, undefined, unit).replaceAll("\n", `${eol}${indent}`)

// The members of `SyntaxKind`, a const enum, which TypeScript does not inline in isolated modules.
const [commaToken, lineComment, blockComment, lineBreak, trivia] = [5, 12, 13, 14, 15]

/**
 * The end of the comma and the comments that follow a position, on its line and on the lines up to a comma. They belong
 * to the member before them.
 */
const endOfMember = (text: string, from: number): { readonly end: number; readonly hasComma: boolean } => {
  const scanner = createScanner(text, false)
  scanner.setPosition(from)
  let [end, hasComma] = [from, false]
  // Comments on the line of the member, or of its comma, belong to it. Those on later lines may be about other members.
  let isOnLine = true
  while (true) {
    const token = scanner.scan()
    const after = scanner.getTokenOffset() + scanner.getTokenLength()
    if (token === commaToken) [end, hasComma, isOnLine] = [after, true, true]
    else if (token === lineBreak) isOnLine = false
    else if (token === lineComment || token === blockComment) end = isOnLine ? after : end
    else if (token !== trivia) return { end, hasComma }
  }
}

/**
 * Adds a member at the end of an object. `modify` of jsonc-parser would format the member before it as well, and move
 * the comment at the end of that line to the new member.
 */
const insert = (text: string, object: Node, key: string, value: unknown, format: Format): string => {
  const { eol, unit } = format
  const close = object.offset + object.length - 1
  const previous = object.children?.at(-1)
  const outer = indentAt(text, object.offset)
  const own = previous === undefined ? "" : indentAt(text, previous.offset)
  const isOnOwnLine = previous !== undefined && /\n[ \t]*$/.test(text.slice(object.offset, previous.offset))
  const indent = isOnOwnLine ? own : outer + unit
  const start = previous === undefined ? object.offset + 1 : previous.offset + previous.length
  const { end, hasComma } = endOfMember(text, start)
  const member = `${eol}${indent}${JSON.stringify(key)}: ${jsonText(value, indent, format)}`
  const rest = text.slice(end, close)
  return [
    text.slice(0, start),
    previous === undefined || hasComma ? "" : ",",
    text.slice(start, end),
    member,
    // A comma at the end of the object is the style of the file.
    hasComma ? "," : "",
    rest.includes("\n") ? rest : `${rest.trimEnd()}${eol}${outer}`,
    text.slice(close)
  ].join("")
}

const edit = (text: string, root: Node | undefined, member: string, name: string, entry: JsonObject): string => {
  const format = formatOf(text)
  if (root === undefined) {
    // The file is empty, or has comments only.
    const above = text.trim() === "" ? "" : `${text.trimEnd()}${format.eol}`
    return `${above}${jsonText({ [member]: { [name]: entry } }, "", format)}${format.eol}`
  }
  const [servers] = membersOf(root, member)
  if (servers === undefined) return insert(text, root, member, { [name]: entry }, format)
  const [present] = membersOf(servers, name)
  if (present === undefined) return insert(text, servers, name, entry, format)
  const { length, offset } = present
  return text.slice(0, offset) + jsonText(entry, indentAt(text, offset), format) + text.slice(offset + length)
}

/** The value of a document, as an object without a prototype: a member may be named `__proto__`. */
const valueOf = (text: string, member: string): { readonly rest: JsonObject; readonly servers: JsonObject } => {
  const root = Result.getOrUndefined(parse(text))
  const all: unknown = root === undefined ? {} : getNodeValue(root)
  const { [member]: servers, ...rest } = isObject(all) ? all : {}
  return { rest, servers: isObject(servers) ? servers : {} }
}

/** The entry of this name. Undefined if there is none, or if the text is not valid. */
export const presentEntry = (file: string, member: string, name: string): unknown => {
  const { servers } = valueOf(file.replace(byteOrderMark, ""), member)
  return Object.hasOwn(servers, name) ? servers[name] : undefined
}

/**
 * The text with the entry. It replaces an entry of the same name. Returns the same text if the entry is there already,
 * and fails if the text is not valid, or has no place for the entry.
 */
export const withEntry = (
  file: string,
  member: string,
  name: string,
  entry: JsonObject
): Result.Result<string, string> => {
  const mark = file.startsWith(byteOrderMark) ? byteOrderMark : ""
  const text = file.slice(mark.length)
  const parsed = parse(text)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const root = parsed.success
  const problem = root === undefined ? undefined : problemOf(root, member, name)
  if (problem !== undefined) return Result.fail(problem)
  const before = valueOf(text, member)
  if (Object.hasOwn(before.servers, name) && equals(before.servers[name], entry)) return Result.succeed(file)
  const edited = edit(text, root, member, name, entry)
  // An edit that would change something else is a defect of this module. It must not reach the file.
  const after = valueOf(edited, member)
  const { [name]: _old, ...others } = before.servers
  const { [name]: written, ...left } = after.servers
  return Result.isSuccess(parse(edited)) && equals(written, entry) && equals(others, left) &&
      equals(before.rest, after.rest)
    ? Result.succeed(mark + edited)
    : Result.fail("could not be edited without changing its other members")
}

/**
 * The lines that differ between two texts, with the number of the first one. One edit changes one range of lines. Lines
 * beside it are not shown: they can have the secrets of other servers.
 */
export const changedLines = (before: string, after: string): string => {
  const lines = (text: string) => text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/)
  const [one, other] = [lines(before), lines(after)]
  const least = Math.min(one.length, other.length)
  let start = 0
  while (start < least && one[start] === other[start]) start++
  let end = 0
  while (end < least - start && one.at(-1 - end) === other.at(-1 - end)) end++
  return [
    `@@ line ${start + 1} @@`,
    ...one.slice(start, one.length - end).map((line) => `-${line}`),
    ...other.slice(start, other.length - end).map((line) => `+${line}`)
  ].join("\n")
}
