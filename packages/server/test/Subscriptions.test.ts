import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Link from "@skein/runtime/Link"
import * as Catalog from "@skein/server/Catalog"
import * as ChangeBus from "@skein/server/ChangeBus"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"

const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.succeed("ok"))
const prompt = (name: string) => Prompt.layer(Prompt.make(name), () => Effect.succeed("ok"))
const resource = (uri: string) => Resource.layer(Resource.make(uri), Effect.succeed("ok"))
const template = ResourceTemplate.layer(
  ResourceTemplate.make("notes://{id}", { name: "note" }),
  ({ id }) => Effect.succeed(id)
)
const kinds = {
  tools: [tool, "notifications/tools/list_changed", "toolsListChanged"],
  prompts: [prompt, "notifications/prompts/list_changed", "promptsListChanged"],
  resources: [(name: string) => resource(`r://${name}`), "notifications/resources/list_changed", "resourcesListChanged"]
} as const
type Kind = keyof typeof kinds
const all: ReadonlyArray<Kind> = ["tools", "prompts", "resources"]
const one = [tool("t"), prompt("p"), resource("r://r"), template]
const id = "io.modelcontextprotocol/subscriptionId"
const updated = "notifications/resources/updated"
const acknowledged = "notifications/subscriptions/acknowledged"

/** A server with one of each, its clients, and what changes it. */
const set = (options: Partial<McpServer.Options> = {}, definitions: ReadonlyArray<McpServer.Definitions> = one) =>
  Effect.gen(function*() {
    const layer = McpServer.layer({ name: "test", version: "1.0.0", ...options }, ...definitions) as kit.Server
    const scope = yield* Scope.make()
    const context = yield* Scope.provide(Layer.build(layer), scope)
    const server = Context.get(context, McpServer.McpServer)
    return {
      context,
      hub: server.host.hub,
      server,
      close: Scope.close(scope, Exit.void),
      connect: (revision: Revision.Revision = Revision.latest) => Effect.provide(kit.connect(revision), context),
      run: <A, E>(effect: Effect.Effect<A, E, Catalog.Catalog>) => Effect.provide(effect, context),
      /** Offers one more; the scope takes it back. */
      offer: (kind: Kind, name: string) =>
        Effect.gen(function*() {
          const scope = yield* Scope.make()
          const layer = Layer.provide(kinds[kind][0](name), Layer.succeedContext(context))
          yield* Scope.provide(Layer.build(layer), scope)
          return scope
        })
    }
  })

/** Opens a subscription, and waits for what comes first. */
const listen = (client: kit.Client, notifications: kit.Json, as?: string | number) =>
  Effect.gen(function*() {
    const params = { notifications, _meta: kit.meta() }
    const asked = client.sendRaw("subscriptions/listen", params, as)
    yield* kit.settle
    return asked
  })

const filter = (kind: Kind) => ({ [kinds[kind][2]]: true })

/** Lets a time pass, and everything that it wakes. */
const pass = (time: Duration.Input) => Effect.andThen(Effect.andThen(kit.settle, TestClock.adjust(time)), kit.settle)

