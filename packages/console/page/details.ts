/** The pane with everything about one row. */
import type { Row } from "../src/internal/messages.ts"
import type { Action } from "../src/ConsoleSource.ts"
import { formatAge, formatCount, formatProgress, kindName } from "./format.ts"

/** The state of the pane besides the row. */
export interface Situation {
  readonly now: number
  /** Whether the row has ended. */
  readonly isOver: boolean
  readonly isExtra: boolean
  readonly isConnected: boolean
  readonly showPayloads: boolean
  /** The answer of the last action of this row. */
  readonly answer: string | undefined
  readonly interrupt: () => void
  readonly act: (action: Action) => void
  readonly close: () => void
}

const make = <K extends keyof HTMLElementTagNameMap>(name: K, text = "", className = ""): HTMLElementTagNameMap[K] => {
  const element = document.createElement(name)
  element.textContent = text
  element.className = className
  return element
}

const makeButton = (id: string, text: string, className: string, run: () => void): HTMLButtonElement => {
  const button = make("button", text, className)
  button.type = "button"
  button.id = id
  button.addEventListener("click", run)
  return button
}

/** The id of the button of the first action. */
export const firstAction = "action-0"

let shownId: string | undefined
let shownText = ""

/** Returns the label of a row's time. A queue is as old as its oldest task that waits for a worker. */
const sinceOf = ({ kind }: Row): string => kind === "queue" ? "oldest ready since" : "since"

/** Fills the pane. Elements are replaced only if something differs, so that a selection of text stays. */
export const showDetails = (pane: HTMLElement, row: Row, situation: Situation): void => {
  const { answer, isConnected, isExtra, isOver, now, showPayloads } = situation
  const [progress] = formatProgress(row.progress)
  const total = row.progress?.total
  const steps = row.progress === undefined || total === undefined
    ? progress
    : `${formatCount(row.progress.progress)} of ${formatCount(total)} (${progress})`
  const entries: ReadonlyArray<readonly [string, string | undefined]> = [
    ["kind", kindName(row.kind)],
    ["state", isOver ? "ended" : row.state],
    ["waits for", isOver ? undefined : row.waitsFor],
    [sinceOf(row), row.since === undefined ? undefined : new Date(row.since).toLocaleString()],
    ["progress", row.progress === undefined ? undefined : [steps, row.progress.message].filter(Boolean).join(" · ")],
    ["principal", row.principal],
    ["trace id", row.traceId],
    ...Object.entries(row.details ?? {})
      .filter(([name]) => name !== "progress message")
      .map(([name, value]) =>
        [name, typeof value === "number" ? formatCount(value) : value === true ? "yes" : String(value)] as const
      )
  ]
  const canInterrupt = row.canInterrupt === true && !isOver
  const age = row.since === undefined || isOver ? "" : formatAge(now - row.since)
  const text = JSON.stringify([row, isOver, isExtra, isConnected, answer])
  if (shownId === row.id && shownText === text) {
    const element = pane.querySelector("#age")
    if (element !== null && age !== "" && element.textContent !== age) element.textContent = age
    return
  }
  const hadFocus = shownId === row.id && pane.contains(document.activeElement) ? document.activeElement!.id : undefined
  shownId = row.id
  shownText = text
  const head = make("header")
  head.append(make("h2", row.label), makeButton("closeDetails", "Close", "", situation.close))
  const list = make("dl")
  for (const [name, value] of entries) {
    if (value === undefined || value === "") continue
    list.append(make("dt", name), make("dd", value, value.length > 120 || name === "arguments" ? "long" : ""))
    if (name !== sinceOf(row) || age === "") continue
    const element = make("dd", age)
    element.id = "age"
    list.append(make("dt", "age"), element)
  }
  pane.replaceChildren(head, list)
  const buttons = (isOver ? [] : row.actions ?? []).map((action, at) =>
    makeButton(
      `action-${at}`,
      action.confirm === undefined ? action.label : `${action.label}…`,
      "",
      () => situation.act(action)
    )
  )
  if (canInterrupt) {
    const text = row.kind === "session" ? "Close the session…" : "Interrupt…"
    buttons.push(makeButton("interruptRow", text, "danger", situation.interrupt))
  }
  if (buttons.length > 0) {
    for (const button of buttons) button.disabled = !isConnected
    const line = make("p", "", "buttons")
    line.append(...buttons)
    pane.append(line)
  }
  if (answer !== undefined) pane.append(make("p", answer, "answer"))
  const note = isOver
    ? "It has ended. These are its last values."
    : isExtra
    ? "This row was loaded on request, and is not updated."
    : row.kind === "request" && !showPayloads
    ? "Arguments and results are hidden (showPayloads)."
    : ""
  if (note !== "") pane.append(make("p", note, "note"))
  if (hadFocus !== undefined) document.getElementById(hadFocus)?.focus()
}
