/**
 * Measurements as data, and as Markdown tables.
 */
import type { Spread } from "../lib/statistics.ts"
import { count, markdown, ratio } from "../lib/table.ts"
import type { Era } from "../stdio/messages.ts"
import type { Peer } from "./peers.ts"

export interface Column {
  readonly key: string
  readonly title: string
  readonly unit: "ratio" | "count" | "decimal" | "percent"
}

export interface Row {
  readonly peer: string
  readonly label: string
  readonly figures: Readonly<Record<string, Spread | number>>
  readonly samples?: Readonly<Record<string, ReadonlyArray<number>>>
  /** Why figures are missing. */
  readonly remark?: string
}

export interface Measure {
  readonly name: string
  readonly era: Era
  readonly title: string
  readonly columns: ReadonlyArray<Column>
  readonly rows: ReadonlyArray<Row>
}

/** The row of a peer that failed. */
export const failure = (peer: Pick<Peer, "label" | "name">, error: unknown): Row => ({
  peer: peer.name,
  label: peer.label,
  figures: {},
  remark: error instanceof Error ? error.message : String(error)
})

const cell = (figure: Spread | number | undefined, unit: Column["unit"]): string => {
  if (figure === undefined) return "–"
  const { median } = typeof figure === "number" ? { median: figure } : figure
  if (Number.isNaN(median)) return "?"
  switch (unit) {
    case "ratio":
      return typeof figure === "number" ? figure.toFixed(2) : ratio(figure)
    case "count":
      return count(median)
    case "decimal":
      return median.toFixed(median < 10 ? 2 : 1)
    case "percent":
      return `${Math.round(median)} %`
  }
}

/**
 * Renders a measure as a heading, a table, and the remarks about missing figures. `subject` is the title of the first
 * column.
 */
export const render = ({ columns, rows, title }: Measure, subject = "server"): string =>
  [
    `### ${title}`,
    "",
    markdown(
      [subject, ...columns.map((column) => column.title)],
      rows.map(({ figures, label }) => [label, ...columns.map(({ key, unit }) => cell(figures[key], unit))])
    ),
    ...rows.flatMap(({ label, remark }) => remark === undefined ? [] : ["", `${label}: ${remark}`])
  ].join("\n")
