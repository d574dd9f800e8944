/** A tree grid that has elements for the rows in sight only, however many there are. */
import { formatAge, formatCount, formatProgress, kindLetter, kindName } from "./format.ts"
import type { Row } from "../src/internal/messages.ts"
import type { Visible } from "../src/RowTree.ts"

// The height of a row, in pixels, and how many rows beyond those in sight have elements.
const rowHeight = 30
const overscan = 8

/** The elements of one row. They are used again for other rows. */
interface Slot {
  readonly element: HTMLElement
  readonly cells: {
    readonly kind: HTMLElement
    readonly label: HTMLElement
    readonly size: HTMLElement
    readonly state: HTMLElement
    readonly waits: HTMLElement
    readonly age: HTMLElement
    readonly bar: HTMLElement
    readonly fill: HTMLElement
    readonly progress: HTMLElement
    readonly principal: HTMLElement
    readonly trace: HTMLElement
  }
  shown: Visible<Row> | undefined
  index: number
}

/** The actions of a viewer in the grid. */
export interface Actions {
  readonly select: (index: number) => void
  readonly toggle: (index: number) => void
  readonly open: (index: number) => void
}

const make = <K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  ...children: ReadonlyArray<HTMLElement>
): HTMLElementTagNameMap[K] => {
  const element = document.createElement(name)
  if (className !== "") element.className = className
  element.append(...children)
  return element
}

const cell = (className: string, ...children: ReadonlyArray<HTMLElement>): HTMLElement => {
  const element = make("span", className, ...children)
  element.setAttribute("role", "gridcell")
  return element
}

/** Changes a text only if it differs: most rows do not change. */
const setText = (element: HTMLElement, text: string, hint = false): void => {
  if (element.textContent === text) return
  element.textContent = text
  if (hint) element.title = text
}

const set = (element: HTMLElement, name: string, value: string | undefined): void => {
  if (value === undefined) element.removeAttribute(name)
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}

export class Grid {
  readonly #grid: HTMLElement
  readonly #viewport: HTMLElement
  readonly #body: HTMLElement
  readonly #actions: Actions
  readonly #slots: Array<Slot> = []
  #rows: ReadonlyArray<Visible<Row>> = []
  #selected = -1
  #now = 0

