/** The pages of `Approval` and `Choice` in Chromium, in the sandbox of a host. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Approval from "@skein/apps/Approval"
import * as Choice from "@skein/apps/Choice"
import type * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { browser, type Tab } from "../../auth/test/proxy/chromium.ts"
import { find } from "../../client/test/browser/chromium.ts"
import * as kit from "./browserKit.ts"

const chromium = find()

// Text that would be code, markup or another order of reading, if a page did not set it as text.
const hostile = "</script><img src=x onerror=\"parent.postMessage('x', '*')\">&amp; \u202Egnp.exe"

const shown = hostile.replace("\u202E", "\\u{202e}")

const input = { foreign: Schema.String }

/** A host that records what the page gives to the model. */
const recording = `
  message: ({ content }) => Effect.sync(() => state.logs.push("message: " + content[0].text)),
  updateModelContext: ({ content }) => Effect.sync(() => state.logs.push("context: " + content[0].text))
`

/** Set to a folder to look at the pages. */
const pictures = process.env["SKEIN_PICTURES"]

const picture = async (tab: Tab, name: string): Promise<void> => {
  if (pictures === undefined) return
  mkdirSync(pictures, { recursive: true })
  for (const theme of ["light", "dark"]) {
    await tab.evaluate(`run(state.session.setContext({ theme: "${theme}" }))`)
    await tab.untilInFrame(
      `document.documentElement.dataset.theme === "${theme}" && document.getElementById("note") && true`
    )
    await new Promise((resolve) => setTimeout(resolve, 300))
    const { data } = await tab.send("Page.captureScreenshot", { format: "png" }) as { readonly data: string }
    writeFileSync(join(pictures, `${name}-${theme}.png`), Buffer.from(data, "base64"))
  }
}

const show = (definitions: ReadonlyArray<McpServer.Definitions>, options = recording) =>
  Effect.gen(function*() {
    const host = yield* Effect.promise(() =>
      kit.bundle({ text: `${kit.hostScript(options)}globalThis.run = Effect.runPromise` })
    )
    const { url } = yield* kit.open(host, definitions)
    const tab = yield* Effect.flatMap(browser(chromium!), (open) => Effect.promise(open))
    yield* Effect.promise(() => tab.goto(url))
    yield* Effect.promise(() => tab.evaluate("document.querySelector('iframe').style.width = '100%'"))
    return tab
  })

const note = "document.getElementById('note')?.textContent"

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  describe("the page of an approval", () => {
    it.live(
      "shows hostile texts as text, sends the answer once, and gives it to the model",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const answers: Array<boolean> = []
          const tab = yield* show([
            Approval.layer(Approval.make("show", { input }), {
              ask: () =>
                Effect.succeed({
                  title: `Delete ${hostile}?`,
                  details: `Three files:\n- a.txt\n- b.txt\n${hostile}`,
                  approve: `Delete ${hostile}`,
                  decline: "Keep"
                }),
              handle: ({ approved }) => Effect.sync(() => (answers.push(approved), `Deleted ${hostile}`))
            })
          ])
          yield* Effect.promise(async () => {
            expect(await tab.untilInFrame("document.getElementById('title')?.textContent")).toBe(`Delete ${shown}?`)
            expect(await tab.untilInFrame("document.getElementById('approve')?.textContent")).toBe(`Delete ${shown}`)
            expect(await tab.untilInFrame("document.getElementById('note') && !document.querySelector('img')")).toBe(
              true
            )
            await picture(tab, "approval")
            await tab.untilInFrame(
              "document.getElementById('approve') && (approve.click(), approve.click(), decline.click(), true)"
            )
            await tab.untilInFrame(`${note} === ${JSON.stringify(`Deleted ${shown}`)}`)
            await tab.until("state.logs.length === 2")
            const answer = `My answer to "Delete ${hostile}?": Delete ${hostile}`
            expect(await tab.evaluate("state.logs")).toEqual([
              `context: ${answer}\n\nDeleted ${hostile}`,
              `message: ${answer}`
            ])
            // The buttons are gone, so the focus of the keyboard is on the note.
            expect(
              await tab.untilInFrame(
                "document.activeElement?.id === 'note' && document.getElementById('actions').hidden"
              )
            ).toBe(true)
            expect(answers).toEqual([true])
            await picture(tab, "approval-done")
          })
        })),
      120_000
    )

    it.live(
      "says to a user that the model did not get the answer, and why an answer failed",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const tab = yield* show([
            Approval.layer(Approval.make("show", { input }), {
              ask: () => Effect.succeed({ title: "Deploy?" }),
              handle: () => Effect.fail({ message: "The machine is down" })
            })
          ], "")
          yield* Effect.promise(async () => {
            await tab.untilInFrame(
              "document.getElementById('decline')?.textContent === 'Decline' && (decline.click(), true)"
            )
            await tab.untilInFrame(
              `${note} === "The machine is down\\nThe assistant did not get your answer. Tell it yourself."`
            )
            expect(await tab.untilInFrame("document.getElementById('note')?.className.includes('error')")).toBe(true)
            await picture(tab, "approval-failed")
          })
        })),
      120_000
    )
  })

  describe("the page of a choice", () => {
    it.live(
      "lists the options with their labels, and sends the chosen one",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const tab = yield* show([
            Choice.layer(Choice.make("show", { input }), {
              ask: () =>
                Effect.succeed({
                  title: "Which seat?",
                  details: "The train leaves at 9:30",
                  options: [
                    { value: "1A", label: "1A, at the window", description: "Quiet zone" },
                    { value: hostile, label: `2C ${hostile}` },
                    { value: "3D" }
                  ],
                  choose: "Book"
                }),
              handle: ({ chosen }) => Effect.succeed(`Booked ${chosen}`)
            })
          ])
          yield* Effect.promise(async () => {
            const labels = "[...document.querySelectorAll('label')].map((label) => label.innerText).join('|')"
            expect(await tab.untilInFrame(labels)).toBe(`1A, at the window\nQuiet zone|2C ${shown}|3D`)
            // An answer needs a choice.
            await tab.untilInFrame("document.getElementById('choose') && (choose.click(), true)")
            await tab.untilInFrame(`${note} === "Choose one of the options."`)
            // Each option has its label as its name.
            expect(await tab.untilInFrame("document.querySelectorAll('input')[2]?.labels[0].innerText")).toBe("3D")
            await tab.untilInFrame(
              "document.querySelectorAll('label')[1] && (document.querySelectorAll('label')[1].click(), true)"
            )
            await picture(tab, "choice")
            await tab.untilInFrame("document.getElementById('choose') && (choose.click(), true)")
            await tab.untilInFrame(`${note} === ${JSON.stringify(`Booked ${shown}`)}`)
            await tab.until("state.logs.length === 2")
            expect(await tab.evaluate("state.logs[1]")).toBe(`message: My answer to "Which seat?": 2C ${hostile}`)
            await picture(tab, "choice-done")
          })
        })),
      120_000
    )
  })
}
