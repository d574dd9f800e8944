/** Error responses of existing servers for an unknown session that differ from the 404 of the specification. */
import { describe, expect, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { entered, type Exchange, type Json, settle, until } from "./support/connection.ts"

/** Advances the clock, with turns of the event loop for the sockets, until the connection has ended. */
const ended = (received: { readonly ends: ReadonlyArray<unknown> }) =>
  Effect.gen(function*() {
    for (let n = 0; n < 100 && received.ends.length === 0; n++) {
      yield* TestClock.adjust(100)
      yield* settle
    }
    expect(received.ends.length).toBe(1)
  })

describe("an unknown session", () => {
  for (
    const message of [
      "Bad Request: Server not initialized",
      "Bad Request: No valid session ID provided",
      "Invalid or missing session ID"
    ]
  ) {
    it.effect(`treats a 400 with "${message}" like a 404 if there is a session`, () =>
      Effect.gen(function*() {
        const refusal = (id: unknown) => ({ jsonrpc: "2.0", id, error: { code: -32000, message } })
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => hit.respondJson(refusal(null), {}, 400))
        )
        const { request, received } = yield* entered({ url: server.url })
        request(1, "tools/call", { name: "x" })
        yield* until(() => received.ends.length === 1)
        expect(received.refusals[0]![1]).toMatchObject({
          reason: { _tag: "MessageRejected" },
          status: 400,
          undelivered: true
        })
        expect(received.messages.map(({ _tag }) => _tag)).toEqual(["Success"])

        // A failure with the request's id is its response. A server without sessions has no session to lose.
        const answering = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => hit.respondJson(refusal(hit.json.id), {}, 400))
        )
        const stateless = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => hit.respondJson(refusal(null), {}, 400), { id: null })
        )
        for (const { url } of [answering, stateless]) {
          const other = yield* entered({ url })
          other.request(1, "tools/list")
          yield* until(() => other.received.messages.length === 2)
          expect(other.received.messages[1]).toMatchObject({ _tag: "Failure", error: { message } })
          expect(other.received.ends).toEqual([])
        }
      }))
  }

  it.effect("2025-11-25 · continues the session after a 400 with any other message", () =>
    Effect.gen(function*() {
      const error = { code: -32000, message: "Bad Request: Unsupported protocol version" }
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondJson({ jsonrpc: "2.0", id: null, error }, {}, 400))
      )
      const { request, received } = yield* entered({ url: server.url })
      request(1, "tools/list")
      yield* until(() => received.messages.length === 2)
      expect(received.messages[1]).toMatchObject({ _tag: "Failure", error: { message: error.message } })
      expect(received.ends).toEqual([])
    }))

  const plain = (hit: Exchange) => hit.respond(400, "Invalid or missing session ID")
  const primed = "id: e0\nretry: 10\ndata:\n\n"

  it.effect("ends the connection when the standalone stream reconnects", () =>
    Effect.gen(function*() {
      let listened = 0
      const standaloneStream = (hit: Exchange) => void (listened++ === 0 ? hit.openStream(primed).end() : plain(hit))
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>(plain, { standaloneStream }))
      const { received } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      yield* ended(received)
      expect(received.ends[0]).toMatchObject({
        _tag: "Lost",
        cause: { message: expect.stringContaining("no longer has the session") }
      })
    }))

  it.effect("ends the connection when a call is resumed, and the call may have run", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) =>
          void (hit.method === "POST" ? hit.openStream(primed).end() : plain(hit))
        )
      )
      const { request, received } = yield* entered({ url: server.url })
      request(1, "tools/call", { name: "x" })
      yield* until(() => server.exchanges.some(({ json }) => json?.method === "tools/call"))
      yield* ended(received)
      expect(received.error(1)).toMatchObject({ reason: { _tag: "ConnectionLost" } })
      expect(received.error(1)!.undelivered).toBeUndefined()
    }))
})
