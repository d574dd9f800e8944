/** Tools with pages in a mounted part, and renamed ones. */
import { describe, expect, it } from "@effect/vitest"
import * as App from "@skein/apps/App"
import * as AppHost from "@skein/apps/AppHost"
import * as Approval from "@skein/apps/Approval"
import * as UiMeta from "@skein/apps/UiMeta"
import * as View from "@skein/apps/View"
import * as MetaKey from "@skein/protocol/MetaKey"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Transform from "@skein/server/Transform"
import * as Effect from "effect/Effect"
import type { MessageEvent } from "../src/shared/dom.ts"
import * as kit from "./kit.ts"

const named = (tool: UiMeta.WithMeta) => tool._meta?.[MetaKey.toolNames]

const linksOf = (tools: ReadonlyArray<UiMeta.WithMeta & { readonly name: string }>) =>
  tools.map((tool) => [tool.name, UiMeta.ofTool(tool).resourceUri, tool._meta?.[UiMeta.deprecatedKey]])

const approval = (name: string) =>
  Approval.layer(Approval.make(name), {
    ask: () => Effect.succeed({ title: `${name}?` }),
    handle: ({ approved }) => Effect.succeed(`${name}: ${approved}`)
  })

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect(`${revision} · links the tools of a mounted part to its page, and names them for the page`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision }, [McpServer.mount("tea", ...kit.definitions)])
        const tools = yield* client.listTools()
        const page = "ui://tea/shop/sales"
        expect(linksOf(tools)).toEqual([
          ["tea_sales", page, page],
          ["tea_add_sale", page, page],
          ["tea_secret_of_model", page, page],
          ["tea_slow", undefined, undefined]
        ])
        const names = { sales: "tea_sales", add_sale: "tea_add_sale", secret_of_model: "tea_secret_of_model" }
        expect(tools.map(named)).toEqual([names, names, names, undefined])
        expect(tools.map(UiMeta.isForModel)).toEqual([true, false, true, true])
        const session = yield* AppHost.open(client, tools[0]!)
        expect([session.uri, session.html]).toEqual([page, "<!doctype html><p>Sales</p>"])
        const result = yield* client.callTool("tea_sales", { year: 2026 })
        expect([named(result), result.structuredContent]).toEqual([names, { months: [1, 2, 2026] }])
      }))

    it.effect(`${revision} · keeps links and results as they are where no name changes`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision }, [McpServer.mount(undefined, ...kit.definitions)])
        const tools = yield* client.listTools()
        expect(linksOf(tools)[0]).toEqual(["sales", "ui://shop/sales", "ui://shop/sales"])
        expect([...tools, yield* client.callTool("sales", { year: 2026 })].map(named)).toEqual(Array(5).fill(undefined))
      }))

    it.effect(`${revision} · follows parts of parts, and renamed tools`, () =>
      Effect.gen(function*() {
        const renamed = Transform.tools({ change: { add_sale: { name: "sell" } } }, ...kit.definitions)
        const client = yield* kit.connect({ revision }, [McpServer.mount("a", McpServer.mount("b", renamed))])
        const tools = yield* client.listTools()
        expect(linksOf(tools).slice(0, 2)).toEqual([
          ["a_b_sales", "ui://a/b/shop/sales", "ui://a/b/shop/sales"],
          ["a_b_sell", "ui://a/b/shop/sales", "ui://a/b/shop/sales"]
        ])
        const names = { sales: "a_b_sales", add_sale: "a_b_sell", secret_of_model: "a_b_secret_of_model" }
        expect(named(tools[0]!)).toEqual(names)
        expect(named(yield* client.callTool("a_b_sell", { amount: 3 }))).toEqual(names)
        const { contents } = yield* client.readResource("ui://a/b/shop/sales")
        expect(contents[0]!.uri).toBe("ui://a/b/shop/sales")
      }))

    it.effect(`${revision} · has ready apps in several parts, each with its page`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision }, [
          approval("deploy"),
          McpServer.mount("a", approval("deploy")),
          McpServer.mount("b", approval("deploy"), approval("remove"))
        ])
        expect(linksOf(yield* client.listTools()).map(([name, uri]) => `${name} ${uri}`)).toEqual([
          "deploy ui://skein/approval",
          "deploy_answer ui://skein/approval",
          "a_deploy ui://a/skein/approval",
          "a_deploy_answer ui://a/skein/approval",
          "b_deploy ui://b/skein/approval",
          "b_deploy_answer ui://b/skein/approval",
          "b_remove ui://b/skein/approval",
          "b_remove_answer ui://b/skein/approval"
        ])
        const asked = yield* client.callTool("b_remove")
        const { token, tool } = asked._meta!["io.github.skein-mcp/question"] as kit.Json
        const outside = (named(asked) as kit.Json)[tool]
        expect([tool, outside]).toEqual(["remove_answer", "b_remove_answer"])
        const answered = yield* client.callTool(outside, { token, answer: true })
        expect(answered.content).toMatchObject([{ text: "remove: true" }])
      }))

    it.effect(`${revision} · tells a client without pages nothing of them`, () =>
      Effect.gen(function*() {
        const client = yield* kit.connect({ revision, extensions: {} }, [McpServer.mount("tea", ...kit.definitions)])
        const tools = yield* client.listTools()
        expect(tools.map(({ _meta, name }) => [name, _meta])).toEqual([
          ["tea_sales", undefined],
          ["tea_secret_of_model", undefined],
          ["tea_slow", undefined]
        ])
      }))
  })
}

