import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import * as Middleware from "@skein/server/Middleware"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as kit from "../kit.ts"
import { pass, resource, set, template, tool, updated } from "./kit.ts"

describe("resources/subscribe", () => {
  for (const revision of Revision.sessionBased) {
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

    it.effect(`${revision} · Resource not found: -32002, for an unknown resource; -32601 without resources`, () =>
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

  it.effect("refuses a session's subscription beyond 1,000 resources, or maxResources, until it gives one up", () =>
    Effect.gen(function*() {
      for (const [max, options] of [[1000, {}], [2, { fixed: { maxResources: 2 } }]] as const) {
        const { connect, run } = yield* set(options, [template])
        const client = yield* connect("2025-11-25")
        for (let i = 0; i < max; i++) yield* client.result("resources/subscribe", { uri: `notes://${i}` })
        const refused = yield* client.error("resources/subscribe", { uri: "notes://more" })
        expect(refused).toEqual({
          code: -32603,
          message: `A session may subscribe to at most ${max} resources`
        })
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

  it.effect("removes the subscriptions of a session that ends", () =>
    Effect.gen(function*() {
      const { context, subscriptions, server } = yield* set({}, [template])
      const scope = yield* Scope.make()
      const client = yield* Scope.provide(Effect.provide(kit.connect("2025-11-25"), context), scope)
      for (const uri of ["notes://1", "notes://2"]) yield* client.result("resources/subscribe", { uri })
      expect(subscriptions.subscribedResources).toBe(2)
      expect((yield* server.inspect).sessions.map(({ subscriptions }) => subscriptions)).toEqual([
        ["notes://1", "notes://2"]
      ])
      yield* Scope.close(scope, Exit.void)
      expect(subscriptions.subscribedResources).toBe(0)
      expect(subscriptions.peers.size).toBe(0)
    }))

  it.effect("removes a subscription that is made while its session ends", () =>
    Effect.gen(function*() {
      const slow = Middleware.layer((next) => (exchange) =>
        exchange.method === "resources/subscribe"
          ? Effect.andThen(Effect.sleep("1 second"), next(exchange))
          : next(exchange)
      )
      const { context, subscriptions } = yield* set({}, [slow, template])
      const client = yield* Effect.provide(kit.connect("2025-11-25"), context)
      const id = client.send("resources/subscribe", { uri: "notes://1" })
      yield* kit.settle
      subscriptions.peerClosed(client.peer)
      yield* pass("1 second")
      expect(client.answers(id).length).toBe(1)
      expect(subscriptions.subscribedResources).toBe(0)
    }))

  it.effect("sends a notification if a handler reports that a resource has changed", () =>
    Effect.gen(function*() {
      const touch = Tool.layer(Tool.make("touch"), () => Effect.as(Catalog.updated("r://a"), "touched"))
      const { connect } = yield* set({}, [touch, resource("r://a")])
      const client = yield* connect("2025-06-18")
      yield* client.result("resources/subscribe", { uri: "r://a" })
      yield* client.call("touch")
      yield* kit.settle
      expect(client.notices(updated).length).toBe(1)
    }))

  it.effect("2025-11-25 · MAY notify of a sub-resource of the subscribed resource", () =>
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
