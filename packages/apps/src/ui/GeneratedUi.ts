/**
 * A tool with which the model shows a page that it composes itself, of the components of `Ui`: a comparison as a table, a
 * chart of numbers in the conversation, a few inputs in the place of several questions.
 *
 * The model sends a tree as JSON, and no code: nothing is evaluated. The tree is validated by the schema, which is the
 * description of the components for the model, and bounded. An error names the path of each wrong component, so that the
 * model can correct it.
 *
 * - A button writes a message into the conversation, with the values of the inputs. The model goes on with it.
 * - A button calls tools of `allowTools` only: none by default. The model chooses the label and the arguments of a button, and
 *   a user who presses it may not see what it does. So allow tools without harm, or let a tool ask with `Approval`.
 * - A client without pages does not see the tool.
 *
 * @example
 * const server = McpServer.layer({ name: "shop", version: "1.0.0" }, Search, GeneratedUi.layer({ allowTools: [search] }))
 */
import type { Catalog } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as App from "../server/App.ts"
import { treeResult, uiPage } from "./uiPage.ts"
import * as uiTree from "./uiTree.ts"
import * as Ui from "./Ui.ts"
import type * as UiApp from "./UiApp.ts"
import * as UiMeta from "../shared/UiMeta.ts"

/** The description of the tool. */
export interface Options {
  /** The name of the tool: `show_page` by default. */
  readonly name?: string | undefined
  /** When the model should show a page, before the rules of its components. By default a general sentence. */
  readonly description?: string | undefined
  /** The tools of `UiApp` that buttons may call. None by default. Their `visibility` includes `app`. */
  readonly allowTools?: ReadonlyArray<AnyUiTool> | undefined
}

/** A tool of `UiApp`, whatever its types. */
export interface AnyUiTool extends Pick<UiApp.UiTool<string, never, never>, "name" | "options"> {}

const general =
  "Shows the user a page of components, beside the conversation: tables, charts, texts, inputs and buttons. " +
  "Use it where a picture or a form is clearer than a text."

const rulesOf = (names: ReadonlyArray<string>): string =>
  [
    "A button with a message writes it into the conversation, with the values of the inputs: the answer comes from the user.",
    names.length === 0
      ? "Buttons cannot call tools."
      : `A button may call these tools: ${
        names.join(", ")
      }. The values of inputs are arguments, by the names of the inputs.`
  ].join(" ")

/**
 * Registers the tool, and its page. Fails with `DefinitionError` as `App.layer` does: `DuplicateName` if another tool has the
 * name.
 *
 * A call with a wrong tree fails, and the model receives the paths of its faults. A tree that exceeds a bound fails with
 * `UiError` `TreeTooLarge`, and a button with another tool with `ToolNotAllowed`.
 *
 * @example
 * const live = GeneratedUi.layer({
 *   name: "show_report",
 *   description: "Shows a report of sales as a page. Use it for comparisons of more than three numbers."
 * })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> => {
  const { allowTools = [], description = general, name = "show_page" } = options
  const names = allowTools.map((tool) => tool.name)
  const allowed = new Set(names)
  const tool = App.tool(name, {
    app: uiPage,
    description: `${description} ${rulesOf(names)}`,
    input: { tree: Ui.Node },
    // Without pages, the model would show nothing.
    visible: ({ capabilities }) => UiMeta.isDeclared(capabilities)
  })
  return App.layer(tool, ({ tree }) =>
    Effect.flatMap(
      uiTree.check(tree, allowed),
      (checked) => treeResult("The user sees the page. If it has buttons, wait for the user", checked)
    ))
}
