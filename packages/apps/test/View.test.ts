import { assert, describe, expect, it, vi } from "@effect/vitest"
import type { MessageEvent, Window } from "../src/shared/dom.ts"
import { makeViewPort, type Params } from "../src/page/viewPort.ts"
import { ViewStyle } from "../src/page/viewStyle.ts"
import type { ViewError } from "@skein/apps/ViewError"

const element = () => {
  const variables = new Map<string, string>()
  return {
    variables,
    style: {
      height: "",
      width: "",
      maxHeight: "",
      maxWidth: "",
      colorScheme: "",
      overflow: "",
      setProperty: (name: string, value: string) => void variables.set(name, value),
      removeProperty: (name: string) => void variables.delete(name)
    },
    dataset: {} as Record<string, string | undefined>,
    textContent: "" as string | null,
    append: () => {},
    remove: () => {},
    setAttribute: () => {},
    getBoundingClientRect: () => ({ width: 1, height: 20.5 })
  }
}

/** A window whose parent records messages. */
const makeWindow = () => {
  const listeners = new Set<(event: MessageEvent) => void>()
  const posted: Array<{ readonly message: Params; readonly origin: string }> = []
  const parent = {
    postMessage: (message: unknown, origin: string) => void posted.push({ message: message as Params, origin })
  }
  const root = element()
  const styles = element()
  const window: Window = {
    parent,
    location: { origin: "https://page.example" },
    document: { documentElement: root, head: element(), createElement: () => styles },
    innerWidth: 300.2,
    addEventListener: (_, listener) => void listeners.add(listener),
    removeEventListener: (_, listener) => void listeners.delete(listener),
    requestAnimationFrame: () => 0,
    ResizeObserver: class {
      observe = () => {}
      disconnect = () => {}
    }
  }
  const receive = (data: unknown, source: unknown = parent, origin = "https://sandbox.example") => {
    for (const listener of listeners) listener({ data: structuredClone(data), origin, source })
  }
  return { window, posted, receive, root, styles, listeners }
}

const open = (maxPending = 256) => {
  const made = makeWindow()
  const notified: Array<unknown> = []
  const port = makeViewPort(made.window, maxPending, {
    notified: (method, params) => void notified.push([method, params]),
    requested: (method) => Promise.resolve(method === "ping" ? {} : undefined)
  })
  port.open()
  return { ...made, port, notified }
}

const failure = (promise: Promise<unknown>): Promise<ViewError> =>
  promise.then(() => assert.fail("it succeeded"), (error: unknown) => error as ViewError)

