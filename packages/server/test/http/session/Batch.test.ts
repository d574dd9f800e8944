/** Batches, which only revision 2025-03-26 has. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { call, enter, initialize, notification, request, sampled, serve, until } from "./kit.ts"

const revision = "2025-03-26"

describe("batches", () => {
  it.effect("2025-03-26 · responds to a batch with one JSON array after the last response", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, revision)
      const batch = [
        call(1, "hold", { key: "a" }),
        notification("notifications/test"),
        call(2, "echo", { text: "b" }),
        5
      ]
      const posted = yield* Effect.forkChild(client.post(batch))
      yield* until(() => server.control.started.length === 1)
      server.control.open("a")
      const reply = yield* Fiber.join(posted)
      expect(reply.headers["content-type"]).toBe("application/json")
      expect(reply.json).toHaveLength(3)
      expect(reply.json.map((one: { id?: unknown }) => one.id)).toEqual([2, undefined, 1])
      expect(reply.json[1].error.code).toBe(-32600)
    }))

  it.effect("2025-03-26 · a stream has one JSON-RPC response per each request, each in an event of its own", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, revision)
      const stream = yield* client.stream([call(1, "steps", { key: "a" }), call(2, "steps", { key: "b" })])
      const tokens = [yield* stream.message, yield* stream.message].map(({ params }) => params.progressToken)
      expect(tokens).toEqual([1, 2])
      for (const key of ["a 1", "b 1"]) server.control.open(key)
      yield* stream.message
      yield* stream.message
      for (const key of ["a 2", "b 2"]) server.control.open(key)
      const answered = [yield* stream.message, yield* stream.message]
      expect(answered.map(({ id }) => id).toSorted()).toEqual([1, 2])
      expect(yield* stream.ended).toBe("end")
    }))

  it.effect("2025-03-26 · if the input consists solely of responses or notifications, MUST return 202 with no body", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), revision)
      const stream = yield* client.stream(call(1, "ask", { key: "q" }))
      const { id } = yield* stream.message
      const reply = yield* client.post([notification("notifications/test"), {
        jsonrpc: "2.0",
        id,
        result: sampled("accept")
      }])
      expect([reply.status, reply.text]).toEqual([202, ""])
      expect(yield* stream.message).toMatchObject({ id: 1, result: { content: [{ text: "q accept" }] } })
    }))

  it.effect("leaves out a cancelled member, and sends no response if all members are cancelled", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, revision)
      const batch = [call(1, "hold", { key: "a" }), call(2, "hold", { key: "b" })]
      const cancel = (requestId: number) => client.post(notification("notifications/cancelled", { requestId }))
      const one = yield* Effect.forkChild(client.post(batch))
      yield* until(() => server.control.started.length === 2)
      yield* cancel(1)
      server.control.open("b")
      expect((yield* Fiber.join(one)).json.map(({ id }: { id: unknown }) => id)).toEqual([2])
      const all = yield* Effect.forkChild(client.post([call(1, "hold", { key: "c" }), call(2, "hold", { key: "d" })]))
      yield* until(() => server.control.started.length === 4)
      yield* cancel(2)
      yield* cancel(1)
      const none = yield* Fiber.join(all)
      expect([none.status, none.headers["content-type"], none.text]).toEqual([200, "text/event-stream", ""])
    }))

  it.effect("answers each member that may have run when the session ends", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, revision)
      const batch = [call(1, "hold", { key: "a" }), call(2, "hold", { key: "b" })]
      const held = yield* Effect.forkChild(client.post(batch))
      yield* until(() => server.control.started.length === 2)
      expect((yield* client.delete()).status).toBe(204)
      const { json, status } = yield* Fiber.join(held)
      const error = { code: -32603, message: expect.stringContaining("may have run") }
      expect([status, json]).toEqual([200, [1, 2].map((id) => ({ jsonrpc: "2.0", id, error }))])
    }))

  it.effect("rejects a whole batch with a repeated id, an id in flight, initialize, too many members, or no member", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, revision)
      const held = yield* Effect.forkChild(client.post(call(1, "hold", { key: "a" })))
      yield* until(() => server.control.started.length === 1)
      const echo = (id: number) => call(id, "echo", { text: "x" })
      for (
        const batch of [
          [echo(2), echo(2)],
          [echo(2), echo(1)],
          [echo(2), initialize(revision)],
          Array.from({ length: 101 }, (_, at) => echo(at + 2)),
          []
        ]
      ) {
        const refused = yield* client.post(batch)
        expect([batch.length, refused.status, refused.json.error?.code]).toEqual([batch.length, 400, -32600])
      }
      server.control.open("a")
      expect((yield* Fiber.join(held)).json.id).toBe(1)
      const most = Array.from({ length: 100 }, (_, at) => echo(at + 1))
      expect((yield* client.post(most)).json).toHaveLength(100)
    }))

  for (const other of ["2025-06-18", "2025-11-25"]) {
    it.effect(`${other} · the body MUST be a single message: a batch is refused`, () =>
      Effect.gen(function*() {
        const client = yield* enter(yield* serve(), other)
        const refused = yield* client.post([request(1, "ping")])
        expect([refused.status, refused.json.error.code]).toEqual([400, -32600])
      }))
  }
})
