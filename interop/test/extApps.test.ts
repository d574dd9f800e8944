/**
 * The official package of MCP Apps in Chromium, in both directions: a page with its `App` in a host of Skein, and a page of
 * Skein in its `AppBridge`.
 */
import { describe, expect, it } from "@effect/vitest"
import * as App from "@skein/apps/App"
import * as AppHtml from "@skein/apps/AppHtml"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { browser } from "../../packages/auth/test/proxy/chromium.ts"
import { find } from "../../packages/client/test/browser/chromium.ts"
import * as kit from "../../packages/apps/test/browserKit.ts"

const chromium = find()

const serverOf = (html: string) => {
  const app = App.make("ui://interop/page", { html, prefersBorder: true })
  return [
    App.layer(
      App.tool("show", { app, input: { foreign: Schema.String }, output: { shown: Schema.String } }),
      () => Effect.succeed({ shown: "yes" })
    ),
    App.layer(
      App.tool("double", {
        app,
        visibility: ["app"],
        input: { value: Schema.Finite },
        output: { value: Schema.Finite }
      }),
      ({ value }) =>
        value < 0 ? Effect.fail({ message: "Give a positive number" }) : Effect.succeed({ value: 2 * value })
    )
  ]
}

// A page of the official package.
const officialPage = `
  import { App, PostMessageTransport } from "@modelcontextprotocol/ext-apps"
  const seen = {}
  const app = new App({ name: "official", version: "1.0.0" }, {})
  const finish = async () => {
    seen.host = app.getHostVersion()
    seen.theme = app.getHostContext().theme
    seen.double = (await app.callServerTool({ name: "double", arguments: { value: 21 } })).structuredContent
    seen.failed = (await app.callServerTool({ name: "double", arguments: { value: -1 } })).isError
    await app.sendMessage({ role: "user", content: [{ type: "text", text: "hello" }] })
    await app.updateModelContext({ structuredContent: { a: 1 } })
    await app.openLink({ url: "https://example.com/" })
    seen.resource = (await app.readServerResource({ uri: "ui://interop/page" })).contents[0].mimeType
    await app.sendLog({ level: "info", data: seen })
  }
  app.ontoolinput = ({ arguments: args }) => { seen.input = typeof args.foreign }
  app.ontoolresult = ({ structuredContent }) => { seen.result = structuredContent; finish().catch((error) => app.sendLog({ level: "error", data: String(error) })) }
  app.onteardown = async () => { await app.sendLog({ level: "info", data: "teardown" }); return {} }
  await app.connect(new PostMessageTransport(window.parent, window.parent))
`

// A page of Skein.
const skeinPage = `
  import * as View from "@skein/apps/View"
  const view = View.make({ name: "skein", version: "1.0.0", displayModes: ["inline", "fullscreen"] })
  const seen = {}
  view.on("input", (input) => { seen.input = input })
  view.on("teardown", () => view.log("info", "teardown"))
  view.on("result", async ({ structured }) => {
    try {
      seen.result = structured
      seen.theme = document.documentElement.dataset.theme
      seen.double = (await view.call("double", { value: 21 })).structured
      seen.failed = await view.call("double", { value: -1 }).catch(({ message, reason }) => reason + ": " + message)
      seen.resource = (await view.readResource("ui://interop/page")).contents[0].mimeType
      await view.sendMessage("hello")
      await view.updateModelContext({ structuredContent: { a: 1 } })
      await view.openLink("https://example.com/")
      seen.refused = await view.openLink("https://refused.example/").catch(({ reason }) => reason)
      seen.mode = await view.requestDisplayMode("fullscreen")
      seen.pip = await view.requestDisplayMode("pip").catch(({ reason }) => reason)
      view.log("info", seen)
    } catch (error) { view.log("error", String(error)) }
  })
  await view.connect()
`

