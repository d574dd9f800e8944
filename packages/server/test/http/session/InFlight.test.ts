/** The requests in flight are bounded over all sessions, and so are their bodies. */
import { describe, expect, it } from "@effect/vitest"
import * as LegacySse from "@skein/server/LegacySse"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { adapters } from "../adapters.ts"
import * as fixtures from "../fixtures.ts"
import { modern, open, raw, send } from "../kit.ts"
import { call, enter, initialize, notification, request, serve, until } from "./kit.ts"

describe("maxInFlightRequests", () => {
  it.effect("counts the requests of all sessions, and accepts cancellations and responses at the limit", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { maxInFlightRequests: 2 } })
      const [one, other] = [yield* enter(server, "2025-11-25"), yield* enter(server, "2025-06-18")]
      yield* one.stream(call(1, "steps", { key: "a" }))
      const lost = yield* other.stream(call(1, "steps", { key: "b" }))
      yield* until(() => server.control.started.length === 2)
      // A client that disconnects cancels nothing here, so its request still counts.
      lost.leave()
      const refused = yield* one.post(request(2, "ping"))
      expect([refused.status, refused.headers["retry-after"], refused.json]).toMatchObject([
        503,
        "1",
        { id: 2, error: { code: -32603 } }
      ])
      expect((yield* send(server, modern("server/discover"))).status).toBe(503)
      const cancelled = yield* other.post(notification("notifications/cancelled", { requestId: 1 }))
      expect(cancelled.status).toBe(202)
      yield* until(() => server.control.interrupted.length === 1)
      expect((yield* one.post(request(3, "ping"))).status).toBe(200)
      expect((yield* send(server, modern("server/discover"))).status).toBe(200)
    }))

  it.effect("releases the requests in flight of a session that is closed", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { maxInFlightRequests: 1 } })
      const client = yield* enter(server, "2025-03-26")
      yield* client.stream([call(1, "steps", { key: "a" }), call(2, "steps", { key: "b" })])
      yield* until(() => server.control.started.length === 2)
      expect((yield* client.post(request(3, "ping"))).status).toBe(503)
      yield* client.delete()
      yield* until(() => server.control.interrupted.length === 2)
      expect((yield* send(server, modern("server/discover"))).status).toBe(200)
      yield* enter(server, "2025-11-25")
    }))

  it.effect("counts the requests of HTTP+SSE, and a repeated id in flight once", () =>
    Effect.gen(function*() {
      const server = yield* serve({ legacySse: LegacySse.make(), limits: { maxInFlightRequests: 1 } })
      const stream = yield* open(server, { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } })
      const path = (yield* stream.next).data!
      const say = (body: unknown) => send(server, { path, headers: { "content-type": "application/json" }, body })
      yield* say(initialize("2024-11-05"))
      yield* stream.message
      yield* say(call(1, "hold", { key: "a" }))
      yield* until(() => server.control.started.length === 1)
      for (const id of [1, 2]) expect((yield* say(request(id, "ping"))).status).toBe(503)
      server.control.open("a")
      yield* stream.message
      yield* say(request(3, "ping"))
      expect(yield* stream.message).toMatchObject({ id: 3, result: {} })
      yield* say(call(4, "hold", { key: "b" }))
      yield* until(() => server.control.started.length === 2)
      stream.leave()
      yield* until(() => server.control.interrupted.length === 1)
      expect((yield* send(server, modern("server/discover"))).status).toBe(200)
    }))
})

describe("maxRetainedBytes", () => {
  const discover = modern("server/discover")
  const head = (length: string) =>
    `POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${length}\r\n\r\n`

  for (const adapter of adapters) {
    it.live(`counts the parts of bodies that have arrived, and drops the largest body at the bound · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* adapter.serve(fixtures.server(fixtures.echo), {
          limits: { maxMessageBytes: 100_000, maxRetainedBytes: 200_000 }
        })
        // Announced bytes do not count.
        for (let n = 0; n < 10; n++) (yield* raw(at)).write(head("content-length: 100000"))
        const largest = yield* raw(at)
        largest.write(head("content-length: 100000") + " ".repeat(90_000))
        const chunked = yield* raw(at)
        chunked.write(head("transfer-encoding: chunked") + `11170\r\n${" ".repeat(70_000)}\r\n`)
        expect((yield* send(at, discover)).status).toBe(200)
        const third = yield* raw(at)
        third.write(head("content-length: 100000") + " ".repeat(60_000))
        const text = yield* largest.until("maxRetainedBytes")
        expect(text).toContain("HTTP/1.1 503")
        expect(text.toLowerCase()).toContain("retry-after: 1")
        expect((yield* send(at, discover)).status).toBe(200)
        chunked.write("0\r\n\r\n")
        expect(yield* chunked.until("\r\n\r\n")).toContain("HTTP/1.1 400")
      })))
  }

  it.live("counts nothing after a body that cannot be read or has an invalid Content-Length", () =>
    Effect.scoped(Effect.gen(function*() {
      const quiet = Layer.provideMerge(fixtures.server(fixtures.echo), Logger.layer([]))
      const context = yield* Effect.orDie(Layer.build(quiet))
      const handler = yield* Effect.provideContext(
        WebHttp.handler({ limits: { maxMessageBytes: 1_000, maxRetainedBytes: 2_000 } }),
        context
      )
      const { body, headers } = discover
      const ask = (length?: string) =>
        new Request("http://localhost/mcp", {
          method: "POST",
          headers: {
            ...headers as Record<string, string>,
            ...(length === undefined ? {} : { "content-length": length })
          },
          body: JSON.stringify(body)
        })
      const status = (request: Request) => Effect.promise(async () => (await handler(request)).status)
      for (let n = 0; n < 5; n++) {
        const read = ask()
        yield* Effect.promise(() => read.text())
        expect(yield* status(read)).toBe(500)
      }
      for (const length of ["x", "-5", "Infinity"]) expect(yield* status(ask(length))).toBeOneOf([200, 413])
      expect(yield* status(ask())).toBe(200)
      // The bound is unchanged.
      const answers = Array.from({ length: 3 }, () => {
        const body = new ReadableStream({
          start: (controller) => controller.enqueue(new Uint8Array(900)),
          pull: () => new Promise(() => {})
        })
        const init = { method: "POST", headers: headers as Record<string, string>, body, duplex: "half" }
        return handler(new Request("http://localhost/mcp", init as RequestInit))
      })
      const dropped = yield* Effect.promise(() => Promise.race(answers))
      expect(dropped.status).toBe(503)
      expect(yield* status(ask())).toBe(200)
    })))

  it.effect("counts the bodies of requests in flight in both eras, until these are answered", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { maxMessageBytes: 10_000, maxRetainedBytes: 20_000 } })
      const client = yield* enter(server, "2025-11-25")
      const padding = "x".repeat(9_000)
      yield* client.stream(call(1, "steps", { key: "a", padding }))
      yield* open(
        server,
        modern("tools/call", { name: "steps", arguments: { key: "b", padding } }, {
          _meta: { progressToken: 1 }
        })
      )
      yield* until(() => server.control.started.length === 2)
      expect((yield* client.post(call(2, "echo", { text: padding }))).status).toBe(503)
      server.control.release()
      let answered = yield* client.post(call(3, "echo", { text: padding }))
      while (answered.status === 503) answered = yield* client.post(call(3, "echo", { text: padding }))
      expect(answered.json.result.content[0].text).toBe(padding)
    }))
})
