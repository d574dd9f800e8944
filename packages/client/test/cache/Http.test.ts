/** Cached responses, mirrored parameters and checked results against a Skein server on a socket. */
import { assert, describe, it } from "@effect/vitest"
import * as Catalog from "@skein/server/Catalog"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as McpServer from "@skein/server/McpServer"
import * as ServerHttp from "@skein/server/NodeHttp"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"

const where = Tool.make("where", {
  input: JsonSchema.make<{ readonly region?: string }>({
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } }
  }),
  output: JsonSchema.make<{ readonly region: string }>({ type: "object", required: ["region"] })
})

const hint = { ttlMs: 60_000, cacheScope: "public" } as const

const serving = Effect.gen(function*() {
  let reads = 0
  const layer = McpServer.layer(
    { name: "kept", version: "1.0.0", caching: { "tools/list": hint } },
    Tool.layer(where, ({ region }) => Effect.succeed({ region: region ?? "nowhere" })),
    Resource.layer(Resource.make("r://1", hint), Effect.sync(() => `read ${++reads}`))
  )
  const context = yield* Layer.build(Layer.provideMerge(ServerHttp.layer({ port: 0, shutdownTimeout: 0 }), layer))
  return { context, url: Context.get(context, ServerHttp.Server).url }
})

describe.each([["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const)("over %s", (_, transport) => {
  it.live("2026-07-28 · refreshes the tool list for a call without a required header, repeats the call, and checks its result", () =>
    Effect.gen(function*() {
      const { url } = yield* serving
      const client = yield* Client.make(transport({ url }))
      for (const region of ["eu", " padded ", "東京"]) {
        const { structuredContent } = yield* client.callTool("where", { region })
        assert.deepStrictEqual(structuredContent, { region })
      }
      assert.deepStrictEqual((yield* client.callTool("where", {})).structuredContent, { region: "nowhere" })
    }))

  it.live("2026-07-28 · serves a cached resource until the server reports that it has changed", () =>
    Effect.gen(function*() {
      const { context, url } = yield* serving
      const client = yield* Client.make(transport({ url }))
      const text = Effect.map(
        client.readResource("r://1"),
        ({ contents: [content] }) => content && "text" in content && content.text
      )
      const received = { Subscribed: yield* Deferred.make<void>(), ResourceUpdated: yield* Deferred.make<void>() }
      const listening = Stream.runForEach(
        client.changes({ uris: ["r://1"] }),
        ({ _tag }) =>
          _tag === "Subscribed" || _tag === "ResourceUpdated"
            ? Deferred.succeed(received[_tag], undefined)
            : Effect.void
      )
      assert.deepStrictEqual([yield* text, yield* text], ["read 1", "read 1"])
      yield* Effect.forkChild(listening)
      yield* Deferred.await(received.Subscribed)
      // The subscription covers later changes only, so the earlier entry is discarded.
      assert.deepStrictEqual([yield* text, yield* text], ["read 2", "read 2"])
      yield* Effect.provide(Catalog.updated("r://1"), context)
      yield* Deferred.await(received.ResourceUpdated)
      assert.deepStrictEqual([yield* text, yield* text], ["read 3", "read 3"])
    }))
})
