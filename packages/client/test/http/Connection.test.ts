/** A connection over Streamable HTTP without a client: its httpMode, its sockets, and its cleanup. */
import { describe, expect, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Http from "../../src/Http.ts"
import { answer, entered, type Json, settle, until } from "./support/connection.ts"

describe("the sockets of `fetch`", () => {
  it.effect("are reused after JSON, after a stream that ended, and after 202", () =>
    Effect.gen(function*() {
      const ports = new Set<number | undefined>()
      const script = ScriptedHttpServer.session<Json>((hit) => {
        if (hit.json.method === "notifications/test") return hit.respond(202)
        if (hit.json.id % 2 === 0) return hit.respondResult()
        return hit.openStream().end(ScriptedHttpServer.event(answer(hit.json.id)))
      })
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        ports.add(hit.response.socket?.remotePort)
        script(hit)
      })
      const { notify, request, received } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      for (let id = 1; id <= 20; id++) {
        request(id, "tools/list")
        yield* until(() => received.answer(id) !== undefined)
        yield* settle
        notify("notifications/test")
        yield* until(() => server.byMethod("POST").length === 2 + 2 * id)
        yield* settle
      }
      expect(ports.size).toBeLessThanOrEqual(3)
    }))
})

describe("a connection", () => {
  it.effect("has httpMode `streamable`, also if connectWith skips detection", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult())
      const transport = Http.transport({ url: server.url, shutdownTimeout: 0 })
      expect(transport.reconnects).toBe(true)
      for (
        const connect of [transport.connect, transport.connectWith!("streamable"), transport.connectWith!("other")]
      ) {
        const connection = yield* connect
        expect([connection.sendsHeaders, connection.httpMode]).toEqual([true, "streamable"])
      }
      yield* settle
      expect(server.exchanges).toEqual([])
    }))

  it.effect("leaves no resources on the server or the client when it is opened and closed repeatedly", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
          standaloneStream: (hit) => hit.openStream(":\n\n")
        })
      )
      for (let n = 1; n <= 50; n++) {
        yield* Effect.scoped(Effect.gen(function*() {
          const { request, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
          request(1, "tools/list")
          yield* until(() => received.answer(1) !== undefined && server.byMethod("GET").length === n)
        }))
      }
      expect(server.byMethod("DELETE").length).toBe(50)
      yield* until(() => server.byMethod("GET").every(({ closedByClient }) => closedByClient))
    }))
})
