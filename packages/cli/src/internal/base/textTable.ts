/**
 * Tables of text with aligned columns, for terminals.
 */
import { cut, printable } from "@skein/protocol/Text"
import { type Colors, plain } from "./colors.ts"
import { widthOf } from "./columns.ts"

// How much of one text is shown in a table, in characters.
const maxCell = 80

/** An untrusted text as a cell: in one line, shortened, without characters that control the terminal. */
export const cell = (text: string): string => printable(cut(text, 4 * maxCell).replace(/\s+/g, " ").trim(), maxCell)

/** A table with aligned columns, whose last column is not filled. Rows may omit cells at their end. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  { bold }: Colors = plain
): string => {
  const all = [head, ...rows]
  // Not `Math.max(...)`: a list of a server can have more rows than a call may have arguments.
  const widths = head.map((_, at) => all.reduce((most, row) => Math.max(most, widthOf(row[at] ?? "")), 0))
  const [first, ...others] = all.map((row) =>
    row.map((text, at) => at === row.length - 1 ? text : text + " ".repeat(widths[at]! - widthOf(text))).join("  ")
      .trimEnd()
  )
  return [bold(first!), ...others].join("\n")
}

/** A table without the columns that have no text in any row. */
export const denseTable = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  colors?: Colors
): string => {
  const used = head.flatMap((_, at) => at === 0 || rows.some((row) => (row[at] ?? "") !== "") ? [at] : [])
  return table(used.map((at) => head[at]!), rows.map((row) => used.map((at) => row[at] ?? "")), colors)
}
