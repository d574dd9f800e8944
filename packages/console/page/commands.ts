/** The commands of a viewer about a row: interrupt it, or run one of its actions. */
import type { Action } from "../src/ConsoleSource.ts"
import type { Row } from "../src/internal/messages.ts"
import { confirm, isAsking } from "./confirm.ts"
import * as connection from "./connection.ts"
import { formatAge } from "./format.ts"

/** The part of the page that the commands use. */
export interface Page {
  /** Names the start of the console that the rows are from; `undefined` while the page is not connected. */
  readonly instance: () => string | undefined
  /** The time of the server. */
  readonly now: () => number
  /** Shows the answer to a command. */
  readonly answer: (row: Row, text: string, isDone: boolean) => void
}

/** The commands of a page. `closed` is called when the dialog is closed, to give the focus back. */
export interface Commands {
  readonly interrupt: (row: Row, closed: () => void) => Promise<void>
  readonly act: (row: Row, action: Action, closed: () => void) => Promise<void>
}

export const makeCommands = (page: Page): Commands => {
  /** Returns the attributes of a row besides its name. */
  const describe = ({ principal, since, traceId }: Row): string => {
    const age = since === undefined ? undefined : `for ${formatAge(page.now() - since)}`
    return [principal, age, traceId && `trace ${traceId.slice(0, 8)}`].filter(Boolean).join(" · ")
  }

  const interrupt: Commands["interrupt"] = async (row, closed) => {
    const instance = page.instance()
    if (row.canInterrupt !== true || instance === undefined || isAsking()) return
    const isSession = row.kind === "session"
    const isConfirmed = await confirm({
      title: isSession ? `Close the session of ${row.label}?` : `Interrupt ${row.label}?`,
      which: describe(row),
      consequence: isSession
        ? "Its requests are cancelled, and its client must open a new session."
        : row.kind === "subscription"
        ? "The subscription ends with its result. Its client may open it again."
        : row.kind === "task"
        ? "The task is cancelled, and its finished steps are undone."
        : "Its handler is interrupted, and its client receives an error.",
      yes: isSession ? "Close the session" : "Interrupt",
      isDangerous: true
    })
    closed()
    if (!isConfirmed) return
    try {
      const outcome = await connection.interrupt(instance, row.id)
      const text = outcome === "Interrupted"
        ? `${row.label}: ${isSession ? "closed" : "interrupted"}`
        : outcome === "NotFound"
        ? `${row.label} had ended already`
        : "The server has restarted: nothing was interrupted"
      page.answer(row, text, outcome === "Interrupted")
    } catch (error) {
      page.answer(row, `${row.label} was not interrupted: ${(error as Error).message}`, false)
    }
  }

  let isActing = false

  const act: Commands["act"] = async (row, action, closed) => {
    const instance = page.instance()
    if (instance === undefined || isActing || isAsking()) return
    if (action.confirm !== undefined) {
      const isConfirmed = await confirm({
        title: `${action.label}: ${row.label}?`,
        which: describe(row),
        consequence: action.confirm,
        yes: action.label,
        isDangerous: false
      })
      closed()
      if (!isConfirmed) return
    }
    isActing = true
    try {
      const { message, outcome } = await connection.act(instance, row.id, action.name)
      const text = outcome === "Done"
        ? message ?? `${row.label}: ${action.label}: done`
        : outcome === "NotFound"
        ? message ?? `${row.label} has ended, or does not offer this action now`
        : "The server has restarted: nothing was done"
      page.answer(row, text, outcome === "Done")
    } catch (error) {
      page.answer(row, `${row.label}: the action failed: ${(error as Error).message}`, false)
    } finally {
      isActing = false
    }
  }

  return { interrupt, act }
}
