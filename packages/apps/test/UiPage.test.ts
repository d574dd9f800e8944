/** The page of `UiApp` in Chromium, in the sandbox of a host. */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Ui from "@skein/apps/Ui"
import * as UiApp from "@skein/apps/UiApp"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { find } from "../../client/test/browser/chromium.ts"
import { hostile, picture, recording, show, shown } from "./pageKit.ts"

const months = ["January", "February", "March", "April", "May", "June"]

// A red pixel.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

const search = UiApp.tool("search", {
  visibility: ["app"],
  input: { query: Schema.String, kind: Schema.String, page: Schema.Int, pots: Schema.optionalKey(Schema.Int) }
})

/** Every component. */
const gallery = (title = "The tea shop") =>
  Ui.column([
    Ui.row([Ui.heading(title), Ui.badge("Open", { tone: "success" }), Ui.badge("3 orders wait", { tone: "warning" })]),
    Ui.text(`Sales of this year.\nThey grow ${hostile}`, { tone: "muted" }),
    Ui.grid(
      [["Pots", 299], ["Guests", 1_204], ["Returns", 3]].map(([name, sum]) =>
        Ui.card([Ui.heading(String(sum), { level: 2 })], { title: String(name) })
      ),
      { columns: 3 }
    ),
    Ui.grid([
      Ui.bar({
        title: "Pots by month",
        labels: months,
        series: [{ name: "2025", values: [42, 38, 51, 47, 63, 58] }, { name: "2026", values: [40, 44, 49, 58, 61, 70] }]
      }),
      Ui.line({
        title: "Profit",
        labels: months,
        series: [{ name: "Profit", values: [-12_000, -4_000, 3_500, 8_000, 15_000, 22_000] }]
      }),
      Ui.area({
        title: "Guests",
        labels: Array.from({ length: 60 }, (_, at) => `Day ${at + 1}`),
        series: [{ name: "Guests", values: Array.from({ length: 60 }, (_, at) => 40 + 20 * Math.sin(at / 6)) }]
      }),
      Ui.pie({
        title: "Kinds",
        slices: [{ label: "Green", value: 45 }, { label: "Black", value: 35 }, { label: hostile, value: 20 }]
      })
    ]),
    Ui.table({
      caption: "Orders",
      columns: ["Number", "Guest", "Pots", "Paid"],
      rows: [["A-17", "Ada", 2, true], ["A-18", hostile, 12, false], ["A-19", null, null, true]]
    }),
    Ui.card([
      Ui.row([
        Ui.textInput("query", { label: "Search", required: true, placeholder: "Name of a tea" }),
        Ui.select("kind", {
          label: "Kind",
          options: [{ value: "g", label: "Green" }, { value: "b", label: "Black" }],
          initial: "g"
        }),
        Ui.button("Search", {
          tool: search,
          arguments: { page: 1 },
          style: "primary",
          inputs: ["query", "kind", "pots"]
        })
      ]),
      Ui.numberInput("pots", { label: "Pots", description: "One to nine", min: 1, max: 9, integer: true }),
      Ui.dateInput("day", { label: "Day" }),
      Ui.textArea("note", { label: "Note", max: 200 }),
      Ui.checkbox("gift", { label: "As a gift", initial: true })
    ], { title: "Find a tea" }),
    Ui.row([
      Ui.button("Explain", { message: "Explain the sales", inputs: ["kind", "gift", "day"] }),
      Ui.button("Delete everything", { tool: search, style: "danger", inputs: [] }),
      Ui.link("The shop", "https://shop.example/tea?a=1&b=2")
    ]),
    Ui.image(png, { mimeType: "image/png", alt: "A red pixel" }),
    Ui.code(`const a = 1\n${hostile} ${"long ".repeat(60)}`)
  ])

