/** Watches of resources: `Catalog.Watch`, which run while a URI has subscribers. */
import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Catalog from "@skein/server/Catalog"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as kit from "../kit.ts"
import { acknowledged, listen, set, updated } from "./kit.ts"

/** A resource that records what watches it. */
class Watched {
  readonly log: Array<string> = []
  confirm: Effect.Effect<void, McpError.McpError> = Effect.void

  readonly watch: Catalog.Watch = (uri) =>
    Effect.andThen(
      Effect.acquireRelease(
        Effect.sync(() => void this.log.push(`begin ${uri}`)),
        () => Effect.sync(() => void this.log.push(`end ${uri}`))
      ),
      Effect.suspend(() => this.confirm)
    )

  readonly layer = Layer.effectDiscard(Effect.flatMap(Catalog.Catalog, ({ resources, templates }) => {
    const read = () => Effect.succeed({ contents: [] })
    return Effect.andThen(
      resources.add("r://a", { definition: { uri: "r://a", name: "a" }, read, watch: this.watch }),
      templates.add("t://{id}", {
        definition: { uriTemplate: "t://{id}", name: "t" },
        names: ["id"],
        match: (uri) => uri.startsWith("t://") ? read : undefined,
        watch: this.watch
      })
    )
  }))
}

describe("a watch of a resource", () => {
  it.effect("begins with the first subscriber of a session and ends with the last one", () =>
    Effect.gen(function*() {
      const watched = new Watched()
      const { connect, subscriptions } = yield* set({}, [watched.layer])
      const one = yield* connect("2025-11-25")
      const scope = yield* Scope.make()
      const two = yield* Scope.provide(connect("2025-11-25"), scope)
      for (const client of [one, two, one]) {
        expect((yield* client.request("resources/subscribe", { uri: "r://a" })).result).toEqual({})
      }
      yield* two.request("resources/subscribe", { uri: "t://1" })
      expect(watched.log).toEqual(["begin r://a", "begin t://1"])
      yield* one.request("resources/unsubscribe", { uri: "r://a" })
      yield* one.request("resources/unsubscribe", { uri: "r://a" })
      expect(watched.log).toEqual(["begin r://a", "begin t://1"])
      yield* Scope.close(scope, Exit.void)
      yield* kit.settle
      expect(watched.log.slice(2).toSorted()).toEqual(["end r://a", "end t://1"])
      expect(subscriptions.watchedResources).toBe(0)
    }))

  it.effect("is confirmed before the subscription is, and refuses it with its failure", () =>
    Effect.gen(function*() {
      const watched = new Watched()
      const confirmed = yield* Deferred.make<void>()
      watched.confirm = Deferred.await(confirmed)
      const { connect, run, subscriptions } = yield* set({}, [watched.layer])
      const client = yield* connect("2025-11-25")
      const id = client.send("resources/subscribe", { uri: "r://a" })
      yield* kit.settle
      expect(client.answers(id)).toEqual([])
      yield* Deferred.succeed(confirmed, undefined)
      expect((yield* client.answer(id)).result).toEqual({})
      watched.confirm = Effect.fail(McpError.other(1001, "No"))
      expect(yield* client.error("resources/subscribe", { uri: "t://1" })).toMatchObject({ code: 1001, message: "No" })
      expect(watched.log).toEqual(["begin r://a", "begin t://1", "end t://1"])
      expect(subscriptions.watchedResources).toBe(1)
      yield* run(Catalog.updated("t://1"))
      yield* run(Catalog.updated("r://a"))
      yield* kit.settle
      const updates = client.received.filter(({ method }) => method === updated)
      expect(updates.map(({ params }) => params.uri)).toEqual(["r://a"])
    }))

  it.effect("2026-07-28 · runs as long as a listen, whose acknowledgment omits the URIs that it refuses", () =>
    Effect.gen(function*() {
      const watched = new Watched()
      const { connect, subscriptions } = yield* set({}, [watched.layer])
      const client = yield* connect()
      yield* listen(client, { resourceSubscriptions: ["r://a", "t://1"] }, "one")
      watched.confirm = Effect.fail(McpError.methodNotFound("resources/subscribe"))
      yield* listen(client, { resourceSubscriptions: ["r://a", "t://2"] }, "two")
      const notifications = client.received.filter(({ method }) => method === acknowledged)
        .map(({ params }) => params.notifications.resourceSubscriptions)
      expect(notifications).toEqual([["r://a", "t://1"], ["r://a"]])
      for (const requestId of ["one", "two"]) client.notify("notifications/cancelled", { requestId })
      yield* kit.settle
      expect(watched.log.filter((line) => line.startsWith("end")).toSorted()).toEqual([
        "end r://a",
        "end t://1",
        "end t://2"
      ])
      expect(subscriptions.watchedResources).toBe(0)
    }))

  it.effect("ends when the subscriber is cancelled before the confirmation", () =>
    Effect.gen(function*() {
      const watched = new Watched()
      watched.confirm = Effect.never
      const { connect, subscriptions } = yield* set({}, [watched.layer])
      const client = yield* connect("2025-11-25")
      const requestId = client.send("resources/subscribe", { uri: "r://a" })
      yield* kit.settle
      client.notify("notifications/cancelled", { requestId })
      yield* kit.settle
      expect(watched.log).toEqual(["begin r://a", "end r://a"])
      expect(subscriptions.watchedResources).toBe(0)
    }))
})
