/** The page of `Choice`: a list of options and a button. */
import type { PageChoice } from "../src/shared/pageQuestion.ts"
import { byId, element, say, send, start, visible } from "./ready.ts"

const form = byId<HTMLFormElement>("form")
const fields = byId<HTMLFieldSetElement>("fields")
const choose = byId<HTMLButtonElement>("choose")

start<PageChoice>((question) => {
  choose.textContent = visible(question.choose ?? "Choose")
  byId("options").replaceChildren(...question.options.map(({ description, label, value }, at) => {
    const input = element("input", {
      type: "radio",
      name: "option",
      value: String(at),
      checked: value === question.initial
    })
    const text = (className: string, content: string) => element("span", { className, dir: "auto" }, visible(content))
    const second = description === undefined ? [] : [text("second text", description)]
    return element("label", { className: "option" }, input, text("text", label ?? value), ...second)
  }))
  form.hidden = false
  form.onchange = () => say("")
  form.onsubmit = (event) => {
    event.preventDefault()
    const at = new FormData(form).get("option")
    const option = at === null ? undefined : question.options[Number(at)]
    if (option === undefined) return say("Choose one of the options.", true)
    void send(question, option.value, option.label ?? option.value, (state) => {
      fields.disabled = choose.disabled = state !== "ready"
      byId("actions").hidden = state === "done"
    })
  }
})
