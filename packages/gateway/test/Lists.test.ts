/** The entries that a proxy adds to the catalog, and how they follow the lists of the remote server. */
import { describe, expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import * as Proxy from "@skein/gateway/Proxy"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { bounds } from "../../server/test/fixedBounds.ts"
import { makeListing } from "../src/internal/catalog/listing.ts"
import { makeRefresh, RefreshInterval } from "../src/internal/catalog/refresh.ts"
import { build, connect, eras, type Running, source, through } from "./kit.ts"
import { remote } from "./remote.ts"

const tool = (name: string, says = name) => Tool.layer(Tool.make(name), () => Effect.succeed(says))
const server = (...definitions: ReadonlyArray<McpServer.Definitions>) =>
  Layer.provide(
    McpServer.layer({ name: "far", version: "1.0.0" }, ...definitions) as never as ReturnType<typeof remote>,
    bounds({ listChangedDelay: 0 })
  )

const names = (client: Client.Client) => Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name))
const textOf = (result: { readonly content: ReadonlyArray<unknown> }) => (result.content[0] as { text: string }).text

/** Waits until an effect returns a value. */
const until = <A, E>(effect: Effect.Effect<A, E>, expected: A): Effect.Effect<void, E> =>
  Effect.gen(function*() {
    while (JSON.stringify(yield* effect) !== JSON.stringify(expected)) yield* Effect.sleep(5)
  })

/** Waits for what needs no time of the clock. */
const turns = (condition: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve))
  })

/** Builds proxies with another pause between two times that changed lists are read. */
const refreshing = <A, E, R>(interval: Duration.Input, building: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(building, RefreshInterval, interval)

const catalogOf = ({ context }: Running) => Context.get(context as Context.Context<Catalog.Catalog>, Catalog.Catalog)

describe.each(eras)("the lists of a server of %s", (behind) => {
  it.live("change when the remote server's do, and only the entries that differ", () =>
    Effect.gen(function*() {
      const { far, near } = yield* refreshing(0, through(server(tool("a"), tool("b")), behind))
      const client = yield* connect(near, "2025-11-25")
      const changes: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(client.changes({ tools: true }), ({ _tag }) => Effect.sync(() => changes.push(_tag))),
        { startImmediately: true }
      )
      expect(yield* names(client)).toEqual(["a", "b"])
      const kept = catalogOf(near).tools.get("a")
      const scope = yield* Scope.make()
      const change = <A, E>(effect: Effect.Effect<A, E, Catalog.Catalog | Scope.Scope>) =>
        Effect.provideContext(Scope.provide(effect, scope), far.context as Context.Context<Catalog.Catalog>)
      yield* change(Tool.add(Tool.make("c"), () => Effect.succeed("c")))
      yield* change(Tool.replace(Tool.make("b", { description: "new" }), () => Effect.succeed("new b")))
      yield* until(names(client), ["a", "b", "c"])
      const described = Effect.map(client.listTools(), (tools) => tools[1]!.description)
      yield* until(described, "new")
      expect(textOf(yield* client.callTool("b"))).toBe("new b")
      yield* Scope.close(scope, Exit.void)
      yield* until(names(client), ["a", "b"])
      expect(catalogOf(near).tools.get("a")).toBe(kept)
      yield* until(Effect.sync(() => changes.includes("ToolListChanged")), true)
    }))
})

describe("the refresh interval", () => {
  it.effect("is the time between two times that one list is read, and delays no list of another kind", () =>
    Effect.gen(function*() {
      const { far, near } = yield* refreshing(
        "1 minute",
        through(server(tool("a"), Prompt.layer(Prompt.make("p"), () => Effect.succeed("p"))), "2025-11-25")
      )
      const { prompts, tools } = catalogOf(near)
      const add = <E>(effect: Effect.Effect<void, E, Catalog.Catalog | Scope.Scope>) =>
        Effect.provideContext(effect, far.context as Context.Context<Catalog.Catalog | Scope.Scope>)
      const scope = yield* Effect.scope
      const addTool = (name: string) => add(Scope.provide(Tool.add(Tool.make(name), () => Effect.succeed(name)), scope))
      yield* TestClock.adjust("1 minute")
      yield* add(Scope.provide(Prompt.add(Prompt.make("q"), () => Effect.succeed("q")), scope))
      yield* turns(() => prompts.size === 2)
      yield* addTool("b")
      yield* turns(() => tools.size === 2)
      yield* addTool("c")
      yield* TestClock.adjust("59 seconds")
      expect(tools.size).toBe(2)
      yield* TestClock.adjust("1 second")
      yield* turns(() => tools.size === 3)
    }))
})

