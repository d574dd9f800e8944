/**
 * Tools whose result is a page of components: see `Ui`. The page is a part of this module: an author writes no HTML.
 *
 * A model calls the tool, and its host shows the tree that the handler returns. The model receives the text. So does a client
 * without pages: write a text that says what the page shows. A button of the page calls another tool of `UiApp`, and the
 * tree in its result replaces the page. The page gives the text of that result to the model, as context.
 *
 * The tree is in `_meta` of the result, which hosts do not give to models.
 *
 * @example
 * const sales = UiApp.tool("sales", { description: "Shows the sales of a year", input: { year: Schema.Int } })
 * const live = UiApp.layer(sales, ({ year }) =>
 *   Effect.map(salesOf(year), (months) => ({
 *     text: `${sum(months)} pots of tea were sold in ${year}`,
 *     ui: Ui.column([
 *       Ui.bar({ title: `Pots in ${year}`, labels: names, series: [{ name: "Pots", values: months }] }),
 *       Ui.row([
 *         Ui.button("Year before", { tool: sales, arguments: { year: year - 1 } }),
 *         Ui.button("Year after", { tool: sales, arguments: { year: year + 1 } })
 *       ])
 *     ])
 *   })))
 */
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import type { Catalog, HandlerServices } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as App from "../server/App.ts"
import { treeResult, uiPage } from "./uiPage.ts"
import * as uiTree from "./uiTree.ts"
import type * as Ui from "./Ui.ts"
import type { UiError } from "./UiError.ts"

/** The description of a tool, as in `App.tool`. */
export interface Options<Input extends Tool.AnySchema> extends Omit<App.ToolOptions<Input, never>, "app" | "output"> {}

/** A tool whose result is a page of components. Made by `UiApp.tool`. */
export interface UiTool<Name extends string, Input, Arguments>
  extends App.AppTool<Name, Input, never, Arguments, undefined>
{
  /** Distinguishes it from a tool with a page of its own. */
  readonly shows: "components"
}

/** The result of a handler. */
export interface Answer {
  /** The text for the model, and for clients without pages. */
  readonly text: string
  /** The page for the user. Without it, the page stays as it is, and shows the text below. */
  readonly ui?: Ui.Node | undefined
}

/**
 * Defines a tool whose result is a page of components. `visibility: ["app"]` makes a tool for buttons only, which models do
 * not get: see `App.tool`.
 *
 * @example
 * const addTea = UiApp.tool("add_tea", { visibility: ["app"], input: { name: Schema.String, pots: Schema.Int } })
 */
export const tool = <const Name extends string, Input extends Tool.AnySchema = {}>(
  name: Name,
  options: Options<Input> & Pick<Tool.CheckedSchemas<Input, never>, "input"> = {}
): UiTool<Name, Tool.InputOf<Input>, App.ArgumentsOf<Input>> =>
  ({ ...App.tool<Name, Input>(name, { ...options, app: uiPage } as never), shows: "components" }) as never

/**
 * Registers a tool with its handler, and the page. Fails as `App.layer` does.
 *
 * The tree is checked before it is sent. A call fails with `UiError` if the tree exceeds a bound, or contains a value that
 * its type does not show: a link that is not of the web, a row with too few cells.
 *
 * @example
 * const live = UiApp.layer(addTea, ({ name, pots }) =>
 *   Effect.map(add(name, pots), (teas) => ({ text: `${name} is added`, ui: listOf(teas) })))
 */
export const layer = <Name extends string, Input, Arguments, E extends HandlerError = never, R = never>(
  tool: UiTool<Name, Input, Arguments>,
  handler: (input: Input) => Effect.Effect<Answer, E, R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> => {
  const run = (input: Input): Effect.Effect<Tool.Answer<never>, E | UiError, R | McpRequest> =>
    Effect.flatMap(handler(input), ({ text, ui }) =>
      Effect.andThen(
        ui === undefined ? Effect.void : uiTree.check(ui),
        treeResult(text, ui)
      ))
  return App.layer(tool, run as never) as never
}

/**
 * Registers a tool with a handler that returns a value or a promise: see `Tool.async`.
 *
 * @example
 * server.use(UiApp.async(addTea, async ({ name, pots }) => ({ text: `${name} is added`, ui: listOf(await add(name, pots)) })))
 */
const async_ = <Name extends string, Input, Arguments, R = never>(
  tool: UiTool<Name, Input, Arguments>,
  handler: AsyncHandler.AsyncHandler<Input, Answer, R>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R>> => layer(tool, AsyncHandler.toEffect(handler))
export { async_ as async }
