/**
 * The texts of a generated module: doc comments and strings that a server cannot break out of, and line breaks.
 *
 * Texts of the server are written in comments and in strings alone. In both, each character that is invisible or changes
 * the direction of writing is escaped or left out, so that the source reads as it runs.
 */
import { clip } from "@skein/protocol/Text"
import { wrap } from "../base/columns.ts"

const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

const escape = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
    .join("")

/** Escapes the unprintable characters of code. They occur in strings only. */
const escapeUnprintable = (code: string): string => code.replaceAll(unprintable, escape)

/** A text as a string literal. */
export const literal = (text: string): string => escapeUnprintable(JSON.stringify(text))

// How many lines, and how many characters, of a text a comment has.
const maxLines = 40
const maxChars = 2_000

// How many columns a line of the module has.
const width = 110

/** A line of a comment: without its end mark, and without the directives of TypeScript. */
const commentLine = (line: string): string =>
  line.replaceAll(/\t/g, " ").replaceAll(unprintable, "").replaceAll("*/", "*\\/").replaceAll(/@(?=ts-)/gi, "")
    .trimEnd()

/** Writes a doc comment of paragraphs, or nothing if all of them are empty. */
export const docComment = (paragraphs: ReadonlyArray<string | undefined>, indent = ""): string => {
  const texts = paragraphs.flatMap((text) => {
    const lines = clip(text?.trim() ?? "", maxChars).split(/\r\n|[\n\r\u0085\u2028\u2029]/)
      .flatMap((line) => wrap(commentLine(line), width))
    const shown = lines.length > maxLines ? [...lines.slice(0, maxLines), "…"] : lines
    return shown.every((line) => line === "") ? [] : [shown]
  })
  if (texts.length === 0) return ""
  const lines = texts.flatMap((text, at) => at === 0 ? text : ["", ...text])
  return lines.length === 1
    ? `${indent}/** ${lines[0]} */\n`
    : `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`
}

/** A part of code: a word or a mark with the space before it, or a bracket with items. */
type Node = string | {
  readonly open: string
  readonly items: ReadonlyArray<ReadonlyArray<Node>>
  readonly close: string
}

const closing: { readonly [open: string]: string } = { "(": ")", "[": "]", "{": "}" }

/** Splits generated code at its brackets and commas. Strings are whole. */
const parse = (code: string): ReadonlyArray<Node> => {
  const tokens = code.match(/\s*(?:"(?:[^"\\]|\\.)*"|[()[\]{},]|[^\s"()[\]{},]+)/g) ?? []
  let at = 0
  const items = (close: string | undefined): Array<Array<Node>> => {
    const all: Array<Array<Node>> = [[]]
    for (; at < tokens.length; at++) {
      const token = tokens[at]!
      const text = token.trimStart()
      if (text === close) return all.filter((item) => item.length > 0)
      if (text === ",") all.push([])
      else if (Object.hasOwn(closing, text)) {
        at++
        all.at(-1)!.push({ open: token, items: items(closing[text]), close: closing[text]! })
      } else all.at(-1)!.push(token)
    }
    return all
  }
  // Code outside of brackets has no commas.
  return items(undefined).flat()
}

const isKeyOf = (node: Node | undefined, key: string): boolean =>
  typeof node === "string" && node.trimStart() === JSON.stringify(key)

/** Leaves out the texts of errors that the library adds to each check: its own are the same. */
const withoutExpected = (nodes: ReadonlyArray<Node>): ReadonlyArray<Node> => {
  const kept: Array<Node> = []
  for (let at = 0; at < nodes.length; at++) {
    const node = nodes[at]!
    const next = nodes[at + 1]
    if (typeof node === "string" && node.endsWith(".annotate") && typeof next === "object") {
      const [[annotations] = []] = next.items
      if (typeof annotations === "object" && annotations.open.trim() === "{") {
        const rest = annotations.items.filter(([key]) => !isKeyOf(key, "expected"))
        if (rest.length === 0) {
          const before = node.slice(0, -".annotate".length)
          if (before !== "") kept.push(before)
        } else kept.push(node, { ...next, items: [[{ ...annotations, items: rest }]] })
        at++
        continue
      }
    }
    kept.push(typeof node === "string" ? node : { ...node, items: node.items.map(withoutExpected) })
  }
  return kept
}

/** Nodes in one line, or `undefined` if that has more than `most` characters: it stops there, at any depth. */
const flat = (nodes: ReadonlyArray<Node>, most: number): string | undefined => {
  let line = ""
  for (const node of nodes) {
    if (typeof node === "string") line += node
    else {
      let inner = ""
      for (const [at, item] of node.items.entries()) {
        const text = flat(item, most - line.length - inner.length + 1)
        if (text === undefined) return undefined
        inner += at === 0 ? text.trim() : `, ${text.trim()}`
      }
      line += node.open.trim() === "{" && inner !== "" ? `${node.open} ${inner} }` : node.open + inner + node.close
    }
    if (line.length > most) return undefined
  }
  return line
}

const render = (nodes: ReadonlyArray<Node>, indent: number): string => {
  // A line begins with a space at most.
  const line = flat(nodes, width - indent + 1)
  if (line !== undefined && line.trim().length + indent <= width) return line
  const inner = " ".repeat(indent + 2)
  return nodes.map((node) => {
    if (typeof node === "string") return node
    const short = flat([node], 30)
    if (short !== undefined) return short
    if (node.items.length === 1 && node.open.trim() === "(") {
      return `${node.open}${render(node.items[0]!, indent).trim()})`
    }
    const items = node.items.map((item) => inner + render(item, indent + 2).trim())
    return `${node.open}\n${items.join(",\n")}\n${" ".repeat(indent)}${node.close}`
  }).join("")
}

/** Writes generated code with line breaks, without the annotations that repeat the library's own texts. */
export const printCode = (code: string, indent = 0): string =>
  // Before the line breaks are added: the code itself has unprintable characters in strings only.
  render(withoutExpected(parse(escapeUnprintable(code))), indent)
