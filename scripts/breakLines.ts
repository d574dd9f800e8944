/**
 * Breaks the lines of minified code. Node prints the line of an error that a program does not catch: the lines of a minifier have
 * 200,000 characters, and the message of the error is below them.
 */
import { type ESTree, parseSync } from "rolldown/utils"

/** A line ends where the next statement, declaration, member or property begins after this number of characters. */
export const lineLimit = 200

/** The lists of a node before whose elements a line may end. */
const lists = ["body", "declarations", "consequent", "properties"] as const

type Json = { readonly type?: unknown; readonly start?: unknown; readonly [member: string]: unknown }

/** The places in code before which a line may end, in their order. */
const boundariesOf = (program: ESTree.Program): ReadonlyArray<number> => {
  const found = new Set<number>()
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    if (Array.isArray(value)) return value.forEach(visit)
    const node = value as Json
    for (const name of lists) {
      const list = node[name]
      if (!Array.isArray(list)) continue
      for (const { start } of list as ReadonlyArray<Json>) if (typeof start === "number") found.add(start)
    }
    Object.values(node).forEach(visit)
  }
  visit(program)
  return [...found].toSorted((a, b) => a - b)
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/** Reads the first number of a segment of a source map, the column in the code, and returns the rest of the segment. */
const readColumn = (segment: string): readonly [column: number, rest: string] => {
  let [value, shift, at] = [0, 0, 0]
  for (;;) {
    const digit = digits.indexOf(segment[at++]!)
    value += (digit & 31) << shift
    if (digit < 32) break
    shift += 5
  }
  return [value >> 1, segment.slice(at)]
}

/** Writes a column, which is not negative. */
const writeColumn = (column: number): string => {
  let [text, value] = ["", column << 1]
  do {
    const digit = value & 31
    value >>>= 5
    text += digits[value > 0 ? digit | 32 : digit]
  } while (value > 0)
  return text
}

/** The mappings of a line that is broken at these columns. The other numbers of a segment continue those of the one before. */
const breakMappings = (line: string, columns: ReadonlyArray<number>): string => {
  const lines: Array<Array<string>> = [[]]
  // The column of the last segment, and the start of the part, in the line as it was; the column in the part.
  let [column, start, last] = [0, 0, 0]
  for (const segment of line === "" ? [] : line.split(",")) {
    const [delta, rest] = readColumn(segment)
    column += delta
    while (lines.length <= columns.length && columns[lines.length - 1]! <= column) {
      start = columns[lines.length - 1]!
      lines.push([])
      last = 0
    }
    lines.at(-1)!.push(writeColumn(column - start - last) + rest)
    last = column - start
  }
  while (lines.length <= columns.length) lines.push([])
  return lines.map((segments) => segments.join(",")).join(";")
}

/** Returns the code with broken lines, and the mappings of its source map. */
export const breakLines = (code: string, mappings: string): { readonly code: string; readonly mappings: string } => {
  const { errors, program } = parseSync("code.js", code, { sourceType: "module" })
  if (errors.length > 0) throw new Error(`the code cannot be parsed: ${errors[0]!.message}`)
  const boundaries = boundariesOf(program)
  const mapped = mappings.split(";")
  const [parts, lines]: [Array<string>, Array<string>] = [[], []]
  let [at, next] = [0, 0]
  for (const [index, line] of code.split("\n").entries()) {
    const columns: Array<number> = []
    for (; next < boundaries.length && boundaries[next]! <= at + line.length; next++) {
      const column = boundaries[next]! - at
      if (column - (columns.at(-1) ?? 0) >= lineLimit) columns.push(column)
    }
    parts.push([0, ...columns].map((column, part) => line.slice(column, columns[part])).join("\n"))
    lines.push(breakMappings(mapped[index] ?? "", columns))
    at += line.length + 1
  }
  return { code: parts.join("\n"), mappings: lines.slice(0, Math.max(mapped.length, 1)).join(";") }
}
