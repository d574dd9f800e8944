/** `Ui`, `UiApp` and `GeneratedUi`: the trees, their bounds, and what clients get. */
import { describe, expect, it } from "@effect/vitest"
import * as AppHost from "@skein/apps/AppHost"
import * as GeneratedUi from "@skein/apps/GeneratedUi"
import * as Ui from "@skein/apps/Ui"
import * as UiApp from "@skein/apps/UiApp"
import * as UiMeta from "@skein/apps/UiMeta"
import * as Client from "@skein/client/Client"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

const key = "io.github.skein-mcp/ui"

const sell = UiApp.tool("sell", { visibility: ["app"], input: { tea: Schema.String, pots: Schema.Int } })
const sales = UiApp.tool("sales", { description: "Shows the sales of a year", input: { year: Schema.Int } })

const pageOf = (year: number) =>
  Ui.column([
    Ui.heading(`Sales of ${year}`),
    Ui.row([
      Ui.numberInput("pots", { label: "Pots", integer: true, min: 1 }),
      Ui.button("Sell", { tool: sell, arguments: { tea: "sencha" }, style: "primary" })
    ])
  ])

const definitions = [
  UiApp.layer(sales, ({ year }) => Effect.succeed({ text: `42 pots in ${year}`, ui: pageOf(year) })),
  UiApp.layer(
    sell,
    ({ pots, tea }) =>
      pots > 9
        ? Effect.fail({ message: "Sell nine pots at most" })
        : Effect.succeed({ text: `${pots} of ${tea} are sold` })
  )
]

const text = (result: kit.Json): string => result.content.map((block: kit.Json) => block.text).join("\n")