const definitions = (received: Array<unknown>) => [
  UiApp.layer(
    UiApp.tool("show", { input: { foreign: Schema.String } }),
    () => Effect.succeed({ text: "The sales of the shop", ui: gallery() })
  ),
  UiApp.layer(search, (input) => {
    received.push(input)
    if (input.query === "nothing") return Effect.succeed({ text: `No tea is named ${hostile}` })
    return Effect.succeed({
      text: `Page ${input.page} of ${input.query}`,
      ui: Ui.column([
        Ui.heading(`${input.query}, page ${input.page}`),
        Ui.textInput("query", { label: "Search", initial: input.query }),
        Ui.button("Search", { tool: search, arguments: { page: input.page + 1, kind: "g" }, style: "primary" }),
        ...[7, 8, 9].map((page) => Ui.button("Open", { tool: search, arguments: { page, kind: "b" } }))
      ])
    })
  })
]

const opening = `${recording},
  openLink: (url) => Effect.sync(() => state.logs.push("open: " + url))
`

const note = "document.getElementById('note')?.textContent"

const click = (label: string) =>
  `(() => {
    const found = [...document.querySelectorAll("button")].find(({ textContent }) => textContent === ${
    JSON.stringify(label)
  })
    return found && !found.matches(":disabled") && (found.click(), true)
  })()`

const set = (label: string, value: string) =>
  `(() => {
    const found = [...document.querySelectorAll("label")].find(({ textContent }) => textContent === ${
    JSON.stringify(label)
  })
    return found && (found.control.value = ${JSON.stringify(value)}, found.control.focus(), true)
  })()`

