/**
 * The rows of a console as `skein top` shows them: the tree, what of it is visible, and its lines.
 */
import { type Changes, RowTree, type Visible } from "@skein/console/RowTree"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { printable } from "@skein/protocol/Text"
import { fit, formatAge } from "../base/columns.ts"

/** An action of a row. Its label and its confirmation are printable. */
export interface RowAction {
  readonly name: string
  readonly label: string
  /** The effect of the action, to be confirmed first; "" if it runs at once. */
  readonly confirm: string
}

/** The texts of a row that a filter searches. */
const texts = ["kind", "label", "state", "waitsFor", "summary", "principal", "traceId"] as const

/** A row of a console. All texts are printable. */
export interface Row extends Readonly<Record<typeof texts[number], string>> {
  readonly id: string
  readonly parent: string | undefined
  readonly since: number | undefined
  readonly progress: string
  readonly details: ReadonlyArray<readonly [string, string]>
  readonly canInterrupt: boolean
  /** At most 9: a digit chooses one. */
  readonly actions: ReadonlyArray<RowAction>
  readonly left: number | undefined
}

// How much of one text is shown, in characters. Details can have arguments. Confirmations are shown completely.
const maxText = 400
const maxConfirm = 1_000
const maxActions = 9

const text = (value: unknown): string =>
  typeof value === "string" ? printable(value, maxText) : typeof value === "number" ? String(value) : ""

const number = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

const progressOf = (value: unknown): string => {
  if (!isObject(value)) return ""
  const [done, total] = [number(value["progress"]), number(value["total"])]
  if (done === undefined) return ""
  const amount = total !== undefined && total > 0
    ? `${Math.round(Math.min(1, Math.max(0, done / total)) * 100)}%`
    : String(Math.round(done * 100) / 100)
  return `${amount} ${text(value["message"])}`.trim()
}

const actionsOf = (value: unknown): ReadonlyArray<RowAction> =>
  (Array.isArray(value) ? value : []).filter(isObject).slice(0, maxActions).flatMap(({ confirm, label, name }) =>
    typeof name !== "string" ? [] : [{
      name,
      label: text(label),
      confirm: typeof confirm === "string" ? printable(confirm, maxConfirm) : ""
    }]
  )

/** Reads a row; `undefined` if it has no id. Unknown members are ignored. */
export const readRow = (value: unknown): Row | undefined => {
  if (!isObject(value) || typeof value["id"] !== "string") return undefined
  const { actions, canInterrupt, details, id, more, parent, progress, since } = value
  return {
    ...Object.fromEntries(texts.map((name) => [name, text(value[name])])) as Record<typeof texts[number], string>,
    id,
    parent: typeof parent === "string" ? parent : undefined,
    since: number(since),
    progress: progressOf(progress),
    details: isObject(details)
      ? Object.entries(details).slice(0, 30).map(([name, value]) => [text(name), text(value) || String(value)] as const)
      : [],
    canInterrupt: canInterrupt === true,
    actions: actionsOf(actions),
    left: isObject(more) ? number(more["total"]) : undefined
  }
}

const textOf = (row: Row): string => texts.map((name) => row[name]).join(" ").toLowerCase()

/** The rows that a console has sent, as a tree. */
export const makeTree = (): RowTree<Row> => new RowTree({ textOf, makeMore: (row) => readRow(row)! })

/** Reads an event `rows`. Unknown members are ignored. */
export const readChanges = ({ at, continues, remove, reset, set }: JsonObject): Changes<Row> => ({
  at: number(at) ?? 0,
  reset: reset === true,
  set: (Array.isArray(set) ? set : []).flatMap((value) => readRow(value) ?? []),
  remove: (Array.isArray(remove) ? remove : []).filter((id) => typeof id === "string"),
  continues: continues === true
})

/** The columns of a table, by the width of the terminal. */
const columnsFor = (width: number) => {
  const [state, age, trace] = [9, 8, width >= 110 ? 9 : 0]
  const rest = Math.max(20, width - state - age - trace)
  const name = Math.max(16, Math.floor(rest * 0.4))
  const waits = Math.floor(rest * 0.24)
  const progress = Math.floor(rest * 0.16)
  return { name, state, waits, age, progress, principal: Math.max(0, rest - name - waits - progress), trace }
}

/** The columns of one row as a line without colors. */
export const lineOf = (visible: Visible<Row>, width: number, now: number): string => {
  const { hasChildren, isExpanded, level, row } = visible
  const columns = columnsFor(width)
  const twisty = hasChildren ? isExpanded ? "▾ " : "▸ " : "  "
  const more = row.left === undefined ? "" : ` (${row.left.toLocaleString("en")} in all)`
  const age = row.since === undefined ? "" : formatAge(now - row.since)
  return fit(`${"  ".repeat(level)}${twisty}${row.label}${more}`, columns.name - 1) + " " +
    fit(row.state, columns.state - 1) + " " +
    fit(row.waitsFor || row.summary, columns.waits - 1) + " " +
    age.padStart(columns.age - 2) + "  " +
    fit(row.progress, columns.progress - 1) + " " +
    fit(row.principal, columns.principal - 1) + " " +
    (columns.trace === 0 ? "" : fit(row.traceId.slice(0, 8), columns.trace))
}

/** The heads of the columns. */
export const headOf = (width: number): string => {
  const columns = columnsFor(width)
  return fit("NAME", columns.name) + fit("STATE", columns.state) + fit("WAITS FOR", columns.waits) +
    "AGE".padStart(columns.age - 2) + "  " + fit("PROGRESS", columns.progress) + fit("PRINCIPAL", columns.principal) +
    (columns.trace === 0 ? "" : fit("TRACE", columns.trace))
}
