/** The roots that a host provides. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Roots from "../../src/Roots.ts"
import type * as ScriptedServer from "@skein/testing/ScriptedServer"
import { ask, done, fork, inputRequired, type Json, logged, open, turns } from "./kit.ts"

const home = { uri: "file:///home/me", name: "Home" }
const work = { uri: "file:///work" }

const roots = (revision: Revision.Revision, host: Layer.Layer<Roots.Roots>) =>
  Effect.gen(function*() {
    if (revision !== "2026-07-28") {
      const { server } = yield* open(revision, host)
      return (yield* ask(server, "roots/list")).result
    }
    const rounds = [inputRequired({ q: { method: "roots/list" } }), done]
    const { client, server } = yield* open(revision, host, () => rounds.shift()!)
    yield* client.callTool("t")
    return (server.requests("tools/call")[1]!.params as Json).inputResponses.q
  })

const listChanges = (server: ScriptedServer.ScriptedServer) =>
  server.methods.filter((method) => method === "notifications/roots/list_changed").length

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("sends the roots to a server", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* roots(revision, Layer.orDie(Roots.layer([home, work]))), { roots: [home, work] })
        assert.deepStrictEqual(yield* roots(revision, Layer.orDie(Roots.layer([]))), { roots: [] })
      }))

    it.effect("sends the latest roots of a stream", () =>
      Effect.gen(function*() {
        const ref = yield* SubscriptionRef.make([home])
        const host = Roots.layerStream(SubscriptionRef.changes(ref))
        assert.deepStrictEqual(yield* roots(revision, host), { roots: [home] })
        yield* SubscriptionRef.set(ref, [])
        assert.deepStrictEqual(yield* roots(revision, host), { roots: [] })
      }))
  })
}

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("Prompt users for consent before exposing roots to servers: layerEffect receives the server and may return no roots", () =>
      logged((lines) =>
        Effect.gen(function*() {
          const asked: Array<unknown> = []
          const recording = (roots: ReadonlyArray<Roots.Root>) =>
            Roots.layerEffect((asker) => Effect.sync(() => (asked.push(asker), roots)))
          assert.deepStrictEqual(yield* roots(revision, recording([])), { roots: [] })
          assert.deepStrictEqual(yield* roots(revision, recording([{ uri: "https://x" }, home])), { roots: [home] })
          const server = { name: "scripted", version: "1.0.0" }
          const method = revision === "2026-07-28" ? "tools/call" : undefined
          const asker = { label: undefined, info: server, revision, method }
          assert.deepStrictEqual(asked, [asker, asker])
          assert.strictEqual(lines.filter((line) => line.includes("https://x")).length, 1)
        })
      ))
  })
}

for (const revision of Revision.sessionBased) {
  describe(revision, () => {
    it.effect("When roots change, clients that support `listChanged` MUST send a notification", () =>
      Effect.gen(function*() {
        const ref = yield* SubscriptionRef.make<ReadonlyArray<Roots.Root>>([home])
        const { server } = yield* open(revision, Roots.layerStream(SubscriptionRef.changes(ref)))
        yield* turns()
        assert.strictEqual(listChanges(server), 0)
        yield* SubscriptionRef.set(ref, [home, work])
        yield* turns()
        assert.strictEqual(listChanges(server), 1)
        assert.deepStrictEqual((yield* ask(server, "roots/list")).result, { roots: [home, work] })
        // Equal roots are not a change. The earlier roots again are.
        yield* SubscriptionRef.set(ref, [{ ...home }, { ...work }])
        yield* turns()
        assert.strictEqual(listChanges(server), 1)
        yield* SubscriptionRef.set(ref, [home])
        yield* turns()
        assert.strictEqual(listChanges(server), 2)
      }))

    it.effect("sends no notification for constant roots", () =>
      Effect.gen(function*() {
        const { server } = yield* open(revision, Layer.orDie(Roots.layer([home])))
        yield* turns()
        assert.deepStrictEqual(server.requests("initialize")[0]!.params!["capabilities"], { roots: {} })
        assert.strictEqual(listChanges(server), 0)
      }))
  })
}

describe("2026-07-28", () => {
  it.effect("has no notifications/roots/list_changed: responds to each request with the current roots", () =>
    Effect.gen(function*() {
      const ref = yield* SubscriptionRef.make<ReadonlyArray<Roots.Root>>([home])
      const replies = [1, 2].flatMap(() => [inputRequired({ q: { method: "roots/list" } }), done])
      const host = Roots.layerStream(SubscriptionRef.changes(ref))
      const { client, server } = yield* open("2026-07-28", host, () => replies.shift()!)
      yield* client.callTool("t")
      yield* SubscriptionRef.set(ref, [work])
      yield* turns()
      yield* client.callTool("t")
      assert.strictEqual(listChanges(server), 0)
      const sent = server.requests("tools/call").flatMap(({ params }) => (params as Json).inputResponses ?? [])
      assert.deepStrictEqual(sent, [{ q: { roots: [home] } }, { q: { roots: [work] } }])
    }))
})

describe("roots", () => {
  const good = [
    "file:///",
    "file:///home/user/projects/my%20project",
    "FILE:///C:/Users",
    "file://server/share/x",
    "file:///a/.hidden/..x/b.."
  ]
  const bad = [
    "",
    "/home",
    "https://example.com",
    "file:/home",
    "file:home",
    "file:///home/../etc",
    "file:///home/%2e%2E/etc",
    "file:///home/./x",
    "file:///home/..",
    "file:///home%2F..%2Fetc",
    "file:///home%5c..",
    "file:///home\\..\\etc",
    "file:///a%00b",
    "javascript:file:///x"
  ]

  it.effect("`uri`: This MUST be a `file://` URI; Validate all root URIs to prevent path traversal", () =>
    Effect.gen(function*() {
      for (const uri of good) {
        yield* Effect.scoped(Layer.build(Roots.layer([home, { uri }])))
      }
      for (const uri of bad) {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(Roots.layer([home, { uri }]))))
        assert.deepInclude(error, { _tag: "InvalidRoot", uri })
      }
    }))

  it.effect("omits invalid roots of a stream and logs them", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const host = Roots.layerStream(Stream.make([home, { uri: "https://example.com" }]))
        assert.deepStrictEqual(yield* roots("2025-11-25", host), { roots: [home] })
        assert.isTrue(lines.some((line) => line.startsWith("Error") && line.includes("https://example.com")))
      })
    ))

  it.effect("waits for the first roots of a stream, and keeps the last ones after its end", () =>
    Effect.gen(function*() {
      const first = yield* Deferred.make<void>()
      const stream = Stream.fromEffect(Effect.as(Deferred.await(first), [home]))
      const { server } = yield* open("2025-11-25", Roots.layerStream(stream))
      const asking = yield* fork(ask(server, "roots/list"))
      yield* turns()
      assert.isUndefined(server.received.find((message: Json) => message.id === "q"))
      yield* Deferred.succeed(first, undefined)
      yield* turns()
      assert.deepStrictEqual((asking.pollUnsafe() as Json)?.value.result, { roots: [home] })
      assert.deepStrictEqual((yield* ask(server, "roots/list", {}, "again")).result, { roots: [home] })
    }))

  it.effect("interrupts the stream with the layer, and sends few notifications for a thousand changes at once", () =>
    Effect.gen(function*() {
      let ended = 0
      const queue = yield* Queue.unbounded<ReadonlyArray<Roots.Root>>()
      const stream = Stream.fromQueue(queue).pipe(Stream.ensuring(Effect.sync(() => ended++)))
      const opened = Effect.gen(function*() {
        yield* Queue.offer(queue, [home])
        const { server } = yield* open("2025-11-25", Roots.layerStream(stream))
        for (let n = 0; n < 1_000; n++) yield* Queue.offer(queue, [{ uri: `file:///${n}` }])
        yield* turns(20)
        assert.deepStrictEqual((yield* ask(server, "roots/list")).result, { roots: [{ uri: "file:///999" }] })
        assert.isAtLeast(listChanges(server), 1)
        assert.isBelow(listChanges(server), 1_000)
      })
      yield* Effect.scoped(opened)
      assert.strictEqual(ended, 1)
    }))
})
