/**
 * The tree of the rows of a console, as its viewers have it: the page, and `skein top`. It imports nothing, so that the
 * page contains only this.
 */

/** The members of a row that the tree reads. */
export interface TreeRow {
  readonly id: string
  readonly parent?: string | undefined
  readonly kind: string
  readonly label: string
  readonly state: string
  readonly since?: number | undefined
  /** How many children it has, if they are not all sent, and the position after the last one that was. */
  readonly more?: { readonly total: number; readonly after?: string | undefined } | undefined
}

/** The event `rows` of a console: changes since the last one. The event without `continues` completes a change. */
export interface Changes<Row> {
  /** Milliseconds of Unix time, by the clock of the server. */
  readonly at: number
  /** Whether all earlier rows are forgotten first. */
  readonly reset?: boolean | undefined
  readonly set?: ReadonlyArray<Row> | undefined
  readonly remove?: ReadonlyArray<string> | undefined
  readonly continues?: boolean | undefined
}

/** A row at its place in the list. */
export interface Visible<Row> {
  readonly row: Row
  readonly level: number
  readonly hasChildren: boolean
  readonly isExpanded: boolean
  /** How many children it has. */
  readonly size: number
  /** Its place among its siblings, from 1, and their number. */
  readonly position: number
  readonly siblings: number
  /** Whether it does not match the filter itself. */
  readonly isDim: boolean
  /** Set if it stands for children that are not shown. */
  readonly more?: { readonly parent: Row; readonly after: string | undefined } | undefined
}

/** The choices of the viewer. */
export interface View {
  readonly filter: string
  readonly busyOnly: boolean
}

/** How a viewer reads and makes its rows. */
export interface Options<Row> {
  /** The text of a row that a filter is compared with, in lower case. */
  readonly textOf: (row: Row) => string
  /** Makes the row that stands for children that are not shown. */
  readonly makeMore: (row: TreeRow) => Row
}

const none: ReadonlySet<string> = new Set()

/** Whether a row is that of a task, a step or a request which has ended with an error. It is not live. */
const hasEnded = ({ state }: TreeRow): boolean => state === "failed" || state === "completed (error)"

/** The rows that a console has sent, and those of them that are visible. */
export class RowTree<Row extends TreeRow> {
  readonly #options: Options<Row>
  readonly #rows = new Map<string, Row>()
  readonly #children = new Map<string, Set<string>>()
  readonly #roots = new Set<string>()
  /** The rows that were asked for one by one: the server does not update them. */
  readonly #extra = new Set<string>()
  /** The positions after those rows, by their parents. */
  readonly #after = new Map<string, string | undefined>()
  readonly #collapsed = new Set<string>()
  /** Changes that are not complete. */
  #pending: Array<Changes<Row>> = []
  /** When the rows were read, by the clock of the server. */
  at = 0
  /** Grows with each change. */
  version = 0

  constructor(options: Options<Row>) {
    this.#options = options
  }

  get size(): number {
    return this.#rows.size
  }

  get(id: string): Row | undefined {
    return this.#rows.get(id)
  }

  /** Whether the server does not update a row. */
  isExtra(id: string): boolean {
    return this.#extra.has(id)
  }

  /** Receives an event. Returns whether a change is complete. */
  receive(event: Changes<Row>): boolean {
    if (event.reset === true) this.#pending = []
    this.#pending.push(event)
    if (event.continues === true) return false
    const all = this.#pending
    this.#pending = []
    for (const { remove, reset, set } of all) {
      if (reset === true) this.#clear()
      for (const id of remove ?? []) this.#remove(id)
      for (const row of set ?? []) this.#set(row, false)
      if (reset === true || remove !== undefined || set !== undefined) this.version++
    }
    this.at = event.at
    return true
  }

  /** Adds the rows that were asked for. */
  addMore(
    parent: string,
    { after, rows }: { readonly rows: ReadonlyArray<Row>; readonly after?: string | undefined }
  ): void {
    for (const row of rows) if (!this.#rows.has(row.id)) this.#set(row, true)
    this.#after.set(parent, after)
    this.version++
  }

  #clear(): void {
    this.#rows.clear()
    this.#children.clear()
    this.#roots.clear()
    this.#extra.clear()
    this.#after.clear()
  }

