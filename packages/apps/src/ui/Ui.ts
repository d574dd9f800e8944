/**
 * Components of a page: plain functions that make plain JSON. A tool of `UiApp` returns a tree of them, and a page that
 * is a part of this package draws it. An author writes no HTML and no script.
 *
 * - Layout: `column`, `row`, `grid`, `card`.
 * - Content: `text`, `heading`, `badge`, `table`, `code`, `image`, `link`.
 * - Charts: `bar`, `line`, `area`, `pie`. Each has a table for screen readers.
 * - Inputs: `textInput`, `textArea`, `numberInput`, `dateInput`, `checkbox`, `select`.
 * - `button` calls a tool with the values of the inputs. The tree in its result replaces the page.
 *
 * Conditions and repetitions are TypeScript: `rows.map(…)`, `isOpen ? Ui.text(…) : Ui.badge(…)`. Every text is shown as
 * text: markup has no effect.
 *
 * @example
 * const tree = Ui.column([
 *   Ui.heading("Products"),
 *   Ui.row([Ui.textInput("query", { label: "Search" }), Ui.button("Search", { tool: search, style: "primary" })]),
 *   Ui.table({ columns: ["Name", "Price"], rows: products.map(({ name, price }) => [name, price]) })
 * ])
 */
import * as Content from "@skein/server/Content"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as uiNode from "./uiNode.ts"
import type { NodeOf } from "./uiNode.ts"
import * as uiTree from "./uiTree.ts"
import type { UiError } from "./UiError.ts"
import type { AnyTool, ArgumentsOf } from "../page/View.ts"

export type { NodeOf } from "./uiNode.ts"

/** A component with everything in it: plain JSON. */
export type Node = uiNode.Node

/**
 * The schema of a component with everything in it. `check` adds the bounds of a tree.
 *
 * @example
 * const decode = Schema.decodeUnknownEffect(Ui.Node)
 */
export const Node: Schema.Codec<Node> = uiNode.Node

/** The meaning of a text or a badge, which has a color. */
export type Tone = typeof uiNode.Tone.Type

/** A line, or the bars, of a chart, with a number for each label. */
export type Series = typeof uiNode.Series.Type

/** A part of a pie. No value is negative. */
export type Slice = typeof uiNode.Slice.Type

/** A cell of a table. A number is at the right, a boolean is `Yes` or `No`, and `null` is empty. */
export type Cell = string | number | boolean | null

type Children = ReadonlyArray<Node>

/** Makes a component without the members that are undefined: JSON has none. */
const make = <T extends Node["type"]>(
  type: T,
  members: { readonly [K in Exclude<keyof NodeOf<T>, "type">]: NodeOf<T>[K] | undefined }
): NodeOf<T> =>
  ({ type, ...Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) }) as never

/** Members that may be undefined. */
type Loose<A> = { readonly [K in keyof A]: A[K] | undefined }

// ---- layout

/**
 * Stacks components.
 *
 * @example
 * const page = Ui.column([Ui.heading("Teas"), Ui.text("Fresh today")])
 */
export const column = (children: Children): NodeOf<"column"> => ({ type: "column", children })

/**
 * Places components beside each other. They wrap where the page is too narrow.
 *
 * @example
 * const title = Ui.row([Ui.heading("Order 17"), Ui.badge("Paid", { tone: "success" })])
 */
export const row = (children: Children): NodeOf<"row"> => ({ type: "row", children })

/**
 * Places components in columns of the same width: 2 by default, 6 at most, and fewer where the page is too narrow.
 *
 * @example
 * const numbers = Ui.grid(totals.map(({ name, sum }) => Ui.card([Ui.heading(`${sum}`)], { title: name })), { columns: 3
 * })
 */
export const grid = (children: Children, options: { readonly columns?: number | undefined } = {}): NodeOf<"grid"> =>
  make("grid", { columns: options.columns, children })

/**
 * Stacks components in a frame, below a title. Screen readers announce it as a group.
 *
 * @example
 * const total = Ui.card([Ui.heading("42")], { title: "Pots" })
 */
export const card = (children: Children, options: { readonly title?: string | undefined } = {}): NodeOf<"card"> =>
  make("card", { title: options.title, children })

// ---- content

/**
 * A text. Line breaks stay.
 *
 * @example
 * const hint = Ui.text("The prices include taxes.", { tone: "muted" })
 */
export const text = (content: string, options: { readonly tone?: Tone | undefined } = {}): NodeOf<"text"> =>
  make("text", { content, tone: options.tone })

/**
 * A heading of level 1, 2 or 3: 1 by default.
 *
 * @example
 * const title = Ui.heading("Today", { level: 2 })
 */
export const heading = (content: string, options: { readonly level?: 1 | 2 | 3 | undefined } = {}): NodeOf<"heading"> =>
  make("heading", { content, level: options.level })