describe("list changed", () => {
  for (const revision of Revision.sessionEra) {
    for (const kind of all) {
      const [, method] = kinds[kind]
      it.effect(`${revision} · when the list changes, servers that declared listChanged SHOULD send a notification: ${kind}`, () =>
        Effect.gen(function*() {
          const { connect, offer } = yield* set()
          const client = yield* connect(revision)
          yield* kit.settle
          const scope = yield* offer(kind, "new")
          yield* pass(49)
          expect(client.notices(method)).toEqual([])
          yield* pass(1)
          expect(client.notices(method)).toEqual([{ jsonrpc: "2.0", method }])
          yield* Scope.close(scope, Exit.void)
          yield* pass(50)
          expect(client.notices(method).length).toBe(2)
          // And nothing else was said.
          expect(client.received.filter((message) => message.method !== undefined).length).toBe(2)
        }))
    }
  }

  for (const kind of all) {
    const [, method] = kinds[kind]
    it.effect(`2026-07-28 · it SHOULD be sent to those who listen, and to them alone: ${kind}`, () =>
      Effect.gen(function*() {
        const { connect, offer } = yield* set()
        const client = yield* connect("2026-07-28")
        const silent = yield* connect("2026-07-28")
        const asked = yield* listen(client, filter(kind), "mine")
        for (const other of all) yield* offer(other, "new")
        yield* pass(50)
        // The server MUST NOT send notification types the client has not explicitly requested.
        expect(client.received.map((message) => message.method)).toEqual([acknowledged, method])
        expect(client.notices(method)).toEqual([{ jsonrpc: "2.0", method, params: { _meta: { [id]: asked } } }])
        expect(silent.received).toEqual([])
      }))
  }

  it.effect("many changes are one notice, from the first one on; each kind has its own", () =>
    Effect.gen(function*() {
      const { connect, offer } = yield* set({ listChangedDebounce: "1 second" })
      const client = yield* connect("2025-11-25")
      yield* kit.settle
      for (let i = 0; i < 30; i++) {
        yield* offer("tools", `t${i}`)
        if (i === 15) yield* offer("prompts", "late")
        yield* pass(50)
      }
      // 1.5 seconds of changes: one notice after one second, the next is on its way.
      expect(client.notices(kinds.tools[1]).length).toBe(1)
      expect(client.notices(kinds.prompts[1]).length).toBe(0)
      yield* pass("1 second")
      expect(client.notices(kinds.tools[1]).length).toBe(2)
      expect(client.notices(kinds.prompts[1]).length).toBe(1)
      yield* pass("1 minute")
      expect(client.received.filter(({ method }) => method !== undefined).length).toBe(3)
    }))

  it.effect("templates are of the resources", () =>
    Effect.gen(function*() {
      const { connect, context } = yield* set({}, [resource("r://r")])
      const client = yield* connect("2025-11-25")
      yield* kit.settle
      yield* Layer.build(Layer.provide(template, Layer.succeedContext(context)))
      yield* pass(50)
      expect(client.notices(kinds.resources[1]).length).toBe(1)
    }))

  it.effect("2025-11-25 · nothing is sent before notifications/initialized", () =>
    Effect.gen(function*() {
      const { context, offer } = yield* set()
      const client = yield* Effect.provide(kit.link("2025-11-25"), context)
      yield* client.result("initialize", kit.hello("2025-11-25"))
      yield* offer("tools", "a")
      yield* pass(50)
      client.notify("notifications/initialized")
      yield* kit.settle
      expect(client.notices(kinds.tools[1])).toEqual([])
      yield* offer("tools", "b")
      yield* pass(50)
      expect(client.notices(kinds.tools[1]).length).toBe(1)
    }))

  it.effect("no notices of a kind that was not declared to the session; offers declares it from the start", () =>
    Effect.gen(function*() {
      for (const offers of [[], ["prompts"]] as const) {
        const { connect, offer } = yield* set({ offers }, [tool("t")])
        const client = yield* connect("2025-11-25")
        yield* kit.settle
        yield* offer("prompts", "p")
        yield* pass(50)
        expect(client.notices(kinds.prompts[1]).length).toBe(offers.length)
        // A later session is told of it.
        const later = yield* connect("2025-11-25")
        yield* kit.settle
        yield* offer("prompts", "q")
        yield* pass(50)
        expect(later.notices(kinds.prompts[1]).length).toBe(1)
      }
    }))

  it.effect("while nobody is there nothing is started for a change", () =>
    Effect.gen(function*() {
      const { connect, offer } = yield* set()
      yield* offer("tools", "a")
      const client = yield* connect("2025-11-25")
      yield* pass(50)
      expect(client.notices(kinds.tools[1])).toEqual([])
    }))
})

