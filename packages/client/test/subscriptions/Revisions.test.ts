/** The same program receives changes in all five revisions, from a Skein server. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import * as Client from "../../src/Client.ts"
import * as kit from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"
import { peerOf } from "../support/peer.ts"
import { internals } from "../../../server/src/internal/catalog/catalogState.ts"

const tool = (name: string) => Tool.layer(Tool.make(name), () => Effect.succeed("ok"))

const layer = McpServer.layer(
  { name: "changing", version: "1.0.0" },
  tool("t"),
  Prompt.layer(Prompt.make("p"), () => Effect.succeed("ok")),
  Resource.layer(Resource.make("r://1"), Effect.succeed("one")),
  Resource.layer(Resource.make("r://2"), Effect.succeed("two"))
)

const open = (revision: Revision.Revision) =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const context = yield* Scope.provide(Layer.build(layer), scope)
    const { [internals]: { subscriptions }, serve } = Context.get(context, McpServer.McpServer)
    const client = yield* Client.make(InMemoryTransport.transport(serve), { revisions: [revision] })
    return {
      client,
      subscriptions,
      close: Scope.close(scope, Exit.void),
      changed: (uri: string) => Effect.andThen(Effect.provide(Catalog.updated(uri), context), kit.settle),
      offer: (definition: McpServer.Definitions) =>
        Effect.andThen(
          Layer.build(Layer.provide(definition as Layer.Layer<never>, Layer.succeedContext(context))),
          kit.pass(50)
        )
    }
  })

for (const revision of Revision.all) {
  const modern = revision === "2026-07-28"

  describe(revision, () => {
    it.effect("delivers changes to the subscribed clients, and to no client after it has unsubscribed", () =>
      Effect.gen(function*() {
        const { changed, client, subscriptions, offer } = yield* open(revision)
        const lists = yield* kit.run(client, { tools: true, prompts: true, resources: true })
        const one = yield* kit.run(client, { uris: ["r://1"] })
        const both = yield* kit.run(client, { tools: true, uris: ["r://1", "r://2"] })
        yield* changed("r://1")
        yield* changed("r://2")
        yield* offer(tool("more"))
        assert.deepStrictEqual(lists.tags, ["Subscribed", "ToolListChanged"])
        assert.deepStrictEqual(one.tags, ["Subscribed", "r://1"])
        assert.deepStrictEqual(both.tags, ["Subscribed", "r://1", "r://2", "ToolListChanged"])
        assert.strictEqual(subscriptions.subscribedResources, 2)
        assert.strictEqual([...subscriptions.listens].length, modern ? 3 : 0)

        yield* both.stop
        assert.strictEqual(subscriptions.subscribedResources, 1)
        assert.strictEqual([...subscriptions.listens].length, modern ? 2 : 0)
        yield* changed("r://2")
        yield* changed("r://1")
        yield* one.stop
        yield* lists.stop
        assert.strictEqual(subscriptions.subscribedResources, 0)
        assert.strictEqual([...subscriptions.listens].length, 0)
        assert.deepStrictEqual(one.tags, ["Subscribed", "r://1", "r://1"])
        assert.strictEqual(both.tags.length, 4)
        assert.deepStrictEqual([...peerOf(client).calls], [])
      }))

    it.effect("rejects a missing resource in session-based revisions, and does not honour it in stateless revisions", () =>
      Effect.gen(function*() {
        const { client } = yield* open(revision)
        const seen = yield* kit.run(client, { tools: true, uris: ["r://1", "r://9"] })
        if (modern) {
          assert.deepStrictEqual(seen.changes, [
            {
              _tag: "Subscribed",
              honoured: { tools: true, prompts: false, resources: false, uris: ["r://1"], taskIds: [] }
            }
          ])
        } else {
          assert.strictEqual(fieldsOf(yield* seen.error).error?.reason, "ResourceNotFound")
        }
      }))
  })
}

describe("ownership of subscriptions", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · after 300 runs there are as many fibers as after 100, and no request is pending`, () => {
      let alive = 0
      const metrics: Metric.FiberRuntimeMetricsService = {
        recordFiberStart: () => {
          alive++
        },
        recordFiberEnd: () => {
          alive--
        }
      }
      return Effect.gen(function*() {
        const { changed, client, subscriptions } = yield* open(revision)
        const some = (count: number) =>
          Effect.gen(function*() {
            for (let n = 0; n < count; n++) {
              const seen = yield* kit.run(client, { tools: true, uris: ["r://1"] })
              if (n % 2 === 0) yield* changed("r://1")
              assert.strictEqual(seen.tags.length, n % 2 === 0 ? 2 : 1)
              yield* seen.stop
            }
            yield* kit.settle
            return alive
          })
        const before = yield* some(100)
        assert.strictEqual(yield* some(200), before)
        assert.strictEqual(subscriptions.subscribedResources, 0)
        assert.deepStrictEqual([...peerOf(client).calls], [])
      }).pipe(Effect.provideService(Metric.FiberRuntimeMetrics, metrics))
    })
  }
})

describe("2026-07-28", () => {
  it.effect("a server that shuts down SHOULD respond to the original request: emits a Gap, and keeps resubscribing", () =>
    Effect.gen(function*() {
      const { client, close, subscriptions } = yield* open("2026-07-28")
      const seen = yield* kit.run(client, { tools: true }, { reconnect: { initialDelay: 1000, jitter: "none" } })
      yield* Effect.forkChild(close)
      yield* kit.settle
      assert.deepStrictEqual(seen.tags, ["Subscribed", "Gap Ended"])
      assert.strictEqual([...subscriptions.listens].length, 0)
    }))
})
