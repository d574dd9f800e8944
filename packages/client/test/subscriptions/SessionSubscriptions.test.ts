/** Changes in session-based revisions, against scripted servers. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Reconnect from "../../src/Reconnect.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as kit from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

const revision = "2025-11-25"
const reconnect: Reconnect.Policy = { initialDelay: 1000, jitter: "none" }

const acceptSubscriptions: ScriptedServer.Script = () => ScriptedServer.success({})

/** The subscription requests that were sent, in order: `+` for subscribe, `-` for unsubscribe. */
const sent = (server: ScriptedServer.ScriptedServer): ReadonlyArray<string> =>
  server.received.flatMap((message) => {
    if (message._tag !== "Request") return []
    const uri = message.params?.["uri"] as string
    return message.method === "resources/subscribe"
      ? [`+${uri}`]
      : message.method === "resources/unsubscribe"
      ? [`-${uri}`]
      : []
  })

const answer = (server: ScriptedServer.ScriptedServer, { id }: JsonRpc.Request) =>
  server.send({ _tag: "Success", id, result: {} })

for (const revision of Revision.sessionBased) {
  describe(revision, () => {
    it.effect("receives list changes without a request, and filters out unrequested ones", () =>
      Effect.gen(function*() {
        const { client, server } = yield* kit.open(revision, acceptSubscriptions)
        const seen = yield* kit.run(client, { tools: true, resources: true })
        for (const kind of ["tools", "prompts", "resources"]) server.notify(`notifications/${kind}/list_changed`)
        server.notify(kit.updated, { uri: "a:b" })
        yield* kit.settle
        assert.deepStrictEqual(seen.changes, [
          { _tag: "Subscribed", honoured: { tools: true, prompts: false, resources: true, uris: [], taskIds: [] } },
          { _tag: "ToolListChanged" },
          { _tag: "ResourceListChanged" }
        ])
        assert.deepStrictEqual(sent(server), [])
      }))

    it.effect("subscribes to each resource once, and unsubscribes when the last run ends", () =>
      Effect.gen(function*() {
        const { client, server } = yield* kit.open(revision, acceptSubscriptions)
        const one = yield* kit.run(client, { uris: ["a:1", "a:2", "a:1"] })
        const two = yield* kit.run(client, { uris: ["a:2", "a:3"] })
        assert.deepStrictEqual(sent(server), ["+a:1", "+a:2", "+a:3"])
        for (const uri of ["a:1", "a:2", "a:3"]) server.notify(kit.updated, { uri })
        yield* kit.settle
        assert.deepStrictEqual(one.tags, ["Subscribed", "a:1", "a:2"])
        assert.deepStrictEqual(two.tags, ["Subscribed", "a:2", "a:3"])
        yield* one.stop
        assert.deepStrictEqual(sent(server).slice(3), ["-a:1"])
        yield* two.stop
        assert.deepStrictEqual(sent(server).slice(4).toSorted(), ["-a:2", "-a:3"])
      }))
  })
}

describe("the capabilities of the server", () => {
  const some = { tools: {}, resources: { subscribe: true } }

  it.effect("omits undeclared parts from the honoured filter", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions, {}, some)
      const seen = yield* kit.run(client, { tools: true, prompts: true, resources: true, uris: ["a:b"] })
      server.notify("notifications/tools/list_changed")
      yield* kit.settle
      assert.deepStrictEqual(seen.changes, [
        { _tag: "Subscribed", honoured: { tools: false, prompts: false, resources: false, uris: ["a:b"], taskIds: [] } }
      ])
    }))

  it.effect("fails with Unsupported and sends nothing when no part of the filter remains", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions, {}, { tools: {}, resources: {} })
      const seen = yield* kit.run(client, { tools: true, uris: ["a:b"] })
      assert.strictEqual((yield* seen.error).reason._tag, "Unsupported")
      assert.deepStrictEqual(sent(server), [])
    }))

  it.effect("with enforceCapabilities off, subscribes to undeclared parts too", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions, { enforceCapabilities: false }, {})
      const seen = yield* kit.run(client, { tools: true, uris: ["a:b"] })
      server.notify("notifications/tools/list_changed")
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "ToolListChanged"])
      assert.deepStrictEqual(sent(server), ["+a:b"])
    }))
})

