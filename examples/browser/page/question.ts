/** Asks the user what a server wants to know: a dialog that says who asks, with a way to say no, and one to say nothing. */
import * as Elicitation from "@skein/client/Elicitation"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { byId, say } from "./elements.ts"

type Field = Elicitation.FormRequest["requestedSchema"]["properties"][string]
type Value = Elicitation.Content[string]

/** An input for a field. Choices are typed in words here; a host that is not an example has lists for them. */
const inputFor = (name: string, field: Field, value: Value): HTMLLabelElement => {
  const input = document.createElement("input")
  input.name = name
  input.type = field.type === "boolean" ? "checkbox" : field.type === "string" ? "text" : "number"
  if (field.type === "integer") input.step = "1"
  if (field.type === "boolean") input.checked = value === true
  else input.value = String(value ?? "")
  const label = document.createElement("label")
  label.append(`${field.title ?? name} `, input)
  return label
}

const valueOf = ({ checked, type, value, valueAsNumber }: HTMLInputElement): Value => {
  if (type === "checkbox") return checked
  if (value === "") return undefined
  return type === "number" ? valueAsNumber : value
}

const ask = ({ server: asker, defaults, message, problem, requestedSchema }: Elicitation.FormRequest) =>
  Effect.callback<Elicitation.FormAnswer>((resume) => {
    const dialog = byId("question", HTMLDialogElement)
    const fields = byId("fields", HTMLElement)
    const inputs = Object.entries(requestedSchema.properties).map(([name, field]) =>
      inputFor(name, field, defaults[name])
    )
    const content = (): Elicitation.Content =>
      Object.fromEntries(Array.from(fields.querySelectorAll("input"), (input) => [input.name, valueOf(input)]))
    say("asker", asker.info?.title ?? asker.info?.name ?? "A server")
    say("message", message)
    fields.replaceChildren(...inputs)
    // What does not fit is told while it can be mended.
    const check = () => fields.querySelector("input")?.setCustomValidity(problem(content()) ?? "")
    dialog.oninput = check
    check()
    dialog.onclose = () =>
      resume(Effect.sync(() => {
        switch (dialog.returnValue) {
          case "accept":
            return Elicitation.accept(content())
          case "decline":
            return Elicitation.decline
          default:
            return Elicitation.cancel
        }
      }))
    dialog.returnValue = ""
    dialog.showModal()
    // The call was given up, or the server asks no longer.
    return Effect.sync(() => {
      dialog.onclose = null
      dialog.close()
    })
  })

// There is one dialog: who asks meanwhile waits.
const turn = Semaphore.makeUnsafe(1)

/** See the module's text. */
export const question = (request: Elicitation.FormRequest): Effect.Effect<Elicitation.FormAnswer> =>
  turn.withPermit(ask(request))
