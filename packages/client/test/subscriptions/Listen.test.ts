/** Subscriptions in stateless revisions, against scripted servers. */
import { assert, describe, it } from "@effect/vitest"
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Reconnect from "../../src/Reconnect.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as kit from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

const revision = "2026-07-28"
const policy: Reconnect.Policy = { initialDelay: 1000, factor: 2, maxDelay: 4000, jitter: "none", maxAttempts: 3 }
const reconnect = policy

describe("subscriptions/listen", () => {
  it.effect("2026-07-28 · sends the filter unchanged, with the metadata of every request", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      yield* kit.run(client, { tools: true, prompts: false, resources: true, uris: ["a:b", "a:b", "a:c"] })
      const [request] = server.requests(kit.listen)
      assert.deepStrictEqual(request!.params?.["notifications"], {
        toolsListChanged: true,
        resourcesListChanged: true,
        resourceSubscriptions: ["a:b", "a:c"]
      })
      assert.strictEqual(kit.metaOf(request!)["io.modelcontextprotocol/protocolVersion"], revision)
    }))

  it.effect("2026-07-28 · the server MUST NOT send any notification on the subscription before the acknowledgment: ignores an early one", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, () => "no response")
      const seen = yield* kit.run(client, { tools: true, uris: ["a:b"] })
      kit.notifySubscription(server, kit.updated, { uri: "a:b" })
      kit.notifySubscription(server, "notifications/tools/list_changed")
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, [])
      kit.acknowledge(server, server.requests(kit.listen)[0]!)
      kit.notifySubscription(server, kit.updated, { uri: "a:b" })
      kit.notifySubscription(server, "notifications/tools/list_changed")
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "a:b", "ToolListChanged"])
    }))

  it.effect("2026-07-28 · SHOULD check the acknowledged filter: reports unhonoured parts without failing", () =>
    Effect.gen(function*() {
      const script: ScriptedServer.Script = (request, server) => {
        kit.acknowledge(server, request, {
          toolsListChanged: true,
          promptsListChanged: "yes",
          resourceSubscriptions: ["a:c", 7]
        })
        return "no response"
      }
      const { client } = yield* kit.open(revision, script)
      const seen = yield* kit.run(client, { tools: true, prompts: true, resources: true, uris: ["a:b", "a:c"] })
      assert.deepStrictEqual(seen.changes, [
        { _tag: "Subscribed", honoured: { tools: true, prompts: false, resources: false, uris: ["a:c"], taskIds: [] } }
      ])
    }))

  it.effect("2026-07-28 · never reports unrequested parts as honoured", () =>
    Effect.gen(function*() {
      const script: ScriptedServer.Script = (request, server) => {
        kit.acknowledge(server, request, {
          toolsListChanged: true,
          promptsListChanged: true,
          resourceSubscriptions: ["a:b"]
        })
        return "no response"
      }
      const { client, server } = yield* kit.open(revision, script)
      const seen = yield* kit.run(client, { tools: true })
      assert.deepStrictEqual(seen.changes, [
        { _tag: "Subscribed", honoured: { tools: true, prompts: false, resources: false, uris: [], taskIds: [] } }
      ])
      kit.notifySubscription(server, "notifications/prompts/list_changed")
      kit.notifySubscription(server, kit.updated, { uri: "a:b" })
      kit.notifySubscription(server, "notifications/tools/list_changed")
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "ToolListChanged"])
    }))

  it.effect("fails with Unsupported and cancels the subscription when the server honours nothing", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, (request, server) => {
        kit.acknowledge(server, request, {})
        return "no response"
      })
      const seen = yield* kit.run(client, { tools: true })
      assert.strictEqual((yield* seen.error).reason._tag, "Unsupported")
      assert.deepStrictEqual(kit.cancelled(server), [server.requests(kit.listen)[0]!.id])
    }))

  it.effect("fails with Unsupported and sends nothing for an empty filter", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      for (const filter of [{}, { tools: false, uris: [] }]) {
        const error = yield* Effect.flip(Stream.runDrain(client.changes(filter)))
        assert.strictEqual(error.reason._tag, "Unsupported")
      }
      assert.strictEqual(server.requests(kit.listen).length, 0)
    }))

  it.effect("fails with Unsupported when the server lacks the method, and passes on other errors of the server", () =>
    Effect.gen(function*() {
      const errors = [ScriptedServer.failure(-32601, "Method not found"), ScriptedServer.failure(-32602, "No")]
      const { client, server } = yield* kit.open(revision, () => errors.shift()!)
      const first = yield* (yield* kit.run(client, { tools: true })).error
      assert.strictEqual(first.reason._tag, "Unsupported")
      const second = yield* (yield* kit.run(client, { tools: true })).error
      assert.strictEqual(second.reason._tag, "ProtocolError")
      assert.strictEqual(fieldsOf(second).error?.reason, "InvalidParams")
      assert.strictEqual(server.requests(kit.listen).length, 2)
    }))

  it.effect("2026-07-28 · stdio · clients MUST use this field to correlate notifications with their originating subscription", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, () => "no response")
      const one = yield* kit.run(client, { tools: true, uris: ["a:1"] })
      const two = yield* kit.run(client, { tools: true, uris: ["a:2"] })
      const [first, second] = server.requests(kit.listen)
      // "Messages belonging to other subscriptions MAY be interleaved before it."
      kit.acknowledge(server, second!)
      kit.notifySubscription(server, kit.updated, { uri: "a:2" }, second!.id)
      kit.acknowledge(server, first!)
      kit.notifySubscription(server, kit.updated, { uri: "a:1" }, first!.id)
      kit.notifySubscription(server, "notifications/tools/list_changed", {}, second!.id)
      kit.notifySubscription(server, kit.updated, { uri: "a:1/sub" }, first!.id)
      kit.notifySubscription(server, kit.updated, { uri: "a:9" }, 999)
      server.notify(kit.updated, { uri: "a:1" })
      yield* kit.settle
      assert.deepStrictEqual(one.tags, ["Subscribed", "a:1", "a:1/sub"])
      assert.deepStrictEqual(two.tags, ["Subscribed", "a:2", "ToolListChanged"])
    }))

  it.effect("2026-07-28 · stdio · the client MUST send notifications/cancelled referencing the request: when the stream ends", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true })
      assert.deepStrictEqual(kit.cancelled(server), [])
      yield* seen.stop
      const [listened] = server.requests(kit.listen)
      assert.deepStrictEqual(kit.cancelled(server), [listened!.id])
      // Also when the consumer ends the stream itself.
      yield* Stream.runDrain(Stream.take(client.changes({ tools: true }), 1))
      yield* kit.settle
      assert.deepStrictEqual(kit.cancelled(server), server.requests(kit.listen).map(({ id }) => id))
    }))

  it.effect("does not apply request timeouts to a subscription", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, {
        limits: { timeout: 1000, maxTimeout: 2000 }
      })
      const seen = yield* kit.run(client, { tools: true })
      yield* kit.pass("30 days")
      kit.notifySubscription(server, "notifications/tools/list_changed")
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "ToolListChanged"])
      assert.deepStrictEqual(kit.cancelled(server), [])
    }))

  it.effect("ignores malformed notifications, and keeps the stream open", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true, uris: ["a:b"] })
      for (const params of [{}, { uri: 7 }, { uri: null }, { uri: ["a:b"] }]) {
        kit.notifySubscription(server, kit.updated, params)
      }
      kit.notifySubscription(server, "notifications/vendor/thing", { uri: "a:b" })
      kit.notifySubscription(server, kit.acknowledged, { notifications: {} })
      kit.notifySubscription(server, kit.acknowledged, { notifications: 7 })
      kit.notifySubscription(server, kit.updated, { uri: "a:b" })
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "a:b"])
    }))
})

