/** Applies the look and the container of the host to the document of a page, and measures the page. */
import type { HostContext } from "../shared/UiMessage.ts"
import type { Element, Window } from "../shared/dom.ts"

/** The changes of one document. */
export class ViewStyle {
  readonly #window: Window
  #fonts: Element | undefined = undefined
  #variables: ReadonlyArray<string> = []

  constructor(window: Window) {
    this.#window = window
  }

  get #root(): Element {
    return this.#window.document.documentElement
  }

  /** Sets the theme, the variables and the fonts. Variables that the host no longer gives are removed. */
  applyLook({ styles, theme }: HostContext): void {
    const root = this.#root
    if (theme === "light" || theme === "dark") {
      root.dataset["theme"] = theme
      root.style.colorScheme = theme
    }
    // Only custom properties: a host sets the look, not the layout.
    const variables = Object.entries(styles?.variables ?? {})
      .filter(([name, value]) => name.startsWith("--") && typeof value === "string")
    for (const name of this.#variables) root.style.removeProperty(name)
    for (const [name, value] of variables) root.style.setProperty(name, value!)
    this.#variables = variables.map(([name]) => name)
    const fonts = styles?.css?.fonts
    if (typeof fonts !== "string" || fonts === this.#fonts?.textContent) return
    if (this.#fonts === undefined) {
      this.#fonts = this.#window.document.createElement("style")
      this.#window.document.head.append(this.#fonts)
    }
    this.#fonts.textContent = fonts
  }

  /** Fills a container of a fixed size, and stays within a flexible one ("Container Dimensions", view behavior). */
  applyDimensions({ containerDimensions }: HostContext): void {
    if (containerDimensions === undefined) return
    const { height, maxHeight, maxWidth, width } = containerDimensions
    const { style } = this.#root
    style.height = height === undefined ? "" : "100vh"
    style.maxHeight = height === undefined && maxHeight !== undefined ? `${maxHeight}px` : ""
    style.width = width === undefined ? "" : "100vw"
    style.maxWidth = width === undefined && maxWidth !== undefined ? `${maxWidth}px` : ""
  }

  /** The height of the content, whatever height the frame has, and the width of the window. */
  measure(): { readonly width: number; readonly height: number } {
    const root = this.#root
    const { height: before, maxHeight, overflow } = root.style
    root.style.height = "max-content"
    root.style.maxHeight = ""
    // A scrollbar makes the page narrower, and often higher or lower than it is in a frame of its own height.
    root.style.overflow = "hidden"
    const { height } = root.getBoundingClientRect()
    root.style.height = before
    root.style.maxHeight = maxHeight
    root.style.overflow = overflow
    return { width: Math.ceil(this.#window.innerWidth), height: Math.ceil(height) }
  }
}
