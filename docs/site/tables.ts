/** Tables that fit a phone. `style.css` shows each row as a card there. */
import type { MarkdownRenderer } from "vitepress"

/** The mark of code in a cell. */
const inCell = "cell"

/** Code of more characters may end a line between the words of a name: `limits.`, `max-`. */
const longName = 24

/** Marks the places where a line of code in a cell may end: `style.css` forbids all others. */
const withBreaks = (code: string): string =>
  code.replaceAll(" ", " <wbr>").replaceAll(
    /(?<=\w)[-._/](?=\w)/g,
    (mark) => code.length > longName ? `${mark}<wbr>` : mark
  )

/** Gives each cell the heading of its column (`data-label`), and lets lines of code in cells end between words. */
export const labelCells = (markdown: MarkdownRenderer): void => {
  markdown.core.ruler.push("label_cells", ({ tokens }) => {
    let labels: Array<string> = []
    let column = 0
    for (const [index, token] of tokens.entries()) {
      const parts = tokens[index + 1]?.children ?? []
      if (token.type === "thead_open") labels = []
      else if (token.type === "tr_open") column = 0
      else if (token.type === "th_open") labels.push(parts.map(({ content }) => content).join(""))
      else if (token.type === "td_open") {
        const label = labels[column++] ?? ""
        if (label !== "") token.attrSet("data-label", label)
        for (const part of parts) if (part.type === "code_inline") part.meta = inCell
      }
    }
  })
  const code = markdown.renderer.rules.code_inline!
  markdown.renderer.rules.code_inline = (tokens, index, options, env, self) => {
    const html = code(tokens, index, options, env, self)
    return tokens[index]!.meta === inCell ? html.replace(/(?<=>)[^<]+/, withBreaks) : html
  }
}
