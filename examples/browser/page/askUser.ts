/** Shows a form elicitation as a dialog: it names the server, and the user can answer, decline or close it. */
import * as Elicitation from "@skein/client/Elicitation"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { byId, setText } from "./elements.ts"

type Field = Elicitation.FormRequest["requestedSchema"]["properties"][string]
type Value = Elicitation.Content[string]

/** Creates an input for a field. To keep the example short, a choice is a text field and not a list. */
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

const showDialog = ({ defaults, message, problem, requestedSchema, server }: Elicitation.FormRequest) =>
  Effect.callback<Elicitation.FormAnswer>((resume) => {
    const dialog = byId("question", HTMLDialogElement)
    const fields = byId("fields", HTMLElement)
    const inputs = Object.entries(requestedSchema.properties).map(([name, field]) =>
      inputFor(name, field, defaults[name])
    )
    const content = (): Elicitation.Content =>
      Object.fromEntries(Array.from(fields.querySelectorAll("input"), (input) => [input.name, valueOf(input)]))
    setText("asker", server.info?.title ?? server.info?.name ?? "A server")
    setText("message", message)
    fields.replaceChildren(...inputs)
    // Shows a problem of the input while the user can still correct it.
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
    // Runs when the call was cancelled or the server has withdrawn its request.
    return Effect.sync(() => {
      dialog.onclose = null
      dialog.close()
    })
  })

// The page has one dialog. Further requests wait.
const oneAtATime = Semaphore.makeUnsafe(1)

/** Asks the user to fill in a form. Only one form is open at a time. */
export const askUser = (request: Elicitation.FormRequest): Effect.Effect<Elicitation.FormAnswer> =>
  oneAtATime.withPermit(showDialog(request))
