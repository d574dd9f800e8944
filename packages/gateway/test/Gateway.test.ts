/** A gateway in front of servers of this process: its configuration, names, order, states, and changes while it runs. */
import { describe, expect, it } from "@effect/vitest"
import type * as Client from "@skein/client/Client"
import type { Config, ConfigSource, ConfiguredServer } from "@skein/client/ClientPool"
import { ConfigUnreadable, InvalidEntry, PoolError } from "@skein/client/PoolError"
import * as Gateway from "@skein/gateway/Gateway"
import type { Revision } from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { answering, build, connect, Outage, type Running } from "./kit.ts"

const tool = (name: string, answer: string, description?: string) =>
  Tool.layer(Tool.make(name, { description }), () => Effect.succeed(answer))

const named = (name: string, ...definitions: ReadonlyArray<McpServer.Definitions>) =>
  McpServer.layer({ name, version: "1.0.0" }, ...definitions) as typeof empty
const empty = McpServer.layer({ name: "empty", version: "1.0.0" })

const text = (client: Client.Client, name: string) =>
  Effect.map(client.callTool(name), ({ content }) => (content[0] as { readonly text: string }).text)

const names = (client: Client.Client) => Effect.map(client.listTools(), (tools) => tools.map(({ name }) => name))

/** Waits until a condition holds. */
const until = <E, R>(condition: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.gen(function*() {
    while (!(yield* condition)) yield* Effect.sleep(5)
  })

/** A server of this process. It is reached in `revision` only, if it has one. */
interface Definition {
  readonly running: Running
  readonly gateway?: unknown
  readonly revision?: Revision | undefined
}

/** A configuration of servers of this process. Its entries, and the failure of reading it, can be changed. */
class Configuration {
  servers: Readonly<Record<string, Definition>>
  problems: ReadonlyArray<PoolError> = []
  failure: PoolError | undefined = undefined

  constructor(servers: Configuration["servers"]) {
    this.servers = servers
  }

  readonly source: ConfigSource = {
    name: "the test",
    read: Effect.suspend((): Effect.Effect<Config, PoolError> => {
      if (this.failure !== undefined) return Effect.fail(this.failure)
      const servers = Object.entries(this.servers).map(([name, { gateway, revision, running }]) =>
        [name, {
          entry: { type: "http", name, url: "http://localhost", headers: {}, raw: { gateway } },
          key: String(ids.get(running) ?? ids.set(running, ids.size).get(running)),
          server: {
            transport: InMemoryTransport.transport(running.server.serve),
            options: revision && { revisions: [revision] }
          }
        } as unknown as ConfiguredServer] as const
      )
      return Effect.succeed({ servers: new Map(servers), disabled: [], problems: this.problems })
    })
  }
}

const ids = new Map<Running, number>()

const invalid = (server: string, message: string) =>
  new PoolError({ reason: new InvalidEntry({ message, source: "the test", server }) })

/** Builds a gateway with a configuration, and collects what it logs. */
const gatewayOf = (config: Configuration, options: Gateway.ConfigOptions = {}) =>
  Effect.gen(function*() {
    const messages: Array<string> = []
    const logger = Logger.make(({ message }) => void messages.push(String(message)))
    const near = yield* Effect.provide(
      build(McpServer.layer({ name: "near", version: "1.0.0" }, Gateway.fromConfig(config.source, options))),
      Logger.layer([logger])
    )
    const within = <A, E>(effect: Effect.Effect<A, E, Catalog.Catalog>) =>
      Effect.provideService(effect, Catalog.Catalog, Context.getUnsafe(near.context, Catalog.Catalog))
    const gateway = yield* within(Gateway.current)
    return { gateway, messages, near }
  })

describe("fromConfig", () => {
  it.live("mounts each server with its name, and logs the invalid entries", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const config = new Configuration({ one: { running: far }, "my two": { running: far } })
      config.problems = [invalid("broken", "broken has no command")]
      const { messages, near } = yield* gatewayOf(config)
      const client = yield* connect(near, "2026-07-28")
      expect((yield* names(client))[0]).toBe("one_hello")
      expect(yield* text(client, "my_two_hello")).toBe("Hello")
      expect(messages).toContain("broken has no command")
    }))

  it.live("offers a server as its member says: its prefix, a selection of tools, other names and descriptions", () =>
    Effect.gen(function*() {
      const far = yield* build(named(
        "far",
        tool("read_file", "read", "Reads"),
        tool("read_secret", "secret"),
        tool("write", "written"),
        Prompt.layer(Prompt.make("greet"), () => Effect.succeed("Hello")),
        Resource.layer(Resource.make("data://menu"), Effect.succeed("Tea"))
      ))
      const tools = {
        only: ["read_*"],
        except: ["*secret"],
        change: { read_file: { name: "open", description: "Opens a file" } }
      }
      const { near } = yield* gatewayOf(
        new Configuration({ far: { running: far, gateway: { prefix: "fs", tools, prompts: false } } })
      )
      const client = yield* connect(near, "2025-11-25")
      expect(yield* client.listTools()).toMatchObject([{ name: "fs_open", description: "Opens a file" }])
      expect(yield* text(client, "fs_open")).toBe("read")
      expect(yield* client.listPrompts()).toEqual([])
      expect((yield* client.readResource("data://fs/menu")).contents).toMatchObject([{ text: "Tea" }])
      for (const hidden of ["fs_write", "fs_read_secret", "fs_read_file"]) {
        expect((yield* Effect.flip(client.callTool(hidden))).message).toContain("Unknown tool")
      }
    }))

  it.live("leaves out a server whose member is invalid, and says why", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const { messages, near } = yield* gatewayOf(
        new Configuration({
          good: { running: far },
          typo: { running: far, gateway: { prefx: "a" } },
          late: { running: far, gateway: { startTimeout: "soon" } },
          many: { running: far, gateway: { maxConnections: 0 } }
        })
      )
      expect(yield* names(yield* connect(near, "2026-07-28"))).toEqual(["good_hello"])
      const problems = messages.filter((message) => message.includes("invalid member gateway"))
      expect(problems).toHaveLength(3)
      for (const part of ["prefx", "must be a duration", "maxConnections"]) {
        expect(problems.filter((message) => message.includes(part))).toHaveLength(1)
      }
    }))

  it.live("has at most maxServers servers, and names those that it leaves out", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const config = new Configuration({ one: { running: far }, two: { running: far }, three: { running: far } })
      const { messages, near } = yield* gatewayOf(config, { maxServers: 2 })
      expect(yield* names(yield* connect(near, "2026-07-28"))).toEqual(["one_hello", "two_hello"])
      expect(messages.join()).toContain("The server \"three\" was left out: the gateway has 2 servers (maxServers)")
    }))
})

