/** The page of a console. */
import type { Hello, Row } from "../src/internal/messages.ts"
import * as connection from "./connection.ts"
import { showDetails } from "./details.ts"
import { formatAge, formatCount } from "./format.ts"
import { Grid } from "./grid.ts"
import { Model, type Visible } from "./model.ts"

const byId = <E extends HTMLElement = HTMLElement>(id: string): E => document.getElementById(id) as E

const grid = byId("grid")
const filter = byId<HTMLInputElement>("filter")
const busyOnly = byId<HTMLInputElement>("busyOnly")
const dialog = byId<HTMLDialogElement>("confirm")
const details = byId("details")
const banner = byId("banner")

const model = new Model()
let hello: Hello | undefined
let rows: ReadonlyArray<Visible> = []
/** The id of the selected row, and the place where it was last. */
let selected: string | undefined
let selectedIndex = -1
/** The last state of the row in the details. */
let detailed: Row | undefined
/** The time of the server, less that of this machine. */
let skew = 0
let isConnected = false
let builtFrom = ""

const now = (): number => Date.now() + skew

const announce = (text: string): void => void (byId("announcement").textContent = text)

/** Builds the list again if something has changed, and shows it. */
const update = (): void => {
  const view = { filter: filter.value.trim(), busyOnly: busyOnly.checked }
  const from = JSON.stringify([model.version, view])
  if (from !== builtFrom) {
    builtFrom = from
    rows = model.visible(view)
    const at = selected === undefined ? -1 : rows.findIndex(({ row }) => row.id === selected)
    // The selected row has ended, or is hidden: the next one takes its place, and the details stay.
    if (at === -1 && selectedIndex >= 0) {
      selectedIndex = Math.min(selectedIndex, rows.length - 1)
      selected = rows[selectedIndex]?.row.id
    } else selectedIndex = at
    showCounts(view.filter !== "" || view.busyOnly)
  }
  grid.parentElement!.querySelector<HTMLElement>("#empty")!.hidden = rows.length > 0
  if (rows.length === 0) {
    byId("empty").textContent = model.size > 0
      ? "No row matches the filter."
      : isConnected
      ? "The server has no sessions and no requests."
      : "Waiting for the server…"
  }
  table.show(rows, selectedIndex, now())
  updateDetails()
}

const counted = ["session", "request", "task", "question", "stream"] as const

const showCounts = (isFiltered: boolean): void => {
  const counts = model.counts()
  const texts = counted.flatMap((kind) => {
    const count = counts.get(kind) ?? 0
    return count === 0 && kind !== "session" ? [] : [`${formatCount(count)} ${kind}${count === 1 ? "" : "s"}`]
  })
  if (isFiltered) {
    const shown = rows.filter(({ isDim }) => !isDim).length
    texts.push(`${formatCount(shown)} ${shown === 1 ? "row" : "rows"} shown`)
  }
  byId("counts").textContent = model.size === 0 ? "" : texts.join(" · ")
}

const updateDetails = (): void => {
  if (details.hidden || detailed === undefined) return
  const row = model.get(detailed.id)
  detailed = row ?? detailed
  showDetails(details, detailed, {
    now: now(),
    isOver: row === undefined,
    isExtra: model.isExtra(detailed.id),
    isConnected,
    showPayloads: hello?.showPayloads === true,
    interrupt: () => void ask(detailed),
    close: closeDetails
  })
}

const closeDetails = (): void => {
  details.hidden = true
  detailed = undefined
  grid.focus()
}

const select = (index: number): void => {
  selectedIndex = Math.min(Math.max(0, index), rows.length - 1)
  const row = rows[selectedIndex]?.row
  selected = row?.id
  if (!details.hidden && row !== undefined && row.kind !== "more") detailed = row
  if (row !== undefined) table.reveal(selectedIndex)
  update()
}

const toggle = (index: number, expanded?: boolean): void => {
  const visible = rows[index]
  if (visible === undefined || !visible.hasChildren) return
  model.setExpanded(visible.row.id, expanded ?? !visible.isExpanded)
  update()
}

/** Shows the details of a row, or further rows. */
const open = (index: number): void => {
  const visible = rows[index]
  if (visible === undefined) return
  if (visible.more !== undefined) return void showMore(visible.more)
  detailed = visible.row
  details.hidden = false
  update()
}

const showMore = async ({ after, parent }: NonNullable<Visible["more"]>): Promise<void> => {
  if (after === undefined) return
  try {
    model.addMore(parent.id, await connection.more(parent.id, after))
    update()
  } catch (error) {
    report(`Further rows were not loaded: ${(error as Error).message}`)
  }
}

let reportTimer = 0
/** Shows a failure for a while. */
const report = (text: string): void => {
  banner.textContent = text
  banner.hidden = false
  clearTimeout(reportTimer)
  reportTimer = setTimeout(() => void (banner.hidden = isConnected), 8_000)
}

let questions = 0

/** Waits until the dialog is closed. The event of an earlier question may come when the next one is open already. */
const closed = (): Promise<void> =>
  new Promise((resolve) => {
    const onClose = (): void => {
      if (dialog.open) return
      dialog.removeEventListener("close", onClose)
      resolve()
    }
    dialog.addEventListener("close", onClose)
  })