describe("resources/subscribe", () => {
  for (const revision of Revision.sessionEra) {
    it.effect(`${revision} · clients can subscribe to specific resources and receive notifications when they change`, () =>
      Effect.gen(function*() {
        const { connect, run } = yield* set({}, [resource("r://a"), resource("r://b"), template])
        const client = yield* connect(revision)
        const other = yield* connect(revision)
        expect(yield* client.result("resources/subscribe", { uri: "r://a" })).toEqual({})
        yield* client.result("resources/subscribe", { uri: "r://a" })
        yield* client.result("resources/subscribe", { uri: "notes://1" })
        yield* other.result("resources/subscribe", { uri: "r://b" })
        for (const uri of ["r://a", "r://b", "notes://1", "notes://2", "r://nothing"]) yield* run(Catalog.updated(uri))
        yield* kit.settle
        expect(client.notices(updated)).toEqual([
          { jsonrpc: "2.0", method: updated, params: { uri: "r://a" } },
          { jsonrpc: "2.0", method: updated, params: { uri: "notes://1" } }
        ])
        expect(other.notices(updated).map(({ params }) => params.uri)).toEqual(["r://b"])
        expect(yield* client.result("resources/unsubscribe", { uri: "r://a" })).toEqual({})
        expect(yield* client.result("resources/unsubscribe", { uri: "r://a" })).toEqual({})
        expect(yield* client.result("resources/unsubscribe", { uri: "r://never" })).toEqual({})
        yield* run(Catalog.updated("r://a"))
        yield* kit.settle
        expect(client.notices(updated).length).toBe(2)
      }))

    it.effect(`${revision} · Resource not found: -32002, for one that nobody reads; -32601 where there are no resources`, () =>
      Effect.gen(function*() {
        const { connect } = yield* set()
        const client = yield* connect(revision)
        expect(yield* client.error("resources/subscribe", { uri: "r://nothing" })).toEqual(
          yield* client.error("resources/read", { uri: "r://nothing" })
        )
        expect((yield* client.error("resources/subscribe", { uri: "r://nothing" })).code).toBe(-32002)
        expect((yield* client.error("resources/subscribe", {})).code).toBe(-32602)
        const none = yield* Effect.flatMap(set({}, [tool("t")]), ({ connect }) => connect(revision))
        expect((yield* none.error("resources/subscribe", { uri: "r://r" })).code).toBe(-32601)
      }))
  }

  it.effect("a session may watch 1,000 resources; one more is refused, until one is given up; maxResources is the option", () =>
    Effect.gen(function*() {
      for (const [max, options] of [[1000, {}], [2, { subscriptions: { maxResources: 2 } }]] as const) {
        const { connect, run } = yield* set(options, [template])
        const client = yield* connect("2025-11-25")
        for (let i = 0; i < max; i++) yield* client.result("resources/subscribe", { uri: `notes://${i}` })
        const refused = yield* client.error("resources/subscribe", { uri: "notes://more" })
        expect(refused).toEqual({ code: -32603, message: `A session may subscribe to ${max} resources at most` })
        yield* run(Catalog.updated("notes://more"))
        yield* client.result("resources/subscribe", { uri: "notes://0" })
        yield* client.result("resources/unsubscribe", { uri: "notes://0" })
        yield* client.result("resources/subscribe", { uri: "notes://more" })
        yield* kit.settle
        expect(client.notices(updated)).toEqual([])
        const other = yield* connect("2025-11-25")
        yield* other.result("resources/subscribe", { uri: "notes://0" })
      }
    }))

  it.effect("a session that ends leaves no subscription behind", () =>
    Effect.gen(function*() {
      const { context, hub } = yield* set({}, [template])
      const scope = yield* Scope.make()
      const client = yield* Scope.provide(Effect.provide(kit.connect("2025-11-25"), context), scope)
      for (const uri of ["notes://1", "notes://2"]) yield* client.result("resources/subscribe", { uri })
      expect(hub.watched).toBe(2)
      yield* Scope.close(scope, Exit.void)
      expect(hub.watched).toBe(0)
      expect(hub.peers.size).toBe(0)
    }))

  it.effect("a handler says that a resource has changed", () =>
    Effect.gen(function*() {
      const touch = Tool.layer(Tool.make("touch"), () => Effect.as(Catalog.updated("r://a"), "touched"))
      const { connect } = yield* set({}, [touch, resource("r://a")])
      const client = yield* connect("2025-06-18")
      yield* client.result("resources/subscribe", { uri: "r://a" })
      yield* client.call("touch")
      yield* kit.settle
      expect(client.notices(updated).length).toBe(1)
    }))

  it.effect("2025-11-25 · this might be a sub-resource of the one that the client actually subscribed to", () =>
    Effect.gen(function*() {
      const { connect, run } = yield* set({}, [
        resource("r://dir"),
        resource("r://dir/file"),
        resource("r://dir/hidden")
      ])
      const client = yield* connect("2025-11-25")
      const both = yield* connect("2025-11-25")
      yield* client.result("resources/subscribe", { uri: "r://dir" })
      for (const uri of ["r://dir", "r://dir/file"]) yield* both.result("resources/subscribe", { uri })
      yield* run(Catalog.updated("r://dir/file", { parent: "r://dir" }))
      yield* run(Catalog.updated("r://dir/file"))
      yield* run(Catalog.updated("r://dir/nothing", { parent: "r://dir" }))
      yield* kit.settle
      expect(client.notices(updated).map(({ params }) => params.uri)).toEqual(["r://dir/file"])
      expect(both.notices(updated).map(({ params }) => params.uri)).toEqual(["r://dir/file", "r://dir/file"])
    }))
})