describe("servers that hang", () => {
  it.effect("delay the start by the time of one of them, and the others are offered then", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const good = { transport: InMemoryTransport.transport(far.server.serve) }
      const hung = { transport: InMemoryTransport.transport(() => Effect.never) }
      const missing = { transport: InMemoryTransport.transport((connection) => connection.close) }
      const servers = Object.fromEntries(
        Array.from({ length: 20 }, (_, at) => [`s${at}`, at < 5 ? hung : at < 10 ? missing : good])
      )
      const starting = yield* Effect.forkChild(
        build(McpServer.layer({ name: "near", version: "1.0.0" }, Gateway.layer(servers)))
      )
      // 10 seconds, `readyTimeout` of a single server. All of them have begun to wait at once.
      for (let turn = 0; turn < 200; turn++) yield* Effect.yieldNow
      yield* TestClock.adjust("9999 millis")
      expect(starting.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 millis")
      const near = yield* Fiber.join(starting)
      const client = yield* connect(near, "2026-07-28")
      expect(yield* names(client)).toEqual(Array.from({ length: 10 }, (_, at) => `s${at + 10}_hello`))
    }))

  it.effect("are removed at once, also while they start", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const config = new Configuration({ one: { running: far } })
      const { gateway, near } = yield* gatewayOf(config)
      const hung = { server: { serve: () => Effect.never } } as unknown as Running
      config.servers = { one: { running: far }, hung: { running: hung } }
      yield* gateway.reload
      expect(yield* gateway.servers).toMatchObject([{ name: "one" }, { name: "hung", state: "connecting" }])
      config.servers = { one: { running: far } }
      // The clock stands still.
      yield* gateway.reload
      expect(yield* gateway.servers).toMatchObject([{ name: "one" }])
      expect(yield* text(yield* connect(near, "2026-07-28"), "one_hello")).toBe("Hello")
    }))
})