describe("resources/subscribe", () => {
  it.effect("fails with the server's error for a missing resource, and unsubscribes from the others", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        ({ method, params }) =>
          method === "resources/subscribe" && params?.["uri"] === "a:2"
            ? ScriptedServer.failure(-32002, "Not found", { uri: "a:2" })
            : ScriptedServer.success({})
      )
      const other = yield* kit.run(client, { uris: ["a:3"] })
      const seen = yield* kit.run(client, { uris: ["a:1", "a:2", "a:3"] })
      const error = yield* seen.error
      assert.strictEqual(error.reason._tag, "ProtocolError")
      assert.strictEqual(fieldsOf(error).error?.reason, "ResourceNotFound")
      assert.deepStrictEqual(seen.tags, [])
      yield* kit.settle
      assert.deepStrictEqual(sent(server).filter((line) => line.startsWith("-")), ["-a:1"])
      server.notify(kit.updated, { uri: "a:3" })
      yield* kit.settle
      assert.deepStrictEqual(other.tags, ["Subscribed", "a:3"])
    }))

  it.effect("2025-11-25 · an update might be of a sub-resource of the one that the client actually subscribed to", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions)
      const folder = yield* kit.run(client, { uris: ["file:///a"] })
      const file = yield* kit.run(client, { uris: ["file:///a/b", "notes://"] })
      const lists = yield* kit.run(client, { tools: true })
      // By its name "file:///abc" is not a part of "file:///a", so any resource may be a sub-resource.
      for (const uri of ["file:///a", "file:///a/b", "file:///a/b#c", "notes://7", "file:///abc"]) {
        server.notify(kit.updated, { uri })
      }
      yield* kit.settle
      assert.deepStrictEqual(folder.tags, ["Subscribed", "file:///a", "file:///a/b", "file:///a/b#c", "file:///abc"])
      assert.deepStrictEqual(file.tags, ["Subscribed", "file:///a/b", "file:///a/b#c", "notes://7", "file:///abc"])
      assert.deepStrictEqual(lists.tags, ["Subscribed"])
    }))

  it.effect("ignores malformed notifications, and keeps the stream open", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions)
      const seen = yield* kit.run(client, { tools: true, uris: ["a:b"] })
      for (const params of [{}, { uri: 7 }, { uri: null }]) server.notify(kit.updated, params)
      server.notify(kit.updated, { uri: "a:b" })
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "a:b"])
    }))

  it.effect("ignores notifications before all subscriptions are accepted, because the host reads after Subscribed", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        ({ method }) => method === "resources/subscribe" ? "no response" : ScriptedServer.success({})
      )
      const seen = yield* kit.run(client, { tools: true, uris: ["a:1", "a:2"] })
      const [first, second] = server.requests("resources/subscribe")
      answer(server, first!)
      server.notify(kit.updated, { uri: "a:1" })
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, [])
      answer(server, second!)
      yield* kit.settle
      server.notify(kit.updated, { uri: "a:1" })
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "a:1"])
    }))

  it.effect("sends one request for two runs that start at the same time", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, ({ method }) =>
        method === "resources/subscribe" ? "no response" : ScriptedServer.success({}))
      const runs = [yield* kit.run(client, { uris: ["a:1"] }), yield* kit.run(client, { uris: ["a:1"] })]
      assert.deepStrictEqual(sent(server), ["+a:1"])
      answer(server, server.requests("resources/subscribe")[0]!)
      yield* kit.settle
      for (const { tags } of runs) {
        assert.deepStrictEqual(tags, ["Subscribed"])
      }
      assert.deepStrictEqual(sent(server), ["+a:1"])
    }))

  it.effect("cancels and unsubscribes when a run ends before the response; another waiting run sends its own request", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        ({ method }) => method === "resources/subscribe" ? "no response" : ScriptedServer.success({})
      )
      const one = yield* kit.run(client, { uris: ["a:1"] })
      yield* one.stop
      assert.deepStrictEqual(kit.cancelled(server), [server.requests("resources/subscribe")[0]!.id])
      assert.deepStrictEqual(sent(server), ["+a:1", "-a:1"])
      const two = yield* kit.run(client, { uris: ["a:1"] })
      const three = yield* kit.run(client, { uris: ["a:1"] })
      yield* two.stop
      assert.deepStrictEqual(sent(server), ["+a:1", "-a:1", "+a:1", "+a:1"])
      answer(server, server.requests("resources/subscribe")[2]!)
      yield* kit.settle
      assert.deepStrictEqual(three.tags, ["Subscribed"])
    }))

  it.effect("subscribes after a pending unsubscribe request has completed", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        ({ method }) => method === "resources/unsubscribe" ? "no response" : ScriptedServer.success({})
      )
      const one = yield* kit.run(client, { uris: ["a:1"] })
      yield* one.stop
      const two = yield* kit.run(client, { uris: ["a:1"] })
      assert.deepStrictEqual(sent(server), ["+a:1", "-a:1"])
      answer(server, server.requests("resources/unsubscribe")[0]!)
      yield* kit.settle
      assert.deepStrictEqual(sent(server), ["+a:1", "-a:1", "+a:1"])
      assert.deepStrictEqual(two.tags, ["Subscribed"])
    }))

  it.effect("retries after a delay when the server does not respond within the timeout of the run", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        ({ method }) => method === "resources/subscribe" ? "no response" : ScriptedServer.success({})
      )
      const seen = yield* kit.run(client, { uris: ["a:1"] }, {
        timeout: 3000,
        reconnect: { ...reconnect, maxAttempts: 1 }
      })
      yield* kit.pass(3000)
      yield* kit.pass(1000)
      assert.deepStrictEqual(sent(server), ["+a:1", "-a:1", "+a:1"])
      yield* kit.pass(3000)
      assert.strictEqual((yield* seen.error).reason._tag, "Closed")
    }))
})