describe("subscriptions/listen", () => {
  it.effect("2026-07-28 · MUST send the acknowledgment first, with the subset that the server agreed to honor", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({}, [tool("t"), resource("r://a"), template])
      const client = yield* connect()
      const asked = yield* listen(client, {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: false,
        resourceSubscriptions: ["r://a", "r://nothing", "notes://1", "r://a", "no uri at all"],
        taskIds: ["1"]
      })
      const notifications = { toolsListChanged: true, resourceSubscriptions: ["r://a", "notes://1"] }
      expect(client.received).toEqual([
        { jsonrpc: "2.0", method: acknowledged, params: { _meta: { [id]: asked }, notifications } }
      ])
    }))

  it.effect("2026-07-28 · omitting a field is equivalent to not subscribing; an empty filter hears nothing", () =>
    Effect.gen(function*() {
      const { connect, offer, run } = yield* set()
      const client = yield* connect()
      yield* listen(client, {})
      for (const kind of all) yield* offer(kind, "new")
      yield* run(Catalog.updated("r://r"))
      yield* pass("1 second")
      expect(client.received.map(({ params }) => params.notifications)).toEqual([{}])
      expect((yield* client.error("subscriptions/listen", {})).code).toBe(-32602)
    }))

  for (const asked of [7, 0, "7", "", "a b"]) {
    it.effect(`2026-07-28 · the value is the JSON-RPC ID of the listen request, as it is: ${JSON.stringify(asked)}`, () =>
      Effect.gen(function*() {
        const { connect, offer, run } = yield* set()
        const client = yield* connect()
        yield* listen(client, { toolsListChanged: true, resourceSubscriptions: ["r://r"] }, asked)
        yield* run(Catalog.updated("r://r"))
        yield* offer("tools", "new")
        yield* pass(50)
        expect(client.received.map(({ method, params }) => [method, params._meta[id], params.uri])).toEqual([
          [acknowledged, asked, undefined],
          [updated, asked, "r://r"],
          [kinds.tools[1], asked, undefined]
        ])
      }))
  }

  it.effect("2026-07-28 · a client MAY have multiple active subscriptions concurrently, each with its own ID", () =>
    Effect.gen(function*() {
      const { connect, hub, offer, run } = yield* set()
      const client = yield* connect()
      const tools = yield* listen(client, { toolsListChanged: true })
      const watch = yield* listen(client, { resourceSubscriptions: ["r://r"] })
      const again = yield* listen(client, { resourceSubscriptions: ["r://r"] })
      yield* offer("tools", "new")
      yield* run(Catalog.updated("r://r"))
      yield* pass(50)
      const heard = client.received.slice(3).map(({ method, params }) => [method, params._meta[id]])
      expect(heard).toEqual([[updated, watch], [updated, again], [kinds.tools[1], tools]])
      // The client cancels one: nothing more is sent of it, not even an answer.
      client.notify("notifications/cancelled", { requestId: watch })
      yield* kit.settle
      expect([...hub.listens].map(({ exchange }) => exchange.id)).toEqual([tools, again])
      yield* run(Catalog.updated("r://r"))
      yield* kit.settle
      expect(client.received.slice(6).map(({ params }) => params._meta[id])).toEqual([again])
      expect(client.answers(watch)).toEqual([])
    }))

  it.effect("2026-07-28 · when the server ends it, it SHOULD respond with a completion result that carries the ID", () =>
    Effect.gen(function*() {
      const { connect, hub, offer } = yield* set()
      const client = yield* connect()
      const asked = [yield* listen(client, filter("tools"), "s"), yield* listen(client, filter("tools"), 5)]
      hub.end()
      for (const of of asked) {
        const { result } = yield* client.answer(of)
        expect(result).toEqual({
          resultType: "complete",
          _meta: { [id]: of, "io.modelcontextprotocol/serverInfo": { name: "test", version: "1.0.0" } }
        })
      }
      yield* offer("tools", "new")
      yield* pass(50)
      expect(client.notices(kinds.tools[1])).toEqual([])
      expect([...hub.listens]).toEqual([])
      // One that comes now ends at once, acknowledged all the same.
      const late = yield* listen(client, filter("tools"), "late")
      expect(client.received.slice(-2).map(({ id, method }) => method ?? id)).toEqual([acknowledged, late])
    }))

  it.effect("2026-07-28 · a server that closes ends its subscriptions with their result", () =>
    Effect.gen(function*() {
      const { context, hub } = yield* set()
      const scope = yield* Scope.make()
      const client = yield* Scope.provide(Effect.provide(kit.connect(), context), scope)
      const asked = yield* listen(client, filter("tools"))
      yield* Scope.close(scope, Exit.void)
      yield* kit.settle
      expect(client.answers(asked).map(({ result }) => result.resultType)).toEqual(["complete"])
      expect([...hub.listens]).toEqual([])
    }))

  it.effect("when the client has said all that it has to say, a subscription does not keep the connection for a grace", () =>
    Effect.gen(function*() {
      const { hub, server } = yield* set()
      const [near, far] = yield* Link.make()
      let end = (): void => {}
      const peer = yield* server.serve({
        open: (receiver) => {
          end = () => receiver.end({ _tag: "Ended" })
          near.open(receiver)
        },
        send: (message) => near.send(message),
        drained: near.drained,
        close: near.close
      })
      const client = new kit.Client(far, peer, "2026-07-28")
      const asked = yield* listen(client, filter("tools"))
      expect([...hub.listens].length).toBe(1)
      end()
      // No time passes: the clock is the test's, and stands.
      expect(yield* peer.ended).toEqual({ _tag: "Ended" })
      yield* kit.settle
      expect(client.answers(asked).length).toBe(1)
    }))

  it.effect("of a filter the first 1,000 resources are honoured, and the acknowledgment says which; maxResources is the option", () =>
    Effect.gen(function*() {
      const uris = Array.from({ length: 1001 }, (_, i) => `notes://${i}`)
      for (const [max, options] of [[1000, {}], [2, { subscriptions: { maxResources: 2 } }]] as const) {
        const { connect, run } = yield* set(options, [template])
        const client = yield* connect()
        yield* listen(client, { resourceSubscriptions: uris })
        expect(client.received[0].params.notifications).toEqual({ resourceSubscriptions: uris.slice(0, max) })
        for (const uri of [uris[max]!, uris[max - 1]!]) yield* run(Catalog.updated(uri))
        yield* kit.settle
        expect(client.notices(updated).map(({ params }) => params.uri)).toEqual([uris[max - 1]])
      }
    }))

  it.effect("at maxListens the next one is refused, until one ends", () =>
    Effect.gen(function*() {
      const { connect, hub } = yield* set({ subscriptions: { maxListens: 2 } })
      const client = yield* connect()
      const first = yield* listen(client, filter("tools"))
      yield* listen(client, filter("tools"))
      const refused = yield* client.error("subscriptions/listen", { notifications: filter("tools") })
      expect(refused).toEqual({ code: -32603, message: "The server has 2 subscriptions already" })
      expect([...hub.listens].length).toBe(2)
      client.notify("notifications/cancelled", { requestId: first })
      yield* kit.settle
      yield* listen(client, filter("tools"))
      expect([...hub.listens].length).toBe(2)
      expect(client.notices(acknowledged).length).toBe(3)
    }))

  it.effect("at maxListensPerPrincipal one's next one is refused, and nobody else's", () =>
    Effect.gen(function*() {
      const { hub, server } = yield* set({ subscriptions: { maxListensPerPrincipal: 1 } })
      const ann = yield* kit.linkAs(server, { id: "ann" })
      const bob = yield* kit.linkAs(server, { id: "bob" })
      const unknown = yield* kit.linkAs(server, undefined)
      const first = yield* listen(ann, filter("tools"))
      const refused = yield* ann.error("subscriptions/listen", { notifications: {} })
      expect(refused).toEqual({ code: -32603, message: "One principal may have 1 subscriptions at most" })
      yield* listen(bob, filter("tools"))
      for (let i = 0; i < 3; i++) yield* listen(unknown, filter("tools"))
      expect([...hub.listens].length).toBe(5)
      ann.notify("notifications/cancelled", { requestId: first })
      yield* kit.settle
      yield* listen(ann, filter("tools"))
      expect([...hub.listens].length).toBe(5)
    }))

  for (const revision of Revision.sessionEra) {
    it.effect(`${revision} · is not found there: -32601`, () =>
      Effect.gen(function*() {
        const client = yield* Effect.flatMap(set(), ({ connect }) => connect(revision))
        expect((yield* client.error("subscriptions/listen", { notifications: {} })).code).toBe(-32601)
      }))
  }
})

