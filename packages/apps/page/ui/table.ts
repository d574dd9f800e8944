/** Draws tables: those of components, and those of charts for screen readers. */
import { element, visible } from "../ready.ts"

/** A cell of a table. */
export type Cell = string | number | boolean | null

const textOf = (cell: Cell): string =>
  cell === null ? "" : typeof cell === "boolean" ? (cell ? "Yes" : "No") : visible(String(cell))

/** Draws a table. The first cell of a row is its header if `hasRowHeaders`. */
export const tableOf = (
  { caption, columns, rows }: {
    readonly caption?: string | undefined
    readonly columns: ReadonlyArray<string>
    readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
  },
  hasRowHeaders = false
): HTMLTableElement => {
  // A column of numbers is at the right, with its header.
  const isNumber = columns.map((_, at) =>
    rows.some((row) => typeof row[at] === "number") &&
    rows.every((row) => row[at] === null || typeof row[at] === "number")
  )
  const classOf = (at: number) => isNumber[at] === true ? "number" : ""
  const header = (scope: string, text: string, at: number) =>
    element("th", { scope, className: classOf(at), dir: "auto" }, text)
  return element(
    "table",
    {},
    ...(caption === undefined ? [] : [element("caption", { dir: "auto" }, visible(caption))]),
    element("thead", {}, element("tr", {}, ...columns.map((column, at) => header("col", visible(column), at)))),
    element(
      "tbody",
      {},
      ...rows.map((row) =>
        element(
          "tr",
          {},
          ...row.map((cell, at) =>
            hasRowHeaders && at === 0
              ? header("row", textOf(cell), at)
              : element("td", { className: classOf(at), dir: "auto" }, textOf(cell))
          )
        )
      )
    )
  )
}

/** Runs a function with an element when it has a place on the page, and after each change of its width. */
export const onWidth = <E extends HTMLElement>(made: E, run: (width: number) => void): E => {
  let last = -1
  const observer = new ResizeObserver(() => {
    const { clientWidth } = made
    if (clientWidth === last) return
    last = clientWidth
    run(clientWidth)
  })
  observer.observe(made)
  return made
}