describe("the connection of a page", () => {
  it("rejects calls beyond the bound, and sends nothing for them", async () => {
    const { port, posted, receive } = open(2)
    const first = port.request("a", {})
    port.request("b", {}).catch(() => undefined)
    const refused = await failure(port.request("c", {}))
    expect([refused.reason, refused.message]).toEqual([
      "LimitExceeded",
      "2 calls wait for the host"
    ])
    assert.lengthOf(posted, 2)
    receive({ jsonrpc: "2.0", id: 1, result: { done: true } })
    assert.deepStrictEqual(await first, { done: true })
    port.request("c", {}).catch(() => undefined)
    assert.lengthOf(posted, 3)
  })

  it("rejects with Timeout if the host does not answer", async () => {
    const { port } = open()
    vi.useFakeTimers()
    try {
      const late = failure(port.request("ui/initialize", {}))
      vi.advanceTimersByTime(10_000)
      expect(await late).toMatchObject({
        reason: "Timeout",
        message: "The host did not answer ui/initialize within 10000 ms"
      })
    } finally {
      vi.useRealTimers()
    }
  })

  it("cancels a call by its signal, and ignores the late answer", async () => {
    const { port, posted, receive } = open()
    const controller = new AbortController()
    const call = failure(port.request("tools/call", {}, controller.signal))
    controller.abort(new Error("enough"))
    expect((await call).message).toBe("enough")
    expect(posted.at(-1)!.message).toMatchObject({ method: "notifications/cancelled", params: { requestId: 1 } })
    receive({ jsonrpc: "2.0", id: 1, result: {} })
    expect((await failure(port.request("a", {}, controller.signal))).message).toBe("enough")
  })

  it("takes messages of its parent only, and sends to the origin that has answered", async () => {
    const { notified, port, posted, receive } = open()
    const call = port.request("a", {})
    for (const source of [{}, null, globalThis]) receive({ jsonrpc: "2.0", id: 1, result: { from: "another" } }, source)
    for (const data of [undefined, "text", { id: 1, result: {} }, { jsonrpc: "1.0", method: "m" }]) receive(data)
    receive({ jsonrpc: "2.0", id: 1, result: { from: "the host" } })
    assert.deepStrictEqual(await call, { from: "the host" })
    port.notify("n", {})
    assert.deepStrictEqual(posted.map(({ origin }) => origin), ["*", "https://sandbox.example"])
    receive({ jsonrpc: "2.0", method: "m", params: { a: 1 } })
    assert.deepStrictEqual(notified, [["m", { a: 1 }]])
  })

  it("rejects with the error of the host, and with Closed at the end", async () => {
    const { listeners, port, receive } = open()
    const refused = failure(port.request("a", {}))
    receive({ jsonrpc: "2.0", id: 1, error: { code: -32_000, message: "No", data: { why: 1 } } })
    expect(await refused).toMatchObject({ reason: "Refused", message: "No", code: -32_000, data: { why: 1 } })
    const waiting = failure(port.request("a", {}))
    port.close()
    expect((await waiting).reason).toBe("Closed")
    expect((await failure(port.request("a", {}))).reason).toBe("Closed")
    assert.strictEqual(listeners.size, 0)
  })

  it("answers requests of the host, and refuses unknown ones", async () => {
    const { posted, receive } = open()
    receive({ jsonrpc: "2.0", id: "h", method: "ping" })
    receive({ jsonrpc: "2.0", id: "i", method: "other" })
    await Promise.resolve()
    await Promise.resolve()
    expect(posted.map(({ message }) => message)).toEqual([
      { jsonrpc: "2.0", id: "h", result: {} },
      { jsonrpc: "2.0", id: "i", error: { code: -32_601, message: "Method not found: other" } }
    ])
  })

  it("is refused for a document that is in no frame", () => {
    const { window } = makeWindow()
    const port = makeViewPort(
      {
        ...window,
        get parent() {
          return this as never
        }
      },
      1,
      {} as never
    )
    expect(() => port.open()).toThrow("The page is not in the frame of a host")
  })
})

describe("the look of a page", () => {
  it("2026-01-26 · theming · has the theme, the variables and the fonts of the host, and no other properties", () => {
    const { root, styles, window } = makeWindow()
    const style = new ViewStyle(window)
    style.applyLook({
      theme: "dark",
      styles: {
        variables: { "--color-text-primary": "#fff", position: "fixed", "--font-sans": undefined },
        css: { fonts: "@font-face {}" }
      }
    })
    assert.deepStrictEqual([...root.variables], [["--color-text-primary", "#fff"]])
    assert.strictEqual(root.dataset["theme"], "dark")
    assert.strictEqual(styles.textContent, "@font-face {}")
    style.applyLook({ theme: "light", styles: { variables: { "--color-text-info": "#00f" } } })
    assert.deepStrictEqual([...root.variables], [["--color-text-info", "#00f"]])
    assert.strictEqual(root.style.colorScheme, "light")
  })

  it("2026-01-26 · container dimensions · fills a fixed size, and stays within a flexible one", () => {
    const { root, window } = makeWindow()
    const style = new ViewStyle(window)
    style.applyDimensions({ containerDimensions: { height: 100, maxWidth: 300 } })
    expect(root.style).toMatchObject({ height: "100vh", maxHeight: "", width: "", maxWidth: "300px" })
    style.applyDimensions({ containerDimensions: { maxHeight: 400, width: 10 } })
    expect(root.style).toMatchObject({ height: "", maxHeight: "400px", width: "100vw", maxWidth: "" })
    assert.deepStrictEqual(style.measure(), { width: 301, height: 21 })
    expect(root.style).toMatchObject({ height: "", maxHeight: "400px", overflow: "" })
  })
})