describe("names", () => {
  it.live("are valid, have 64 characters at most, and differ", () =>
    Effect.gen(function*() {
      const long = "a".repeat(100)
      const far = yield* build(named("far", tool(`${long}1`, "first"), tool(`${long}2`, "second"), tool("x", "x")))
      const { near } = yield* gatewayOf(
        new Configuration({ "bad name!": { running: far }, bad_name_: { running: far } })
      )
      const client = yield* connect(near, "2026-07-28")
      const all = yield* names(client)
      expect(all).toHaveLength(6)
      expect(new Set(all).size).toBe(6)
      for (const name of all) expect(name).toMatch(/^[A-Za-z0-9_.-]{1,64}$/)
      expect(all).toContain("bad_name__x")
      const answers = yield* Effect.forEach(all, (name) => text(client, name))
      expect(answers.toSorted()).toEqual(["first", "first", "second", "second", "x", "x"])
    }))

  it.live("that two servers have without a prefix belong to the first one in the configuration, whichever is ready first", () =>
    Effect.gen(function*() {
      const first = yield* build(named("first", tool("same", "first"), tool("own", "own")))
      const second = yield* build(named("second", tool("same", "second")))
      const outage = new Outage(() => first)
      outage.isDown = true
      const config = new Configuration({ first: { running: first }, second: { running: second } })
      const { gateway, messages, near } = yield* gatewayOf(config, {
        prefix: () => "",
        proxy: (server) => server === "first" ? { readyTimeout: 1 } : {}
      })
      const client = yield* connect(near, "2026-07-28")
      yield* until(Effect.map(names(client), (all) => all.includes("own")))
      expect(yield* text(client, "same")).toBe("first")
      yield* until(Effect.sync(() => messages.some((message) => message.includes("has the name of one of another"))))
      // The next one follows when the first is removed, and gives way when it returns.
      config.servers = { second: { running: second } }
      yield* gateway.reload
      yield* until(Effect.map(names(client), (all) => !all.includes("own")))
      expect(yield* text(client, "same")).toBe("second")
      config.servers = { first: { running: first }, second: { running: second } }
      yield* gateway.reload
      yield* until(Effect.map(names(client), (all) => all.includes("own")))
      expect(yield* text(client, "same")).toBe("first")
    }))
})

describe("reload", () => {
  it.live("changes only the servers that differ, under calls to the others, and keeps the order of the lists", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("z", "z"), tool("a", "a")))
      const other = yield* build(named("other", tool("new", "new")))
      const config = new Configuration({ one: { running: far }, two: { running: far }, three: { running: far } })
      const { gateway, near } = yield* gatewayOf(config)
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        config.servers = { one: { running: far }, two: { running: far }, three: { running: far } }
        yield* gateway.reload
        const client = yield* connect(near, revision)
        yield* until(Effect.map(names(client), (all) => all.includes("three_a") && all.includes("two_z")))
        let failed = 0
        let answered = 0
        const calls = yield* Effect.forkChild(Effect.forever(
          Effect.matchEffect(text(client, "one_a"), {
            onFailure: () => Effect.sync(() => void failed++),
            onSuccess: () => Effect.sync(() => void answered++)
          })
        ))
        config.servers = { one: { running: far }, between: { running: other }, two: { running: other } }
        expect(yield* gateway.reload).toMatchObject({ added: ["between"], changed: ["two"], removed: ["three"] })
        const expected = ["one_a", "one_z", "between_new", "two_new"]
        yield* until(Effect.map(names(client), (all) => all.join() === expected.join()))
        const before = answered
        yield* until(Effect.sync(() => answered > before + 10))
        yield* Fiber.interrupt(calls)
        expect(failed).toBe(0)
        expect(yield* text(client, "between_new")).toBe("new")
        expect((yield* Effect.flip(client.callTool("three_a"))).message).toContain("Unknown tool")
      }
    }))

  it.live("fails a call to a server that is removed, and does not wait for it", () =>
    Effect.gen(function*() {
      const began = yield* Deferred.make<void>()
      const slow = Tool.layer(Tool.make("slow"), () => Effect.andThen(Deferred.succeed(began, undefined), Effect.never))
      const far = yield* build(named("far", slow))
      const config = new Configuration({ one: { running: far } })
      const { gateway, near } = yield* gatewayOf(config)
      const client = yield* connect(near, "2025-11-25")
      const call = yield* Effect.forkChild(Effect.flip(client.callTool("one_slow")))
      yield* Deferred.await(began)
      config.servers = {}
      yield* gateway.reload
      expect(yield* Fiber.join(call)).toMatchObject({ reason: { error: { data: { reason: "RemoteUnavailable" } } } })
      expect(yield* names(client)).toEqual([])
    }))

  it.live("changes nothing with a configuration that cannot be used", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const config = new Configuration({ one: { running: far } })
      const { gateway, near } = yield* gatewayOf(config)
      const client = yield* connect(near, "2026-07-28")
      const reason = new ConfigUnreadable({ message: "line 3 is not JSON", source: "the test" })
      config.failure = new PoolError({ reason })
      expect((yield* Effect.flip(gateway.reload)).message).toContain("line 3 is not JSON")
      expect(yield* text(client, "one_hello")).toBe("Hello")
      config.failure = undefined
      config.servers = { one: { running: far, gateway: { nonsense: true } } }
      expect(yield* gateway.reload).toMatchObject({ unchanged: ["one"], problems: [{ reason: { server: "one" } }] })
      expect(yield* text(client, "one_hello")).toBe("Hello")
    }))

  it.live("runs at watchInterval", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const config = new Configuration({})
      const { near } = yield* gatewayOf(config, { watchInterval: 1 })
      const client = yield* connect(near, "2026-07-28")
      expect(yield* names(client)).toEqual([])
      config.servers = { one: { running: far } }
      yield* until(Effect.map(names(client), (all) => all.includes("one_hello")))
    }))
})