/** Interrupts a row after a confirmation. */
const ask = async (row: Row | undefined): Promise<void> => {
  if (row?.canInterrupt !== true || hello === undefined || !isConnected || dialog.open) return
  const { instance } = hello
  const isSession = row.kind === "session"
  byId("question").textContent = isSession ? `Close the session of ${row.label}?` : `Interrupt ${row.label}?`
  const age = row.since === undefined ? undefined : `for ${formatAge(now() - row.since)}`
  byId("which").textContent = [row.principal, age, row.traceId && `trace ${row.traceId.slice(0, 8)}`]
    .filter(Boolean).join(" · ")
  byId("consequence").textContent = isSession
    ? "Its requests are cancelled, and its client must open a new session."
    : row.kind === "subscription"
    ? "The subscription ends with its result. Its client may open it again."
    : row.kind === "task"
    ? "The task is cancelled, and its finished steps are undone."
    : "Its handler is interrupted, and its client receives an error."
  byId("yes").textContent = isSession ? "Close the session" : "Interrupt"
  dialog.returnValue = ""
  dialog.showModal()
  const question = ++questions
  await closed()
  grid.focus()
  if (question !== questions || dialog.returnValue !== "interrupt") return
  try {
    const outcome = await connection.interrupt(instance, row.id)
    const text = outcome === "Interrupted"
      ? `${row.label}: ${isSession ? "closed" : "interrupted"}`
      : outcome === "NotFound"
      ? `${row.label} had ended already`
      : "The server has restarted: nothing was interrupted"
    announce(text)
    if (outcome !== "Interrupted") report(text)
  } catch (error) {
    report(`${row.label} was not interrupted: ${(error as Error).message}`)
  }
}

const table = new Grid(grid, byId("viewport"), byId("rows"), {
  select: (index) => {
    grid.focus()
    select(index)
  },
  toggle,
  open
})

grid.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const at = selectedIndex
  const visible = rows[at]
  switch (event.key) {
    case "ArrowDown":
      select(at + 1)
      break
    case "ArrowUp":
      select(at - 1)
      break
    case "PageDown":
      select(at + table.pageSize)
      break
    case "PageUp":
      select(at - table.pageSize)
      break
    case "Home":
      select(0)
      break
    case "End":
      select(rows.length - 1)
      break
    case "ArrowRight":
      if (visible?.hasChildren === true && !visible.isExpanded) toggle(at, true)
      else if (visible?.isExpanded === true) select(at + 1)
      break
    case "ArrowLeft":
      if (visible?.isExpanded === true) toggle(at, false)
      else if (visible?.row.parent !== undefined) select(rows.findIndex(({ row }) => row.id === visible.row.parent))
      break
    case "Enter":
    case " ":
      open(at)
      break
    case "x":
    case "Delete":
      void ask(visible?.row)
      break
    default:
      return
  }
  event.preventDefault()
})

document.addEventListener("keydown", (event) => {
  if (dialog.open || event.ctrlKey || event.metaKey || event.altKey) return
  if (event.key === "/" && document.activeElement !== filter) {
    event.preventDefault()
    filter.focus()
    filter.select()
  } else if (event.key === "Escape") {
    if (document.activeElement === filter && filter.value !== "") filter.value = ""
    else if (!details.hidden) closeDetails()
    else grid.focus()
    update()
  }
})

grid.addEventListener("focus", () => {
  if (selectedIndex < 0 && rows.length > 0) select(0)
})
filter.addEventListener("input", () => {
  byId("viewport").scrollTop = 0
  update()
})
filter.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "Enter") return
  event.preventDefault()
  grid.focus()
})
busyOnly.addEventListener("change", update)
byId("expand").addEventListener("click", () => {
  model.expandAll()
  update()
})
byId("collapse").addEventListener("click", () => {
  model.collapseAll()
  update()
})

let isScheduled = false
/** Updates in the next frame, once. */
const schedule = (): void => {
  if (isScheduled) return
  isScheduled = true
  requestAnimationFrame(() => {
    isScheduled = false
    update()
  })
}

connection.connect({
  hello: (received) => {
    if (hello !== undefined && hello.instance !== received.instance) announce("The server has restarted")
    hello = received
  },
  rows: (event) => {
    if (!model.receive(event)) return
    skew = event.at - Date.now()
    const server = model.get("server:server")
    if (server !== undefined) {
      byId("title").textContent = server.label
      document.title = `${server.label} · Console`
    }
    schedule()
  },
  lost: (reason) => {
    const status = byId("connection")
    const wasConnected = isConnected
    isConnected = reason === undefined
    status.dataset["state"] = isConnected ? "live" : "lost"
    if (isConnected) delete grid.dataset["stale"]
    else grid.dataset["stale"] = ""
    const text = isConnected ? "Live" : "Reconnecting…"
    if (status.textContent !== text) status.textContent = text
    if (!isConnected) {
      banner.textContent = `Connection lost (${reason}). Reconnecting… The rows are the last ones that arrived.`
      banner.hidden = false
    } else if (!wasConnected) banner.hidden = true
    schedule()
  }
})

// Ages grow without events too.
setInterval(() => {
  if (!document.hidden && isConnected) schedule()
}, 1_000)