describe("resubscribing", () => {
  it.effect("2026-07-28 · a response that ended the subscription gracefully: emits a Gap, waits, and subscribes again", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true }, { reconnect })
      kit.endSubscription(server)
      yield* kit.pass(999)
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Ended"])
      assert.strictEqual(server.requests(kit.listen).length, 1)
      yield* kit.pass(1)
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Ended", "Subscribed"])
      kit.notifySubscription(server, "notifications/tools/list_changed")
      yield* kit.settle
      assert.strictEqual(seen.tags.at(-1), "ToolListChanged")
      assert.deepStrictEqual(kit.cancelled(server), [])
    }))

  it.effect("2026-07-28 · cancellation · subscribes again when the server ends a subscription with notifications/cancelled", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true }, { reconnect })
      server.notify("notifications/cancelled", { requestId: server.requests(kit.listen)[0]!.id as number })
      yield* kit.pass(1000)
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost", "Subscribed"])
    }))

  it.effect("counts graceful ends as attempts: delays grow up to their maximum, then the stream fails", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, (request, server) => {
        kit.acceptSubscriptions(request, server)
        kit.endSubscription(server, request.id)
        return "no response"
      })
      const seen = yield* kit.run(client, { tools: true }, { reconnect: { ...policy, maxAttempts: 4 } })
      for (const [index, wait] of [1000, 2000, 4000, 4000].entries()) {
        assert.strictEqual(server.requests(kit.listen).length, index + 1)
        yield* kit.pass(wait - 1)
        assert.strictEqual(server.requests(kit.listen).length, index + 1)
        yield* kit.pass(1)
      }
      const error = yield* seen.error
      assert.strictEqual(error.reason._tag, "Closed")
      assert.instanceOf(error.cause, Reconnect.ReconnectExhausted)
      assert.strictEqual((error.cause as Reconnect.ReconnectExhausted).attempts, 4)
      assert.strictEqual(server.requests(kit.listen).length, 5)
    }))

  it.effect("resets the attempts after a subscription has lasted for a minute", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true }, { reconnect: policy })
      for (let round = 1; round <= 10; round++) {
        yield* kit.pass(60_000)
        kit.endSubscription(server)
        yield* kit.pass(1000)
        assert.strictEqual(server.requests(kit.listen).length, round + 1)
      }
      assert.strictEqual(seen.tags.filter((tag) => tag === "Subscribed").length, 11)
    }))

  it.effect("retries without an acknowledgment within the timeout, then fails; emits no Gap without an earlier subscription", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, () => "no response")
      const seen = yield* kit.run(client, { tools: true }, { reconnect: { ...policy, maxAttempts: 1 }, timeout: 5000 })
      yield* kit.pass(5000)
      assert.deepStrictEqual(kit.cancelled(server), [server.requests(kit.listen)[0]!.id])
      yield* kit.pass(1000)
      assert.strictEqual(server.requests(kit.listen).length, 2)
      yield* kit.pass(5000)
      const { cause } = yield* seen.error
      assert.strictEqual(((cause as Reconnect.ReconnectExhausted).cause as any).reason._tag, "Timeout")
      assert.deepStrictEqual(seen.tags, [])
    }))

  it.effect("waits for the client's request timeout when the subscription has no timeout", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, () => "no response", { limits: { timeout: 7000 } })
      yield* kit.run(client, { tools: true }, { reconnect })
      yield* kit.pass(6999)
      assert.deepStrictEqual(kit.cancelled(server), [])
      yield* kit.pass(1)
      assert.strictEqual(kit.cancelled(server).length, 1)
    }))

  it.effect("retries once after a server error for an accepted filter, and fails when the server rejects the filter", () =>
    Effect.gen(function*() {
      const replies: Array<ScriptedServer.Script> = [
        kit.acceptSubscriptions,
        () => ScriptedServer.failure(-32603, "Oops"),
        kit.acceptSubscriptions,
        () => ScriptedServer.failure(-32602, "Never again")
      ]
      const { client, server } = yield* kit.open(revision, (request, server) => replies.shift()!(request, server))
      const seen = yield* kit.run(client, { tools: true }, { reconnect })
      kit.endSubscription(server)
      yield* kit.pass(1000)
      yield* kit.pass(2000)
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Ended", "Subscribed"])
      kit.endSubscription(server)
      yield* kit.pass(4000)
      assert.strictEqual(fieldsOf(yield* seen.error).error?.reason, "InvalidParams")
    }))

  for (
    const [what, status, again, undelivered] of [
      ["503", 503, true],
      ["429", 429, true],
      ["an unknown status", undefined, true],
      ["400", 400, false],
      ["405", 405, false],
      ["403", 403, false],
      ["404 for an unread request", 404, true, true]
    ] as const
  ) {
    it.effect(`refused over HTTP with ${what}: ${again ? "retries once" : "fails the stream"}`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* kit.open(revision, () => "no response")
        const seen = yield* kit.run(client, { tools: true }, { reconnect })
        server.refuse(
          server.requests(kit.listen)[0]!.id,
          new TransportError({ reason: new MessageRejected({ message: "No", status }), undelivered })
        )
        yield* kit.settle
        yield* kit.pass(1000)
        assert.strictEqual(server.requests(kit.listen).length, again ? 2 : 1)
        if (!again) assert.include(["HttpError", "Unauthorized"], (yield* seen.error).reason._tag)
        assert.deepStrictEqual(seen.tags, [])
      }))
  }

  it.effect("waits for the time in Retry-After", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, () => "no response")
      yield* kit.run(client, { tools: true }, { reconnect })
      const error = new TransportError({
        reason: new MessageRejected({ message: "Busy", status: 503 }),
        retryAfter: 20_000
      })
      server.refuse(server.requests(kit.listen)[0]!.id, error)
      yield* kit.settle
      yield* kit.pass(19_999)
      assert.strictEqual(server.requests(kit.listen).length, 1)
      yield* kit.pass(1)
      assert.strictEqual(server.requests(kit.listen).length, 2)
    }))

  it.effect("emits a Gap and subscribes again when an HTTP stream breaks while the connection stays open", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true }, { reconnect })
      server.refuse(
        server.requests(kit.listen)[0]!.id,
        new TransportError({ reason: new ConnectionLost({ message: "It broke" }) })
      )
      yield* kit.settle
      yield* kit.pass(1000)
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost", "Subscribed"])
      assert.strictEqual(server.connections, 1)
    }))

  it.effect("2026-07-28 · stdio · after a reconnect the client MUST re-send subscriptions/listen", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, { reconnect })
      const one = yield* kit.run(client, { tools: true })
      const two = yield* kit.run(client, { uris: ["a:b"] })
      server.disconnect()
      yield* kit.pass(1000)
      assert.strictEqual(server.connections, 2)
      assert.deepStrictEqual(server.requests(kit.listen).map(({ params }) => params?.["notifications"]), [
        { toolsListChanged: true },
        { resourceSubscriptions: ["a:b"] },
        { toolsListChanged: true },
        { resourceSubscriptions: ["a:b"] }
      ])
      for (const seen of [one, two]) assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost", "Subscribed"])
      const gap = one.changes[1]
      assert.strictEqual(gap?._tag === "Gap" ? gap.cause?.reason._tag : undefined, "Closed")
    }))

  it.effect("ends the stream with Closed when the connection is lost for good", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true })
      server.disconnect()
      const error = yield* seen.error
      assert.strictEqual(error.reason._tag, "Closed")
      assert.isDefined(fieldsOf(error).end)
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost"])
    }))

  it.effect("ends the stream with Closed when the host closes the client, also during a wait before resubscribing", () =>
    Effect.gen(function*() {
      for (const ended of [false, true]) {
        const scope = yield* Scope.make()
        const { client, server } = yield* Scope.provide(kit.open(revision, kit.acceptSubscriptions), scope)
        const seen = yield* kit.run(client, { tools: true }, { reconnect })
        if (ended) kit.endSubscription(server)
        yield* kit.settle
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* seen.error).reason._tag, "Closed")
      }
    }))
})