describe("long lists of a remote server", () => {
  /** Follows a client whose lists take some time to read. */
  const following = Effect.gen(function*() {
    const changes = yield* Queue.unbounded<{ readonly _tag: "ToolListChanged" }>()
    let [marked, reads] = [0, 0]
    let duration: Duration.Input = 0
    const client = {
      capabilities: { tools: { listChanged: true } },
      changes: () => Stream.tap(Stream.fromQueue(changes), () => Effect.sync(() => marked++)),
      listTools: () => Effect.andThen(Effect.sync(() => reads++), Effect.as(Effect.sleep(duration), []))
    }
    const listing = {
      includes: (kind: string) => kind === "tools",
      update: () => Effect.void,
      clear: Effect.void,
      counts: () => ({ tools: 0, resources: 0, resourceTemplates: 0, prompts: 0 })
    }
    const lists = { tools: [], resources: [], resourceTemplates: [], prompts: [] }
    const { follow } = makeRefresh(listing, { label: "far" }, "1 millis", lists, undefined)
    return {
      follow: (first: Duration.Input) => {
        duration = first
        return Effect.forkScoped(follow(client as never), { startImmediately: true })
      },
      lasts: (next: Duration.Input) => void (duration = next),
      change: Effect.suspend(() => {
        const before = marked
        return Effect.andThen(Queue.offer(changes, { _tag: "ToolListChanged" }), turns(() => marked > before))
      }),
      reads: () => reads
    }
  })

  it.effect("take a tenth of the time, with pauses of at most a minute", () =>
    Effect.gen(function*() {
      const { change, follow, lasts, reads } = yield* following
      yield* follow("4 seconds")
      yield* TestClock.adjust("4 seconds")
      // The pause is 36 seconds, of which 18 are for the readings of two seconds that need none.
      yield* change
      yield* TestClock.adjust("17 seconds")
      expect(reads()).toBe(1)
      yield* TestClock.adjust("1 seconds")
      expect(reads()).toBe(2)
      lasts("1 minute")
      yield* TestClock.adjust("4 seconds")
      yield* change
      yield* TestClock.adjust("31 seconds")
      expect(reads()).toBe(2)
      yield* TestClock.adjust("1 seconds")
      expect(reads()).toBe(3)
      yield* TestClock.adjust("1 minute")
      yield* change
      yield* TestClock.adjust("59 seconds")
      expect(reads()).toBe(3)
      yield* TestClock.adjust("1 seconds")
      expect(reads()).toBe(4)
    }))

  it.effect("are read at once if they change seldom", () =>
    Effect.gen(function*() {
      const { change, follow, reads } = yield* following
      yield* follow("500 millis")
      yield* TestClock.adjust("500 millis")
      yield* change
      yield* TestClock.adjust("1 millis")
      expect(reads()).toBe(2)
    }))

  it.live("are taken over in many turns of the event loop", () =>
    Effect.gen(function*() {
      const catalog = catalogOf(yield* build(server()))
      const listing = makeListing(catalog, {} as never, {
        select: { tools: true, resources: true, resourceTemplates: true, prompts: true },
        maxEntries: 100,
        name: {} as never
      })
      const tools = Array.from({ length: 20 }, (_, at) => ({
        name: `t${at}`,
        description: "x".repeat(100_000),
        inputSchema: { type: "object" as const }
      }))
      let turns = 0
      let isDone = false
      const count = (): void => {
        turns++
        if (!isDone) setImmediate(count)
      }
      setImmediate(count)
      yield* listing.update("tools", tools, false)
      isDone = true
      expect(turns).toBeGreaterThanOrEqual(5)
      expect(catalog.tools.size).toBe(20)
    }).pipe(Effect.scoped))

  it.live("have no definition of more than 1,048,576 characters, which is logged", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(String(message)))
      const big = (name: string, length: number) =>
        Tool.layer(Tool.make(name, { description: "x".repeat(length) }), () => Effect.succeed(""))
      const { near } = yield* Effect.provide(
        through(server(big("large", 1_048_000), big("larger", 1_048_577)), "2025-11-25"),
        Logger.layer([logger])
      )
      expect([...catalogOf(near).tools.sorted].map(([name]) => name)).toEqual(["large"])
      expect(logged).toContain(
        "The tool \"larger\" of the remote server behind was left out: its definition has more than 1048576 characters"
      )
    }))
})