describe("slow readers", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · who does not read delays nobody, and hears once of what changed often`, () =>
      Effect.gen(function*() {
        const { connect, hub, offer, run, server } = yield* set({}, [...one, resource("r://s")])
        const [near, far] = yield* Link.make({ maxQueued: 1 })
        const slow = new kit.Client(far, yield* server.serve(near), revision)
        const watch = (client: kit.Client) =>
          Effect.gen(function*() {
            if (revision === "2026-07-28") {
              return void (yield* listen(client, { toolsListChanged: true, resourceSubscriptions: ["r://r", "r://s"] }))
            }
            if (client === slow) {
              yield* client.result("initialize", kit.hello(revision))
              client.notify("notifications/initialized")
            }
            for (const uri of ["r://r", "r://s"]) yield* client.result("resources/subscribe", { uri })
          })
        yield* watch(slow)
        const quick = yield* connect(revision)
        yield* watch(quick)
        const before = slow.received.length
        far.pause!()
        for (let i = 0; i < 100; i++) {
          yield* run(Catalog.updated("r://r"))
          yield* run(Catalog.updated("r://s"))
          yield* offer("tools", `t${i}`)
          yield* pass(50)
        }
        expect(quick.notices(updated).length).toBe(200)
        expect(quick.notices(kinds.tools[1]).length).toBe(100)
        expect(slow.received.length).toBe(before)
        far.resume!()
        yield* kit.settle
        const heard = slow.received.slice(before).map(({ method, params }) => params?.uri ?? method)
        // The first was on its way; of each of the others one more.
        expect(heard.toSorted()).toEqual(["r://r", "r://r", "r://s", kinds.tools[1]].toSorted())
        yield* run(Catalog.updated("r://s"))
        yield* kit.settle
        expect(slow.received.length).toBe(before + 5)
        expect(hub.peers.size).toBe(2)
      }))
  }
})

describe("the bus", () => {
  it.effect("what changes in one process is heard by those who listen to another", () =>
    Effect.gen(function*() {
      const bus = yield* ChangeBus.memory
      const build = Effect.gen(function*() {
        const layer = McpServer.layer({ name: "test", version: "1.0.0" }, ...one) as kit.Server
        return yield* Layer.build(Layer.provide(layer, Layer.succeed(ChangeBus.ChangeBus, bus)))
      })
      const [left, right] = [yield* build, yield* build]
      const session = yield* Effect.provide(kit.connect("2025-11-25"), right)
      const modern = yield* Effect.provide(kit.connect(), right)
      yield* session.result("resources/subscribe", { uri: "r://r" })
      yield* listen(modern, { toolsListChanged: true, resourceSubscriptions: ["r://r"] })
      yield* Effect.provide(Catalog.updated("r://r"), left)
      yield* Layer.build(Layer.provide(tool("new"), Layer.succeedContext(left)))
      yield* pass(50)
      for (const client of [session, modern]) {
        expect(client.notices(updated).length).toBe(1)
        expect(client.notices(kinds.tools[1]).length).toBe(1)
      }
    }))

  it.effect("a process hears of its own changes once", () =>
    Effect.gen(function*() {
      const layer = Layer.provide(
        McpServer.layer({ name: "t", version: "1" }, ...one) as kit.Server,
        ChangeBus.layerMemory
      )
      const client = yield* kit.client(layer, "2025-11-25")
      expect(client.received.length).toBe(1)
      const context = yield* Layer.build(layer)
      const other = yield* Effect.provide(kit.connect("2025-11-25"), context)
      yield* other.result("resources/subscribe", { uri: "r://r" })
      yield* Effect.provide(Catalog.updated("r://r"), context)
      yield* kit.settle
      expect(other.notices(updated).length).toBe(1)
    }))

  it.effect("a server that is closed hears nothing more", () =>
    Effect.gen(function*() {
      let heard = 0
      const listeners = new Set<(change: ChangeBus.Change) => void>()
      const bus = ChangeBus.ChangeBus.of({
        publish: (change) => Effect.sync(() => listeners.forEach((f) => f(change))),
        subscribe: (f) => {
          const counted = (change: ChangeBus.Change) => {
            heard++
            f(change)
          }
          return Effect.acquireRelease(
            Effect.sync(() => void listeners.add(counted)),
            () => Effect.sync(() => void listeners.delete(counted))
          )
        }
      })
      const layer = McpServer.layer({ name: "test", version: "1.0.0" }, ...one) as kit.Server
      const scope = yield* Scope.make()
      const context = yield* Scope.provide(
        Layer.build(Layer.provide(layer, Layer.succeed(ChangeBus.ChangeBus, bus))),
        scope
      )
      yield* Effect.provide(Catalog.updated("r://r"), context)
      expect([heard, listeners.size]).toEqual([1, 1])
      yield* Scope.close(scope, Exit.void)
      yield* pass("1 second")
      expect([heard, listeners.size]).toEqual([1, 0])
    }))
})