describe("a slow consumer", () => {
  it.effect("drops the oldest change when maxBufferedNotifications (default 256) are waiting, and emits a Gap", () =>
    Effect.gen(function*() {
      const bounds = [[{}, 256], [{ limits: { maxBufferedNotifications: 3 } }, 3]] as const
      for (const [options, size] of bounds) {
        const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, options)
        const seen: Array<string> = []
        const reading = Stream.runForEach(client.changes({ uris: ["a:b"] }), (change) =>
          Effect.gen(function*() {
            seen.push(change._tag === "ResourceUpdated" ? change.uri : change._tag)
            // The subscription blocks the consumer until all changes have arrived.
            if (change._tag === "Subscribed" && seen.length === 1) yield* Effect.sleep(1000)
          }))
        const fiber = yield* Effect.forkChild(reading, { startImmediately: true })
        yield* kit.settle
        for (let n = 1; n <= 300; n++) kit.notifySubscription(server, kit.updated, { uri: `a:${n}` })
        yield* kit.pass(1000)
        const kept = Array.from({ length: size }, (_, index) => `a:${300 - size + 1 + index}`)
        assert.deepStrictEqual(seen, ["Subscribed", "Gap", ...kept])
        yield* Fiber.interrupt(fiber)
      }
    }))

  it.effect("keeps the latest status of the subscription when changes are dropped", () =>
    Effect.gen(function*() {
      const limits = { maxBufferedNotifications: 2 }
      const { client, server } = yield* kit.open(revision, kit.acceptSubscriptions, { limits })
      const seen: Array<string> = []
      const reading = Stream.runForEach(
        client.changes({ uris: ["a:b"] }, { reconnect }),
        (change) =>
          Effect.gen(function*() {
            seen.push(change._tag === "ResourceUpdated" ? change.uri : change._tag)
            if (seen.length === 1) {
              yield* Effect.sleep(2000)
            }
          })
      )
      const fiber = yield* Effect.forkChild(reading, { startImmediately: true })
      yield* kit.settle
      kit.endSubscription(server)
      yield* kit.pass(1000)
      for (let n = 1; n <= 5; n++) {
        kit.notifySubscription(server, kit.updated, { uri: `a:${n}` })
      }
      yield* kit.pass(1000)
      assert.deepStrictEqual(seen, ["Subscribed", "Gap", "Subscribed", "a:4", "a:5"])
      yield* Fiber.interrupt(fiber)
    }))
})
