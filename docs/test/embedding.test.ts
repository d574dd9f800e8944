/** The programs of `embedding.md` and `calls.md`, run against Skein's servers. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientErrors from "@skein/client/ClientError"
import type * as RemoteTask from "@skein/client/RemoteTask"
import type { Transport } from "@skein/runtime/Connection"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Caching from "../programs/caching.ts"
import * as Calling from "../programs/calling.ts"
import { type Entry, open } from "../programs/clientMiddleware.ts"
import * as Connecting from "../programs/connecting.ts"
import edge from "../programs/edge.ts"
import { Orders } from "../programs/errors.ts"
import { greet } from "../programs/first.ts"
import * as Following from "../programs/following.ts"
import { Hello } from "../programs/hello.ts"
import * as Lasting from "../programs/remoteTasks.ts"
import { NoteServer } from "../programs/resources.ts"
import { Kettle } from "../programs/logging.ts"
import { TeaHouse } from "../programs/tools.ts"
import { read } from "./blocks.ts"
import { connect, counted, hello, inMemory, testedRevisions } from "./kit.ts"
import { start } from "./runtime.ts"

describe("programs/first.ts and programs/connecting.ts", () => {
  it.live("returns the same over every transport", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(Layer.provideMerge(NodeHttp.layer({ port: 0, shutdownTimeout: 0 }), Hello))
      const { url } = Context.get(context, NodeHttp.Server)
      const transports = Connecting.transports(hello, url, Context.get(context, McpServer.McpServer))
      expect(yield* greet(url)).toMatchObject([{ text: "Hello, Ada!" }])
      expect(yield* Connecting.look(transports.process)).toMatchObject({ server: "hello", tools: ["greet"] })
      for (const transport of [transports.fetch, transports.node, transports.memory]) {
        const seen = yield* Connecting.look(transport)
        expect(seen).toEqual({ revision: "2026-07-28", server: "hello", tools: ["greet", "whoami"] })
        expect((yield* Connecting.greeted(transport)).content).toMatchObject([{ text: "Hello, Ada!" }])
      }
    }).pipe(Effect.scoped))

  it.effect("does not negotiate again with a stored profile", () =>
    Effect.gen(function*() {
      const { sent, transport } = counted(yield* inMemory(Hello))
      const kept = new Map<string, string>()
      yield* Connecting.withProfile(transport, kept, "tea")
      expect(sent).toEqual(["server/discover", "server/discover"])
      const client = yield* Connecting.withProfile(transport, kept, "tea")
      expect(sent.slice(2)).toEqual(["server/discover"])
      expect(client.serverProfile).toMatchObject({ revision: "2026-07-28", info: { name: "hello" } })
    }))

  it.live("sends a token with each request, and a renewed one after a 401", () =>
    Effect.gen(function*() {
      const { child, url } = yield* Effect.promise(() => start("vault"))
      yield* Effect.addFinalizer(() => Effect.sync(() => void child.kill("SIGKILL")))
      const whoami = (transport: Transport) =>
        Effect.scoped(Effect.flatMap(Client.make(transport), (client) => client.callTool("whoami")))
      const ada = yield* whoami(Connecting.asAda(url, Redacted.make("ada")))
      expect(ada.content).toMatchObject([{ text: "ada" }])
      const stranger = yield* Effect.flip(whoami(Connecting.asAda(url, Redacted.make("eve"))))
      expect(stranger).toMatchObject({ reason: { _tag: "Unauthorized", status: 401 } })
      expect(JSON.stringify(stranger)).not.toContain("eve")
      const token = yield* Ref.make("expired")
      const bob = yield* whoami(Connecting.renewing(url, token, Effect.succeed("bob")))
      expect(bob.content).toMatchObject([{ text: "bob" }])
      expect(yield* Ref.get(token)).toBe("bob")
    }).pipe(Effect.scoped))
})

describe.each(testedRevisions)("programs/calling.ts, %s", (revision) => {
  const revisions = [revision]

  it.effect("returns a tool's failure as a result, and fails in a typed call", () =>
    Effect.gen(function*() {
      const orders = yield* connect(Orders, { revisions })
      expect(yield* Calling.order(orders, "sencha")).toBe("One sencha")
      expect(yield* Calling.order(orders, "oolong")).toBe("The tool failed: There is no oolong left today")
      const tea = yield* connect(TeaHouse, { revisions })
      expect(yield* Calling.total(tea, 2)).toBe("That is 10")
      expect(yield* Calling.total(tea, 13)).toContain("No bill: The tool bill failed: Invalid arguments")
    }))

  it.effect("reads, completes and lists", () =>
    Effect.gen(function*() {
      const seen = yield* Calling.look(yield* connect(NoteServer, { revisions }))
      expect(seen).toMatchObject({ contents: [{ text: "work\nhome" }], folders: ["work"], more: false })
    }))

  it.effect("handles one reason of an error, with the members of that reason", () =>
    Effect.gen(function*() {
      const client = yield* connect(NoteServer, { revisions })
      expect(yield* Calling.find(client, "notes://folders")).toMatchObject([{ text: "work\nhome" }])
      expect(yield* Calling.find(client, "notes://work/999999")).toEqual([])
      const other = yield* connect(Orders, { revisions })
      expect((yield* Effect.flip(Calling.find(other, "notes://folders"))).reason._tag).toBe("Unsupported")
    }))

  it.effect("reports progress to a callback and as a stream", () =>
    Effect.gen(function*() {
      const client = yield* connect(Kettle, { revisions })
      const lines: Array<string> = []
      yield* Calling.brew(client, (line) => void lines.push(line))
      expect(lines).toEqual(["1/2 the water is warm", "2/2 the leaves are in"])
      expect(yield* Stream.runCollect(Calling.brewing(client))).toEqual([
        "the water is warm",
        "the leaves are in",
        [{ type: "text", text: "A pot of tea" }]
      ])
    }))

  it.effect("cancels the call that loses a race at the server", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const cancelled = yield* Deferred.make<void>()
      const wait = Tool.layer(Tool.make("wait"), () =>
        Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
          Effect.onInterrupt(() =>
            Deferred.succeed(cancelled, undefined)
          )
        ))
      const client = yield* connect(McpServer.layer({ name: "slow", version: "1.0.0" }, wait), { revisions })
      expect(yield* Calling.unlessStopped(client, Deferred.await(begun))).toBe("stopped")
      yield* Deferred.await(cancelled)
    }))
})

describe.each(["2025-11-25", "2026-07-28"] as const)("programs/remoteTasks.ts, %s", (revision) => {
  const bakery = McpServer.layer(
    { name: "bakery", version: "1.0.0" },
    Task.layer(
      Task.make("bake", { input: { cakes: Schema.Int }, pollInterval: "20 millis" }),
      ({ cakes }) => Effect.as(Task.setStatusMessage("The dough rests"), `${cakes} cakes`)
    ),
    Tasks.layer()
  ).pipe(Layer.provide(MemoryTasks.layer({ pollInterval: "20 millis" })))

  it.live("returns the result of a task, in this process or in the next one", () =>
    Effect.gen(function*() {
      const transport = yield* inMemory(bakery)
      const client = yield* Client.make(transport, { revisions: [revision] })
      yield* client.listToolsPage()
      const lines: Array<string> = []
      expect((yield* Lasting.bake(client, (line) => void lines.push(line))).content).toMatchObject([{
        text: "3 cakes"
      }])
      expect(lines).toEqual([expect.stringMatching(/^The call continues as task [\w-]{32}$/)])
      let kept = ""
      const begun = Lasting.begin(client, (handle) => Effect.sync(() => void (kept = JSON.stringify(handle))))
      expect((yield* begun)._tag).toBe("RemoteTask")
      const next = yield* Client.make(transport, { revisions: [revision] })
      const seen: Array<string> = []
      const result = yield* Lasting.finish(next, JSON.parse(kept) as RemoteTask.Handle, (line) => void seen.push(line))
      expect(result.content).toMatchObject([{ text: "3 cakes" }])
      expect(seen.at(-1)).toMatch(/^completed: /)
    }).pipe(Effect.scoped))
})

describe("calls.md", () => {
  it("describes every reason of an error", () => {
    const source = readFileSync(join(import.meta.dirname, "../../packages/client/src/ClientError.ts"), "utf8")
    const reasons = Object.keys(ClientErrors).filter((name) => name !== "ClientError")
    const tags = Array.from(source.matchAll(/^ {2}\| (\w+)$/gm), ([, tag]) => tag)
    expect(reasons.toSorted()).toEqual(tags.sort())
    expect(reasons.length).toBeGreaterThan(10)
    const page = read("calls.md")
    expect(reasons.filter((reason) => !new RegExp(`^- \`${reason}\`:`, "m").test(page))).toEqual([])
  })
})

describe.each(testedRevisions)("programs/following.ts, %s", (revision) => {
  it.effect("reads the current state, then reports changes", () =>
    Effect.gen(function*() {
      const client = yield* connect(NoteServer, { revisions: [revision] })
      const changes: Array<string> = []
      const thrice = yield* Deferred.make<void>()
      const show = (text: string) =>
        Effect.andThen(
          Effect.sync(() => changes.push(text)),
          (count) =>
            count === 2
              ? Effect.asVoid(Effect.forkDetach(write))
              : count === 3
              ? Deferred.succeed(thrice, undefined)
              : Effect.void
        )
      const write = Effect.orDie(client.callTool("write", { text: "drink tea" }))
      yield* Effect.forkChild(Following.follow(client, "notes://folders", (text) => Effect.asVoid(show(text))))
      yield* Deferred.await(thrice)
      expect(changes).toEqual(["1 tools", expect.stringContaining("notes://folders"), changes[1]])
    }))

  it.effect("forwards the server's log at the level that was set", () => {
    // The server is in the same process, and also logs there.
    const logged: Array<unknown> = []
    const logger = Logger.make(({ fiber, message }) => {
      const { "mcp.level": level } = fiber.getRef(References.CurrentLogAnnotations)
      if (level !== undefined) logged.push([level, ...Array.isArray(message) ? message : [message]])
    })
    return Effect.gen(function*() {
      const client = yield* connect(Kettle, { revisions: [revision] })
      yield* Following.listen(client)
      yield* client.callTool("brew")
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      expect(logged).toEqual([["notice", "The kettle is old"]])
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})

describe("programs/clientMiddleware.ts", () => {
  it.effect("records each call, and changes the arguments of tools", () =>
    Effect.gen(function*() {
      const entries: Array<Entry> = []
      const client = yield* open(yield* inMemory(Hello), (entry) => Effect.sync(() => void entries.push(entry)))
      const { content } = yield* client.callTool("greet", { name: "Ada" })
      expect(content).toMatchObject([{ text: "Hello, a guest!" }])
      yield* Effect.flip(client.readResource("notes://none"))
      expect(entries).toEqual([{ method: "tools/call", ok: true }, { method: "resources/read", ok: false }])
    }).pipe(Effect.scoped))
})

describe("programs/caching.ts", () => {
  it.effect("2026-07-28 · keeps private responses per user, and shares public ones", () =>
    Effect.gen(function*() {
      const { sent, transport } = counted(yield* inMemory(NoteServer))
      const [ada, bob] = [yield* Caching.clientOf(transport, "ada"), yield* Caching.clientOf(transport, "bob")]
      sent.length = 0
      for (const client of [ada, ada, bob]) {
        yield* client.listToolsPage()
        yield* client.readResource("notes://folders")
      }
      expect(sent).toEqual(["tools/list", "resources/read", "resources/read"])
    }))
})

describe("programs/edge.ts", () => {
  it("calls a server in another worker", async () => {
    const { close, handler } = WebHttp.mount(Hello)
    const bound: typeof fetch = (input, init) => handler(new Request(input, init))
    const answer = await edge.fetch(new Request("https://app.example/?name=Ada"), { SERVER: { fetch: bound } })
    expect(await answer.json()).toMatchObject({ content: [{ text: "Hello, Ada!" }] })
    await close()
  })
})