/**
 * A short label in a frame, such as a state or a count.
 *
 * @example
 * const state = Ui.badge(isOpen ? "Open" : "Closed", { tone: isOpen ? "success" : "muted" })
 */
export const badge = (label: string, options: { readonly tone?: Tone | undefined } = {}): NodeOf<"badge"> =>
  make("badge", { label, tone: options.tone })

/**
 * A text with a fixed width of its characters, which scrolls.
 *
 * @example
 * const config = Ui.code(JSON.stringify(settings, undefined, 2))
 */
export const code = (content: string): NodeOf<"code"> => ({ type: "code", content })

/**
 * A table. Each row has a cell for each column.
 *
 * @example
 * const orders = Ui.table({
 *   caption: "Orders of today",
 *   columns: ["Number", "Pots", "Paid"],
 *   rows: [["A-17", 2, true], ["A-18", 5, false]]
 * })
 */
export const table = (options: {
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<Cell>>
  /** Above the table, also for screen readers. */
  readonly caption?: string | undefined
}): NodeOf<"table"> => make("table", { caption: options.caption, columns: options.columns, rows: options.rows })

/** A type of an image. */
export type ImageType = NodeOf<"image">["mimeType"]

/**
 * An image by its data: bytes, or base64. A page loads nothing from addresses.
 *
 * @example
 * const photo = Ui.image(bytes, { mimeType: "image/png", alt: "The shop at night" })
 */
export const image = (
  data: Uint8Array | string,
  options: {
    readonly mimeType: ImageType
    /** The description of the image, for people who do not see it. Empty for a decoration. */
    readonly alt: string
  }
): NodeOf<"image"> => ({
  type: "image",
  mimeType: options.mimeType,
  data: typeof data === "string" ? data : Content.image(data, options.mimeType).data,
  alt: options.alt
})

/**
 * A link to a URL of `https:` or `http:`, which the host opens. It may ask the user, or refuse.
 *
 * @example
 * const shop = Ui.link("Order 17 in the shop", `https://shop.example/orders/${id}`)
 */
export const link = (label: string, url: string | URL): NodeOf<"link"> => ({ type: "link", label, url: String(url) })

// ---- charts

/** The title, the labels and the values of a chart. */
export interface ChartOptions {
  /** The title, also for screen readers. */
  readonly title: string
  /** The labels of the horizontal axis. */
  readonly labels: ReadonlyArray<string>
  /** One or several series. Each has a number for each label. */
  readonly series: ReadonlyArray<Series>
}

const chart = <T extends "bar" | "line" | "area">(type: T, { labels, series, title }: ChartOptions) =>
  ({ type, title, labels, series }) as const

/**
 * A chart with vertical bars.
 *
 * @example
 * const sales = Ui.bar({ title: "Pots", labels: ["May", "June"], series: [{ name: "2026", values: [63, 58] }] })
 */
export const bar = (options: ChartOptions): NodeOf<"bar"> => chart("bar", options)

/**
 * A chart with lines.
 *
 * @example
 * const profit = Ui.line({ title: "Profit", labels: months, series: [{ name: "Profit", values: profits }] })
 */
export const line = (options: ChartOptions): NodeOf<"line"> => chart("line", options)

/**
 * A chart with lines, and the areas between them and zero.
 *
 * @example
 * const guests = Ui.area({ title: "Guests", labels: days, series: [{ name: "Guests", values: counts }] })
 */
export const area = (options: ChartOptions): NodeOf<"area"> => chart("area", options)

/**
 * A chart with the parts of a whole.
 *
 * @example
 * const kinds = Ui.pie({ title: "Kinds", slices: [{ label: "Green", value: 45 }, { label: "Black", value: 55 }] })
 */
export const pie = (options: { readonly title: string; readonly slices: ReadonlyArray<Slice> }): NodeOf<"pie"> => ({
  type: "pie",
  title: options.title,
  slices: options.slices
})

// ---- inputs

/** The options of every input. */
export interface InputOptions<Initial> {
  /** The label, also for screen readers and in messages. */
  readonly label: string
  /** A second line below the label, in smaller letters. None by default. */
  readonly description?: string | undefined
  /** Whether a button that uses the input needs a value. False by default: an empty input then has no value. */
  readonly required?: boolean | undefined
  /** The value that the input is filled in with beforehand. None by default. */
  readonly initial?: Initial | undefined
}

/** The options of an input of text. */
export interface TextOptions extends InputOptions<string> {
  /** The least number of characters of a value. */
  readonly min?: number | undefined
  /** The greatest number of characters of a value. */
  readonly max?: number | undefined
  /** The text in an empty input. */
  readonly placeholder?: string | undefined
}

