/** The stream on which a message is sent, and the response to a POST. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { bounded } from "../kit.ts"
import { FakeAnswer, FakeRequest } from "./fake.ts"
import {
  call,
  Control,
  enter,
  initialize,
  layer,
  notification,
  request,
  revisions,
  sampled,
  serve,
  until
} from "./kit.ts"

describe("the response to a POST", () => {
  for (const revision of revisions) {
    it.effect(`${revision} · responds with JSON if the result is the first message, also after a delay`, () =>
      Effect.gen(function*() {
        const server = yield* serve()
        const client = yield* enter(server, revision)
        const echoed = yield* client.post(call(1, "echo", { text: "hi" }))
        expect(echoed.headers["content-type"]).toBe("application/json")
        expect(echoed.json).toMatchObject({ id: 1, result: { content: [{ text: "hi" }] } })
        const held = yield* Effect.forkChild(client.post(call(2, "hold", { key: "a" })))
        yield* until(() => server.control.started.length === 1)
        server.control.open("a")
        expect((yield* Fiber.join(held)).json).toMatchObject({ id: 2, result: { content: [{ text: "a done" }] } })
      }))

    it.live(`${revision} · responds with a stream to a call that is silent for streamAfter, and keeps it alive`, () =>
      Effect.gen(function*() {
        const server = yield* serve({ streamAfter: "100 millis", keepAliveInterval: "160 millis" })
        const client = yield* enter(server, revision)
        const stream = yield* client.stream(call(1, "hold", { key: "a" }))
        expect(stream.headers["content-type"]).toBe("text/event-stream")
        // The first event of 2025-11-25 has an id, and no data.
        if (revision === "2025-11-25") expect((yield* stream.next).id).toBe("1-0")
        for (let seen = 0; seen < 3; seen++) expect((yield* stream.nextRaw).comment).toBe("")
        server.control.open("a")
        expect(yield* stream.message).toMatchObject({ id: 1, result: { content: [{ text: "a done" }] } })
        expect(yield* stream.ended).toBe("end")
      }))

    it.effect(`${revision} · responds with a stream if a message precedes the result, and ends it with the response`, () =>
      Effect.gen(function*() {
        const server = yield* serve()
        const client = yield* enter(server, revision)
        const stream = yield* client.stream(call(1, "steps", { key: "a" }))
        expect(stream.headers).toMatchObject({
          "content-type": "text/event-stream",
          "cache-control": "no-store, no-transform",
          "x-accel-buffering": "no"
        })
        expect(yield* stream.message).toMatchObject({ method: "notifications/progress", params: { progress: 1 } })
        server.control.open("a 1")
        expect(yield* stream.message).toMatchObject({ method: "notifications/progress", params: { progress: 2 } })
        server.control.open("a 2")
        expect(yield* stream.message).toMatchObject({ id: 1, result: { content: [{ text: "a done" }] } })
        expect(yield* stream.ended).toBe("end")
      }))

    it.effect(`${revision} · sends the server's requests on the stream of their call; the client responds by POST`, () =>
      Effect.gen(function*() {
        const server = yield* serve()
        const client = yield* enter(server, revision)
        const listening = yield* client.get()
        const one = yield* client.stream(call(1, "ask", { key: "one" }))
        const two = yield* client.stream(call("1", "ask", { key: "two" }))
        const asked = [yield* one.message, yield* two.message]
        expect(asked.map(({ params }) => params.messages[0].content.text)).toEqual(["one", "two"])
        // "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body."
        for (const [index, model] of ["good", "better"].entries()) {
          const received = yield* client.post({ jsonrpc: "2.0", id: asked[index].id, result: sampled(model) })
          expect([received.status, received.text]).toEqual([202, ""])
        }
        expect(yield* two.message).toMatchObject({ id: "1", result: { content: [{ text: "two better" }] } })
        expect(yield* one.message).toMatchObject({ id: 1, result: { content: [{ text: "one good" }] } })
        expect(listening.waiting().filter(({ json }) => json !== undefined)).toEqual([])
      }))
  }

  for (const alwaysStream of [true, "session"] as const) {
    it.effect(`alwaysStream: ${alwaysStream} answers each request with a stream`, () =>
      Effect.gen(function*() {
        const client = yield* enter(yield* serve({ alwaysStream }), "2025-06-18")
        const echoed = yield* client.post(call(1, "echo", { text: "hi" }))
        expect(echoed.headers["content-type"]).toBe("text/event-stream")
        expect(echoed.messages).toMatchObject([{ id: 1, result: { content: [{ text: "hi" }] } }])
      }))
  }

  it.effect("responds 202 to a response for an unknown request, and 400 to a malformed response", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      expect((yield* client.post({ jsonrpc: "2.0", id: 99, result: {} })).status).toBe(202)
      const bad = yield* client.post({ jsonrpc: "2.0", id: 99, result: 1 })
      expect(bad.status).toBe(400)
      expect(bad.json).toEqual({ jsonrpc: "2.0", error: { code: -32600, message: expect.any(String) } })
    }))

  it.effect("fails the server's request at once if the client's response is malformed", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      const stream = yield* client.stream(call(1, "ask", { key: "one" }))
      const { id } = yield* stream.message
      expect((yield* client.post({ jsonrpc: "2.0", id, result: [] })).status).toBe(400)
      expect(yield* stream.message).toMatchObject({ id: 1, result: { isError: true } })
    }))

  it.effect("refuses an id in flight on the POST that repeats it, and still answers the first request", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const first = yield* Effect.forkChild(client.post(call(1, "hold", { key: "a" })))
      yield* until(() => server.control.started.length === 1)
      const second = yield* client.post(call(1, "echo", { text: "second" }))
      expect(second.status).toBe(400)
      expect(second.json).toMatchObject({ id: 1, error: { code: -32600 } })
      server.control.open("a")
      expect((yield* Fiber.join(first)).json.result.content[0].text).toBe("a done")
      // The id of a finished request may be used a second time.
      expect((yield* client.post(call(1, "echo", { text: "third" }))).json.result.content[0].text).toBe("third")
    }))
})

describe("cancellation and disconnection", () => {
  it.effect("2025-11-25 · cancelled: no response is sent; a POST that waits for JSON gets an empty stream", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const held = yield* Effect.forkChild(client.post(call(1, "hold", { key: "a" })))
      yield* until(() => server.control.started.length === 1)
      const cancelled = notification("notifications/cancelled", { requestId: 1, reason: "enough" })
      expect((yield* client.post(cancelled)).status).toBe(202)
      const answered = yield* Fiber.join(held)
      expect([answered.status, answered.headers["content-type"], answered.text]).toEqual([200, "text/event-stream", ""])
      expect(server.control.interrupted).toEqual(["a"])
    }))

  it.effect("2025-11-25 · cancelled: a stream ends without a response, and resuming it is answered with 204", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const stream = yield* client.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const { id } = yield* stream.next
      yield* client.post(notification("notifications/cancelled", { requestId: 1 }))
      expect(yield* stream.ended).toBe("end")
      expect(stream.waiting()).toEqual([])
      expect((yield* client.read({ "last-event-id": id })).status).toBe(204)
    }))

  it.effect("2025-11-25 · disconnection SHOULD NOT be interpreted as the client cancelling its request", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const waiting = yield* Effect.forkChild(client.post(call(1, "hold", { key: "a" })))
      const stream = yield* client.stream(call(2, "steps", { key: "b" }))
      yield* until(() => server.control.started.length === 2)
      yield* Fiber.interrupt(waiting)
      stream.leave()
      yield* client.post(request(3, "ping"))
      expect(server.control.interrupted).toEqual([])
      server.control.open("b 1")
      yield* until(() => server.control.started.length === 3)
      for (const gate of ["a", "b 2"]) server.control.open(gate)
      // The requests have ended, so that their ids are free.
      yield* client.post(request(4, "ping"))
      expect((yield* client.post(call(1, "echo", { text: "x" }))).status).toBe(200)
      expect((yield* client.post(call(2, "echo", { text: "x" }))).status).toBe(200)
      expect(server.control.interrupted).toEqual([])
    }))
})

describe("a request to a client that cannot be reached", () => {
  it.effect("fails at once: a client that disconnected before the first message has no event id to resume with", () => {
    const control = new Control()
    return Effect.gen(function*() {
      const endpoint = yield* Http.make()
      const say = (body: unknown, headers: { readonly [name: string]: string } = {}): FakeAnswer => {
        const answer = new FakeAnswer()
        endpoint.handle(new FakeRequest("POST", headers, body), answer)
        return answer
      }
      const session = { "mcp-session-id": say(initialize("2025-11-25")).headers["mcp-session-id"]! }
      const waiting = say(call(1, "ask_later", { key: "a" }), session)
      expect(control.started).toEqual(["a"])
      waiting.leave()
      control.open("a")
      yield* until(() => control.failures.length === 1)
      expect(control.failures).toMatchObject([{ reason: { _tag: "Closed" }, method: "sampling/createMessage" }])
    }).pipe(Effect.provide(layer(control)))
  })
})

describe("the GET stream", () => {
  it.effect("sends the messages that belong to no request, including earlier messages", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-06-18")
      yield* client.post(call(1, "announce", { times: 2, same: false }))
      const listening = yield* client.get()
      expect(listening.headers["content-type"]).toBe("text/event-stream")
      expect((yield* listening.message).params).toEqual({ n: 1 })
      expect((yield* listening.message).params).toEqual({ n: 2 })
      const announced = yield* client.post(call(2, "announce", { times: 1, same: false }))
      expect(announced.headers["content-type"]).toBe("application/json")
      expect((yield* listening.message).params).toEqual({ n: 1 })
    }))

  it.effect("bounds its queue: drops the oldest message, and queues equal messages once", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* bounded({ maxPendingMessages: 3 })(serve()), "2025-06-18")
      yield* client.post(call(1, "announce", { times: 5, same: false }))
      yield* client.post(call(2, "announce", { times: 50, same: true }))
      const listening = yield* client.get()
      const received = [yield* listening.message, yield* listening.message, yield* listening.message]
      expect(received.map(({ params }) => params)).toEqual([{ n: 4 }, { n: 5 }, {}])
    }))

  it.effect("moves to the newest connection: ends the previous one, and sends each message once", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-06-18")
      const old = yield* client.get()
      const young = yield* client.get()
      expect(yield* old.ended).toBe("end")
      expect(server.endpoint.streams).toBe(1)
      yield* client.post(call(1, "announce", { times: 1, same: false }))
      expect((yield* young.message).params).toEqual({ n: 1 })
      expect(old.waiting()).toEqual([])
    }))

  it.effect("responds 503 with Retry-After at maxStreams, unless the stream replaces the session's own", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { maxStreams: 1 } })
      const [first, second] = [yield* enter(server, "2025-06-18"), yield* enter(server, "2025-06-18")]
      yield* first.get()
      const refused = yield* second.read()
      expect([refused.status, refused.headers["retry-after"], refused.json.error.code]).toEqual([503, "1", -32603])
      const again = yield* first.get()
      expect(again.status).toBe(200)
      again.leave()
      yield* until(() => server.endpoint.streams === 0)
      expect((yield* second.get()).status).toBe(200)
    }))
})