/** The state of a server. */
const stateOf = (gateway: Gateway.Gateway["Service"], server: string) =>
  Effect.map(gateway.servers, (all) => all.find(({ name }) => name === server)!)

describe("servers", () => {
  it.live("have a state, also when they cannot be reached, and the others are listed", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const refusing: Gateway.Server = {
        transport: InMemoryTransport.transport(() => Effect.never),
        timeout: 1
      }
      const near = yield* build(McpServer.layer(
        { name: "near", version: "1.0.0" },
        Gateway.layer({
          hung: { ...refusing, gateway: { required: true } },
          good: { transport: InMemoryTransport.transport(far.server.serve) }
        })
      ))
      const catalog = Context.getUnsafe(near.context, Catalog.Catalog)
      const gateway = yield* Effect.provideService(Gateway.current, Catalog.Catalog, catalog)
      const client = yield* connect(near, "2026-07-28")
      expect(yield* text(client, "good_hello")).toBe("Hello")
      yield* until(Effect.map(stateOf(gateway, "hung"), ({ attempts }) => attempts > 0))
      expect(yield* gateway.servers).toMatchObject([
        { name: "hung", required: true, failure: expect.stringContaining("hung did not open within timeout") },
        {
          name: "good",
          state: "connected",
          attempts: 0,
          failure: undefined,
          info: { name: "far" },
          entries: { tools: 1, resources: 0 },
          prefix: "good"
        }
      ])
      expect((yield* stateOf(gateway, "good")).since).toBeGreaterThan(0)
      expect(yield* Effect.flip(gateway.restart("missing"))).toMatchObject({ reason: { _tag: "ServerNotFound" } })
      yield* gateway.restart("good")
      yield* until(Effect.map(names(client), (all) => all.includes("good_hello")))
      expect(yield* text(client, "good_hello")).toBe("Hello")
    }))

  it.live("that cannot be reached are logged in one line, once", () =>
    Effect.gen(function*() {
      const far = yield* build(named("far", tool("hello", "Hello")))
      const messages: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => {
        if (logLevel === "Warn") messages.push(...Array.isArray(message) ? message.map(String) : [String(message)])
      })
      const near = yield* Effect.provide(
        build(McpServer.layer(
          { name: "near", version: "1.0.0" },
          Gateway.layer({
            hung: { transport: InMemoryTransport.transport(() => Effect.never), timeout: 1 },
            good: { transport: InMemoryTransport.transport(far.server.serve) }
          })
        )),
        Logger.layer([logger])
      )
      const catalog = Context.getUnsafe(near.context, Catalog.Catalog)
      const gateway = yield* Effect.provideService(Gateway.current, Catalog.Catalog, catalog)
      yield* until(Effect.map(stateOf(gateway, "hung"), ({ attempts }) => attempts > 1))
      expect(messages).toEqual([
        expect.stringMatching(/^The remote server hung cannot be reached: .*did not open within timeout[^\n]*$/)
      ])
    }))
})

