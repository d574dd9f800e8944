import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { browser } from "../packages/auth/test/proxy/chromium.ts"
import * as Chromium from "../packages/client/test/browser/chromium.ts"
import * as kit from "./testKit.ts"

const chromium = Chromium.find()

const log = "[...document.querySelectorAll('#log li')].map((item) => item.textContent)"

describe("npm run apps", () => {
  it.live.skipIf(chromium === undefined)(
    "shows the result of a tool as a chart, whose form calls another tool, in the theme of the host",
    () =>
      Effect.gen(function*() {
        const port = yield* kit.freePort
        const server = yield* kit.start(kit.program("apps/main.ts", "--port", String(port)))
        const href = (yield* Effect.promise(() => server.until(/http:\/\/\S+\n/))).trim()
        yield* Effect.promise(() => server.until(/Listening on/))
        const tab = yield* Effect.flatMap(browser(chromium!), (open) => Effect.promise(open))
        yield* Effect.promise(async () => {
          await tab.goto(href)
          await tab.until("!document.getElementById('run').disabled")
          await tab.evaluate("document.getElementById('run').click()")
          const values = "[...document.querySelectorAll('#chart .value')].map((text) => text.textContent).join()"
          expect(await tab.untilInFrame(values)).toBe("42,38,51,47,63,58")
          expect(await tab.untilInFrame("document.getElementById('title')?.textContent")).toBe("Tea sales 2026")
          // The form calls a tool that the model does not have.
          await tab.untilInFrame(
            "document.getElementById('month') && (month.value = 'March', pots.value = '9', submit.click(), true)"
          )
          await tab.untilInFrame(`${values} === "42,38,60,47,63,58"`)
          expect(await tab.untilInFrame("document.getElementById('note')?.textContent")).toBe("Added 9 pots to March.")
          await tab.until(`${log}.some((line) => line.startsWith("context for the model:"))`)
          const lines = await tab.evaluate(log) as ReadonlyArray<string>
          expect(lines.slice(0, 3)).toEqual([
            "tools for the model: sales",
            "content for the model: 299 pots in 2026: January 42, February 38, March 51, April 47, May 63, June 58.",
            "the page calls add_sale {\"year\":2026,\"month\":\"March\",\"pots\":9}"
          ])
          // A refusal of the server reaches the user.
          await tab.untilInFrame(
            "document.getElementById('pots') && (pots.max = 999, pots.value = '999', submit.click(), true)"
          )
          await tab.untilInFrame("document.getElementById('note')?.textContent === 'Add 1 to 500 pots'")
          await tab.untilInFrame("document.getElementById('ask') && (ask.click(), true)")
          await tab.until(`${log}.some((line) => line.includes("Why did March sell so well?"))`)
          const background = "getComputedStyle(document.body).backgroundColor"
          const themed = (theme: string) =>
            tab.untilInFrame(
              `document.getElementById('total') && document.documentElement.dataset.theme === "${theme}" && ${background}`
            )
          expect(await themed("light")).toBe("rgb(255, 255, 255)")
          await tab.evaluate("document.getElementById('theme').click()")
          expect(await themed("dark")).toBe("rgb(27, 33, 37)")
          // The frame is as high as the page.
          await tab.until("parseInt(document.querySelector('iframe').style.height) > 300")
          await tab.goto(`${href}&plain`)
          await tab.until("!document.getElementById('run').disabled")
          await tab.evaluate("document.getElementById('run').click()")
          await tab.until("document.getElementById('answer').textContent.startsWith('308 pots in 2026')")
          expect(await tab.evaluate("document.querySelector('iframe')")).toBe(null)
        })
      }),
    120_000
  )
})
