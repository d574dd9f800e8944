import { assert, describe, expect, expectTypeOf, it } from "@effect/vitest"
import * as App from "@skein/apps/App"
import type * as View from "@skein/apps/View"
import type * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

const ui = {
  csp: { connectDomains: ["https://api.example.com"] },
  permissions: { clipboardWrite: {} },
  prefersBorder: true
}

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect(`${revision} · links tools to their page, with the current and the deprecated key`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision })
        assert.deepNestedPropertyVal(client.capabilities, "extensions.io\\.modelcontextprotocol/ui", {})
        const tools = new Map((yield* client.listTools()).map((tool) => [tool.name, tool._meta]))
        assert.deepStrictEqual([...tools.keys()], ["sales", "add_sale", "secret_of_model", "slow"])
        const link = { resourceUri: "ui://shop/sales" }
        assert.deepStrictEqual<unknown>(tools.get("sales"), { ui: link, "ui/resourceUri": link.resourceUri })
        assert.deepStrictEqual<unknown>(tools.get("add_sale"), {
          ui: { ...link, visibility: ["app"] },
          "ui/resourceUri": link.resourceUri
        })
        assert.isUndefined(tools.get("slow"))
      }))

    it.effect(`${revision} · declares origins and permissions in resources/list and in the contents`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision })
        const listed = (yield* client.listResources()).find(({ uri }) => uri === "ui://shop/sales")
        expect(listed).toMatchObject({ title: "Sales", mimeType: "text/html;profile=mcp-app", _meta: { ui } })
        assert.deepStrictEqual<unknown>((yield* client.readResource("ui://shop/sales")).contents, [{
          uri: "ui://shop/sales",
          mimeType: "text/html;profile=mcp-app",
          text: "<!doctype html><p>Sales</p>",
          _meta: { ui }
        }])
      }))

    it.effect(`${revision} · a client without the extension gets plain tools, and neither pages nor tools for pages`, () =>
      Effect.gen(function*() {
        for (const extensions of [undefined, { "io.modelcontextprotocol/ui": { mimeTypes: ["text/other"] } }]) {
          const client = yield* kit.connect({ revision, extensions })
          const tools = yield* client.listTools()
          assert.deepStrictEqual(tools.map(({ name }) => name), ["sales", "secret_of_model", "slow"])
          for (const tool of tools) assert.isUndefined(tool._meta)
          assert.deepStrictEqual((yield* client.listResources()).map(({ uri }) => uri), ["shop://menu"])
          const result = yield* client.callTool("sales", { year: 2026 })
          assert.deepNestedPropertyVal(result, "content", [{ type: "text", text: "3 months of 2026" }])
          assert.deepStrictEqual<unknown>(result.structuredContent, { months: [1, 2, 2026] })
          const hidden = yield* Effect.flip(client.callTool("add_sale", { amount: 1 }))
          assert.include(hidden.message, "Unknown tool: add_sale")
          assert.isTrue(Exit.isFailure(yield* Effect.exit(client.readResource("ui://shop/sales"))))
        }
      }))
  })
}

