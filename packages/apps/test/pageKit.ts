/** A page of this package in Chromium, in a host that records what the page gives to the model. */
import type * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { browser, type Tab } from "../../auth/test/proxy/chromium.ts"
import { find } from "../../client/test/browser/chromium.ts"
import * as kit from "./browserKit.ts"

/** Text that would be code, markup or another order of reading, if a page did not set it as text. */
export const hostile = "</script><img src=x onerror=\"parent.postMessage('x', '*')\">&amp; \u202Egnp.exe"

/** The same text as pages show it. */
export const shown = hostile.replace("\u202E", "\\u{202e}")

/** A host that records what the page gives to the model. */
export const recording = `
  message: ({ content }) => Effect.sync(() => state.logs.push("message: " + content[0].text)),
  updateModelContext: ({ content }) => Effect.sync(() => state.logs.push("context: " + content[0].text))
`

/** Set to a folder to look at the pages. */
const pictures = process.env["SKEIN_PICTURES"]

/** Takes pictures of the page: light and dark, wide and narrow. */
export const picture = async (tab: Tab, name: string): Promise<void> => {
  if (pictures === undefined) return
  mkdirSync(pictures, { recursive: true })
  for (const theme of ["light", "dark"]) {
    await tab.evaluate(`run(state.session.setContext({ theme: "${theme}" }))`)
    await tab.untilInFrame(
      `document.documentElement.dataset.theme === "${theme}" && document.getElementById("note") && true`
    )
    for (const width of [800, 360]) {
      await tab.send("Emulation.setDeviceMetricsOverride", {
        width,
        height: 2_100,
        deviceScaleFactor: 1,
        mobile: false
      })
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      const shot = await tab.send("Page.captureScreenshot", { format: "png" })
      const { data } = shot as { readonly data: string }
      writeFileSync(join(pictures, `${name}-${theme}-${width}.png`), Buffer.from(data, "base64"))
    }
  }
}

/** Opens a host that shows the page of the tool `show`. */
export const show = (definitions: ReadonlyArray<McpServer.Definitions>, options = recording) =>
  Effect.gen(function*() {
    const host = yield* Effect.promise(() =>
      kit.bundle({ text: `${kit.hostScript(options)}globalThis.run = Effect.runPromise` })
    )
    const { url } = yield* kit.open(host, definitions)
    const tab = yield* Effect.flatMap(browser(find()!), (open) => Effect.promise(open))
    yield* Effect.promise(() => tab.goto(url))
    yield* Effect.promise(() => tab.evaluate("document.querySelector('iframe').style.width = '100%'"))
    return tab
  })
