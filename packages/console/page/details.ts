/** The pane with everything about one row. */
import type { Row } from "../src/internal/messages.ts"
import { formatAge, formatCount, formatProgress, kindName } from "./format.ts"

/** What the pane needs besides the row. */
export interface Situation {
  readonly now: number
  /** Whether the row has ended. */
  readonly isOver: boolean
  readonly isExtra: boolean
  readonly isConnected: boolean
  readonly showPayloads: boolean
  readonly interrupt: () => void
  readonly close: () => void
}

const make = <K extends keyof HTMLElementTagNameMap>(name: K, text = "", className = ""): HTMLElementTagNameMap[K] => {
  const element = document.createElement(name)
  element.textContent = text
  element.className = className
  return element
}

let shownId: string | undefined
let shownText = ""

/** Fills the pane. Elements are replaced only if something differs, so that a selection of text stays. */
export const showDetails = (pane: HTMLElement, row: Row, situation: Situation): void => {
  const { isConnected, isExtra, isOver, now, showPayloads } = situation
  const [progress] = formatProgress(row.progress)
  const total = row.progress?.total
  const steps = row.progress === undefined || total === undefined
    ? progress
    : `${formatCount(row.progress.progress)} of ${formatCount(total)} (${progress})`
  const entries: ReadonlyArray<readonly [string, string | undefined]> = [
    ["kind", kindName(row.kind)],
    ["state", isOver ? "ended" : row.state],
    ["waits for", isOver ? undefined : row.waitsFor],
    ["since", row.since === undefined ? undefined : new Date(row.since).toLocaleString()],
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
  const text = JSON.stringify([row, isOver, isExtra, isConnected])
  if (shownId === row.id && shownText === text) {
    const element = pane.querySelector("#age")
    if (element !== null && age !== "" && element.textContent !== age) element.textContent = age
    return
  }
  const hadFocus = shownId === row.id && pane.contains(document.activeElement) ? document.activeElement!.id : undefined
  shownId = row.id
  shownText = text
  const head = make("header")
  const close = make("button", "Close")
  close.type = "button"
  close.id = "closeDetails"
  close.addEventListener("click", situation.close)
  head.append(make("h2", row.label), close)
  const list = make("dl")
  for (const [name, value] of entries) {
    if (value === undefined || value === "") continue
    list.append(make("dt", name), make("dd", value, value.length > 120 || name === "arguments" ? "long" : ""))
    if (name !== "since" || age === "") continue
    const element = make("dd", age)
    element.id = "age"
    list.append(make("dt", "age"), element)
  }
  pane.replaceChildren(head, list)
  if (canInterrupt) {
    const button = make("button", row.kind === "session" ? "Close the session…" : "Interrupt…", "danger")
    button.type = "button"
    button.id = "interruptRow"
    button.disabled = !isConnected
    button.addEventListener("click", situation.interrupt)
    const buttons = make("p", "", "buttons")
    buttons.append(button)
    pane.append(buttons)
  }
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