if (find() === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  describe("the page of components", () => {
    it.live(
      "draws every component, with hostile texts as text, and reads as a page without a picture",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const tab = yield* show(definitions([]), opening)
          yield* Effect.promise(async () => {
            await tab.untilInFrame("document.querySelectorAll('svg').length === 4")
            await picture(tab, "ui")
            expect(await tab.untilInFrame("document.querySelector('h1') && document.querySelectorAll('img').length"))
              .toBe(1)
            expect(await tab.untilInFrame("document.querySelector('img')?.naturalWidth")).toBe(1)
            // Charts are hidden from screen readers, which get a table.
            const figures = `[...document.querySelectorAll("figure")].map((figure) => [
              figure.querySelector("svg").getAttribute("aria-hidden"),
              [...figure.querySelectorAll("th")].slice(0, 4).map(({ textContent }) => textContent).join("|"),
              figure.querySelector("tbody tr").innerText.replaceAll(/\\s+/g, " ")
            ])`
            expect(await tab.untilInFrame(`document.querySelector("figure svg") && ${figures}`)).toEqual([
              ["true", "|2025|2026|January", "January 42 40"],
              ["true", "|Profit|January|February", "January -12000"],
              ["true", "|Guests|Day 1|Day 2", "Day 1 40"],
              ["true", "Part|Value|Green|Black", "Green 45"]
            ])
            const rows = `[...document.querySelectorAll("table:has(> caption)")].at(-1)?.innerText.split("\\n").at(-2)`
            expect(await tab.untilInFrame(rows)).toContain(shown)
            // Every control has a name.
            const names =
              "[...document.querySelectorAll('input, select, textarea')].map(({ labels }) => labels[0]?.innerText)"
            expect(await tab.untilInFrame(`document.querySelector("select") && ${names}`)).toEqual([
              "Search",
              "Kind",
              "Pots",
              "Day",
              "Note",
              "As a gift"
            ])
            expect(await tab.untilInFrame("document.querySelector('section')?.getAttribute('aria-labelledby')")).toBe(
              await tab.untilInFrame("document.querySelector('section h2')?.id")
            )
            // Nothing is wider than the page.
            await tab.send("Emulation.setDeviceMetricsOverride", {
              width: 360,
              height: 900,
              deviceScaleFactor: 1,
              mobile: false
            })
            const fits =
              "document.querySelector('h1') && document.documentElement.scrollWidth <= innerWidth && innerWidth < 400"
            expect(await tab.untilInFrame(fits)).toBe(true)
            const bars = "document.querySelector('svg')?.getAttribute('width')"
            expect(Number(await tab.untilInFrame(`Number(${bars}) < 340 && ${bars}`))).toBeGreaterThan(200)
          })
        })),
      120_000
    )

    it.live(
      "calls tools with the values of inputs, replaces the page, and keeps the focus",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const received: Array<unknown> = []
          const naming = { prefix: "shop", name: (name: string) => name === "show" ? name : `shop_${name}` }
          const tab = yield* show([McpServer.mount(naming, ...definitions(received))], opening)
          yield* Effect.promise(async () => {
            await tab.untilInFrame(click("Search"))
            await tab.untilInFrame(`${note} === "Check the marked fields."`)
            expect(await tab.untilInFrame("document.activeElement?.labels?.[0]?.innerText")).toBe("Search")
            await tab.untilInFrame(set("Pots", "12"))
            await tab.untilInFrame(set("Search", "nothing"))
            await tab.untilInFrame(click("Search"))
            await tab.untilInFrame("document.querySelector('.problem:not(:empty)')?.textContent === 'Enter 9 or less.'")
            await tab.untilInFrame(set("Pots", "9"))
            await tab.untilInFrame(click("Search"))
            await tab.untilInFrame(`${note} === ${JSON.stringify(`No tea is named ${shown}`)}`)
            await picture(tab, "ui-note")
            // Enter presses the primary button.
            await tab.untilInFrame(set("Search", "sencha"))
            await tab.untilInFrame(
              "document.querySelector('input') && (document.getElementById('form').requestSubmit(), true)"
            )
            await tab.untilInFrame(
              "document.querySelector('button.primary') && (document.querySelector('button.primary').click(), true)"
            )
            await tab.untilInFrame("document.querySelector('h1')?.textContent === 'sencha, page 1'")
            expect(await tab.untilInFrame("document.activeElement?.textContent")).toBe("Search")
            await tab.untilInFrame(click("Search"))
            await tab.untilInFrame("document.querySelector('h1')?.textContent === 'sencha, page 2'")
            // Buttons of a list have the same label, and the one that was pressed keeps the focus.
            const second =
              "[...document.querySelectorAll('button')].filter(({ textContent }) => textContent === 'Open')[1]"
            await tab.untilInFrame(`${second} && (${second}.click(), true)`)
            await tab.untilInFrame("document.querySelector('h1')?.textContent === 'sencha, page 8'")
            await tab.untilInFrame(
              `${second} === document.activeElement && document.activeElement.localName === "button"`
            )
            expect(received).toEqual([
              { query: "nothing", kind: "g", page: 1, pots: 9 },
              { query: "sencha", kind: "g", page: 1, pots: 9 },
              { query: "sencha", kind: "g", page: 2 },
              { query: "sencha", kind: "b", page: 8 }
            ])
            await tab.until("state.logs.length === 4")
            expect(await tab.evaluate("state.logs")).toEqual([
              `context: No tea is named ${hostile}`,
              "context: Page 1 of sencha",
              "context: Page 2 of sencha",
              "context: Page 8 of sencha"
            ])
          })
        })),
      120_000
    )

    it.live(
      "sends messages, opens links by the host, and shows why a call failed",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const tab = yield* show(definitions([]), opening)
          yield* Effect.promise(async () => {
            await tab.untilInFrame(set("Day", "2026-07-28"))
            await tab.untilInFrame(click("Explain"))
            await tab.untilInFrame(`${note} === "It is in the conversation."`)
            await tab.untilInFrame("document.querySelector('a') && (document.querySelector('a').click(), true)")
            await tab.until("state.logs.length === 2")
            expect(await tab.evaluate("state.logs")).toEqual([
              "message: Explain the sales\nKind: g\nDay: 2026-07-28\nAs a gift: yes",
              "open: https://shop.example/tea?a=1&b=2"
            ])
            await tab.untilInFrame(click("Delete everything"))
            await tab.untilInFrame("document.getElementById('note')?.className.includes('error')")
            expect(await tab.untilInFrame(note)).toContain("Missing key")
            await tab.untilInFrame("document.activeElement?.textContent === 'Delete everything'")
          })
        })),
      120_000
    )
  })
}
