/** The pages of `Approval`, `Choice`, `Form` and `Upload` in Chromium, in the sandbox of a host. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Approval from "@skein/apps/Approval"
import * as Choice from "@skein/apps/Choice"
import * as Form from "@skein/apps/Form"
import * as Upload from "@skein/apps/Upload"
import * as McpServer from "@skein/server/McpServer"
import * as Elicitation from "@skein/server/Elicitation"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { createHash, randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { find } from "../../client/test/browser/chromium.ts"
import { hostile, picture, show, shown } from "./pageKit.ts"

const chromium = find()

const input = { foreign: Schema.String }

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
      "answers in a mounted part, whose tools have other names than the page knows",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const naming = { prefix: "shop", name: (name: string) => name === "show" ? name : `shop_${name}` }
          const tab = yield* show([
            McpServer.mount(
              naming,
              Approval.layer(Approval.make("show", { input }), {
                ask: () => Effect.succeed({ title: "Deploy?" }),
                handle: ({ approved }) => Effect.succeed(approved ? "Deployed" : "Nothing was deployed")
              })
            )
          ])
          yield* Effect.promise(async () => {
            await tab.untilInFrame("document.getElementById('approve')?.textContent && (approve.click(), true)")
            expect(await tab.untilInFrame(`${note} === "Deployed"`)).toBe(true)
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

  describe("the page of a form", () => {
    it.live(
      "checks the fields, shows the problems that the server finds, and sends the corrected values",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const received: Array<unknown> = []
          const tab = yield* show([
            Form.layer(
              Form.make("show", {
                input,
                fields: {
                  name: Schema.String.annotate({ title: `Name ${hostile}`, description: `As on your card ${hostile}` }),
                  email: Elicitation.Email.annotate({ title: "E-mail" }),
                  people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 })).annotate({ title: "People" }),
                  day: Elicitation.Day.annotate({ title: "Day" }),
                  from: Schema.optionalKey(Elicitation.DateTime.annotate({ title: "From" })),
                  where: Elicitation.choice({ in: "Inside", out: `In the garden ${hostile}` }).annotate({
                    title: "Where"
                  }),
                  extras: Elicitation.choices({ cake: "Cake", milk: "Oat milk" }).check(Schema.isMinLength(1)).annotate(
                    {
                      title: "Extras"
                    }
                  ),
                  quiet: Schema.Boolean.annotate({ title: "A quiet table", description: "Away from the door" }),
                  code: Schema.String.check(Schema.isPattern(/^[A-Z]{2}$/, { message: "Enter two capital letters." }))
                    .annotate({ title: "Code" }),
                  note: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(20)).annotate({ title: "Note" }))
                },
                multiline: ["note"]
              }),
              {
                ask: () =>
                  Effect.succeed({
                    title: "Book a table",
                    details: "We confirm it by e-mail.",
                    submit: "Book",
                    initial: { people: 2, from: "2026-07-28T10:00:00Z", note: "By the window, and more" }
                  }),
                handle: ({ values }) => Effect.sync(() => (received.push(values), "The table is booked"))
              }
            )
          ])
          yield* Effect.promise(async () => {
            const click = "document.getElementById('submit') && !submit.disabled && (submit.click(), true)"
            const problems = "[...document.querySelectorAll('.problem')].map((problem) => problem.textContent)"
            const set = (at: number, value: string) =>
              `Object.assign(document.getElementById('field-${at}'), { value: ${JSON.stringify(value)} })`
            await tab.untilInFrame("document.getElementById('submit')?.textContent === 'Book'")
            await picture(tab, "form")
            await tab.untilInFrame(click)
            await tab.untilInFrame(`${note} === "Check the marked fields."`)
            expect(await tab.untilInFrame(`document.getElementById('field-0') && ${problems}`)).toEqual([
              "Fill in this field.",
              "Fill in this field.",
              "",
              "Fill in this field.",
              "",
              "Choose one of the options.",
              "Choose at least 1.",
              "",
              "Fill in this field.",
              "Enter at most 20 characters."
            ])
            // A reader of the screen hears the description and the problem with the field, which has the focus.
            const first = `(() => {
              const field = document.getElementById("field-0")
              return field && document.activeElement === field && [
                field.labels[0].innerText,
                field.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id).textContent),
                field.getAttribute("aria-invalid"),
                document.querySelector("img")
              ]
            })()`
            expect(await tab.untilInFrame(first)).toEqual([
              `Name ${shown}`,
              [`As on your card ${shown}`, "Fill in this field."],
              "true",
              null
            ])
            await picture(tab, "form-problems")
            const fill = [
              set(0, "Ada"),
              set(1, "ada@"),
              set(2, "9"),
              set(3, "2026-08-01"),
              set(4, ""),
              set(5, "1"),
              "document.querySelector('#inputs fieldset input').click()",
              "document.getElementById('field-7').click()",
              set(8, "ab"),
              set(9, "")
            ]
            await tab.untilInFrame(`document.getElementById('field-0') && (${fill.join(", ")}, true)`)
            await tab.untilInFrame(click)
            expect(await tab.untilInFrame(`document.getElementById('field-0') && ${problems}.filter(Boolean)`)).toEqual(
              [
                "Enter an e-mail address, such as name@example.com.",
                "Enter 8 or less."
              ]
            )
            await tab.untilInFrame(
              `document.getElementById('field-0') && (${set(1, "ada@example.com")}, ${set(2, "8")}, true)`
            )
            await tab.untilInFrame(click)
            // Only the server knows the pattern.
            await tab.untilInFrame(`${problems}.join("") === "Enter two capital letters." && !submit.disabled`)
            expect(await tab.untilInFrame("document.activeElement.id === 'field-8' && document.activeElement.id")).toBe(
              "field-8"
            )
            await tab.untilInFrame(`document.getElementById('field-8') && (${set(8, "AB")}, true)`)
            await tab.untilInFrame(click)
            await tab.untilInFrame(`${note} === "The table is booked"`)
            expect(received).toEqual([{
              name: "Ada",
              email: "ada@example.com",
              people: 8,
              day: "2026-08-01",
              where: "out",
              extras: ["cake"],
              quiet: true,
              code: "AB"
            }])
            await tab.until("state.logs.length === 2")
            expect(await tab.evaluate("state.logs")).toEqual([
              "context: My answer to \"Book a table\": I sent the form\n\nThe table is booked",
              "message: My answer to \"Book a table\": I sent the form"
            ])
            await picture(tab, "form-done")
          })
        })),
      120_000
    )
  })

  describe("the page of an upload", () => {
    it.live(
      "sends real files in parts, after it has refused others, and can be cancelled",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const folder = mkdtempSync(join(tmpdir(), "skein-upload-"))
          yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
          const file = (name: string, bytes: Uint8Array): string => {
            writeFileSync(join(folder, name), bytes)
            return join(folder, name)
          }
          const photo = randomBytes(300_000)
          const name = "<img src=x onerror=alert(1)>\u202Egnp.png"
          const paths = [file(name, photo), file("empty.csv", new Uint8Array(0))]
          const [large, wrong] = [file("large.png", randomBytes(400_000)), file("a.exe", photo)]
          const received: Array<unknown> = []
          const tab = yield* show([
            Upload.layer(
              Upload.make("show", {
                input,
                accept: [".png", ".csv"],
                limits: { maxFiles: 2, maxFileBytes: 350_000 }
              }),
              {
                ask: () => Effect.succeed({ title: "Which pictures?", details: "They are shown to your team." }),
                handle: ({ files }) =>
                  Effect.sync(() => {
                    for (const { bytes, name, type } of files) {
                      received.push([name, type, createHash("sha256").update(bytes).digest("hex")])
                    }
                    return "The pictures are stored"
                  })
              }
            )
          ])
          yield* Effect.promise(async () => {
            const files = "document.getElementById('files')"
            const names = "[...document.querySelectorAll('.name')].map((name) => name.textContent).join('|')"
            const click = (selector: string) =>
              tab.untilInFrame(`(() => {
              const button = document.querySelector(${JSON.stringify(selector)})
              return button && !button.matches(':disabled') && (button.click(), true)
            })()`)
            await tab.untilInFrame("document.getElementById('upload')?.textContent === 'Upload'")
            await picture(tab, "upload-empty")
            // The page refuses what is too large, and the server what has another type.
            await tab.chooseFiles(files, [large])
            await tab.untilInFrame(`${note} === "large.png is larger than 342 KB." && upload.disabled`)
            await click("li button")
            await tab.chooseFiles(files, [wrong])
            await click("#upload")
            await tab.untilInFrame(`${note} === 'The file "a.exe" is not of an accepted type: .png, .csv'`)
            await picture(tab, "upload-refused")
            await click("li button")
            await tab.untilInFrame(`${note} === "" && document.activeElement.id === "files"`)
            await tab.chooseFiles(files, paths)
            const shownName = name.replace("\u202E", "\\u{202e}")
            expect(await tab.untilInFrame(names)).toBe(`${shownName}|empty.csv`)
            const label = "document.querySelector('li button')?.getAttribute('aria-label')"
            expect(await tab.untilInFrame(label)).toBe(`Remove ${shownName}`)
            await picture(tab, "upload")
            // The user changes their mind while the files are sent.
            await tab.untilInFrame("document.getElementById('upload') && (upload.click(), cancel.click(), true)")
            await tab.untilInFrame(`${note} === "The upload was cancelled."`)
            await click("#upload")
            await tab.untilInFrame(`${note} === "The pictures are stored"`)
            await tab.until("state.logs.length === 2")
            const answer = `My answer to "Which pictures?": "${shownName}" (293 KB), "empty.csv" (0 bytes)`
            expect(await tab.evaluate("state.logs")).toEqual([
              `context: ${answer}\n\nThe pictures are stored`,
              `message: ${answer}`
            ])
            const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")
            expect(received).toEqual([
              [name, "image/png", digest(photo)],
              ["empty.csv", "text/csv", digest(new Uint8Array(0))]
            ])
            expect(await tab.untilInFrame("document.getElementById('note') && !document.querySelector('img')")).toBe(
              true
            )
            await picture(tab, "upload-done")
          })
        })),
      120_000
    )
  })
}
