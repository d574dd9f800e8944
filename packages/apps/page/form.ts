/** The page of `Form`: fields and a button. */
import type { PageForm } from "../src/shared/pageQuestion.ts"
import { draw, readAll, showProblems } from "./fields.ts"
import { byId, say, send, start, visible } from "./ready.ts"

const form = byId<HTMLFormElement>("form")
const fields = byId<HTMLFieldSetElement>("fields")
const submit = byId<HTMLButtonElement>("submit")

const marked = "Check the marked fields."

start<PageForm>((question) => {
  const drawn = question.fields.map((field, at) => draw(field, `field-${at}`))
  submit.textContent = visible(question.submit)
  byId("inputs").replaceChildren(...drawn.map(({ node }) => node))
  form.hidden = false
  form.onsubmit = async (event) => {
    event.preventDefault()
    const values = readAll(drawn)
    if (values === undefined) return say(marked, true)
    const problems = await send(question, values, "I sent the form", (state) => {
      fields.disabled = submit.disabled = state !== "ready"
      byId("actions").hidden = state === "done"
    })
    if (problems === undefined || Object.keys(problems).length === 0) return
    say(marked, true)
    showProblems(drawn, problems)
  }
})
