import type { Spread } from "./statistics.ts"

/**
 * A Markdown table with padded columns, readable in a terminal too. The first column is text, the others are figures.
 */
export const markdown = (header: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = header.map((title, column) => Math.max(title.length, 4, ...rows.map((row) => row[column]!.length)))
  const line = (cells: ReadonlyArray<string>) =>
    `| ${
      cells.map((cell, column) => column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)).join(
        " | "
      )
    } |`
  const rule = widths.map((width, column) => column === 0 ? "-".repeat(width) : "-".repeat(width - 1) + ":")
  return [line(header), line(rule), ...rows.map(line)].join("\n")
}

/** A ratio with its extremes, as `0.82 (0.79–0.85)`. */
export const ratio = ({ max, median, min }: Spread): string =>
  `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`

/** A count with separators between thousands. */
export const count = (value: number): string => Math.round(value).toLocaleString("en-US")