describe("a new session", () => {
  it.effect("detects that a server with a stateless serverProfile is session-based, before it sends subscriptions/listen", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions, {
        serverProfile: { revision: "2026-07-28", capabilities: {} }
      })
      assert.strictEqual(client.revision, "2026-07-28")
      const seen = yield* kit.run(client, { tools: true, uris: ["a:1"] })
      server.notify(kit.updated, { uri: "a:1" })
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "a:1"])
      assert.strictEqual(server.requests(kit.listen).length, 0)
    }))

  it.effect("emits a Gap, then subscribes to each resource once more", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(revision, acceptSubscriptions, { reconnect })
      const one = yield* kit.run(client, { tools: true, uris: ["a:1"] })
      const two = yield* kit.run(client, { uris: ["a:1"] })
      server.disconnect()
      yield* kit.settle
      assert.deepStrictEqual(one.tags, ["Subscribed", "Gap Lost"])
      yield* kit.pass(1000)
      assert.strictEqual(server.connections, 2)
      assert.deepStrictEqual(sent(server), ["+a:1", "+a:1"])
      server.notify(kit.updated, { uri: "a:1" })
      yield* kit.settle
      for (const seen of [one, two]) assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost", "Subscribed", "a:1"])
      yield* one.stop
      assert.deepStrictEqual(sent(server), ["+a:1", "+a:1"])
      yield* two.stop
      assert.deepStrictEqual(sent(server), ["+a:1", "+a:1", "-a:1"])
    }))

  it.effect("fails with the server's error when the new session no longer has the resource", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        (_, server) => server.connections === 1 ? ScriptedServer.success({}) : ScriptedServer.failure(-32002, "Gone"),
        {
          reconnect
        }
      )
      const seen = yield* kit.run(client, { uris: ["a:1"] })
      server.disconnect()
      yield* kit.pass(1000)
      assert.strictEqual(fieldsOf(yield* seen.error).error?.reason, "ResourceNotFound")
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost"])
    }))

  it.effect("ends the stream with Closed when the connection is lost for good or closed by the host", () =>
    Effect.gen(function*() {
      for (const hangsUp of [true, false]) {
        const scope = yield* Scope.make()
        const { client, server } = yield* Scope.provide(kit.open(revision, acceptSubscriptions), scope)
        const seen = yield* kit.run(client, { tools: true, uris: ["a:1"] })
        if (hangsUp) server.disconnect()
        else yield* Scope.close(scope, Exit.void)
        const error = yield* seen.error
        assert.strictEqual(error.reason._tag, "Closed")
        assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost"])
        yield* Scope.close(scope, Exit.void)
      }
    }))
})

describe("the server's standalone stream", () => {
  const streaming = () => kit.open(revision, acceptSubscriptions, { reconnect })

  it.effect("emits a Gap and Subscribed when it reopens without being resumed", () =>
    Effect.gen(function*() {
      const { client, server } = yield* streaming()
      const seen = yield* kit.run(client, { uris: ["a:1"] })
      server.reportGap()
      yield* kit.settle
      server.notify(kit.updated, { uri: "a:1" })
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost", "Subscribed", "a:1"])
      assert.deepStrictEqual(sent(server), ["+a:1"])
    }))

  it.effect("emits nothing when it breaks before the subscription is accepted", () =>
    Effect.gen(function*() {
      const { client, server } = yield* kit.open(
        revision,
        ({ method }) => method === "resources/subscribe" ? "no response" : ScriptedServer.success({})
      )
      const seen = yield* kit.run(client, { uris: ["a:1"] })
      server.reportGap()
      yield* kit.settle
      answer(server, server.requests("resources/subscribe")[0]!)
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed"])
    }))

  it.effect("fails with Unsupported when the server has none, also for later runs, until a new session", () =>
    Effect.gen(function*() {
      const { client, server } = yield* streaming()
      const seen = yield* kit.run(client, { tools: true })
      server.reportGap(
        new TransportError({ reason: new MessageRejected({ message: "Method Not Allowed", status: 405 }) })
      )
      yield* kit.settle
      assert.strictEqual((yield* seen.error).reason._tag, "Unsupported")
      const late = yield* kit.run(client, { tools: true })
      assert.strictEqual((yield* late.error).reason._tag, "Unsupported")
      assert.deepStrictEqual(late.tags, [])
      server.disconnect()
      yield* kit.pass(1000)
      assert.deepStrictEqual((yield* kit.run(client, { tools: true })).tags, ["Subscribed"])
    }))

  it.effect("emits a Gap when it is lost for good during a session, and fails with Closed after the last attempt", () =>
    Effect.gen(function*() {
      const { client, server } = yield* streaming()
      const seen = yield* kit.run(client, { tools: true, uris: ["a:1"] }, {
        reconnect: { ...reconnect, maxAttempts: 1 }
      })
      server.reportGap(new TransportError({ reason: new ConnectionLost({ message: "No more" }) }))
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Lost"])
      assert.deepStrictEqual(sent(server), ["+a:1", "-a:1"])
      yield* kit.pass(1000)
      assert.strictEqual((yield* seen.error).reason._tag, "Closed")
      yield* client.ping()
    }))
})