describe("a page", () => {
  it.effect("is registered once for all of its tools, and again by another server", () =>
    Effect.gen(function*() {
      for (let server = 0; server < 2; server++) {
        const client = yield* kit.connect()
        assert.lengthOf((yield* client.listResources()).filter(({ uri }) => uri.startsWith("ui://")), 1)
      }
    }))

  it.effect("and its link are for every client with requiresExtension: false", () =>
    Effect.gen(function*() {
      const app = App.make("ui://open", { html: "<p>", requiresExtension: false })
      const tool = App.tool("open", { app, visibility: ["app"] })
      const client = yield* kit.connect({ extensions: {} }, [App.layer(tool, () => Effect.succeed("open"))])
      const [listed] = yield* client.listTools()
      assert.deepNestedPropertyVal(listed, "_meta.ui.resourceUri", "ui://open")
      assert.strictEqual((yield* client.readResource("ui://open")).contents[0]?.uri, "ui://open")
    }))

  it.effect("is made for each read, with the services of its server", () =>
    Effect.gen(function*() {
      let reads = 0
      const app = App.make("ui://counted", { html: Effect.sync(() => `<p>${++reads}`) })
      const client = yield* kit.connect({}, [App.layer(App.tool("count", { app }), () => Effect.succeed("done"))])
      for (const text of ["<p>1", "<p>2"]) {
        expect((yield* client.readResource("ui://counted", { cache: "refresh" })).contents[0]).toMatchObject({ text })
      }
    }))

  it.effect("keeps other metadata of its tools and of itself", () =>
    Effect.gen(function*() {
      const app = App.make("ui://meta", { html: "", _meta: { "com.example/a": 1 }, domain: "a.example" })
      const tool = App.tool("meta", { app, _meta: { "com.example/b": 2 }, title: "Meta" })
      const all = [App.async(tool, () => 3)]
      const rich = yield* kit.connect({}, all)
      assert.deepStrictEqual<unknown>((yield* rich.listResources())[0]?._meta, {
        "com.example/a": 1,
        ui: { domain: "a.example" }
      })
      const plain = yield* kit.connect({ extensions: {} }, all)
      expect(yield* plain.listTools()).toEqual([
        { name: "meta", title: "Meta", inputSchema: expect.anything(), _meta: { "com.example/b": 2 } }
      ])
      expect((yield* plain.callTool("meta")).content).toEqual([{ type: "text", text: "3" }])
    }))

  it.effect("fails the server if its URI is not of ui://, or an origin is not one", () =>
    Effect.gen(function*() {
      const failure = (app: App.App) =>
        Effect.flip(Effect.scoped(kit.serve(app.layer))) as unknown as Effect.Effect<unknown>
      expect(yield* failure(App.make("https://a.example/", { html: "" }))).toMatchObject({
        reason: { _tag: "InvalidUri" },
        message: "The page \"https://a.example/\" must have a URI of ui://"
      })
      for (
        const source of ["*", "'unsafe-eval'", "https://a.example; script-src *", "data:", "https://a.example/a?b"]
      ) {
        expect(yield* failure(App.make("ui://a", { html: "", csp: { resourceDomains: [source] } }))).toMatchObject({
          reason: { _tag: "InvalidValue" },
          message: expect.stringContaining("in csp.resourceDomains is not an origin")
        })
      }
    }).pipe(Effect.scoped))

  it.effect("reports to a handler whether the client shows it", () =>
    Effect.gen(function*() {
      const app = App.make("ui://a", { html: "" })
      const all = [App.layer(App.tool("a", { app }), () => Effect.map(App.isSupported, String))]
      for (const [extensions, text] of [[undefined, "true"], [{}, "false"]] as const) {
        const client = yield* kit.connect(extensions === undefined ? {} : { extensions }, all)
        expect((yield* client.callTool("a")).content).toEqual([{ type: "text", text }])
      }
    }))
})

describe("the types", () => {
  it("of a page are the JSON of the schemas", () => {
    const app = App.make("ui://a", { html: "" })
    const tool = App.tool("when", {
      app,
      input: { at: Schema.DateTimeUtcFromString, note: Schema.optionalKey(Schema.String) },
      output: Schema.Struct({ total: Schema.FiniteFromString })
    })
    expectTypeOf<View.ArgumentsOf<typeof tool>>().toEqualTypeOf<{ readonly at: string; readonly note?: string }>()
    expectTypeOf<View.StructuredOf<typeof tool>>().toEqualTypeOf<{ readonly total: string }>()
    expectTypeOf<View.StructuredOf<typeof kit.onlyModel>>().toEqualTypeOf<undefined>()
    type Sales = View.View<typeof kit.sales, typeof kit.addSale>
    expectTypeOf<Parameters<Sales["call"]>[0]>().toEqualTypeOf<"add_sale">()
    expectTypeOf<View.Events<typeof kit.sales>["input"]>().toEqualTypeOf<{ readonly year: number }>()
    // A tool of an app is a tool.
    const asTool: Tool.Tool<"when", any, { readonly total: number }> = tool
    expect(asTool.name).toBe("when")
  })
})