it.effect("keeps other metadata of a tool, of its link and of its results", () =>
  Effect.gen(function*() {
    const tool = Tool.make("draw", {
      _meta: { "example.com/a": 1, ui: { resourceUri: "ui://shop/sales", visibility: ["app"], other: true } }
    })
    const odd = Tool.make("odd", { _meta: { ui: "page", "ui/resourceUri": 7 } })
    const page = App.make("ui://shop/sales", { html: "<p>" })
    const client = yield* kit.connect({}, [
      McpServer.mount(
        "tea",
        page.layer,
        Tool.layer(tool, () => Effect.succeed(Tool.result({ content: "drawn", _meta: { "example.com/b": 2 } }))),
        Tool.layer(odd, () => Effect.succeed("odd"))
      )
    ])
    const names = { draw: "tea_draw" }
    expect((yield* client.listTools()).map(({ _meta }) => _meta)).toEqual([
      {
        "example.com/a": 1,
        ui: { resourceUri: "ui://tea/shop/sales", visibility: ["app"], other: true },
        [MetaKey.toolNames]: names
      },
      { ui: "page", "ui/resourceUri": 7 }
    ])
    expect((yield* client.callTool("tea_draw"))._meta).toMatchObject({
      "example.com/b": 2,
      [MetaKey.toolNames]: names
    })
  }))

/** A page in a window of this process, and the calls that its host receives. */
const openPage = async (toolInfo: kit.Json) => {
  const listeners = new Set<(event: MessageEvent) => void>()
  const posted: Array<kit.Json> = []
  const answer = (message: kit.Json) => {
    for (const listener of listeners) listener({ data: message, origin: "https://host.example", source: parent })
  }
  const parent = {
    postMessage: (message: kit.Json) => {
      posted.push(message)
      if (message.id === undefined) return
      const result = message.method === "ui/initialize"
        ? { protocolVersion: "2026-01-26", hostCapabilities: { serverTools: {} }, hostContext: { toolInfo } }
        : { content: [] }
      queueMicrotask(() => answer({ jsonrpc: "2.0", id: message.id, result }))
    }
  }
  const before = Object.getOwnPropertyDescriptors(globalThis)
  Object.assign(globalThis, {
    parent,
    location: { origin: "https://page.example" },
    document: { documentElement: { style: {}, dataset: {} } },
    addEventListener: (_: string, listener: never) => void listeners.add(listener),
    removeEventListener: (_: string, listener: never) => void listeners.delete(listener)
  })
  const view = View.make({ name: "page", version: "1", autoResize: false, applyStyles: false })
  await view.connect()
  return {
    view,
    answer,
    calls: () => posted.filter(({ method }) => method === "tools/call").map(({ params }) => params.name),
    close: () => {
      view.close()
      for (const name of ["parent", "location", "document", "addEventListener", "removeEventListener"]) {
        const own = before[name]
        if (own === undefined) Reflect.deleteProperty(globalThis, name)
        else Object.defineProperty(globalThis, name, own)
      }
    }
  }
}

describe("a page of a mounted part", () => {
  it("calls tools by the names in toolInfo, and by those of the result", async () => {
    const page = await openPage({
      tool: { name: "a", _meta: { [MetaKey.toolNames]: { add_sale: "tea_add_sale", bad: 1 } } }
    })
    try {
      const call = (name: string) => page.view.call(name, {} as never)
      await call("add_sale")
      await call("bad")
      await call("remove")
      const result = { content: [], _meta: { [MetaKey.toolNames]: { remove: "tea_remove" } } }
      page.answer({ jsonrpc: "2.0", method: "ui/notifications/tool-result", params: result })
      await call("remove")
      expect(page.calls()).toEqual(["tea_add_sale", "bad", "remove", "tea_remove"])
    } finally {
      page.close()
    }
  })
})
