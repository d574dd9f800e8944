/** The programs of `authoring.md`. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Method from "@skein/protocol/Method"
import type { Principal } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import type * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Cellar } from "../programs/changing.ts"
import { Sales } from "../programs/content.ts"
import { Orders } from "../programs/errors.ts"
import { Reviews } from "../programs/prompts.ts"
import { NoteServer } from "../programs/resources.ts"
import { Schemas } from "../programs/schemas.ts"
import { Notebook } from "../programs/services.ts"
import { Kettle } from "../programs/logging.ts"
import { TeaHouse } from "../programs/tools.ts"
import { Prices } from "../programs/versions.ts"
import { Guarded } from "../programs/visible.ts"

type Server<E> = Layer.Layer<McpServer.McpServer | Catalog.Catalog, E>

/** A client of a server in memory. Its requests have the given principal. */
const connect = <E>(
  server: Server<E>,
  options: Client.Options & { readonly principal?: Principal } = {}
): Effect.Effect<Client.Client, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    const { principal, ...rest } = options
    return yield* Client.make(InMemoryTransport.transport(serve, { principal }), rest)
  }).pipe(Effect.orDie)

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): string =>
  content.map((block) => "text" in block ? block.text : "").join("")

const call = (client: Client.Client, name: string, args?: object) => Effect.map(client.callTool(name, args), textOf)

const session = { revisions: ["2025-11-25"] } as const

describe("programs/tools.ts", () => {
  it.effect("returns the total, and reports which argument is invalid", () =>
    Effect.gen(function*() {
      const client = yield* connect(TeaHouse)
      expect(yield* client.callTool("bill", { tea: "oolong", cups: 2 })).toMatchObject({
        structuredContent: { total: 10 },
        content: [{ type: "text", text: "{\"total\":10}" }]
      })
      const refused = yield* client.callTool("bill", { tea: "oolong", cups: 13 })
      expect(refused.isError).toBe(true)
      expect(textOf(refused)).toContain("Invalid arguments for tool bill")
      const [tool] = yield* client.listTools()
      expect(tool).toMatchObject({ title: "The bill, please", annotations: { readOnlyHint: true } })
      expect(JSON.stringify(tool!.inputSchema)).toContain("How many cups")
    }))
})

describe("programs/schemas.ts", () => {
  it.effect("accepts schemas of every kind, and lists each as JSON Schema", () =>
    Effect.gen(function*() {
      const client = yield* connect(Schemas)
      expect(yield* call(client, "recent", { since: "2026-07-28" })).toBe("10 since 2026")
      expect(yield* call(client, "search", { query: "tea" })).toBe("10 results for tea")
      expect(yield* call(client, "forecast", { city: "Oslo" })).toBe("Rain in Oslo")
      expect(yield* call(client, "move", { x: 1, y: 2 })).toBe("Moved to 1, 2")
      expect(yield* call(client, "report", { region: "north" })).toBe("All is well in north")
      const wrong = [["search", { query: "" }], ["forecast", {}], ["move", { x: -1, y: 0 }], ["recent", {}]] as const
      for (const [name, args] of wrong) {
        expect([name, (yield* client.callTool(name, args)).isError]).toEqual([name, true])
      }
      const tools = new Map((yield* client.listTools()).map((tool) => [tool.name, tool.inputSchema]))
      expect(tools.get("move")).toMatchObject({ additionalProperties: false, required: ["x", "y"] })
      expect(tools.get("search")).toMatchObject({ properties: { query: { type: "string" } }, required: ["query"] })
      expect(tools.get("recent")).toMatchObject({ required: ["since"] })
      expect(JSON.stringify(tools.get("report"))).toContain("\"x-mcp-header\":\"Region\"")
    }))
})

describe("programs/content.ts", () => {
  it.effect("returns content blocks, with and without structured content", () =>
    Effect.gen(function*() {
      const client = yield* connect(Sales)
      const { content } = yield* client.callTool("plot")
      expect(content.map(({ type }) => type)).toEqual(["text", "image", "resource", "resource_link"])
      expect(yield* call(client, "best")).toBe("{\"month\":\"feb\",\"sold\":5}")
      expect(yield* call(client, "sold", { months: [3, 5] })).toBe("8")
      expect(yield* client.callTool("totals")).toMatchObject({
        structuredContent: { total: 8 },
        content: [{ text: "8 sold, a good year" }, { type: "image" }],
        _meta: { "example.com/source": "ledger" }
      })
    }))
})

