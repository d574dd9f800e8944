/** Draws trees of components. Texts are set as text, images have data, and links are opened by the host. */
import type { PageField } from "../../src/shared/pageField.ts"
import type { Node as Component, NodeOf } from "../../src/ui/uiNode.ts"
import { drawChart } from "./charts.ts"
import { draw as drawField, type Drawn } from "../fields.ts"
import { element, visible } from "../ready.ts"
import { onWidth, tableOf } from "./table.ts"

/** The actions of a page. */
export interface Actions {
  /** A button is pressed. The key is that of its control. */
  readonly press: (button: NodeOf<"button">, key: string) => void
  readonly open: (url: string) => void
}

/** A tree on the page. */
export interface DrawnTree {
  readonly node: HTMLElement
  readonly fields: ReadonlyArray<Drawn>
  /** The controls that may have the focus again after the page is replaced, by what they are for people. */
  readonly controls: ReadonlyMap<string, () => void>
}

type TextElement = "span" | "p" | "pre" | "h1" | "h2" | "h3"

const text = (name: TextElement, className: string, content: string): HTMLElement =>
  element<TextElement>(name, { className: `text ${className}`, dir: "auto" }, visible(content))

/** An element that the keyboard can scroll, if it is wider than its place. */
const scrolling = (made: HTMLElement, label: string): HTMLElement => {
  const check = (): void => {
    const isWide = made.scrollWidth > made.clientWidth || made.scrollHeight > made.clientHeight + 1
    made.tabIndex = isWide ? 0 : -1
    if (isWide) {
      made.setAttribute("role", "region")
      made.setAttribute("aria-label", visible(label))
    }
  }
  return onWidth(made, check)
}

/** Draws a tree. */
export const drawTree = (tree: Component, actions: Actions): DrawnTree => {
  const fields: Array<Drawn> = []
  const controls = new Map<string, () => void>()
  let next = 0
  const seen = new Map<string, number>()

  /** Adds a control. Buttons in rows may have the same label: each has its number among them. */
  const addControl = (name: string, focus: () => void): string => {
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    const key = `${name} ${count}`
    controls.set(key, focus)
    return key
  }

  const all = (nodes: ReadonlyArray<Component>): ReadonlyArray<HTMLElement> => nodes.map(draw)

  const drawCard = ({ children, title }: NodeOf<"card">): HTMLElement => {
    const id = `card-${next++}`
    const made = element("section", { className: "card" })
    if (title !== undefined) {
      made.setAttribute("aria-labelledby", id)
      made.append(Object.assign(text("h2", "", title), { id }))
    }
    made.append(...all(children))
    return made
  }

  const drawGrid = ({ children, columns = 2 }: NodeOf<"grid">): HTMLElement => {
    const made = element("div", { className: "grid" }, ...all(children))
    made.style.setProperty("--columns", String(columns))
    return made
  }

  const drawInput = ({ type: _type, ...field }: NodeOf<"input">): HTMLElement => {
    const drawn = drawField(field as PageField, `field-${next++}`)
    fields.push(drawn)
    addControl(`input ${field.name}`, drawn.focus)
    return drawn.node
  }

  const drawButton = (node: NodeOf<"button">): HTMLElement => {
    const { label, style = "" } = node
    // Enter in an input presses the first button of this type.
    const type = style === "primary" ? "submit" : "button"
    const made = element("button", { type, className: `text ${style}`, dir: "auto" }, visible(label))
    const key = addControl(`button ${label}`, () => made.focus())
    made.onclick = (event) => {
      event.preventDefault()
      actions.press(node, key)
    }
    return made
  }

  const drawLink = ({ label, url }: NodeOf<"link">): HTMLElement => {
    const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
    if (!isWeb) return text("span", "", label)
    const made = element("a", { className: "text", href: url, dir: "auto", title: visible(url) }, visible(label))
    made.onclick = (event) => {
      event.preventDefault()
      actions.open(url)
    }
    return made
  }

  const drawImage = ({ alt, data, mimeType }: NodeOf<"image">): HTMLElement =>
    /^image\/(png|jpeg|gif|webp)$/.test(mimeType)
      ? element("img", { alt: visible(alt), src: `data:${mimeType};base64,${data}` })
      : text("span", "", alt)

  const draw = (node: Component): HTMLElement => {
    switch (node.type) {
      case "column":
      case "row":
        return element("div", { className: node.type }, ...all(node.children))
      case "grid":
        return drawGrid(node)
      case "card":
        return drawCard(node)
      case "text":
        return text("p", node.tone ?? "", node.content)
      case "heading":
        return text(`h${node.level ?? 1}`, "", node.content)
      case "badge":
        return text("span", `badge ${node.tone ?? ""}`, node.label)
      case "code":
        return scrolling(text("pre", "", node.content), "Code")
      case "table":
        return scrolling(element("div", { className: "scroll" }, tableOf(node)), node.caption ?? "Table")
      case "image":
        return drawImage(node)
      case "link":
        return drawLink(node)
      case "input":
        return drawInput(node)
      case "button":
        return drawButton(node)
      default:
        return drawChart(node)
    }
  }

  return { node: draw(tree), fields, controls }
}
