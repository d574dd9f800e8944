/** The page of `Approval`: a title, details and two buttons. */
import type { PageApproval } from "../src/shared/pageQuestion.ts"
import { byId, send, start, visible } from "./ready.ts"

const approve = byId<HTMLButtonElement>("approve")
const decline = byId<HTMLButtonElement>("decline")

start<PageApproval>((question) => {
  byId("actions").hidden = false
  const setState = (state: string): void => {
    for (const button of [approve, decline]) button.disabled = state !== "ready"
    byId("actions").hidden = state === "done"
  }
  for (
    const [button, answer, label] of [[approve, true, question.approve], [decline, false, question.decline]] as const
  ) {
    button.textContent = visible(label)
    button.onclick = () => void send(question, answer, label, setState)
  }
})