  constructor(grid: HTMLElement, viewport: HTMLElement, body: HTMLElement, actions: Actions) {
    this.#grid = grid
    this.#viewport = viewport
    this.#body = body
    this.#actions = actions
    viewport.addEventListener("scroll", () => this.render(), { passive: true })
    new ResizeObserver(() => this.#resized()).observe(viewport)
  }

  /** How many rows fit. */
  get pageSize(): number {
    return Math.max(1, Math.floor(this.#viewport.clientHeight / rowHeight) - 1)
  }

  /** Shows these rows. `now` is the time of the server. */
  show(rows: ReadonlyArray<Visible<Row>>, selected: number, now: number): void {
    if (rows.length !== this.#rows.length) {
      this.#body.style.height = `${rows.length * rowHeight}px`
      set(this.#grid, "aria-rowcount", String(rows.length + 1))
    }
    this.#rows = rows
    this.#selected = selected
    this.#now = now
    this.render()
  }

  /** Scrolls until a row is in sight. */
  reveal(index: number): void {
    const top = index * rowHeight
    const { clientHeight, scrollTop } = this.#viewport
    if (top < scrollTop) this.#viewport.scrollTop = top
    else if (top + rowHeight > scrollTop + clientHeight) this.#viewport.scrollTop = top + rowHeight - clientHeight
  }

  #resized(): void {
    const scrollbar = this.#viewport.offsetWidth - this.#viewport.clientWidth
    this.#grid.style.setProperty("--scrollbar", `${scrollbar}px`)
    this.render()
  }

  /** Fills the elements of the rows in sight. */
  render(): void {
    const { clientHeight, scrollTop } = this.#viewport
    const first = Math.max(0, Math.floor(scrollTop / rowHeight) - overscan)
    const last = Math.min(this.#rows.length, Math.ceil((scrollTop + clientHeight) / rowHeight) + overscan)
    const needed = Math.min(this.#rows.length, Math.ceil(clientHeight / rowHeight) + 2 * overscan + 1)
    while (this.#slots.length < needed) this.#slots.push(this.#makeSlot(this.#slots.length))
    while (this.#slots.length > needed) this.#slots.pop()!.element.remove()
    // A row stays in its element while the list scrolls.
    for (let index = first; index < last; index++) this.#fill(this.#slots[index % needed]!, index)
    for (const slot of this.#slots) {
      const isHidden = slot.index < first || slot.index >= last
      if (slot.element.hidden !== isHidden) slot.element.hidden = isHidden
      if (isHidden) set(slot.element, "aria-selected", "false")
    }
    const active = this.#selected >= first && this.#selected < last ? this.#slots[this.#selected % needed] : undefined
    set(this.#grid, "aria-activedescendant", active?.element.id)
  }

  #makeSlot(number: number): Slot {
    const cells = {
      kind: make("span", "kind"),
      label: make("span", "label"),
      size: make("span", "size"),
      state: cell("state"),
      waits: cell("waits"),
      age: cell("age"),
      bar: make("span", "bar"),
      fill: make("i", ""),
      progress: make("span", ""),
      principal: cell("principal"),
      trace: cell("trace")
    }
    cells.bar.append(cells.fill)
    cells.bar.setAttribute("aria-hidden", "true")
    const twisty = make("span", "twisty")
    const element = make(
      "div",
      "row",
      cell("name", twisty, cells.kind, cells.label, cells.size),
      cells.state,
      cells.waits,
      cells.age,
      cell("progress", cells.bar, cells.progress),
      cells.principal,
      cells.trace
    )
    element.id = `row-${number}`
    element.setAttribute("role", "row")
    const slot: Slot = { element, cells, shown: undefined, index: -1 }
    element.addEventListener("click", ({ target }) => {
      this.#actions.select(slot.index)
      if (target === twisty) this.#actions.toggle(slot.index)
      else this.#actions.open(slot.index)
    })
    element.addEventListener("dblclick", () => this.#actions.toggle(slot.index))
    this.#body.append(element)
    return slot
  }

  #fill(slot: Slot, index: number): void {
    const { cells, element } = slot
    const shown = this.#rows[index]!
    const { row } = shown
    if (slot.index !== index) element.style.transform = `translateY(${index * rowHeight}px)`
    slot.index = index
    set(element, "aria-selected", String(index === this.#selected))
    setText(cells.age, row.since === undefined ? "" : formatAge(this.#now - row.since))
    const before = slot.shown
    slot.shown = shown
    set(element, "aria-rowindex", String(index + 2))
    if (
      before?.row === row && before.size === shown.size && before.isExpanded === shown.isExpanded &&
      before.isDim === shown.isDim && before.position === shown.position && before.siblings === shown.siblings
    ) return
    element.style.setProperty("--level", String(shown.level))
    set(element, "data-kind", row.kind)
    set(element, "data-state", row.state)
    set(element, "data-dim", shown.isDim ? "" : undefined)
    set(element, "aria-level", String(shown.level + 1))
    set(element, "aria-posinset", String(shown.position))
    set(element, "aria-setsize", String(shown.siblings))
    set(element, "aria-expanded", shown.hasChildren ? String(shown.isExpanded) : undefined)
    set(cells.kind, "data-kind", row.kind)
    set(cells.kind, "title", row.kind === "more" ? undefined : kindName(row.kind))
    set(cells.kind, "aria-label", kindName(row.kind))
    setText(cells.kind, kindLetter(row.kind))
    setText(cells.label, row.label, true)
    setText(cells.size, shown.size > 0 ? formatCount(shown.size) : "")
    setText(cells.state, row.state)
    setText(cells.waits, row.waitsFor ?? row.summary ?? "", true)
    const [progress, fraction] = formatProgress(row.progress)
    cells.bar.hidden = fraction === undefined
    if (fraction !== undefined) cells.fill.style.transform = `scaleX(${fraction})`
    setText(
      cells.progress,
      row.progress?.message === undefined ? progress : `${progress} ${row.progress.message}`,
      true
    )
    setText(cells.principal, row.principal ?? "", true)
    setText(cells.trace, row.traceId?.slice(0, 8) ?? "")
    cells.trace.title = row.traceId ?? ""
  }
}