describe("components", () => {
  it("are plain JSON without undefined members", () => {
    expect(pageOf(2026)).toEqual({
      type: "column",
      children: [
        { type: "heading", content: "Sales of 2026" },
        {
          type: "row",
          children: [
            { type: "input", name: "pots", kind: "integer", label: "Pots", min: 1 },
            { type: "button", label: "Sell", tool: "sell", arguments: { tea: "sencha" }, style: "primary" }
          ]
        }
      ]
    })
    // @ts-expect-error: the name of a tea is a text
    expect(Ui.button("a", { tool: sell, arguments: { tea: 1 } }).arguments).toEqual({ tea: 1 })
    expect(Ui.text("a", { tone: undefined })).toStrictEqual({ type: "text", content: "a" })
    expect(Ui.button("a", { message: "b", inputs: [] })).toStrictEqual({
      type: "button",
      label: "a",
      message: "b",
      inputs: []
    })
    expect(Ui.image(new Uint8Array([1, 2, 3]), { mimeType: "image/png", alt: "" }).data).toBe("AQID")
    expect(Ui.textInput("a", { label: "A", format: "email" })).toStrictEqual({
      type: "input",
      name: "a",
      kind: "email",
      label: "A"
    })
  })

  it.effect("are what the schema accepts", () =>
    Effect.gen(function*() {
      const tree = Ui.column([
        pageOf(2026),
        Ui.grid([Ui.card([Ui.badge("New", { tone: "success" })], { title: "A" })], { columns: 3 }),
        Ui.table({ caption: "T", columns: ["a", "b"], rows: [["x", 1], [true, null]] }),
        Ui.code("const a = 1"),
        Ui.image("AQID", { mimeType: "image/webp", alt: "A" }),
        Ui.link("Shop", new URL("https://shop.example/")),
        Ui.bar({ title: "B", labels: ["a"], series: [{ name: "s", values: [1] }] }),
        Ui.line({ title: "L", labels: [], series: [] }),
        Ui.area({ title: "A", labels: ["a", "b"], series: [{ name: "s", values: [-1, 2.5] }] }),
        Ui.pie({ title: "P", slices: [{ label: "a", value: 0 }] }),
        Ui.textInput("t", { label: "T", required: true, placeholder: "p", min: 1, max: 9, initial: "x" }),
        Ui.textArea("m", { label: "M" }),
        Ui.dateInput("d", { label: "D", initial: "2026-07-28" }),
        Ui.checkbox("c", { label: "C", initial: false }),
        Ui.select("s", { label: "S", options: [{ value: "a" }, { value: "b", label: "B" }] }),
        Ui.button("Ask", { message: "Why?", style: "danger", inputs: ["t"] })
      ])
      expect(yield* Ui.check(JSON.parse(JSON.stringify(tree)))).toEqual(tree)
    }))

  it.effect("are refused with the path of each fault", () =>
    Effect.gen(function*() {
      const input = { type: "input", name: "a", kind: "text", label: "A" }
      for (
        const [tree, ...parts] of [
          ["text", "The tree is not an object"],
          [{ type: "columns" }, "The tree is invalid: Expected a component, whose type is column, row, grid, card,"],
          [
            { type: "column", children: [{ type: "text", text: "a" }, { type: "row", children: [{ type: "txt" }] }] },
            "Missing key\n  at [\"children\"][0][\"content\"]",
            "at [\"children\"][1][\"children\"][0]"
          ],
          [
            { type: "link", label: "a", url: "javascript:alert(1)" },
            "Expected a URL of https: or http:\n  at [\"url\"]"
          ],
          [{ type: "image", alt: "", data: "AQID", mimeType: "image/svg+xml" }, "at [\"mimeType\"]"],
          [{ type: "image", alt: "", data: "\"><", mimeType: "image/png" }, "Expected base64\n  at [\"data\"]"],
          [
            { type: "table", columns: ["a", "b"], rows: [[1, 2], [1]] },
            "Expected 2 cells, one for each column\n  at [\"rows\"][1]"
          ],
          [
            { type: "bar", title: "", labels: ["a"], series: [{ name: "", values: [] }] },
            "Expected 1 numbers, one for each label\n  at [\"series\"][0][\"values\"]"
          ],
          [{ type: "grid", columns: 7, children: [] }, "at [\"columns\"]"],
          [{ type: "button", label: "a" }, "Expected either a tool or a message"],
          [{ type: "button", label: "a", tool: "a", message: "b" }, "Expected either a tool or a message"],
          [{ type: "column", children: [input, input] }, "tree.children[1]: another input has the name \"a\""],
          [{ ...input, kind: "select" }, "tree: a select needs options"],
          [
            { type: "column", children: [input, { type: "button", label: "b", message: "c", inputs: ["a", "d"] }] },
            "tree.children[1].inputs: there is no input \"d\""
          ]
        ] as ReadonlyArray<readonly [unknown, ...ReadonlyArray<string>]>
      ) {
        const error = yield* Effect.flip(Ui.check(tree))
        for (const part of parts) expect(error.message).toContain(part)
        expect(error.reason._tag).toBe("InvalidTree")
      }
    }))

  it.effect("are bounded in depth, number, values and characters, at the bound and not before", () =>
    Effect.gen(function*() {
      const deep = (depth: number): Ui.Node => depth === 1 ? Ui.text("") : Ui.column([deep(depth - 1)])
      const wide = (count: number) => Ui.column(Array.from({ length: count - 1 }, () => Ui.text("")))
      const cells = (rows: number) => Ui.table({ columns: ["a"], rows: Array.from({ length: rows }, () => [1]) })
      // A row and its cell are two values, the column another one.
      for (
        const [bound, most, treeOf] of [
          ["16 components, one inside another", 16, deep],
          ["1000 components", 1_000, wide],
          ["20000 rows, cells, points, options and arguments", 9_999, cells],
          ["500000 characters", 500_000, (count: number) => Ui.text("x".repeat(count - "typetextcontent".length))]
        ] as const
      ) {
        yield* Ui.check(treeOf(most))
        const error = yield* Effect.flip(Ui.check(treeOf(most + 1)))
        expect([error.reason._tag, error.message]).toEqual([
          "TreeTooLarge",
          `The tree has more than ${bound}. Show less, or in several calls`
        ])
      }
    }))

  it.effect("of any depth are refused without an overflow of the stack", () =>
    Effect.gen(function*() {
      let tree: unknown = {}
      for (let depth = 0; depth < 200_000; depth++) tree = { type: "column", children: [tree] }
      expect((yield* Effect.flip(Ui.check(tree))).message).toContain("more than 16 components, one inside another")
      let nested: unknown = 1
      for (let depth = 0; depth < 200_000; depth++) nested = [nested]
      const button = { type: "button", label: "a", tool: "b", arguments: { nested } }
      expect((yield* Effect.flip(Ui.check(button))).message).toBe(
        "A member of a component is nested deeper than 10 levels"
      )
      const levels = (count: number): Schema.Json => count === 0 ? 1 : [levels(count - 1)]
      yield* Ui.check({ ...button, arguments: { nested: levels(9) } })
      expect((yield* Effect.flip(Ui.check({ ...button, arguments: { nested: levels(10) } }))).reason._tag).toBe(
        "TreeTooLarge"
      )
      // A model may send such a tree too.
      const client = yield* kit.connect({}, [GeneratedUi.layer()])
      let sent: unknown = {}
      for (let depth = 0; depth < 2_000; depth++) sent = { type: "column", children: [sent] }
      const refused = yield* client.callTool("show_page", { tree: sent })
      expect(refused.isError).toBe(true)
    }))
})

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect(`${revision} · gives the tree to the page, and the text to the model`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision }, definitions)
        const tools = yield* client.listTools()
        expect(tools.map((tool) => [tool.name, UiMeta.isForModel(tool), UiMeta.ofTool(tool).resourceUri])).toEqual([
          ["sales", true, "ui://skein/ui"],
          ["sell", false, "ui://skein/ui"]
        ])
        expect(Object.keys(tools[0]!).toSorted()).toEqual(["_meta", "description", "inputSchema", "name"])
        const shown = yield* client.callTool("sales", { year: 2026 })
        expect([shown.content, shown._meta?.[key]]).toEqual([
          [{ type: "text", text: "42 pots in 2026" }],
          pageOf(2026)
        ])
        const sold = yield* client.callTool("sell", { tea: "sencha", pots: 2 })
        expect([text(sold), sold._meta?.[key]]).toEqual(["2 of sencha are sold", undefined])
        const refused = yield* client.callTool("sell", { tea: "sencha", pots: 10 })
        expect([refused.isError, text(refused)]).toEqual([true, "Sell nine pots at most"])
      }))

    it.effect(`${revision} · gives a client without pages the text only`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision, extensions: {} }, [...definitions, GeneratedUi.layer()])
        expect((yield* client.listTools()).map(({ name }) => name)).toEqual(["sales"])
        const result = yield* client.callTool("sales", { year: 2026 })
        expect([text(result), result._meta?.[key]]).toEqual(["42 pots in 2026", undefined])
      }))

    it.effect(`${revision} · shows the tree of a model, or names what to correct`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision }, [
          ...definitions,
          GeneratedUi.layer(),
          GeneratedUi.layer({ name: "report", description: "Shows a report.", allowTools: [sell] })
        ])
        const [show, report] = (yield* client.listTools()).slice(2)
        expect(show!.description).toContain("Buttons cannot call tools.")
        expect(report!.description).toMatch(/^Shows a report\. .* A button may call these tools: sell\./)
        expect(JSON.stringify(show!.inputSchema).length).toBeLessThan(9_000)
        const ask = Ui.column([Ui.checkbox("a", { label: "A" }), Ui.button("Go", { message: "Go on" })])
        const shown = yield* client.callTool("show_page", { tree: ask })
        expect([text(shown), shown._meta?.[key]]).toEqual([
          "The user sees the page. If it has buttons, wait for the user",
          ask
        ])
        const wrong = yield* client.callTool("show_page", { tree: { type: "row", children: [{ type: "text" }] } })
        expect(wrong.isError).toBe(true)
        expect(text(wrong)).toContain("Missing key\n  at [\"tree\"][\"children\"][0][\"content\"]")
        const tree = Ui.column([Ui.button("Sell", { tool: sell, arguments: { tea: "a", pots: 1 } })])
        const denied = yield* client.callTool("show_page", { tree })
        expect(text(denied)).toBe("tree.children[0].tool: buttons may not call \"sell\". Use a message instead")
        expect((yield* client.callTool("report", { tree }))._meta?.[key]).toEqual(tree)
        const other = yield* client.callTool("report", { tree: Ui.button("Show", { tool: sales }) })
        expect(text(other)).toBe("tree.tool: buttons may not call \"sales\". Use one of \"sell\", or a message")
        const large = yield* client.callTool("report", { tree: Ui.column(Array(1_000).fill(Ui.text("a"))) })
        expect(text(large)).toBe("The tree has more than 1000 components. Show less, or in several calls")
      }))
  })
}

describe("a tool with a page of components", () => {
  it.effect("fails for a tree that exceeds its bounds, or has a value that its type does not show", () =>
    Effect.gen(function*() {
      const failure = (ui: Ui.Node) =>
        Effect.flatMap(
          kit.connect({}, [UiApp.layer(UiApp.tool("one"), () => Effect.succeed({ text: "", ui }))]),
          (client) => Effect.map(client.callTool("one"), text)
        )
      expect(yield* failure(Ui.column(Array(1_000).fill(Ui.text("a"))))).toContain("1000 components")
      expect(yield* failure(Ui.link("a", "javascript:alert(1)"))).toContain("Expected a URL of https: or http:")
    }))

  it.live("is handled by an async function", () =>
    Effect.gen(function*() {
      const server = new AsyncServer({ name: "shop", version: "1.0.0" }).use(
        UiApp.async(sales, async ({ year }) => ({ text: `${year}`, ui: pageOf(year) }))
      )
      const client = yield* Client.make(server.transport(), { extensions: AppHost.extensions })
      expect((yield* client.callTool("sales", { year: 3 }))._meta?.[key]).toEqual(pageOf(3))
    }))
})