  #siblings({ parent }: Row): Set<string> {
    if (parent === undefined) return this.#roots
    let siblings = this.#children.get(parent)
    if (siblings === undefined) this.#children.set(parent, siblings = new Set())
    return siblings
  }

  #set(row: Row, isExtra: boolean): void {
    const before = this.#rows.get(row.id)
    if (before !== undefined && before.parent !== row.parent) this.#siblings(before).delete(row.id)
    // The logs of tasks that have failed are opened one by one.
    if (before === undefined && row.kind === "task" && hasEnded(row)) this.#collapsed.add(row.id)
    this.#rows.set(row.id, row)
    if (isExtra) this.#extra.add(row.id)
    else this.#extra.delete(row.id)
    this.#siblings(row).add(row.id)
  }

  #remove(id: string): void {
    const row = this.#rows.get(id)
    if (row === undefined) return
    for (const child of [...this.#children.get(id) ?? none]) if (this.#extra.has(child)) this.#remove(child)
    this.#rows.delete(id)
    this.#extra.delete(id)
    this.#collapsed.delete(id)
    this.#after.delete(id)
    this.#siblings(row).delete(id)
    if (this.#children.get(id)?.size === 0) this.#children.delete(id)
  }

  /** Whether a row has children, and none of them is loaded. */
  isUnloaded({ id, more }: Row): boolean {
    return more?.after !== undefined && (this.#children.get(id)?.size ?? 0) === 0
  }

  isExpanded(id: string): boolean {
    return !this.#collapsed.has(id)
  }

  setExpanded(id: string, expanded: boolean): void {
    if (expanded) this.#collapsed.delete(id)
    else this.#collapsed.add(id)
    this.version++
  }

  expandAll(): void {
    this.#collapsed.clear()
    this.version++
  }

  /** Collapses everything but the first level. */
  collapseAll(): void {
    for (const id of this.#children.keys()) if (!this.#roots.has(id)) this.#collapsed.add(id)
    this.version++
  }

  /** How many rows there are of each kind, without those that have failed: these are not live. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const row of this.#rows.values()) {
      if (!hasEnded(row)) counts.set(row.kind, (counts.get(row.kind) ?? 0) + 1)
    }
    return counts
  }

  /** The visible rows, in their order. */
  visible({ busyOnly, filter }: View): ReadonlyArray<Visible<Row>> {
    const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "")
    const matches = words.length === 0 ? undefined : this.#matches(words)
    const all: Array<Visible<Row>> = []
    const add = (ids: Iterable<string>, level: number, isInMatch: boolean): void => {
      const rows: Array<Row> = []
      for (const id of ids) {
        const row = this.#rows.get(id)!
        if (busyOnly && row.kind === "session" && row.state === "idle") continue
        if (matches === undefined || isInMatch || matches.shown.has(id)) rows.push(row)
      }
      // The newest task first, however it has arrived.
      if (rows[0]?.kind === "task") rows.sort((one, other) => (other.since ?? 0) - (one.since ?? 0))
      // Groups come first, also those that have appeared later.
      const ordered = level > 0 && rows.some(({ kind }) => kind === "group")
        ? [...rows.filter(({ kind }) => kind === "group"), ...rows.filter(({ kind }) => kind !== "group")]
        : rows
      for (const [index, row] of ordered.entries()) {
        const children = this.#children.get(row.id) ?? none
        const hasChildren = children.size > 0 || row.more !== undefined
        const isMatch = isInMatch || matches?.found.has(row.id) === true
        const isExpanded = hasChildren && (this.isExpanded(row.id) || (matches !== undefined && !isMatch))
        all.push({
          row,
          level,
          hasChildren,
          isExpanded,
          size: row.more?.total ?? children.size,
          position: index + 1,
          siblings: rows.length,
          isDim: matches !== undefined && !isMatch
        })
        if (!isExpanded) continue
        add(children, level + 1, isMatch)
        if (row.more !== undefined && (matches === undefined || isMatch)) this.#addMore(all, row, level + 1, children)
      }
    }
    add(this.#roots, 0, false)
    return all
  }

  /** Adds the row that stands for the children that are not shown. */
  #addMore(all: Array<Visible<Row>>, parent: Row, level: number, children: ReadonlySet<string>): void {
    let shown = 0
    for (const id of children) if (this.#rows.get(id)!.kind !== "group") shown++
    const left = parent.more!.total - shown
    const after = this.#after.has(parent.id) ? this.#after.get(parent.id) : parent.more!.after
    if (left <= 0) return
    all.push({
      row: this.#options.makeMore({
        id: `${parent.id}…`,
        parent: parent.id,
        kind: "more",
        label: after === undefined
          ? `${left.toLocaleString("en")} more are not shown`
          : `${left.toLocaleString("en")} more: press Enter or click to show some`,
        state: ""
      }),
      level,
      hasChildren: false,
      isExpanded: false,
      size: 0,
      position: shown + 1,
      siblings: shown + 1,
      isDim: false,
      more: { parent, after }
    })
  }

  /** The rows that match, and with their ancestors. */
  #matches(words: ReadonlyArray<string>): { readonly found: ReadonlySet<string>; readonly shown: ReadonlySet<string> } {
    const found = new Set<string>()
    const shown = new Set<string>()
    for (const row of this.#rows.values()) {
      const text = this.#options.textOf(row)
      if (!words.every((word) => text.includes(word))) continue
      found.add(row.id)
      for (let at: Row | undefined = row; at !== undefined && !shown.has(at.id);) {
        shown.add(at.id)
        at = at.parent === undefined ? undefined : this.#rows.get(at.parent)
      }
    }
    return { found, shown }
  }
}
