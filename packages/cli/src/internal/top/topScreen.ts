/**
 * The screen of `skein top`: its text, and the effects of keys. It uses no terminal and no network.
 */
import type { Visible } from "@skein/console/RowTree"
import { fit, formatAge, wrap } from "../base/columns.ts"
import { headOf, lineOf, makeTree, type Row, type RowAction } from "./topRows.ts"

/** The action that a key has requested. */
export type Action =
  | { readonly _tag: "Quit" }
  | { readonly _tag: "Interrupt"; readonly row: Row }
  | { readonly _tag: "Act"; readonly row: Row; readonly action: RowAction }
  | undefined

/** The texts that a terminal sends for each key. */
const texts = {
  up: ["\u001b[A", "\u001bOA", "k"],
  down: ["\u001b[B", "\u001bOB", "j"],
  right: ["\u001b[C", "\u001bOC"],
  left: ["\u001b[D", "\u001bOD"],
  pageUp: ["\u001b[5~"],
  pageDown: ["\u001b[6~"],
  home: ["\u001b[H", "\u001b[1~", "\u001bOH", "g"],
  end: ["\u001b[F", "\u001b[4~", "\u001bOF", "G"],
  quit: ["\u0003", "q"],
  interrupt: ["x"],
  actions: ["a"],
  idle: ["i"],
  filter: ["/"],
  escape: ["\u001b"],
  enter: ["\r", "\n"],
  erase: ["\u007f", "\b"]
}

const keys: ReadonlyMap<string, string> = new Map(
  Object.entries(texts).flatMap(([name, sent]) => sent.map((text) => [text, name] as const))
)

