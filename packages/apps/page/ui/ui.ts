/** The page of `UiApp` and `GeneratedUi`: draws the tree of a result, and the trees that its buttons get. */
import { treeKey } from "../../src/shared/pageQuestion.ts"
import type { Node as Component, NodeOf } from "../../src/ui/uiNode.ts"
import { type DrawnTree, drawTree } from "./components.ts"
import { type Drawn, readAll, showProblems } from "../fields.ts"
import { byId, messageOf, say, view } from "../ready.ts"

const form = byId<HTMLFormElement>("form")
const fields = byId<HTMLFieldSetElement>("fields")
const place = byId("tree")

let drawn: DrawnTree | undefined
let isBusy = false

/** The key of the button that was pressed. */
let focused = ""

const actions = {
  press: (button: NodeOf<"button">, key: string) => void press(button, key),
  open: (url: string) => void view.openLink(url).catch((error: unknown) => say(messageOf(error), true))
}

/** Draws a tree in the place of the one before. The same control keeps the focus, or else the whole has it. */
const show = (tree: Component, isFirst: boolean): void => {
  drawn = drawTree(tree, actions)
  place.replaceChildren(drawn.node)
  if (!isFirst) (drawn.controls.get(focused) ?? (() => place.focus()))()
}

const valueOf = (value: unknown): string => typeof value === "boolean" ? (value ? "yes" : "no") : String(value)

/** A message with the values of the inputs below it. */
const messageWith = (
  message: string,
  used: ReadonlyArray<Drawn>,
  values: { readonly [name: string]: unknown }
): string =>
  [
    message,
    ...used.flatMap(({ field: { label, name } }) =>
      Object.hasOwn(values, name) ? [`${label}: ${valueOf(values[name])}`] : []
    )
  ].join("\n")

const run = async (
  button: NodeOf<"button">,
  used: ReadonlyArray<Drawn>,
  values: { readonly [name: string]: unknown }
) => {
  if (button.tool === undefined) {
    await view.sendMessage(messageWith(button.message ?? button.label, used, values))
    return say("It is in the conversation.")
  }
  const { _meta, text } = await view.call(button.tool, { ...values, ...button.arguments })
  const tree = _meta?.[treeKey] as unknown as Component | undefined
  fields.disabled = false
  say(tree === undefined ? text || "Done." : "")
  if (tree !== undefined) show(tree, false)
  // The model learns what the page shows now, if the host takes it.
  if (text !== "") await view.updateModelContext({ content: [{ type: "text", text }] }).catch(() => {})
}

const press = async (button: NodeOf<"button">, key: string): Promise<void> => {
  if (isBusy || drawn === undefined) return
  const { inputs } = button
  const used = drawn.fields.filter(({ field }) => inputs === undefined || inputs.includes(field.name))
  showProblems(drawn.fields, {})
  const values = readAll(used)
  if (values === undefined) return say("Check the marked fields.", true)
  isBusy = true
  focused = key
  say("One moment …")
  fields.disabled = true
  const pressed = drawn
  try {
    await run(button, used, values)
  } catch (error) {
    say(messageOf(error), true)
  }
  isBusy = false
  fields.disabled = false
  // A control that was turned off has lost the focus.
  if (pressed === drawn) pressed.controls.get(focused)?.()
}

form.onsubmit = (event) => event.preventDefault()

say("Waiting for the page …")
view.on("cancelled", () => say("The page was withdrawn.", true))
view.on("result", ({ _meta, isError, text }) => {
  const tree = _meta?.[treeKey] as unknown as Component | undefined
  if (isError || tree === undefined) return say(text || "There is nothing to show.", isError)
  say("")
  show(tree, true)
})
view.connect().catch((error: unknown) => say(String(error), true))