// A host of the official package, with the official client, and the sandbox proxy of Skein.
const officialHost = `
  import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge"
  import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
  const query = new URLSearchParams(location.search)
  const state = globalThis.state = { logs: [], said: [], sizes: [] }
  const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } }
  const client = new Client({ name: "host", version: "1.0.0" }, { capabilities: { extensions } })
  await client.connect(new StreamableHTTPClientTransport(new URL(query.get("server"))))
  const tool = (await client.listTools()).tools.find(({ name }) => name === "show")
  const { contents: [page] } = await client.readResource({ uri: tool._meta.ui.resourceUri })
  const frame = document.createElement("iframe")
  frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms")
  const ready = new Promise((resolve) => addEventListener("message", ({ data, source }) => {
    if (source === frame.contentWindow && data?.method === "ui/notifications/sandbox-proxy-ready") resolve()
  }))
  frame.src = query.get("sandbox")
  document.body.append(frame)
  await ready
  const bridge = new AppBridge(client, { name: "official-host", version: "1.0.0" }, {
    openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { structuredContent: {} }
  }, { hostContext: { theme: "dark", displayMode: "inline", availableDisplayModes: ["inline", "fullscreen"] } })
  bridge.onloggingmessage = ({ data }) => state.logs.push(data)
  bridge.onsizechange = (size) => state.sizes.push(size)
  bridge.onmessage = async ({ content }) => { state.said.push(content); return {} }
  bridge.onupdatemodelcontext = async (context) => { state.said.push(context.structuredContent); return {} }
  bridge.onopenlink = async ({ url }) => { state.said.push(url); return url.includes("refused") ? { isError: true } : {} }
  bridge.onrequestdisplaymode = async ({ mode }) => ({ mode })
  const initialized = new Promise((resolve) => { bridge.oninitialized = resolve })
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow))
  await bridge.sendSandboxResourceReady({ html: page.text })
  await initialized
  const args = { foreign: "here" }
  await bridge.sendToolInput({ arguments: args })
  await bridge.sendToolResult(await client.callTool({ name: "show", arguments: args }))
  globalThis.teardown = () => bridge.teardownResource({})
`

describe.skipIf(chromium === undefined)("@modelcontextprotocol/ext-apps in Chromium", () => {
  it.live("its App is shown by a host of Skein", () =>
    Effect.scoped(Effect.gen(function*() {
      const official = yield* Effect.promise(() => kit.bundle({ text: officialPage }))
      const html = AppHtml.document({ title: "Official", body: "<p>Official</p>", script: official })
      const host = kit.hostScript(`
        hostInfo: { name: "skein-host", version: "1.0.0" },
        message: ({ content }) => Effect.sync(() => state.sizes.push(content[0].text)),
        updateModelContext: ({ structuredContent }) => Effect.sync(() => state.sizes.push(structuredContent)),
        openLink: (url) => Effect.sync(() => state.sizes.push(url.href))
      `) + "globalThis.run = Effect.runPromise"
      const script = yield* Effect.promise(() => kit.bundle({ text: host }))
      const { url } = yield* kit.open(script, serverOf(html))
      const tab = yield* Effect.flatMap(browser(chromium!), (open) => Effect.promise(open))
      yield* Effect.promise(async () => {
        await tab.goto(url)
        await tab.until("state.logs.length > 0 || state.failed")
        expect(await tab.evaluate("state.failed ?? state.logs[0]")).toEqual({
          input: "string",
          result: { shown: "yes" },
          host: { name: "skein-host", version: "1.0.0" },
          theme: "light",
          double: { value: 42 },
          failed: true,
          resource: "text/html;profile=mcp-app"
        })
        expect(await tab.evaluate("state.sizes")).toEqual(["hello", { a: 1 }, "https://example.com/"])
        await tab.evaluate("run(state.session.teardown())")
        expect(await tab.evaluate("state.logs.at(-1)")).toBe("teardown")
      })
    })), 120_000)

  it.live(
    "its AppBridge shows a page of Skein, in the sandbox proxy of Skein",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const view = yield* Effect.promise(() => kit.bundle({ text: skeinPage }))
        const html = AppHtml.document({ title: "Skein", body: "<p>Skein</p>", script: view })
        const script = yield* Effect.promise(() => kit.bundle({ text: officialHost }))
        const { url } = yield* kit.open(script, serverOf(html))
        const tab = yield* Effect.flatMap(browser(chromium!), (open) => Effect.promise(open))
        yield* Effect.promise(async () => {
          await tab.goto(url)
          await tab.until("state.logs.length > 0")
          expect(await tab.evaluate("state.logs[0]")).toEqual({
            input: { foreign: "here" },
            result: { shown: "yes" },
            theme: "dark",
            double: { value: 42 },
            failed: "ToolFailed: Give a positive number",
            resource: "text/html;profile=mcp-app",
            refused: "Refused",
            mode: "fullscreen",
            pip: "Unsupported"
          })
          expect(await tab.evaluate("state.said")).toEqual([
            [{ type: "text", text: "hello" }],
            { a: 1 },
            "https://example.com/",
            "https://refused.example/"
          ])
          expect(await tab.evaluate("state.sizes[0].height > 0")).toBe(true)
          await tab.evaluate("teardown()")
          expect(await tab.evaluate("state.logs.at(-1)")).toBe("teardown")
        })
      })),
    120_000
  )
})
