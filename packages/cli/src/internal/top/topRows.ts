/**
 * The rows of a console as `skein top` shows them: the tree, what of it is visible, and its lines.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { printable } from "@skein/protocol/Text"
import { fit, formatAge } from "../base/columns.ts"

/** An action of a row. Its label and its confirmation are printable. */
export interface RowAction {
  readonly name: string
  readonly label: string
  /** What happens, to be confirmed first; "" if the action runs at once. */
  readonly confirm: string
}

/** A row of a console. All texts are printable. */
export interface Row {
  readonly id: string
  readonly parent: string | undefined
  readonly kind: string
  readonly label: string
  readonly state: string
  readonly waitsFor: string
  readonly summary: string
  readonly since: number | undefined
  readonly progress: string
  readonly principal: string
  readonly traceId: string
  readonly details: ReadonlyArray<readonly [string, string]>
  readonly canInterrupt: boolean
  /** At most 9: a digit chooses one. */
  readonly actions: ReadonlyArray<RowAction>
  readonly left: number | undefined
}

/** A row at its place in the list. */
export interface Visible {
  readonly row: Row
  readonly level: number
  readonly hasChildren: boolean
  readonly isExpanded: boolean
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
  const { actions, canInterrupt, details, id, kind, label, more, parent } = value
  const { principal, progress, since, state, summary, traceId, waitsFor } = value
  return {
    id,
    parent: typeof parent === "string" ? parent : undefined,
    kind: text(kind),
    label: text(label),
    state: text(state),
    waitsFor: text(waitsFor),
    summary: text(summary),
    since: number(since),
    progress: progressOf(progress),
    principal: text(principal),
    traceId: text(traceId),
    details: isObject(details)
      ? Object.entries(details).slice(0, 30).map(([name, value]) => [text(name), text(value) || String(value)] as const)
      : [],
    canInterrupt: canInterrupt === true,
    actions: actionsOf(actions),
    left: isObject(more) ? number(more["total"]) : undefined
  }
}

/** The rows that a console has sent. */
export class Rows {
  readonly #rows = new Map<string, Row>()
  readonly #children = new Map<string | undefined, Set<string>>()
  readonly #collapsed = new Set<string>()
  #pending: Array<JsonObject> = []
  /** The time of the server at the last change. */
  at = 0

  get(id: string | undefined): Row | undefined {
    return id === undefined ? undefined : this.#rows.get(id)
  }

  /** Receives an event `rows`. Returns whether a change is complete. */
  receive(event: JsonObject): boolean {
    if (event["reset"] === true) this.#pending = []
    this.#pending.push(event)
    if (event["continues"] === true) return false
    const all = this.#pending
    this.#pending = []
    for (const { remove, reset, set } of all) {
      if (reset === true) {
        this.#rows.clear()
        this.#children.clear()
      }
      for (const id of Array.isArray(remove) ? remove : []) this.#remove(id)
      for (const value of Array.isArray(set) ? set : []) {
        const row = readRow(value)
        if (row !== undefined) this.#set(row)
      }
    }
    this.at = number(event["at"]) ?? this.at
    return true
  }

  #set(row: Row): void {
    this.#remove(row.id, row.parent)
    this.#rows.set(row.id, row)
    const siblings = this.#children.get(row.parent)
    if (siblings === undefined) this.#children.set(row.parent, new Set([row.id]))
    else siblings.add(row.id)
  }

  /** Removes a row, unless it stays where it is. */
  #remove(id: unknown, unless?: string): void {
    const row = typeof id === "string" ? this.#rows.get(id) : undefined
    if (row === undefined || (row.parent === unless && unless !== undefined)) return
    this.#rows.delete(row.id)
    this.#children.get(row.parent)?.delete(row.id)
  }

  /** Expands or collapses a row. */
  setExpanded(id: string, isExpanded: boolean): void {
    if (isExpanded) this.#collapsed.delete(id)
    else this.#collapsed.add(id)
  }

  /** How many rows there are of a kind, without those that have failed. */
  count(kind: string): number {
    let count = 0
    for (const row of this.#rows.values()) if (row.kind === kind && row.state !== "failed") count++
    return count
  }

  /** The visible rows, in their order. */
  visible(filter = "", hideIdle = false): ReadonlyArray<Visible> {
    const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "")
    const shown = words.length === 0 ? undefined : this.#matches(words)
    const all: Array<Visible> = []
    const add = (parent: string | undefined, level: number, isInMatch: boolean): void => {
      for (const id of this.#children.get(parent) ?? []) {
        const row = this.#rows.get(id)!
        if (hideIdle && row.kind === "session" && row.state === "idle") continue
        if (shown !== undefined && !isInMatch && !shown.has(id)) continue
        const hasChildren = (this.#children.get(id)?.size ?? 0) > 0
        const isExpanded = hasChildren && (shown !== undefined || !this.#collapsed.has(id))
        all.push({ row, level, hasChildren, isExpanded })
        if (isExpanded) add(id, level + 1, isInMatch || shown?.get(id) === true)
      }
    }
    add(undefined, 0, false)
    return all
  }

  /** The rows that match (`true`), and their ancestors. */
  #matches(words: ReadonlyArray<string>): ReadonlyMap<string, boolean> {
    const shown = new Map<string, boolean>()
    for (const row of this.#rows.values()) {
      const { kind, label, principal, state, summary, traceId, waitsFor } = row
      const all = [kind, label, state, waitsFor, summary, principal, traceId].join(" ").toLowerCase()
      if (!words.every((word) => all.includes(word))) continue
      shown.set(row.id, true)
      for (let up = this.get(row.parent); up !== undefined && !shown.has(up.id); up = this.get(up.parent)) {
        shown.set(up.id, false)
      }
    }
    return shown
  }
}

/** The columns of a table, by the width of the terminal. */
export const columnsFor = (width: number) => {
  const [state, age, trace] = [9, 8, width >= 110 ? 9 : 0]
  const rest = Math.max(20, width - state - age - trace)
  const name = Math.max(16, Math.floor(rest * 0.4))
  const waits = Math.floor(rest * 0.24)
  const progress = Math.floor(rest * 0.16)
  return { name, state, waits, age, progress, principal: Math.max(0, rest - name - waits - progress), trace }
}

/** The columns of one row as a line without colors. */
export const lineOf = (visible: Visible, width: number, now: number): string => {
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
