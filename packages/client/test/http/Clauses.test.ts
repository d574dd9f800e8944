/**
 * Requirements of the session-based revisions on clients of Streamable HTTP, quoted in the titles, tested with a whole
 * client.
 */
import { assert, it } from "@effect/vitest"
import type * as Revision from "@skein/protocol/Revision"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { answer, type Exchange, type Json, until } from "./support/connection.ts"

const revisions: ReadonlyArray<Revision.Revision> = ["2025-03-26", "2025-06-18", "2025-11-25"]
const wires = [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const

const types = (header: string | undefined): ReadonlyArray<string> =>
  (header ?? "").split(",").map((type) => type.trim())

/** A session that answers tools/list with a JSON object, and tools/call with a stream. */
const both = (revision: Revision.Revision) => (hit: Exchange) =>
  ScriptedHttpServer.session<Json>(
    ({ json }) => {
      if (json.method === "tools/list") return hit.respondResult({ tools: [] })
      if (json.method !== "tools/call") return hit.respond(202)
      const { progressToken } = json.params._meta
      const progress = { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1 } }
      hit.openStream(ScriptedHttpServer.event(progress)).end(ScriptedHttpServer.event(answer(json.id, { content: [] })))
    },
    { revision, standaloneStream: (hit) => void hit.openStream() }
  )(hit)

for (const [wire, transport] of wires) {
  for (const revision of revisions) {
    it.live(`${revision} · ${wire} · MUST use POST for each message, with an Accept of both content types, and MUST support both`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>(both(revision))
        const seen: Array<number> = []
        yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(transport({ url: server.url }), {
            revisions: [revision],
            enforceCapabilities: false
          })
          assert.deepStrictEqual((yield* client.listToolsPage()).tools, [])
          const onProgress = ({ progress }: { readonly progress: number }) => void seen.push(progress)
          const calls = [1, 2, 3].map(() => client.callTool("t", {}, { onProgress }))
          assert.strictEqual((yield* Effect.all(calls, { concurrency: 3 })).length, 3)
          yield* until(() => server.byMethod("GET").length === 1)
        }))
        assert.deepStrictEqual(seen, [1, 1, 1])
        const posts = server.byMethod("POST")
        assert.strictEqual(posts.length, 6)
        for (const { headers, json } of posts) {
          assert.includeMembers([...types(headers.accept)], ["application/json", "text/event-stream"])
          assert.strictEqual(headers["content-type"], "application/json")
          assert.strictEqual(json.jsonrpc, "2.0")
        }
        assert.includeMembers([...types(server.byMethod("GET")[0]!.headers.accept)], ["text/event-stream"])
        // "Progress tokens […] MUST be unique across all active requests."
        const tokens = posts.flatMap(({ json }): ReadonlyArray<Json> => json.params?._meta?.progressToken ?? [])
        assert.deepStrictEqual([tokens.length, new Set(tokens).size], [3, 3])
      }))
  }
}
