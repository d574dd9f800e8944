/** An HTTP server that stops while the client is idle and has no open stream. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import { type Json } from "../http/support/connection.ts"
import { discovered } from "../http/support/servers.ts"
import { quiet } from "./support.ts"

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(`${revision} · a stopped server without an open stream`, () => {
    const open = (heartbeat?: Client.Heartbeat) =>
      Effect.gen(function*() {
        const inSession = ScriptedHttpServer.session<Json>((hit) => hit.respondResult())
        const server = yield* ScriptedHttpServer.make<Json>(
          revision === "2026-07-28" ? (hit) => hit.respondResult(discovered()) : inSession
        )
        const transport = Http.transport({ url: server.url, shutdownTimeout: 0 })
        const client = yield* Client.make(transport, { revisions: [revision], heartbeat })
        yield* quiet
        server.close()
        return client
      })
    const next = (client: Client.Client) =>
      Effect.map(Stream.runCollect(Stream.take(client.status, 1)), ([status]) => status?._tag)

    it.live("leaves the client Connected until the next call", () =>
      Effect.gen(function*() {
        const client = yield* open()
        yield* quiet
        assert.strictEqual(yield* next(client), "Connected")
      }))

    it.live("is detected by a heartbeat", () =>
      Effect.gen(function*() {
        const client = yield* open({ interval: 20, timeout: 500 })
        const lost = Stream.filter(client.status, ({ _tag }) => _tag !== "Connected")
        const [status] = yield* Stream.runCollect(Stream.take(lost, 1))
        assert.strictEqual(status?._tag, "Reconnecting")
      }))
  })
}