// A terminal sends several keys at once if they are pressed quickly. ESC alone is a key, and the start of others.
// oxlint-disable-next-line no-control-regex
const keyPattern = /\u001b\[[\d;]*[A-Za-z~]|\u001bO[A-Z]|[^]/gu

// The lines above and below the rows.
const headLines = 3
const footLines = 3

const color = (code: string, text: string): string => `\u001b[${code}m${text}\u001b[0m`

const stateColors: Readonly<Record<string, string>> = {
  waiting: "33",
  queued: "33",
  paused: "33",
  failed: "31",
  lost: "31",
  stopping: "31",
  idle: "2",
  done: "2"
}

/**
 * The question that the next key answers: whether to interrupt a row, which of its actions to run, or whether to run one
 * that has a confirmation.
 */
type Question =
  | { readonly _tag: "Interrupt"; readonly row: Row }
  | { readonly _tag: "Choose"; readonly row: Row }
  | { readonly _tag: "Confirm"; readonly row: Row; readonly action: RowAction }

export class TopScreen {
  readonly rows = makeTree()
  /** The state of the connection, for the head. */
  status = "connecting…"
  isConnected = false
  readonly #useColors: boolean
  #selected: string | undefined = undefined
  #index = 0
  #top = 0
  #filter = ""
  #isTyping = false
  #hideIdle = false
  #question: Question | undefined = undefined
  /** The outcome of the last action. */
  notice = ""
  /** The time of this machine less that of the server, in milliseconds. */
  skew = 0

  constructor(useColors: boolean) {
    this.#useColors = useColors
  }

  get #visible(): ReadonlyArray<Visible<Row>> {
    return this.rows.visible({ filter: this.#filter, busyOnly: this.#hideIdle })
  }

  /** Handles what the terminal has sent. */
  press(input: string, pageSize: number): Action {
    for (const key of input.match(keyPattern) ?? []) {
      const action = this.#key(key, pageSize)
      if (action !== undefined) return action
    }
    return undefined
  }

  #key(key: string, pageSize: number): Action {
    const name = keys.get(key)
    if (key === "\u0003") return { _tag: "Quit" }
    this.notice = ""
    if (this.#question !== undefined) return this.#answer(this.#question, key)
    if (this.#isTyping) return this.#type(key, name)
    const all = this.#visible
    const current = all[this.#find(all)]
    const moves = { up: -1, down: 1, pageUp: -pageSize, pageDown: pageSize, home: -Infinity, end: Infinity }
    const by = moves[name as keyof typeof moves]
    if (by !== undefined) return this.#select(all, by)
    switch (name) {
      case "quit":
        return { _tag: "Quit" }
      case "right":
        if (current?.hasChildren === true && current.isExpanded) return this.#select(all, 1)
        if (current !== undefined) this.rows.setExpanded(current.row.id, true)
        return undefined
      case "left":
        if (current?.isExpanded === true) this.rows.setExpanded(current.row.id, false)
        else if (current?.row.parent !== undefined) this.#selected = current.row.parent
        return undefined
      case "filter":
        this.#isTyping = true
        return undefined
      case "escape":
        this.#filter = ""
        return undefined
      case "idle":
        this.#hideIdle = !this.#hideIdle
        return undefined
      case "interrupt":
        if (current?.row.canInterrupt === true && this.isConnected) {
          this.#question = { _tag: "Interrupt", row: current.row }
        } else this.notice = "This row cannot be interrupted."
        return undefined
      case "actions":
        if (current !== undefined && current.row.actions.length > 0 && this.isConnected) {
          this.#question = { _tag: "Choose", row: current.row }
        } else this.notice = "This row has no actions."
        return undefined
      default:
        return undefined
    }
  }

  /** Handles the answer to a question. Any key but those that it names means no. */
  #answer(question: Question, key: string): Action {
    this.#question = undefined
    const isYes = key === "y" || key === "Y"
    switch (question._tag) {
      case "Interrupt":
        return isYes ? question : undefined
      case "Confirm":
        return isYes ? { ...question, _tag: "Act" } : undefined
      case "Choose": {
        const { row } = question
        const action = /^[1-9]$/.test(key) ? row.actions[Number(key) - 1] : undefined
        if (action === undefined) return undefined
        if (action.confirm === "") return { _tag: "Act", row, action }
        this.#question = { _tag: "Confirm", row, action }
        return undefined
      }
    }
  }

  #type(key: string, name: string | undefined): undefined {
    if (name === "enter") this.#isTyping = false
    else if (name === "escape") {
      this.#isTyping = false
      this.#filter = ""
    } else if (name === "erase") this.#filter = Array.from(this.#filter).slice(0, -1).join("")
    else if (!/[\p{Cc}\p{Cf}]/u.test(key) && this.#filter.length < 100) this.#filter += key
    return undefined
  }

  #select(all: ReadonlyArray<Visible<Row>>, by: number): undefined {
    this.#index = Math.min(Math.max(0, this.#find(all) + by), Math.max(0, all.length - 1))
    this.#selected = all[this.#index]?.row.id
    return undefined
  }

  /** The place of the selected row. If it has ended, the next row takes its place. */
  #find(all: ReadonlyArray<Visible<Row>>): number {
    const at = all.findIndex(({ row }) => row.id === this.#selected)
    this.#index = at === -1 ? Math.min(this.#index, Math.max(0, all.length - 1)) : at
    this.#selected = all[this.#index]?.row.id
    return this.#index
  }

  /** How many rows fit. */
  static pageSize(lines: number): number {
    return Math.max(1, lines - headLines - footLines)
  }

  /** The text of the whole screen. `now` is the time of this machine. */
  draw(columns: number, lines: number, now: number): string {
    const width = Math.max(40, columns)
    const all = this.#visible
    const selected = this.#find(all)
    const at = now - this.skew
    const foot = this.#foot(width, all[selected]?.row, at)
    const size = Math.max(1, lines - headLines - foot.length)
    this.#top = Math.max(0, Math.min(this.#top, selected, all.length - size))
    if (selected >= this.#top + size) this.#top = selected - size + 1
    const rows = all.slice(this.#top, this.#top + size).map((visible, index) =>
      this.#paint(lineOf(visible, width, at), visible.row, this.#top + index === selected)
    )
    while (rows.length < size) rows.push("")
    const text = [
      ...this.#head(width, all.length),
      this.#tint("2", headOf(width)),
      ...rows,
      ...foot
    ]
    // Every line is cut to the terminal, and the rest of it is erased: nothing of the last picture stays.
    return `\u001b[H${text.slice(0, lines).map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`
  }

  #tint(code: string, text: string): string {
    return this.#useColors ? color(code, text) : text
  }

  #paint(line: string, { state }: Row, isSelected: boolean): string {
    // The selection must be visible without colors too.
    if (isSelected) return color("7", line)
    const code = stateColors[state]
    return code === undefined ? line : this.#tint(code, line)
  }

  #head(width: number, shown: number): ReadonlyArray<string> {
    const server = this.rows.get("server:server")?.label ?? "console"
    const all = this.rows.counts()
    const counts = ["session", "request", "task"].flatMap((kind) => {
      const count = all.get(kind) ?? 0
      return count === 0 && kind === "task" ? [] : [`${count.toLocaleString("en")} ${kind}${count === 1 ? "" : "s"}`]
    })
    const state = fit(`${server}  ${this.status}  ${counts.join(" · ")}`, width)
    const filter = this.#isTyping || this.#filter !== ""
      ? `filter: ${this.#filter}${this.#isTyping ? "_" : ""}  (${shown} rows)`
      : this.#hideIdle
      ? "idle sessions are hidden"
      : ""
    return [this.isConnected ? this.#tint("1", state) : this.#tint("1;31", state), fit(filter, width)]
  }

  #foot(width: number, row: Row | undefined, now: number): ReadonlyArray<string> {
    const details = row === undefined ? "" : [
      row.waitsFor === "" ? row.summary : `waits for ${row.waitsFor}`,
      row.since === undefined ? "" : `for ${formatAge(now - row.since)}`,
      row.progress,
      row.principal,
      row.traceId === "" ? "" : `trace ${row.traceId}`,
      ...row.details.map(([name, value]) => `${name}: ${value}`)
    ].filter((part) => part !== "").join(" · ")
    const line = fit(`${row?.label ?? ""}${details === "" ? "" : `: ${details}`}`, width)
    const question = this.#asked
    if (question !== undefined) {
      const asked = question.flatMap((part) => wrap(part, width - 1))
      return ["", line, ...asked.map((part) => this.#tint("1;31", fit(part, width)))]
    }
    const last = this.notice !== ""
      ? this.notice
      : "↑↓ move  ←→ collapse, expand  x interrupt  a actions  / filter  i idle  q quit"
    return ["", line, this.#tint("2", fit(last, width))]
  }

  /** The open question, in paragraphs. */
  get #asked(): ReadonlyArray<string> | undefined {
    const question = this.#question
    switch (question?._tag) {
      case "Interrupt":
        return [
          `${question.row.kind === "session" ? "Close the session of" : "Interrupt"} ${question.row.label}? ` +
          "y: yes, any other key: no"
        ]
      case "Choose":
        return [
          `${question.row.label}:  ` +
          question.row.actions.map(({ label }, at) => `${at + 1} ${label}`).join("  ") + "  any other key: none"
        ]
      case "Confirm":
        return [
          question.action.confirm,
          `${question.action.label}: ${question.row.label}? y: yes, any other key: no`
        ]
      default:
        return undefined
    }
  }
}
