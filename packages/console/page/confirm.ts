/** The dialog that asks before something is done. */

/** The texts of the dialog. */
export interface Question {
  readonly title: string
  /** The attributes of the row besides its name. */
  readonly which: string
  /** The consequence of the action. */
  readonly consequence: string
  /** The text of the button that does it, and whether it ends something. */
  readonly yes: string
  readonly isDangerous: boolean
}

const byId = (id: string): HTMLElement => document.getElementById(id)!
const dialog = byId("confirm") as HTMLDialogElement

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

/** Whether a question is open. */
export const isAsking = (): boolean => dialog.open

/** Asks, and returns whether the viewer has agreed. */
export const confirm = async ({ consequence, isDangerous, title, which, yes }: Question): Promise<boolean> => {
  byId("question").textContent = title
  byId("which").textContent = which
  byId("consequence").textContent = consequence
  byId("yes").textContent = yes
  byId("yes").className = isDangerous ? "danger" : "primary"
  dialog.returnValue = ""
  dialog.showModal()
  const question = ++questions
  await closed()
  return question === questions && dialog.returnValue === "yes"
}
