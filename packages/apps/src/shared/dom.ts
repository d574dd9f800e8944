/**
 * The parts of the DOM that pages and hosts use. The library compiles without the types of the DOM, so that a server can
 * import it.
 */

/** An event with a message of another window. */
export interface MessageEvent {
  readonly data: unknown
  readonly origin: string
  readonly source: unknown
}

/** A window that takes messages. */
export interface MessageTarget {
  readonly postMessage: (message: unknown, targetOrigin: string) => void
}

/** The style of an element. */
export interface Style {
  height: string
  width: string
  maxHeight: string
  maxWidth: string
  colorScheme: string
  overflow: string
  readonly setProperty: (name: string, value: string) => void
  readonly removeProperty: (name: string) => void
}

/** An element of a document. */
export interface Element {
  readonly style: Style
  readonly dataset: Record<string, string | undefined>
  textContent: string | null
  readonly append: (...nodes: ReadonlyArray<Element>) => void
  readonly remove: () => void
  readonly setAttribute: (name: string, value: string) => void
  readonly getBoundingClientRect: () => { readonly width: number; readonly height: number }
}

/** An `iframe`. */
export interface FrameElement {
  readonly style: Pick<Style, "height">
  readonly setAttribute: (name: string, value: string) => void
  readonly contentWindow: MessageTarget | null
}

/** The window of a page or of a host. */
export interface Window {
  readonly parent: MessageTarget
  readonly location: { readonly origin: string }
  readonly document: {
    readonly documentElement: Element
    readonly head: Element
    readonly createElement: (name: string) => Element
  }
  readonly innerWidth: number
  readonly addEventListener: (type: "message", listener: (event: MessageEvent) => void) => void
  readonly removeEventListener: (type: "message", listener: (event: MessageEvent) => void) => void
  readonly requestAnimationFrame: (run: () => void) => number
  readonly ResizeObserver: new(run: () => void) => {
    readonly observe: (element: Element) => void
    readonly disconnect: () => void
  }
}

/** The window of this page. */
export const currentWindow = (): Window => globalThis as unknown as Window