describe("programs/errors.ts", () => {
  it.effect("returns a result for a failure, an error for an McpError, and only a reference for a defect", () => {
    const logged: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void logged.push(`${String(message)} ${JSON.stringify(cause)}`))
    return Effect.gen(function*() {
      const client = yield* connect(Orders)
      expect(yield* client.callTool("order", { tea: "oolong" })).toMatchObject({
        isError: true,
        content: [{ text: "There is no oolong left today" }]
      })
      const fault = yield* Effect.flip(client.callTool("order", { tea: "" }))
      expect(fault).toMatchObject({ reason: { _tag: "ProtocolError", error: { message: "A tea has a name" } } })
      const defect = yield* client.callTool("order", { tea: "coffee" })
      expect(JSON.stringify(defect)).not.toContain("hunter2")
      const [, reference = "?"] = /reference ([\w-]+)/.exec(logged.join("\n")) ?? []
      expect(defect).toMatchObject({ isError: true, _meta: { "io.github.skein-mcp/reference": reference } })
      expect(textOf(defect)).toContain(reference)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})

describe("programs/services.ts", () => {
  it.effect("shares one service between a tool and a resource", () =>
    Effect.gen(function*() {
      const client = yield* connect(Notebook)
      yield* client.callTool("add", { text: "buy tea" })
      expect((yield* client.callTool("add", { text: "water the plants" })).structuredContent).toEqual({ count: 2 })
      expect((yield* client.readResource("notes://all")).contents).toMatchObject([{
        text: "buy tea\nwater the plants"
      }])
    }))
})

describe("programs/resources.ts", () => {
  it.effect("serves a resource and a template, with completion and caching hints", () =>
    Effect.gen(function*() {
      const client = yield* connect(NoteServer)
      expect(yield* client.readResource("notes://folders")).toMatchObject({
        contents: [{ text: "work\nhome" }],
        ttlMs: 60_000,
        cacheScope: "private"
      })
      expect((yield* client.readResource("notes://home/1")).contents).toMatchObject([{ text: "water the plants" }])
      for (const uri of ["notes://home/7", "notes://attic/0", "notes://home/one"]) {
        const { reason } = yield* Effect.flip(client.readResource(uri))
        expect({ uri, reason }).toMatchObject({ uri, reason: { error: { reason: "ResourceNotFound" } } })
      }
      const ref = { type: "ref/resource", uri: "notes://{folder}/{index}" } as const
      const folders = yield* client.complete({ ref, argument: { name: "folder", value: "w" } })
      expect(folders.completion.values).toEqual(["work"])
      const indexes = yield* client.complete({
        ref,
        argument: { name: "index", value: "" },
        contextArguments: { folder: "home" }
      })
      expect(indexes.completion).toMatchObject({ values: ["0", "1"], total: 2, hasMore: false })
      expect(yield* client.listToolsPage()).toMatchObject({ ttlMs: 300_000, cacheScope: "public" })
    }))

  it.effect("notifies clients that subscribed to the parent", () =>
    Effect.gen(function*() {
      const client = yield* connect(NoteServer, session)
      const first = yield* Effect.forkChild(Stream.runHead(client.notifications), { startImmediately: true })
      yield* client.request(Method.Subscribe, { uri: "notes://folders" })
      expect(yield* call(client, "write", { text: "bake" })).toBe("Written: notes://home/2")
      expect(yield* Fiber.join(first)).toMatchObject({
        value: { _tag: "ResourceUpdated", params: { uri: "notes://home/2" } }
      })
    }))
})

describe("programs/prompts.ts", () => {
  it.effect("returns the messages, and completes an argument by the others", () =>
    Effect.gen(function*() {
      const client = yield* connect(Reviews)
      const { messages } = yield* client.getPrompt("review", { code: "let x = 1", language: "rust" })
      expect(messages.map(({ role }) => role)).toEqual(["user", "user", "assistant"])
      expect(messages[0]!.content).toMatchObject({ text: "Be kind. Review this rust:" })
      const ref = { type: "ref/prompt", name: "review" } as const
      const suggest = (name: string, value: string, known?: Readonly<Record<string, string>>) =>
        Effect.map(client.complete({ ref, argument: { name, value }, contextArguments: known }), ({ completion }) =>
          completion.values)
      expect(yield* suggest("language", "t")).toEqual(["typescript", "python", "rust"])
      expect(yield* suggest("tone", "str")).toEqual(["strict"])
      expect(yield* suggest("framework", "axu", { language: "rust" })).toEqual(["axum"])
      const missing = yield* Effect.flip(client.getPrompt("review", { code: "" }))
      expect(missing.reason).toMatchObject({ error: { reason: "InvalidParams" } })
    }))
})

describe("programs/changing.ts", () => {
  it.effect("adds a tool, disables one for a minute, and switches one off", () =>
    Effect.gen(function*() {
      const client = yield* connect(Cellar, session)
      const names = Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name))
      const first = yield* Effect.forkChild(Stream.runHead(client.notifications), { startImmediately: true })
      expect(yield* names).toEqual(["unlock", "maintenance", "close"])
      yield* client.callTool("unlock")
      expect(yield* names).toEqual(["unlock", "maintenance", "close", "secret"])
      yield* TestClock.adjust("50 millis")
      expect(yield* Fiber.join(first)).toMatchObject({ value: { _tag: "ToolListChanged" } })
      expect(yield* call(client, "secret")).toBe("A cellar full of tea")
      const work = yield* Effect.forkChild(client.callTool("maintenance"))
      yield* TestClock.adjust("1 millis")
      expect(yield* names).toEqual(["maintenance", "close", "secret"])
      expect((yield* Effect.flip(client.callTool("unlock"))).reason).toMatchObject({
        error: { reason: "InvalidParams" }
      })
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(work)
      expect(yield* names).toEqual(["unlock", "maintenance", "close", "secret"])
      yield* client.callTool("close")
      expect(yield* names).toEqual(["maintenance", "close", "secret"])
    }))
})

describe("programs/visible.ts", () => {
  it.effect("hides a definition from callers that may not see it", () =>
    Effect.gen(function*() {
      const guest = yield* connect(Guarded)
      expect((yield* guest.listTools()).map(({ name }) => name)).toEqual(["whoami"])
      expect(yield* call(guest, "whoami")).toBe("anonymous")
      expect((yield* Effect.flip(guest.callTool("reset"))).message).toContain("Unknown tool")
      const admin = yield* connect(Guarded, { principal: { id: "ada", role: "admin" } })
      expect(yield* call(admin, "whoami")).toBe("ada")
      expect(yield* call(admin, "reset")).toBe("All gone")
    }))
})

describe("programs/versions.ts", () => {
  it.effect("runs the newest version, or the one that a call names", () =>
    Effect.gen(function*() {
      const client = yield* connect(Prices)
      expect(yield* call(client, "price", { cups: 2, tea: "oolong" })).toBe("10 euros for oolong")
      const older = yield* client.request(Method.CallTool, {
        name: "price",
        arguments: { cups: 2 },
        _meta: { "io.github.skein-mcp/version": "1.0" }
      })
      expect(older).toMatchObject({ content: [{ text: "8 euros" }] })
    }))
})

describe("programs/logging.ts", () => {
  it.effect("sends progress to a caller that asks for it, and logs from info on", () =>
    Effect.gen(function*() {
      const client = yield* connect(Kettle, session)
      const progress: Array<number> = []
      const logs: Array<unknown> = []
      yield* Effect.forkChild(
        Stream.runForEach(client.notifications, ({ params }) => Effect.sync(() => void logs.push(params))),
        { startImmediately: true }
      )
      const options = { onProgress: (report: { readonly progress: number }) => void progress.push(report.progress) }
      yield* client.callTool("brew", {}, options)
      yield* client.setLoggingLevel("error")
      yield* client.callTool("brew", {}, options)
      yield* TestClock.adjust("1 millis")
      expect(progress).toEqual([1, 2, 1, 2])
      expect(logs).toEqual([{ level: "notice", logger: "kettle", data: "The kettle is old" }])
    }))
})