describe("the options of a proxy", () => {
  it.live("select kinds, and entries by predicates", () =>
    Effect.gen(function*() {
      const { near } = yield* through(remote(), "2026-07-28", {
        tools: ({ annotations }) => annotations?.readOnlyHint === true,
        prompts: false,
        resourceTemplates: false,
        resources: ({ uri }) => uri !== "hidden://1"
      })
      const client = yield* connect(near, "2026-07-28")
      expect(yield* names(client)).toEqual(["raw"])
      expect((yield* client.listResources()).map(({ uri }) => uri)).toEqual(["notes://today"])
      expect(yield* client.listResourceTemplates()).toEqual([])
      expect(client.capabilities.prompts).toBeUndefined()
      // A resource that a predicate leaves out cannot be read as an unlisted one either.
      for (const uri of ["hidden://1", "notes://7"]) {
        expect(yield* Effect.flip(client.readResource(uri))).toMatchObject({
          reason: { error: { reason: "ResourceNotFound" } }
        })
      }
    }))

  it.live("bound the entries of each kind (maxEntries), which is logged", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(String(message)))
      const { near } = yield* Effect.provide(
        through(server(tool("a"), tool("b"), tool("c")), "2025-11-25", { limits: { maxEntries: 2 } }),
        Logger.layer([logger])
      )
      expect(catalogOf(near).tools.size).toBe(2)
      // The name is the label of the client.
      expect(logged).toContain("1 more entries of tools of the remote server behind were left out (maxEntries: 2)")
    }))

  it.live("follow the lists after onListing has failed, which is logged", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(String(message)))
      const { far, near } = yield* Effect.provide(
        refreshing(0, through(server(tool("a")), "2025-11-25", { onListing: () => Effect.die("disk full") })),
        Logger.layer([logger])
      )
      const scope = yield* Effect.scope
      yield* Effect.provideContext(
        Scope.provide(Tool.add(Tool.make("b"), () => Effect.succeed("b")), scope),
        far.context as Context.Context<Catalog.Catalog>
      )
      yield* until(Effect.sync(() => catalogOf(near).tools.size), 2)
      expect(logged).toContain("onListing failed for the remote server behind,disk full")
    }))

  it.live("restrict the resources that no list shows", () =>
    Effect.gen(function*() {
      const far = yield* build(server(
        Resource.layer(Resource.make("a://1", { visible: () => true }), Effect.succeed("1")),
        Resource.layer(Resource.make("b://1"), Effect.succeed("2"))
      ))
      const near = yield* build(McpServer.layer(
        { name: "near", version: "1" },
        Proxy.layer(source(far, "2025-11-25"), {
          resources: false,
          unlistedResources: (uri) => uri.startsWith("a:")
        })
      ))
      const client = yield* connect(near, "2025-11-25", { enforceCapabilities: false })
      expect((yield* client.readResource("a://1")).contents).toMatchObject([{ text: "1" }])
      expect(yield* Effect.flip(client.readResource("b://1"))).toMatchObject({
        reason: { error: { reason: "ResourceNotFound" } }
      })
    }))
})

describe("definitions beside a proxy", () => {
  it.live("keep their names, whatever their order, and an entry of the same name is left out", () =>
    Effect.gen(function*() {
      const far = yield* build(server(tool("a", "far"), tool("b", "far")))
      const proxy = Proxy.layer(source(far, "2025-11-25"))
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy, tool("a", "own")))
      const client = yield* connect(near, "2026-07-28")
      expect(yield* names(client)).toEqual(["a", "b"])
      expect(textOf(yield* client.callTool("a"))).toBe("own")
      expect(textOf(yield* client.callTool("b"))).toBe("far")
    }))

  it.live("may restrict a proxy to some callers, its unlisted resources included", () =>
    Effect.gen(function*() {
      const far = yield* build(remote())
      const admins = Catalog.visibleTo(
        ({ principal }) => principal?.id === "admin",
        Proxy.layer(source(far, "2025-11-25"))
      )
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, admins, tool("own")))
      const admin = yield* connect(near, "2025-11-25", { principal: "admin" })
      const user = yield* connect(near, "2025-11-25", { principal: "user" })
      expect(yield* names(user)).toEqual(["own"])
      expect((yield* names(admin)).length).toBeGreaterThan(5)
      expect((yield* Effect.flip(user.callTool("raw", { a: 1 }))).reason._tag).toBe("ProtocolError")
      expect((yield* Effect.flip(user.readResource("hidden://1"))).reason._tag).toBe("ProtocolError")
      expect((yield* admin.readResource("hidden://1")).contents).toMatchObject([{ text: "secret" }])
    }))

  it.live("stand beside several proxies, whose unlisted resources are asked for in turn", () =>
    Effect.gen(function*() {
      const far = (scheme: string) =>
        Effect.map(
          build(server(
            tool(scheme),
            Resource.layer(Resource.make(`${scheme}://1`), Effect.succeed(scheme))
          )),
          (running) => Proxy.layer(source(running, "2026-07-28"), { unlistedResources: true, resources: false })
        )
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, yield* far("a"), yield* far("b")))
      const client = yield* connect(near, "2026-07-28", { enforceCapabilities: false })
      expect(yield* names(client)).toEqual(["a", "b"])
      for (const scheme of ["a", "b"]) {
        expect((yield* client.readResource(`${scheme}://1`)).contents).toMatchObject([{ text: scheme }])
      }
    }))

  it.live("may use a client that is open already", () =>
    Effect.gen(function*() {
      const far = yield* build(remote())
      const open = yield* connect(far, "2025-11-25")
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, Proxy.layer(open)))
      const client = yield* connect(near, "2026-07-28")
      expect(textOf(yield* client.callTool("raw", { a: 2 }))).toBe("{\"a\":2}")
    }))
})