describe("connections: auto", () => {
  /** A server that asks. In memory its questions do not name the request, as over stdio. */
  const asking = named(
    "asking",
    Tool.layer(
      Tool.make("ask"),
      () =>
        Effect.map(
          Elicitation.form("Who?", { name: Schema.String }),
          (answer) => answer.action === "accept" ? answer.content.name : answer.action
        )
    ),
    tool("hello", "Hello")
  )

  it.live("shares one connection until the server asks, and then asks each of several callers at the same time", () =>
    Effect.gen(function*() {
      const far = yield* build(asking)
      const { gateway, near } = yield* gatewayOf(new Configuration({ far: { running: far, revision: "2025-11-25" } }))
      const clients = yield* Effect.forEach(
        ["ada", "bob", "eve"],
        (principal) => connect(near, "2025-11-25", { principal }, answering)
      )
      for (const client of clients) expect(yield* text(client, "far_hello")).toBe("Hello")
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 0 })
      expect(yield* text(clients[0]!, "far_ask")).toBe("Ada")
      const all: Effect.Effect<ReadonlyArray<string>, unknown, Scope.Scope> = Effect.forEach(
        clients,
        (client) => text(client, "far_ask"),
        { concurrency: "unbounded" }
      )
      expect(yield* all).toEqual(["Ada", "Ada", "Ada"])
      // The first one keeps the connection that lists.
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 2 })
    }))

  it.live("gives each of several stateless calls a connection of its own while they wait for answers", () =>
    Effect.gen(function*() {
      const far = yield* build(asking)
      const { gateway, near } = yield* gatewayOf(new Configuration({ far: { running: far, revision: "2025-11-25" } }))
      const client = yield* connect(near, "2026-07-28", {}, answering)
      expect(yield* text(client, "far_ask")).toBe("Ada")
      // One after another they use the shared connection.
      expect(yield* text(client, "far_ask")).toBe("Ada")
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 0 })
      // A call that is never answered takes it away.
      const left = yield* Effect.flip(client.callTool("far_ask", {}, { inputRequests: "fail" }))
      expect(left.reason._tag).toBe("InputRequired")
      const all = yield* Effect.forEach([1, 2, 3], () => text(client, "far_ask"), { concurrency: "unbounded" })
      expect(all).toEqual(["Ada", "Ada", "Ada"])
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 3, parkedCalls: 1 })
      // The next ones use the same connections again.
      yield* Effect.forEach([1, 2, 3], () => text(client, "far_ask"), { concurrency: "unbounded" })
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 3 })
    }))

  it.live("call: lends a connection to one call at a time", () =>
    Effect.gen(function*() {
      const far = yield* build(asking)
      const { gateway, near } = yield* gatewayOf(
        new Configuration({ far: { running: far, revision: "2025-11-25", gateway: { connections: "call" } } })
      )
      const client = yield* connect(near, "2025-11-25", {}, answering)
      for (const _ of [1, 2]) expect(yield* text(client, "far_ask")).toBe("Ada")
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 1 })
      yield* Effect.forEach([1, 2], () => text(client, "far_ask"), { concurrency: "unbounded" })
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 2 })
    }))

  it.live("is not used with connections: shared", () =>
    Effect.gen(function*() {
      const far = yield* build(asking)
      const { gateway, near } = yield* gatewayOf(
        new Configuration({ far: { running: far, revision: "2025-11-25", gateway: { connections: "shared" } } })
      )
      const client = yield* connect(near, "2025-11-25", {}, answering)
      expect(yield* text(client, "far_ask")).toBe("Ada")
      expect(yield* text(client, "far_hello")).toBe("Hello")
      expect(yield* stateOf(gateway, "far")).toMatchObject({ connections: 0 })
    }))
})
