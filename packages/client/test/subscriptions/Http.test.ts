/** Changes over real sockets: session-based and stateless revisions, both transports, against a Skein server. */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as ServerHttp from "@skein/server/NodeHttp"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Change, Filter } from "../../src/Changes.ts"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { type Json, until } from "../http/support/connection.ts"
import { TransportError } from "@skein/runtime/TransportError"
import { internals } from "../../../server/src/internal/catalog/catalogState.ts"

const server = McpServer.layer(
  { name: "changing", version: "1.0.0" },
  Tool.layer(Tool.make("t"), () => Effect.succeed("ok")),
  Resource.layer(Resource.make("r://1"), Effect.succeed("one"))
)

const open = Effect.gen(function*() {
  const context = yield* Layer.build(Layer.provideMerge(ServerHttp.layer({ port: 0 }), server))
  const { [internals]: { subscriptions } } = Context.get(context, McpServer.McpServer)
  return {
    subscriptions,
    url: Context.get(context, ServerHttp.Server).url,
    changed: Effect.provide(Catalog.updated("r://1"), context),
    offer: Layer.build(
      Layer.provide(Tool.layer(Tool.make("more"), () => Effect.succeed("ok")), Layer.succeedContext(context))
    )
  }
})

const run = (client: Client.Client, filter: Filter) =>
  Effect.gen(function*() {
    const changes: Array<Change> = []
    const seeing = Stream.runForEach(client.changes(filter), (change) => Effect.sync(() => changes.push(change)))
    const fiber = yield* Effect.forkChild(seeing, { startImmediately: true })
    yield* until(() => changes.length === 1)
    return { changes, fiber, tags: () => changes.map(({ _tag }) => _tag) }
  })

describe("2025-11-25 · the server MAY have no SSE stream at its endpoint (HTTP 405)", () => {
  it.live("fails with Unsupported even for declared capabilities", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), { standaloneStream: (hit) => hit.respond(405) })
      )
      const client = yield* Client.make(Http.transport({ url: server.url }), {
        revisions: ["2025-11-25"],
        enforceCapabilities: false
      })
      for (let n = 0; n < 2; n++) {
        const error = yield* Effect.flip(Stream.runDrain(client.changes({ tools: true })))
        assert.strictEqual(error.reason._tag, "Unsupported")
        assert.strictEqual(error.cause instanceof TransportError && error.cause.status, 405)
      }
    }))
})

for (const [name, transport] of [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const) {
  describe(name, () => {
    for (const revision of Revision.all.filter((revision) => revision > "2024-11-05")) {
      const modern = revision === "2026-07-28"
      const what = modern
        ? "Streamable HTTP · closing the SSE response stream is the cancellation signal"
        : "receives changes on the stream of the session, and unsubscribes at the end"

      it.live(`${revision} · ${what}`, () =>
        Effect.gen(function*() {
          const { changed, subscriptions, offer, url } = yield* open
          const client = yield* Client.make(transport({ url }), { revisions: [revision] })
          const one = yield* run(client, { uris: ["r://1"] })
          const two = yield* run(client, { tools: true, uris: ["r://1"] })
          yield* changed
          yield* until(() => one.changes.length === 2 && two.changes.length === 2)
          yield* offer
          yield* until(() => two.changes.length === 3)
          assert.deepStrictEqual(one.tags(), ["Subscribed", "ResourceUpdated"])
          assert.deepStrictEqual(two.tags(), ["Subscribed", "ResourceUpdated", "ToolListChanged"])
          assert.strictEqual([...subscriptions.listens].length, modern ? 2 : 0)
          yield* Fiber.interrupt(two.fiber)
          yield* until(() => [...subscriptions.listens].length === (modern ? 1 : 0))
          assert.strictEqual(subscriptions.subscribedResources, 1)
          yield* Fiber.interrupt(one.fiber)
          yield* until(() => subscriptions.subscribedResources === 0)
          // The client stays usable.
          assert.strictEqual((yield* client.callTool("more")).isError ?? false, false)
        }))
    }
  })
}
