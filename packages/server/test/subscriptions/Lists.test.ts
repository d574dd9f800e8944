import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Catalog from "@skein/server/Catalog"
import * as EventBus from "@skein/server/EventBus"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as kit from "../kit.ts"
import {
  acknowledged,
  all,
  filter,
  id,
  kinds,
  listen,
  one,
  pass,
  resource,
  set,
  template,
  tool,
  updated
} from "./kit.ts"

describe("list changed", () => {
  for (const revision of Revision.sessionBased) {
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
          // And no other message was sent.
          expect(client.received.filter((message) => message.method !== undefined).length).toBe(2)
        }))
    }
  }

  for (const kind of all) {
    const [, method] = kinds[kind]
    it.effect(`2026-07-28 · it SHOULD be sent to subscribed clients, and to no others: ${kind}`, () =>
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

  it.effect("sends one notification for many changes, after a delay from the first; each kind has its own", () =>
    Effect.gen(function*() {
      const { connect, offer } = yield* set({ fixed: { listChangedDelay: 1_000 } })
      const client = yield* connect("2025-11-25")
      yield* kit.settle
      for (let i = 0; i < 30; i++) {
        yield* offer("tools", `t${i}`)
        if (i === 15) yield* offer("prompts", "late")
        yield* pass(50)
      }
      // 1.5 seconds of changes: one notification was sent after one second, and the next one is scheduled.
      expect(client.notices(kinds.tools[1]).length).toBe(1)
      expect(client.notices(kinds.prompts[1]).length).toBe(0)
      yield* pass("1 second")
      expect(client.notices(kinds.tools[1]).length).toBe(2)
      expect(client.notices(kinds.prompts[1]).length).toBe(1)
      yield* pass("1 minute")
      expect(client.received.filter(({ method }) => method !== undefined).length).toBe(3)
    }))

  it.effect("sends changes of templates as those of resources", () =>
    Effect.gen(function*() {
      const { connect, context } = yield* set({}, [resource("r://r")])
      const client = yield* connect("2025-11-25")
      yield* kit.settle
      yield* Layer.build(Layer.provide(template, Layer.succeedContext(context)))
      yield* pass(50)
      expect(client.notices(kinds.resources[1]).length).toBe(1)
    }))

  it.effect("2025-11-25 · sends no change before notifications/initialized", () =>
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

  it.effect("sends only kinds that were declared to the session, or are in declareListChanged", () =>
    Effect.gen(function*() {
      for (const offers of [[], ["prompts"]] as const) {
        const { connect, offer } = yield* set({ declareListChanged: offers }, [tool("t")])
        const client = yield* connect("2025-11-25")
        yield* kit.settle
        yield* offer("prompts", "p")
        yield* pass(50)
        expect(client.notices(kinds.prompts[1]).length).toBe(offers.length)
        // A later session is notified, because the kind was declared to it.
        const later = yield* connect("2025-11-25")
        yield* kit.settle
        yield* offer("prompts", "q")
        yield* pass(50)
        expect(later.notices(kinds.prompts[1]).length).toBe(1)
      }
    }))

  it.effect("starts no timer for a change while no client is connected", () =>
    Effect.gen(function*() {
      const { connect, offer } = yield* set()
      yield* offer("tools", "a")
      const client = yield* connect("2025-11-25")
      yield* pass(50)
      expect(client.notices(kinds.tools[1])).toEqual([])
    }))
})

describe("slow readers", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · do not delay other clients, and receive one notification for many changes`, () =>
      Effect.gen(function*() {
        const { connect, subscriptions, offer, run, server } = yield* set({}, [...one, resource("r://s")])
        const [near, far] = yield* InMemoryTransport.make()
        const connection = new kit.SlowReader(near, 1)
        const slow = new kit.Client(far, yield* server.serve(connection), revision)
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
        connection.pause()
        for (let i = 0; i < 100; i++) {
          yield* run(Catalog.updated("r://r"))
          yield* run(Catalog.updated("r://s"))
          yield* offer("tools", `t${i}`)
          yield* pass(50)
        }
        expect(quick.notices(updated).length).toBe(200)
        expect(quick.notices(kinds.tools[1]).length).toBe(100)
        expect(slow.received.length).toBe(before)
        connection.resume()
        yield* kit.settle
        const notified = slow.received.slice(before).map(({ method, params }) => params?.uri ?? method)
        // The first was already being sent. Each of the other kinds has one more.
        expect(notified.toSorted()).toEqual(["r://r", "r://r", "r://s", kinds.tools[1]].toSorted())
        yield* run(Catalog.updated("r://s"))
        yield* kit.settle
        expect(slow.received.length).toBe(before + 5)
        expect(subscriptions.peers.size).toBe(2)
      }))
  }
})

describe("the bus", () => {
  it.effect("carries changes of one process to the subscribers of another", () =>
    Effect.gen(function*() {
      const bus = yield* EventBus.make
      const build = Effect.gen(function*() {
        const layer = McpServer.layer({ name: "test", version: "1.0.0" }, ...one) as kit.Server
        return yield* Layer.build(Layer.provide(layer, Layer.succeed(EventBus.EventBus, bus)))
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

  it.effect("delivers a process its own changes once", () =>
    Effect.gen(function*() {
      const layer = Layer.provide(
        McpServer.layer({ name: "t", version: "1" }, ...one) as kit.Server,
        EventBus.layerMemory
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

  it.effect("delivers nothing to a closed server", () =>
    Effect.gen(function*() {
      let notified = 0
      const listeners = new Set<(change: EventBus.Change) => void>()
      const bus = EventBus.EventBus.of({
        publish: (change) => Effect.sync(() => listeners.forEach((f) => f(change))),
        subscribe: (f) => {
          const counted = (change: EventBus.Change) => {
            notified++
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
        Layer.build(Layer.provide(layer, Layer.succeed(EventBus.EventBus, bus))),
        scope
      )
      yield* Effect.provide(Catalog.updated("r://r"), context)
      expect([notified, listeners.size]).toEqual([1, 1])
      yield* Scope.close(scope, Exit.void)
      yield* pass("1 second")
      expect([notified, listeners.size]).toEqual([1, 0])
    }))
})
