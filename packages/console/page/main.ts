/** The page of a console. */
import type { Action } from "../src/ConsoleSource.ts"
import type { Hello, Row } from "../src/internal/messages.ts"
import { makeCommands } from "./commands.ts"
import { isAsking } from "./confirm.ts"
import * as connection from "./connection.ts"
import { firstAction, showDetails } from "./details.ts"
import { formatCount } from "./format.ts"
import { Grid } from "./grid.ts"
import { RowTree, type Visible } from "../src/RowTree.ts"

const byId = <E extends HTMLElement = HTMLElement>(id: string): E => document.getElementById(id) as E

const grid = byId("grid")
const filter = byId<HTMLInputElement>("filter")
const busyOnly = byId<HTMLInputElement>("busyOnly")
const details = byId("details")
const banner = byId("banner")

const textOf = ({ details, kind, label, principal, state, summary, traceId, waitsFor }: Row): string => {
  const { client, revision, transport } = details ?? {}
  return [kind, label, state, waitsFor, summary, principal, traceId, transport, revision, client].join(" ")
    .toLowerCase()
}

const tree = new RowTree<Row>({ textOf, makeMore: (row) => row as Row })
let hello: Hello | undefined
let rows: ReadonlyArray<Visible<Row>> = []
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
  const from = JSON.stringify([tree.version, view])
  if (from !== builtFrom) {
    builtFrom = from
    rows = tree.visible(view)
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
    byId("empty").textContent = tree.size > 0
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
  const counts = tree.counts()
  const texts = counted.flatMap((kind) => {
    const count = counts.get(kind) ?? 0
    return count === 0 && kind !== "session" ? [] : [`${formatCount(count)} ${kind}${count === 1 ? "" : "s"}`]
  })
  if (isFiltered) {
    const shown = rows.filter(({ isDim }) => !isDim).length
    texts.push(`${formatCount(shown)} ${shown === 1 ? "row" : "rows"} shown`)
  }
  byId("counts").textContent = tree.size === 0 ? "" : texts.join(" · ")
}

const updateDetails = (): void => {
  if (details.hidden || detailed === undefined) return
  const row = tree.get(detailed.id)
  detailed = row ?? detailed
  showDetails(details, detailed, {
    now: now(),
    isOver: row === undefined,
    isExtra: tree.isExtra(detailed.id),
    isConnected,
    showPayloads: hello?.showPayloads === true,
    answer: answered?.id === detailed.id ? answered.text : undefined,
    interrupt: () => void interrupt(detailed),
    act: (action) => void act(detailed!, action),
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
  const isExpanded = expanded ?? !visible.isExpanded
  tree.setExpanded(visible.row.id, isExpanded)
  update()
  const { row } = visible
  if (isExpanded && tree.isUnloaded(row)) void showMore({ parent: row, after: row.more?.after })
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

const showMore = async ({ after, parent }: NonNullable<Visible<Row>["more"]>): Promise<void> => {
  if (after === undefined) return
  try {
    tree.addMore(parent.id, await connection.more(parent.id, after))
    update()
  } catch (error) {
    report(`Further rows were not loaded: ${(error as Error).message}`)
  }
}

let reportTimer = 0
/** Shows a failure, or an answer, for a while. */
const report = (text: string, isFailure = true): void => {
  banner.textContent = text
  banner.dataset["tone"] = isFailure ? "failure" : "answer"
  banner.hidden = false
  clearTimeout(reportTimer)
  reportTimer = setTimeout(() => void (banner.hidden = isConnected), 8_000)
}

/** The answer to the last action, and its row. */
let answered: { readonly id: string; readonly text: string } | undefined

const commands = makeCommands({
  instance: () => isConnected ? hello?.instance : undefined,
  now,
  answer: (row, text, isDone) => {
    answered = { id: row.id, text }
    announce(text)
    // The answer is also in the details of the row, unless they were closed.
    if (!isDone || details.hidden || detailed?.id !== row.id) report(text, !isDone)
    update()
  }
})

/** Interrupts a row after a confirmation. */
const interrupt = async (row: Row | undefined): Promise<void> => {
  if (row === undefined) return
  await commands.interrupt(row, () => grid.focus())
}

/** Runs an action of a row, after a confirmation if it has one. */
const act = async (row: Row, action: Action): Promise<void> => {
  const from = document.activeElement?.id ?? ""
  await commands.act(row, action, () => (document.getElementById(from) ?? grid).focus())
}

/** Shows the actions of a row: the first one gets the focus. */
const showActions = (index: number): void => {
  const row = rows[index]?.row
  if (row === undefined) return
  if (row.actions === undefined) return announce("This row has no actions")
  open(index)
  document.getElementById(firstAction)?.focus()
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
      void interrupt(visible?.row)
      break
    case "a":
      showActions(at)
      break
    default:
      return
  }
  event.preventDefault()
})

document.addEventListener("keydown", (event) => {
  if (isAsking() || event.ctrlKey || event.metaKey || event.altKey) return
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
  tree.expandAll()
  update()
})
byId("collapse").addEventListener("click", () => {
  tree.collapseAll()
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
    if (!tree.receive(event)) return
    skew = event.at - Date.now()
    const server = tree.get("server:server")
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
      banner.dataset["tone"] = "failure"
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
