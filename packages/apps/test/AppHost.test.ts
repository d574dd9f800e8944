import { assert, describe, expect, it } from "@effect/vitest"
import * as App from "@skein/apps/App"
import * as AppHost from "@skein/apps/AppHost"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"

const open = (
  options: AppHost.Options = {},
  all: Parameters<typeof kit.connect>[1] = kit.definitions,
  name = "sales"
) =>
  Effect.gen(function*() {
    const client = yield* kit.connect({}, all)
    const tool = (yield* client.listTools()).find((one) => one.name === name)!
    const session = yield* AppHost.open(client, tool, options)
    return { client, session, ...yield* kit.play(session) }
  })

const methods = (received: ReadonlyArray<kit.Json>) => received.flatMap(({ method }) => method ?? [])

describe("a session", () => {
  it.effect("2026-01-26 · answers ui/initialize with what the host supports, and with its context", () =>
    Effect.gen(function*() {
      const { start } = yield* open({
        hostInfo: { name: "chat", version: "2.0.0" },
        context: { theme: "dark", locale: "de" },
        allowPermission: () => true,
        openLink: () => Effect.void
      })
      expect(yield* start()).toEqual({
        protocolVersion: "2026-01-26",
        hostInfo: { name: "chat", version: "2.0.0" },
        hostCapabilities: {
          serverTools: {},
          serverResources: {},
          openLinks: {},
          sandbox: { csp: { connectDomains: ["https://api.example.com"] }, permissions: { clipboardWrite: {} } }
        },
        hostContext: { theme: "dark", locale: "de", toolInfo: { tool: expect.objectContaining({ name: "sales" }) } }
      })
    }))

  it.effect("2026-01-26 · MUST NOT send anything before initialized, and sends the arguments before the result", () =>
    Effect.gen(function*() {
      const { notify, received, request, session } = yield* open()
      yield* session.partialInput({ year: 20 })
      yield* session.call({ year: 2026 })
      yield* session.setContext({ theme: "light" })
      yield* request("ui/initialize", { appCapabilities: {} })
      assert.lengthOf(received, 1)
      // The context changed between the answer and the notification.
      yield* session.setContext({ theme: "dark" })
      notify("ui/notifications/initialized")
      yield* session.initialized
      assert.deepStrictEqual(methods(received), [
        "ui/notifications/host-context-changed",
        "ui/notifications/tool-input",
        "ui/notifications/tool-result"
      ])
      expect(received.slice(1)).toMatchObject([
        { params: { theme: "dark" } },
        { params: { arguments: { year: 2026 } } },
        { params: { structuredContent: { months: [1, 2, 2026] }, content: [{ text: "3 months of 2026" }] } }
      ])
      // The arguments are sent once, and incomplete ones never after them.
      yield* session.input({ year: 1 })
      yield* session.partialInput({ year: 1 })
      assert.lengthOf(received, 4)
    }))

  it.effect("gives a page that is loaded again the arguments and the result again", () =>
    Effect.gen(function*() {
      const { received, session, start } = yield* open()
      yield* start()
      yield* session.result({ content: [] })
      yield* start()
      assert.deepStrictEqual(methods(received), [
        "ui/notifications/tool-input",
        "ui/notifications/tool-result",
        "ui/notifications/tool-input",
        "ui/notifications/tool-result"
      ])
    }))

  it.effect("2026-01-26 · MUST notify the page of a call that is cancelled or fails", () =>
    Effect.gen(function*() {
      const app = App.make("ui://slow", { html: "" })
      const all = [App.layer(App.tool("slow", { app }), () => Effect.never)]
      const { received, session, start } = yield* open({}, all, "slow")
      yield* start()
      const fiber = yield* Effect.forkChild(session.call({}), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      expect(received.at(-1)).toMatchObject({
        method: "ui/notifications/tool-cancelled",
        params: { reason: "the call was cancelled" }
      })
    }))

  it.effect("2026-01-26 · MUST reject calls of tools that are not for apps, and of tools of no server", () =>
    Effect.gen(function*() {
      const { request, start } = yield* open()
      yield* start()
      const call = (name: unknown, args: object = {}) => request("tools/call", { name, arguments: args })
      expect((yield* call("add_sale", { amount: 7 })).result).toMatchObject({ structuredContent: { months: [7] } })
      expect((yield* call("sales", { year: -1 })).result).toMatchObject({ isError: true })
      expect((yield* call("secret_of_model")).error).toEqual({
        code: -32_000,
        message: "The tool \"secret_of_model\" is not for apps: its visibility lacks \"app\""
      })
      expect((yield* call("other")).error).toMatchObject({ code: -32_602, message: "Unknown tool: other" })
      expect((yield* call(1)).error).toMatchObject({ code: -32_602 })
      expect((yield* request("tools/list")).error).toMatchObject({ code: -32_601 })
      expect((yield* request("resources/read", { uri: "shop://menu" })).result.contents[0].text).toBe("# Tea")
      expect((yield* request("resources/read", { uri: "shop://none" })).error.code).toBeLessThan(-32_000)
      expect((yield* request("ping")).result).toEqual({})
    }))

  it.effect("lists the tools again for an unknown one, once in two seconds", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect()
      const tool = (yield* client.listTools())[0]!
      let lists = 0
      const { callTool, listResources, readResource } = client
      const listTools = () => Effect.tap(client.listTools(), () => Effect.sync(() => lists++))
      const counted = { callTool, listResources, readResource, listTools } as typeof client
      const { request, start } = yield* kit.play(yield* AppHost.open(counted, tool))
      yield* start()
      for (let at = 0; at < 10; at++) yield* request("tools/call", { name: `unknown ${at}` })
      assert.strictEqual(lists, 1)
      yield* TestClock.adjust("2 seconds")
      yield* request("tools/call", { name: "unknown" })
      assert.strictEqual(lists, 2)
    }))

  it.effect("asks the host before a call, and the page receives a refusal", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const { request, start } = yield* open({
        approveCall: ({ arguments: args, tool }) => {
          asked.push([tool.name, args])
          return asked.length === 1 ? Effect.succeed(false) : Effect.fail({ message: "The user is away" })
        }
      })
      yield* start()
      const refused = yield* request("tools/call", { name: "add_sale", arguments: { amount: 1 } })
      expect(refused.error.message).toBe("The call of \"add_sale\" was not approved")
      const away = yield* request("tools/call", { name: "add_sale" })
      expect(away.error).toEqual({ code: -32_000, message: "The user is away" })
      assert.deepStrictEqual(asked, [["add_sale", { amount: 1 }], ["add_sale", {}]])
    }))

  it.effect("passes links of http and https, messages and context to the host, and refuses malformed ones", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const see = (value: unknown) => Effect.sync(() => void seen.push(value))
      const { notify, request, start } = yield* open({
        openLink: (url) => see(url.href),
        message: see,
        updateModelContext: see,
        log: see
      })
      yield* start()
      const block = { type: "text", text: "hi" }
      expect((yield* request("ui/open-link", { url: "https://a.example" })).result).toEqual({})
      // The specification has one block, and SDKs a list.
      yield* request("ui/message", { role: "user", content: block })
      yield* request("ui/message", { role: "user", content: [block] })
      yield* request("ui/update-model-context", { structuredContent: { a: 1 } })
      notify("notifications/message", { level: "info", data: { b: 2 } })
      assert.deepStrictEqual(seen, [
        "https://a.example/",
        { role: "user", content: [block] },
        { role: "user", content: [block] },
        { structuredContent: { a: 1 } },
        { level: "info", data: { b: 2 } }
      ])
      for (
        const [method, params] of [
          ["ui/open-link", { url: "javascript:alert(1)" }],
          ["ui/open-link", { url: "file:///etc/passwd" }],
          ["ui/open-link", {}],
          ["ui/message", { role: "assistant", content: [block] }],
          ["ui/message", { role: "user", content: [{ type: "text" }] }],
          ["ui/update-model-context", { content: "text" }],
          ["ui/update-model-context", { structuredContent: [] }]
        ] as const
      ) assert.strictEqual((yield* request(method, params)).error?.code, -32_602, method)
      assert.lengthOf(seen, 5)
    }))

  it.effect("2.0.4 · passes files to the host, and refuses contents that are not files", () =>
    Effect.gen(function*() {
      const saved: Array<unknown> = []
      const { request, start } = yield* open({
        downloadFile: (contents) =>
          saved.length > 0
            ? Effect.fail({ message: "The user declined" })
            : Effect.sync(() => void saved.push(contents))
      })
      expect((yield* start()).hostCapabilities).toMatchObject({ downloadFile: {} })
      const contents = [
        { type: "resource", resource: { uri: "file:///sales.csv", mimeType: "text/csv", text: "1,2" } },
        { type: "resource_link", uri: "https://api.example.com/q4.pdf", name: "Q4" }
      ]
      expect((yield* request("ui/download-file", { contents })).result).toEqual({})
      expect(saved).toEqual([contents])
      expect((yield* request("ui/download-file", { contents })).error).toEqual({
        code: -32_000,
        message: "The user declined"
      })
      for (const wrong of [undefined, [], [{ type: "text", text: "a" }], [{ type: "resource_link" }], "file"]) {
        expect((yield* request("ui/download-file", { contents: wrong })).error?.code).toBe(-32_602)
      }
      expect(saved).toHaveLength(1)
    }))

  it.effect("2.0.4 · passes sampling requests to the host, with tools if it takes them", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const answer = { role: "assistant", content: { type: "text", text: "Short" }, model: "m" } as const
      const sample: AppHost.Actions["sample"] = (request) => Effect.sync(() => (asked.push(request), answer))
      const text = (role: string) => ({ role, content: { type: "text", text: "Summarize" } })
      const params = { messages: [text("user")], maxTokens: 100 }
      const tools = [{ name: "t", inputSchema: { type: "object" } }]
      const plain = yield* open({ sample })
      expect((yield* plain.start()).hostCapabilities.sampling).toEqual({})
      expect((yield* plain.request("sampling/createMessage", params)).result).toEqual(answer)
      expect((yield* plain.request("sampling/createMessage", { ...params, tools })).error.code).toBe(-32_602)
      for (const wrong of [{}, { ...params, maxTokens: "1" }, { ...params, messages: [text("system")] }]) {
        expect((yield* plain.request("sampling/createMessage", wrong)).error.code).toBe(-32_602)
      }
      expect(asked).toEqual([params])
      const withTools = yield* open({ sample, sampleWithTools: true })
      expect((yield* withTools.start()).hostCapabilities.sampling).toEqual({ tools: {} })
      expect((yield* withTools.request("sampling/createMessage", { ...params, tools })).result).toEqual(answer)
      expect(asked).toHaveLength(2)
    }))

  it.effect("2.0.4 · asks the host once to close a page that asks for its end, and does nothing by default", () =>
    Effect.gen(function*() {
      let asked = 0
      const answer = Deferred.makeUnsafe<void>()
      const { notify, received, session, start } = yield* open({
        requestTeardown: Effect.suspend(() => (asked++, Deferred.await(answer)))
      })
      yield* start()
      for (let count = 0; count < 3; count++) notify("ui/notifications/request-teardown")
      assert.strictEqual(asked, 1)
      Deferred.doneUnsafe(answer, Effect.void)
      yield* Effect.yieldNow
      notify("ui/notifications/request-teardown")
      assert.strictEqual(asked, 2)
      assert.notInclude(methods(received), "ui/resource-teardown")
      yield* session.initialized
      const silent = yield* open()
      yield* silent.start()
      silent.notify("ui/notifications/request-teardown")
      assert.lengthOf(silent.received.filter(({ method }) => method === "ui/resource-teardown"), 0)
    }))

  it.effect("refuses actions that the host does not offer", () =>
    Effect.gen(function*() {
      const { request, start } = yield* open({ serverResources: false })
      const { hostCapabilities } = yield* start()
      assert.sameMembers(Object.keys(hostCapabilities), ["serverTools", "sandbox"])
      for (
        const method of [
          "ui/open-link",
          "ui/message",
          "ui/update-model-context",
          "ui/download-file",
          "resources/read",
          "sampling/createMessage"
        ]
      ) {
        expect((yield* request(method, {})).error.code).toBe(-32_601)
      }
    }))

  it.effect("2026-01-26 · display modes · MUST NOT switch to a mode that either side does not list", () =>
    Effect.gen(function*() {
      const { received, request, session, start } = yield* open({
        context: { availableDisplayModes: ["inline", "fullscreen", "pip"] },
        requestDisplayMode: (mode) => Effect.succeed(mode)
      })
      yield* start({ availableDisplayModes: ["inline", "fullscreen"] })
      expect((yield* request("ui/request-display-mode", { mode: "pip" })).result).toEqual({ mode: "inline" })
      expect((yield* request("ui/request-display-mode", { mode: "fullscreen" })).result).toEqual({ mode: "fullscreen" })
      expect((yield* session.context).displayMode).toBe("fullscreen")
      expect(methods(received)).toEqual(["ui/notifications/host-context-changed"])
    }))

  it.effect("interrupts a call that the page cancels, and answers nothing", () =>
    Effect.gen(function*() {
      const stopped = Deferred.makeUnsafe<void>()
      const started = Deferred.makeUnsafe<void>()
      const { notify, received, send, start } = yield* open({
        approveCall: () =>
          Effect.onInterrupt(Effect.andThen(Deferred.succeed(started, undefined), Effect.never), () =>
            Deferred.succeed(stopped, undefined))
      })
      yield* start()
      send({ jsonrpc: "2.0", id: "x", method: "tools/call", params: { name: "add_sale" } })
      yield* Deferred.await(started)
      notify("notifications/cancelled", { requestId: "x" })
      yield* Deferred.await(stopped)
      assert.isUndefined(received.find(({ id }) =>
        id === "x"
      ))
    }))

  it.effect("lets the page prepare for its end, within 2 seconds", () =>
    Effect.gen(function*() {
      const { received, send, session, start, until } = yield* open()
      yield* session.teardown()
      assert.lengthOf(received, 0)
      yield* start()
      const ending = yield* Effect.forkChild(session.teardown("closed by the user"), { startImmediately: true })
      const asked = yield* Effect.promise(() => until(({ method }) => method === "ui/resource-teardown"))
      assert.deepStrictEqual(asked.params, { reason: "closed by the user" })
      send({ jsonrpc: "2.0", id: asked.id, result: {} })
      yield* Fiber.join(ending)
      yield* start()
      const silent = yield* Effect.forkChild(session.teardown(), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(silent)
    }))
})

