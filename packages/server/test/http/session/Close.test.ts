/** The shutdown of an endpoint that has sessions. */
import { describe, expect, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "../kit.ts"
import { post } from "../kit.ts"
import { call, enter, initialize, sampled, serve, until } from "./kit.ts"

describe("close", () => {
  it.effect("finishes requests in flight, accepts responses, ends streams cleanly, and refuses new requests", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const idle = yield* enter(server, "2025-11-25")
      const listening = yield* idle.get()
      const held = yield* Effect.forkChild(client.post(call(1, "hold", { key: "a" })))
      const asking = yield* client.stream(call(2, "ask", { key: "q" }))
      const { id } = yield* asking.message
      yield* until(() => server.control.started.length === 1)
      const closing = yield* Effect.forkChild(server.endpoint.close, { startImmediately: true })
      expect(yield* listening.ended).toBe("end")
      const refused = [
        yield* post(server, initialize("2025-11-25")),
        yield* client.post(call(3, "echo", { text: "x" }))
      ]
      for (const { headers, json, status } of refused) {
        expect([status, headers["retry-after"], json.error.code]).toEqual([503, "1", -32603])
      }
      server.control.open("a")
      expect((yield* Fiber.join(held)).json.result.content[0].text).toBe("a done")
      expect((yield* client.post({ jsonrpc: "2.0", id, result: sampled("accept") })).status).toBe(202)
      expect(yield* asking.message).toMatchObject({ id: 2, result: { content: [{ text: "q accept" }] } })
      expect(yield* asking.ended).toBe("end")
      yield* Fiber.join(closing)
      expect([server.endpoint.sessions, server.endpoint.streams]).toEqual([0, 0])
    }))

  it.effect("answers an initialize that it interrupts with 503 and Retry-After, since it may be repeated", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const held = Middleware.layer((next) => (request) =>
        request.method === "initialize"
          ? Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
          : next(request)
      )
      const server = yield* kit.serve(McpServer.layer({ name: "s", version: "1" }, held), { shutdownTimeout: 0 })
      const opening = yield* Effect.forkChild(post(server, initialize("2025-11-25")))
      yield* Deferred.await(begun)
      yield* server.endpoint.close
      const { headers, json, status } = yield* Fiber.join(opening)
      expect([status, headers["retry-after"], json.error.code]).toEqual([503, "1", -32603])
    }))

  it.live("ends 200 idle streams cleanly, without a reset and without waiting for shutdownTimeout", () =>
    Effect.gen(function*() {
      const server = yield* serve({ shutdownTimeout: "60 seconds" })
      const streams = yield* Effect.forEach(
        Array.from({ length: 200 }),
        () => Effect.flatMap(enter(server, "2025-11-25"), (client) => client.get()),
        { concurrency: 20 }
      )
      expect([server.endpoint.sessions, server.endpoint.streams]).toEqual([200, 200])
      const [took] = yield* Effect.timed(server.endpoint.close)
      expect(Duration.toSeconds(took)).toBeLessThan(30)
      const ends = yield* Effect.forEach(streams, ({ ended }) => ended)
      expect(new Set(ends)).toEqual(new Set(["end"]))
    }))

  it.effect("interrupts the remaining requests after shutdownTimeout, and answers that they may have run", () =>
    Effect.gen(function*() {
      const server = yield* serve({ shutdownTimeout: "2 seconds" })
      const client = yield* enter(server, "2025-11-25")
      const held = yield* Effect.forkChild(client.post(call(1, "hold", { key: "a" })))
      const stream = yield* client.stream(call(2, "steps", { key: "b" }))
      yield* stream.message
      yield* until(() => server.control.started.length === 2)
      const closing = yield* Effect.forkChild(server.endpoint.close, { startImmediately: true })
      yield* TestClock.adjust("1999 millis")
      expect(server.control.interrupted).toEqual([])
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      expect(server.control.interrupted.toSorted()).toEqual(["a", "b 1"])
      const answered = yield* Fiber.join(held)
      const error = {
        code: -32603,
        message: expect.stringContaining("may have run: check that before you send it again")
      }
      expect([answered.status, answered.json]).toMatchObject([200, { id: 1, error }])
      expect(yield* stream.message).toMatchObject({ id: 2, error })
      expect(yield* stream.ended).toBe("end")
    }))
})
