/**
 * Makes the HTML document of a page from its parts: one text, with styles and scripts inside, as hosts need it.
 *
 * Bundle the script of a page, with `View` in it, and pass the text as `script`. A page without a bundler sets `withView`:
 * then the document also contains `View` as the global `SkeinView`.
 *
 * @example
 * const html = AppHtml.document({
 *   title: "Sales",
 *   style: "body { font-family: var(--font-sans, sans-serif) }",
 *   body: "<h1>Sales</h1><p id=total></p>",
 *   withView: true,
 *   script: `
 *     const view = SkeinView.make({ name: "sales", version: "1.0.0" })
 *     view.on("result", ({ structured }) => { total.textContent = structured.total })
 *     view.connect()
 *   `
 * })
 */
import { viewScript as source } from "../shared/pageScripts.ts"

/** The parts of a document. */
export interface Options {
  /** The title, as text. */
  readonly title: string
  /** The language of the page; `en` by default. */
  readonly lang?: string | undefined
  /** HTML for the head, for links to styles in `csp.resourceDomains` for example. */
  readonly head?: string | undefined
  /** CSS text. */
  readonly style?: string | undefined
  /** HTML for the body. It is not escaped. */
  readonly body?: string | undefined
  /** A script. It runs as a module, after the document was parsed. */
  readonly script?: string | undefined
  /** Whether the document contains `View`, as the global `SkeinView`. Not by default. */
  readonly withView?: boolean | undefined
}

/**
 * The script that defines `View` as the global `SkeinView`, for documents that `document` does not make.
 *
 * @example
 * const html = template.replace("<!-- view -->", () => `<script>${AppHtml.viewScript}</script>`)
 */
export const viewScript: string = source

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\"", "&quot;")

// An element ends at its end tag, even inside of a string of the script or the style. `<!--` changes how a script ends.
const inScript = (text: string): string => text.replaceAll(/<(?=\/script|!--)/gi, "\\x3c")
const inStyle = (text: string): string => text.replaceAll(/<(?=\/style)/gi, "\\3c ")

/**
 * Makes a document. An end tag inside of a script or a style is written as an escape, so it does not end its element.
 * This keeps the meaning of strings. A regular expression or a template of `String.raw` contains the escape.
 *
 * @example
 * const html = AppHtml.document({ title: "Sales", body: "<canvas id=chart></canvas>", script: bundledScript })
 */
export const document = ({ body = "", head = "", lang = "en", script, style, title, withView }: Options): string =>
  [
    `<!doctype html>`,
    `<html lang="${escaped(lang)}">`,
    `<head>`,
    `<meta charset="utf-8">`,
    `<meta name="viewport" content="width=device-width">`,
    `<meta name="color-scheme" content="light dark">`,
    `<title>${escaped(title)}</title>`,
    ...(head === "" ? [] : [head]),
    ...(style === undefined ? [] : [`<style>${inStyle(style)}</style>`]),
    `</head>`,
    `<body>`,
    body,
    ...(withView === true ? [`<script>${inScript(viewScript)}</script>`] : []),
    ...(script === undefined ? [] : [`<script type="module">${inScript(script)}</script>`]),
    `</body>`,
    `</html>`,
    ``
  ].join("\n")