describe("a page that attacks the host", () => {
  it.effect("has messages ignored that are not messages, and malformed requests refused", () =>
    Effect.gen(function*() {
      const { received, send, start } = yield* open()
      yield* start()
      const before = received.length
      const cycle: Record<string, unknown> = { jsonrpc: "2.0", id: 1, method: "ping" }
      cycle["params"] = cycle
      for (
        const value of [
          undefined,
          null,
          "ping",
          [],
          cycle,
          { jsonrpc: "2.0", id: 1n, method: "ping" },
          { id: 1, method: "ping" },
          { jsonrpc: "2.0", method: "unknown" },
          { jsonrpc: "2.0", id: 9, result: {} },
          { jsonrpc: "2.0", method: "ui/notifications/size-changed", params: { height: "1e9" } },
          { jsonrpc: "2.0", id: "a", method: "ping", params: [] }
        ]
      ) send(value)
      expect(received.slice(before)).toMatchObject([{ id: 1, error: { code: -32_600 } }, {
        id: "a",
        error: { code: -32_600 }
      }])
    }))

  it.effect("has a message refused that is larger than 1,048,576 characters", () =>
    Effect.gen(function*() {
      const { request, start } = yield* open({ message: () => Effect.void })
      yield* start()
      const content = [{ type: "text", text: "x".repeat(1_048_576) }]
      expect((yield* request("ui/message", { role: "user", content })).error).toMatchObject({
        code: -32_600,
        message: "The message is larger than 1048576 characters"
      })
    }))

  it.effect("has requests refused beyond 32, and the ids of running ones", () =>
    Effect.gen(function*() {
      const { request, send, start } = yield* open({ approveCall: () => Effect.never })
      yield* start()
      const call = (id: string) => send({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "sales" } })
      for (let at = 0; at < 31; at++) call(`call ${at}`)
      const { error } = yield* Effect.timeout(request("ping"), "1 second")
      assert.isUndefined(error)
      call("call 31")
      expect((yield* request("ping")).error.message).toBe("32 requests are in progress")
    }))

  it.effect("has messages refused, then ignored, beyond 200 in a second", () =>
    Effect.gen(function*() {
      const { received, send, start } = yield* open()
      yield* start()
      yield* TestClock.adjust("1 second")
      received.length = 0
      for (let id = 0; id < 10_000; id++) send({ jsonrpc: "2.0", id: `p${id}`, method: "ping" })
      yield* Effect.yieldNow
      assert.lengthOf(received.filter(({ result }) => result !== undefined), 200)
      assert.lengthOf(received.filter(({ error }) => error?.message === "More than 200 messages in a second"), 200)
      yield* TestClock.adjust("1 second")
      send({ jsonrpc: "2.0", id: "later", method: "ping" })
      yield* Effect.yieldNow
      expect(received.at(-1)).toEqual({ jsonrpc: "2.0", id: "later", result: {} })
    }))
})