const input = (
  name: string,
  kind: NodeOf<"input">["kind"],
  options: Partial<Loose<Omit<NodeOf<"input">, "type" | "name" | "kind">>> & { readonly label: string }
): NodeOf<"input"> => make("input", { ...options, name, kind } as never)

/**
 * An input of one line: any text, an e-mail address, or a URL. The value is a string.
 *
 * @example
 * const email = Ui.textInput("email", { label: "E-mail", format: "email", required: true })
 */
export const textInput = (
  name: string,
  options: TextOptions & { readonly format?: "email" | "url" | undefined }
): NodeOf<"input"> => {
  const { format = "text", ...rest } = options
  return input(name, format, rest)
}

/**
 * An input of several lines. The value is a string.
 *
 * @example
 * const note = Ui.textArea("note", { label: "Note", max: 500 })
 */
export const textArea = (name: string, options: TextOptions): NodeOf<"input"> => input(name, "textarea", options)

/**
 * An input of a number. The value is a number.
 *
 * @example
 * const pots = Ui.numberInput("pots", { label: "Pots", integer: true, min: 1, max: 9 })
 */
export const numberInput = (
  name: string,
  options: InputOptions<number> & {
    readonly min?: number | undefined
    readonly max?: number | undefined
    /** Whether it takes whole numbers only. False by default. */
    readonly integer?: boolean | undefined
  }
): NodeOf<"input"> => {
  const { integer = false, ...rest } = options
  return input(name, integer ? "integer" : "number", rest)
}

/**
 * An input of a day. The value is a string such as `2026-07-28`.
 *
 * @example
 * const day = Ui.dateInput("day", { label: "Day", initial: "2026-07-28" })
 */
export const dateInput = (name: string, options: InputOptions<string>): NodeOf<"input"> => input(name, "date", options)

/**
 * A box to check. The value is a boolean.
 *
 * @example
 * const gift = Ui.checkbox("gift", { label: "As a gift" })
 */
export const checkbox = (
  name: string,
  options: Omit<InputOptions<boolean>, "required">
): NodeOf<"input"> => input(name, "checkbox", options)

/**
 * A choice of one value. The value is a string.
 *
 * @example
 * const size = Ui.select("size", { label: "Size", options: [{ value: "s", label: "Small" }, { value: "l", label:
 * "Large" }] })
 */
export const select = (
  name: string,
  options: InputOptions<string> & {
    readonly options: ReadonlyArray<{ readonly value: string; readonly label?: string | undefined }>
  }
): NodeOf<"input"> =>
  input(name, "select", {
    ...options,
    options: options.options.map(({ label, value }) => label === undefined ? { value } : { value, label })
  })

// ---- buttons

/** The options of every button. */
export interface ButtonOptions {
  /** Its look: `primary` for the main action, which Enter in an input starts, `danger` for one that destroys. */
  readonly style?: "primary" | "danger" | undefined
  /** The names of the inputs whose values are used: all by default. With `[]`, none is read or checked. */
  readonly inputs?: ReadonlyArray<string> | undefined
}

/** A button that calls a tool. */
export interface CallOptions<T extends AnyTool> extends ButtonOptions {
  /** The tool: one of `UiApp`, whose `visibility` includes `app`. */
  readonly tool: T
  /** Fixed arguments. They replace values of inputs with the same name. */
  readonly arguments?: Partial<ArgumentsOf<T>> | undefined
}

/** A button that writes a message of the user into the conversation. */
export interface MessageOptions extends ButtonOptions {
  /** The message. The values of the inputs follow below it, with their labels. */
  readonly message: string
}

/**
 * A button. It calls a tool, whose result has a tree that replaces the page, or a text that is shown below; or it
 * writes a message into the conversation, so that the model goes on with it.
 *
 * @example
 * const buy = Ui.button("Buy", { tool: buyTea, arguments: { id: tea.id }, inputs: ["pots"], style: "primary" })
 * const ask = Ui.button("Explain the numbers", { message: "Explain the numbers on the page" })
 */
export const button = <T extends AnyTool>(
  label: string,
  options: CallOptions<T> | MessageOptions
): NodeOf<"button"> => {
  const { inputs, style } = options
  return make("button", {
    label,
    style,
    ...("tool" in options
      ? { tool: options.tool.name, arguments: options.arguments as never, message: undefined }
      : { tool: undefined, arguments: undefined, message: options.message }),
    inputs
  })
}

/**
 * Checks a tree that may be anything, such as one from a file or from a model: its bounds, its schema, and the names of
 * its inputs. `UiApp` and `GeneratedUi` check the trees that they show. Fails with `UiError`, whose message has the
 * path of the component.
 *
 * @example
 * const saved = Effect.flatMap(readFile("screen.json"), (text) => Ui.check(JSON.parse(text)))
 */
export const check = (tree: unknown): Effect.Effect<Node, UiError> => uiTree.check(tree)