describe("a page that cannot be shown", () => {
  const failure = (contents: Resource.Answer, options: AppHost.Options = {}) =>
    Effect.gen(function*() {
      const uri = "ui://bad"
      const client = yield* kit.connect({}, [
        Tool.layer(Tool.make("bad", { _meta: { ui: { resourceUri: uri } } }), () => Effect.void),
        Resource.layer(Resource.make(uri), Effect.succeed(contents))
      ])
      const [tool] = yield* client.listTools()
      return yield* Effect.flip(AppHost.open(client, tool!, options))
    })
  const mimeType = "text/html;profile=mcp-app"

  it.effect("fails with InvalidPage: another type, no contents", () =>
    Effect.gen(function*() {
      for (
        const contents of [[{ uri: "ui://bad", mimeType: "text/html", text: "" }], [{ uri: "ui://bad", text: "" }], []]
      ) {
        expect(yield* failure(contents)).toMatchObject({ _tag: "AppError", reason: { _tag: "InvalidPage" } })
      }
    }))

  it.effect("fails with PageTooLarge, as text and as base64", () =>
    Effect.gen(function*() {
      for (
        const content of [
          { text: "x".repeat(4_194_305) },
          { blob: btoa("x".repeat(4_194_305)) },
          { blob: btoa("x".repeat(4 * 4_194_304)) }
        ]
      ) {
        expect(yield* failure([{ uri: "ui://bad", mimeType, ...content }])).toMatchObject({
          reason: { _tag: "PageTooLarge", message: "The page \"ui://bad\" has more than 4194304 characters" }
        })
      }
    }))

  it.effect("fails with NoPage without a link to one", () =>
    Effect.gen(function*() {
      const client = yield* kit.connect()
      const slow = (yield* client.listTools()).find(({ name }) => name === "slow")!
      expect(yield* Effect.flip(AppHost.open(client, slow))).toMatchObject({ reason: { _tag: "NoPage" } })
    }))

  it.effect("is read from base64 too, with the metadata of the list if the contents have none", () =>
    Effect.gen(function*() {
      const uri = "ui://blob"
      const client = yield* kit.connect({}, [
        Tool.layer(Tool.make("blob", { _meta: { "ui/resourceUri": uri } }), () => Effect.void),
        Resource.layer(
          Resource.make(uri, { _meta: { ui: { prefersBorder: false } } }),
          Effect.succeed([{ uri, mimeType, blob: btoa("<p>é") }])
        )
      ])
      const [tool] = yield* client.listTools()
      const session = yield* AppHost.open(client, tool!)
      assert.isFalse(session.prefersBorder)
      assert.include(session.html, "<p>")
    }))
})
