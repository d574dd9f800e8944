/** Sessions that every node of a fleet serves (2025-03-26 to 2025-11-25, transports, session management). */
import { describe, expect, it, vi } from "@effect/vitest"
import * as Fleet from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { bounded, type Json, posting, send } from "../kit.ts"
import { call, initialize, notification, request, until } from "../session/kit.ts"
import { open, response, start, textOf, uri } from "./kit.ts"
import { MemoryFleet } from "./memoryFleet.ts"

/** Delays of 0 to 50 ms, the same in each run. */
const delays = (seed = 1) => () => {
  seed = Math.imul(seed, 48_271) % 0x7fffffff
  return Math.abs(seed) % 51
}

const listChanged = "notifications/tools/list_changed"
const updated = "notifications/resources/updated"

const methods = (stream: { readonly waiting: () => ReadonlyArray<{ readonly json?: Json }> }): Array<string> =>
  stream.waiting().flatMap(({ json }) => json?.method === undefined ? [] : [json.method])

describe("a session at every node", () => {
  it.live("serves the requests of a session at nodes that have not opened it", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const clients = yield* open(yield* start(fleet, 3))
      for (const [index, client] of clients.entries()) {
        const reply = yield* client.post(call(index, "echo", { text: "hi" }))
        expect([reply.status, textOf(reply.json)]).toEqual([200, "hi"])
      }
      expect(fleet.counts["find"]).toBe(2)
      expect(fleet.records.find(clients[0]!.id, undefined, 0)).toMatchObject({
        isInitialized: true,
        revision: "2025-11-25"
      })
    }))

  it.live("looks a session up once for concurrent requests", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(() => 20)
      const [, second] = yield* open(yield* start(fleet, 2))
      const replies = yield* Effect.all(
        Array.from({ length: 10 }, (_, id) => second!.post(call(id, "echo", { text: `${id}` }))),
        { concurrency: "unbounded" }
      )
      expect(replies.map(({ json }) => textOf(json))).toEqual(replies.map((_, id) => `${id}`))
      expect(fleet.counts["find"]).toBe(1)
    }))

  it.live("does not look up an id that the fleet cannot have made", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet()
      const [node] = yield* start(fleet, 1)
      const reply = yield* send(node!, {
        headers: { ...posting, "mcp-session-id": "made-up" },
        body: call(1, "echo", { text: "" })
      })
      expect([reply.status, fleet.counts["find"]]).toEqual([404, undefined])
    }))

  it.live("passes an answer of the client to the node that has asked", () =>
    Effect.gen(function*() {
      const [first, second, third] = yield* open(yield* start(new MemoryFleet(delays()), 3))
      for (const asked of [first!, second!]) {
        const stream = yield* asked.stream(call(1, "ask"))
        yield* stream.next
        const question = (yield* stream.next).json
        expect(Math.floor(question.id / Fleet.requestsPerNode)).toBe((asked.server as never as { node: number }).node)
        const accepted = yield* third!.post(response(question.id, "m"))
        expect(accepted.status).toBe(202)
        expect(textOf((yield* stream.next).json)).toBe("m")
      }
    }))

  it.live("passes progress about a question, and an answer that is not valid, to the node that has asked", () =>
    Effect.gen(function*() {
      const [first, second] = yield* open(yield* start(new MemoryFleet(delays()), 2))
      const stream = yield* first!.stream(call(1, "ask"))
      yield* stream.next
      const question = (yield* stream.next).json
      const { control } = first!.server
      yield* second!.post(
        notification("notifications/progress", { progressToken: question.params._meta.progressToken, progress: 7 })
      )
      yield* until(() => control.failures.includes(7))
      yield* second!.post({ jsonrpc: "2.0", id: question.id, result: 1, error: 2 })
      const failed = (yield* stream.next).json
      expect(failed.result.isError).toBe(true)
    }))

  it.live("2025-03-26 · takes the answers of a batch apart", () =>
    Effect.gen(function*() {
      const [first, second] = yield* open(yield* start(new MemoryFleet(delays()), 2), { revision: "2025-03-26" })
      const one = yield* first!.stream(call(1, "ask"))
      const other = yield* second!.stream(call(2, "ask"))
      const questions = [(yield* one.next).json, (yield* other.next).json]
      const reply = yield* first!.post([
        response(questions[0].id, "a"),
        response(questions[1].id, "b"),
        call(3, "echo", { text: "c" })
      ])
      expect(reply.json.map(textOf)).toEqual(["c"])
      expect(textOf((yield* one.next).json)).toBe("a")
      expect(textOf((yield* other.next).json)).toBe("b")
      const answersOnly = yield* first!.post([response(questions[1].id, "late")])
      expect(answersOnly.status).toBe(202)
    }))

  it.live("cancels a request at the node that handles it", () =>
    Effect.gen(function*() {
      const [first, second] = yield* open(yield* start(new MemoryFleet(delays()), 2))
      const held = yield* Effect.forkChild(first!.post(call(1, "hold", { key: "a" })))
      const { control } = first!.server
      yield* until(() => control.started.includes("a"))
      yield* second!.post(notification("notifications/cancelled", { requestId: 1 }))
      yield* until(() => control.interrupted.includes("a"))
      yield* Fiber.join(held)
    }))

  it.live("has set the level everywhere when logging/setLevel is answered", () =>
    Effect.gen(function*() {
      const [first, second] = yield* open(yield* start(new MemoryFleet(delays()), 2))
      const logged = (client: typeof first) =>
        Effect.map(client!.post(call(1, "log")), ({ messages }) =>
          messages.filter(({ method }) => method !== undefined).length)
      for (const [level, count] of [["error", 0], ["info", 1], ["error", 0]] as const) {
        yield* second!.post(request(2, "logging/setLevel", { level }))
        expect(yield* logged(first)).toBe(count)
        expect(yield* logged(second)).toBe(count)
      }
    }))

  it.live("ends a session everywhere before DELETE is answered, and the requests of the session", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const clients = yield* open(yield* start(fleet, 3))
      for (const client of clients) yield* client.post(call(1, "echo", { text: "" }))
      const held = yield* Effect.forkChild(clients[0]!.post(call(2, "hold", { key: "a" })))
      yield* until(() => clients[0]!.server.control.started.includes("a"))
      expect((yield* clients[1]!.delete()).status).toBe(204)
      for (const client of clients) expect((yield* client.post(call(3, "echo", { text: "" }))).status).toBe(404)
      expect((yield* Fiber.join(held)).json.error.message).toContain("the session ended")
      expect(fleet.records.size).toBe(0)
    }))
})

describe("notifications", () => {
  it.live("notifies a client once, at the node with its stream, wherever the change happens", () =>
    Effect.gen(function*() {
      const clients = yield* open(yield* start(new MemoryFleet(delays()), 3))
      const stream = yield* clients[1]!.get()
      yield* clients[2]!.post(request(1, "resources/subscribe", { uri }))
      for (const client of clients) yield* client.post(call(2, "touch"))
      yield* until(() => methods(stream).filter((method) => method === updated).length === 3)
      yield* clients[0]!.post(request(3, "resources/unsubscribe", { uri }))
      for (const client of clients) yield* client.post(call(4, "touch"))
      yield* clients[0]!.post(call(5, "announce", { text: "last" }))
      yield* until(() => methods(stream).includes("notifications/test"))
      expect(methods(stream).filter((method) => method === updated)).toHaveLength(3)
    }))

  it.live("sends one notification for the same change of a list at several nodes", () =>
    Effect.gen(function*() {
      const clients = yield* open(yield* start(new MemoryFleet(() => 1), 3))
      const stream = yield* clients[1]!.get()
      yield* Effect.all(clients.map((client) => client.post(call(1, "shrink"))), { concurrency: 3 })
      yield* until(() => methods(stream).includes(listChanged))
      yield* clients[2]!.post(call(2, "announce", { text: "last" }))
      yield* until(() => methods(stream).includes("notifications/test"))
      expect(methods(stream)).toEqual([listChanged, "notifications/test"])
    }))

  it.live("moves with the stream of the client, and takes the messages along that wait", () =>
    Effect.gen(function*() {
      const clients = yield* open(yield* start(new MemoryFleet(delays()), 3))
      yield* clients[0]!.post(call(1, "announce", { text: "before" }))
      const first = yield* clients[1]!.get()
      yield* until(() => methods(first).includes("notifications/test"))
      const second = yield* clients[2]!.get()
      expect(yield* first.ended).toBe("end")
      yield* clients[0]!.post(call(2, "announce", { text: "after" }))
      yield* until(() => methods(second).includes("notifications/test"))
    }))

  it.live("notifies of everything once, when the node with the stream has gone", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const nodes = yield* start(fleet, 3)
      const clients = yield* open(nodes)
      yield* clients[0]!.post(request(1, "resources/subscribe", { uri }))
      yield* clients[1]!.get()
      yield* until(() => fleet.records.find(clients[0]!.id, undefined, 0)?.listensAt === nodes[1]!.node)
      fleet.stop(nodes[1]!.node)
      yield* nodes[1]!.close
      // No node can notify the client.
      yield* clients[0]!.post(call(2, "touch"))
      yield* clients[0]!.post(call(3, "announce", { text: "waits" }))
      const stream = yield* clients[2]!.get()
      yield* until(() => methods(stream).includes(updated) && methods(stream).includes("notifications/test"))
      expect(methods(stream)).toContain(listChanged)
    }))

  it.live("continues the stream of another node with the events that the client has missed", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const clients = yield* open(yield* start(fleet, 2, { sharesEvents: true }))
      const stream = yield* clients[0]!.get()
      yield* clients[1]!.post(call(1, "announce", { text: "1" }))
      const primed = yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      yield* clients[0]!.post(call(2, "announce", { text: "2" }))
      const resumed = yield* clients[1]!.get({ "last-event-id": seen.id! })
      yield* clients[0]!.post(call(3, "announce", { text: "3" }))
      yield* until(() => methods(resumed).length >= 2)
      expect(resumed.waiting().flatMap(({ json }) => json?.params?.text ?? [])).toEqual(["2", "3"])
      expect(primed.id).toBeDefined()
    }))

  it.live("replays the stream of a call that another node has answered", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const clients = yield* bounded({ retryDelay: 5 })(open(yield* start(fleet, 2, { sharesEvents: true })))
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      // It still runs: the client asks again later.
      const early = yield* clients[1]!.read({ "last-event-id": seen.id! })
      expect([early.status, early.messages]).toEqual([200, []])
      expect(early.events).toEqual([{ id: seen.id, retry: expect.any(Number), data: "" }])
      clients[0]!.server.control.open("a")
      const later: Effect.Effect<ReadonlyArray<Json>> = Effect.flatMap(
        clients[1]!.read({ "last-event-id": seen.id! }),
        ({ messages }) => messages.some(({ id }) => id === 1) ? Effect.succeed(messages) : later
      )
      const messages = yield* later
      expect(messages.map(({ id, params }) => id ?? params.progress)).toEqual([2, 1])
    }))

  it.live("answers a call with -32603 when its node has gone, as the client resumes its stream", () =>
    Effect.gen(function*() {
      for (const sharesEvents of [true, false]) {
        const fleet = new MemoryFleet(delays())
        const nodes = yield* start(fleet, 2, { sharesEvents })
        const clients = yield* open(nodes)
        for (const id of [1, -2, "a b-\u00e9\ud800"]) {
          const stream = yield* clients[0]!.stream({ ...call(1, "steps", { key: "a" }), id })
          yield* stream.next
          const seen = yield* stream.next
          stream.leave()
          fleet.stop(nodes[0]!.node)
          const { messages, status } = yield* clients[1]!.read({ "last-event-id": seen.id! })
          expect(status).toBe(200)
          expect(messages).toEqual([{
            jsonrpc: "2.0",
            id,
            error: { code: -32603, message: expect.stringContaining("the request may have run") }
          }])
          fleet.nodes.get(nodes[0]!.node)!.isServing = true
        }
      }
    }))

  it.live("does not take a node for gone that has joined a moment ago", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const nodes = yield* start(fleet, 2, { sharesEvents: true })
      const clients = yield* open(nodes)
      fleet.nodes.get(nodes[1]!.node)!.unheard.add(nodes[0]!.node)
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      const { messages, status } = yield* clients[1]!.read({ "last-event-id": seen.id! })
      expect([status, messages]).toEqual([200, []])
      // The client tries again, too, while it is unknown whether the node has gone.
      fleet.stop(nodes[0]!.node)
      fleet.isDown = true
      expect((yield* clients[1]!.read({ "last-event-id": seen.id! })).messages).toEqual([])
      fleet.isDown = false
      const { messages: [failure] } = yield* clients[1]!.read({ "last-event-id": seen.id! })
      expect(failure).toMatchObject({ id: 1, error: { code: -32603 } })
    }))

  it.live("answers 204 when the client has the response, or the id of its request is unknown", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const nodes = yield* start(fleet, 2, { sharesEvents: true })
      const clients = yield* open(nodes)
      nodes[0]!.control.open("a")
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      const ids = [
        (yield* stream.next).id!,
        (yield* stream.next).id!,
        (yield* stream.next).id!,
        (yield* stream.next).id!
      ]
      expect(yield* stream.ended).toBe("end")
      const long = yield* clients[0]!.stream({ ...call(1, "steps", { key: "b" }), id: "x".repeat(200) })
      yield* long.next
      const seen = yield* long.next
      long.leave()
      fleet.stop(nodes[0]!.node)
      expect((yield* clients[1]!.read({ "last-event-id": ids.at(-1)! })).status).toBe(204)
      expect((yield* clients[1]!.read({ "last-event-id": seen.id! })).status).toBe(204)
      const rest = yield* clients[1]!.read({ "last-event-id": ids.at(-2)! })
      expect(rest.messages.map(({ id }) => id)).toEqual([1])
      const [stem] = /^\d+-\d+-/.exec(ids[0]!)!
      for (const wrong of ["%", "{}", "null", "x".repeat(200)]) {
        expect((yield* clients[1]!.read({ "last-event-id": `${stem}${wrong}` })).status).toBe(400)
      }
    }))

  it.live("answers 503 while the events of a stream cannot be read", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet(delays())
      const nodes = yield* start(fleet, 2, { sharesEvents: true })
      const clients = yield* open(nodes)
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      const read = vi.spyOn(fleet.events, "read").mockReturnValue(Effect.die("no connection"))
      expect((yield* clients[1]!.read({ "last-event-id": seen.id! })).status).toBe(503)
      read.mockRestore()
      expect((yield* clients[1]!.read({ "last-event-id": seen.id! })).status).toBe(200)
    }))
})

describe("principals", () => {
  it.live("do not find each other's sessions at any node", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet()
      const clients = yield* open(yield* start(fleet, 2), { headers: { "x-user": "ann" } })
      for (const client of clients) {
        for (const user of [{ "x-user": "bob" }, { "x-user": undefined }] as const) {
          const replies = [
            yield* client.post(call(1, "echo", { text: "" }), user as never),
            yield* client.read(user as never),
            yield* client.delete(user as never)
          ]
          expect(replies.map(({ status }) => status)).toEqual([404, 404, 404])
        }
        expect((yield* client.post(call(1, "echo", { text: "" }))).status).toBe(200)
      }
    }))

  it.live("have maxSessionsPerPrincipal sessions at all nodes together", () =>
    Effect.gen(function*() {
      const nodes = yield* start(new MemoryFleet(delays()), 2, { limits: { maxSessionsPerPrincipal: 2 } })
      const opened = (index: number, user: string) =>
        send(nodes[index]!, { headers: { ...posting, "x-user": user }, body: initialize("2025-11-25") })
      expect((yield* opened(0, "ann")).status).toBe(200)
      expect((yield* opened(1, "ann")).status).toBe(200)
      const refused = yield* opened(0, "ann")
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"])
      expect(refused.json.error.message).toContain("too many sessions of one principal")
      expect((yield* opened(0, "bob")).status).toBe(200)
    }))
})

describe("a fleet that fails", () => {
  it.live("goes on with the sessions that a node has, and answers 503 with Retry-After for others", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet()
      const nodes = yield* start(fleet, 2)
      const clients = yield* open(nodes)
      fleet.isDown = true
      expect((yield* clients[0]!.post(call(1, "echo", { text: "" }))).status).toBe(200)
      const refused = [
        yield* clients[1]!.post(call(1, "echo", { text: "" })),
        yield* clients[0]!.delete(),
        yield* send(nodes[0]!, { headers: posting, body: initialize("2025-11-25") })
      ]
      expect(refused.map(({ headers, status }) => [status, headers["retry-after"]])).toEqual(
        refused.map(() => [503, "1"])
      )
      const level = yield* clients[0]!.post(request(2, "logging/setLevel", { level: "error" }))
      expect(level.json.error.message).toContain("send the request again")
      fleet.isDown = false
      expect((yield* clients[1]!.post(call(1, "echo", { text: "" }))).status).toBe(200)
      expect((yield* clients[0]!.delete()).status).toBe(204)
    }))

  it.live("reads the records again after messages were lost", () =>
    Effect.gen(function*() {
      const fleet = new MemoryFleet()
      const nodes = yield* start(fleet, 2)
      const [first, second] = yield* open(nodes)
      const [gone, goneElsewhere] = yield* open(nodes)
      const stream = yield* first!.get()
      yield* second!.post(call(0, "echo", { text: "" }))
      fleet.cut(nodes[0]!.node, true)
      yield* second!.post(request(1, "logging/setLevel", { level: "error" }))
      yield* goneElsewhere!.delete()
      expect((yield* gone!.post(call(1, "echo", { text: "" }))).status).toBe(200)
      fleet.cut(nodes[0]!.node, false)
      // Everything that may have been missed is announced.
      yield* until(() => methods(stream).includes(listChanged))
      expect((yield* first!.post(call(2, "log"))).messages).toHaveLength(0)
      expect((yield* gone!.post(call(3, "echo", { text: "" }))).status).toBe(404)
    }))

  it.live("answers 503 to a request of another node's session while a node stops", () =>
    Effect.gen(function*() {
      const nodes = yield* start(new MemoryFleet(), 2)
      const [first, second] = yield* open(nodes)
      const held = yield* Effect.forkChild(second!.post(call(1, "hold", { key: "a" })))
      yield* until(() => second!.server.control.started.includes("a"))
      const closing = yield* Effect.forkChild(second!.server.endpoint.close)
      yield* Effect.yieldNow
      const refused = yield* second!.post(notification("notifications/test"), {
        "mcp-session-id": `1.${"x".repeat(22)}`
      })
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"])
      second!.server.control.open("a")
      yield* Fiber.join(held)
      yield* Fiber.join(closing)
      expect((yield* first!.post(call(2, "echo", { text: "" }))).status).toBe(200)
    }))
})

describe("copies", () => {
  it.live("give way to new sessions at maxSessions", () =>
    Effect.gen(function*() {
      const nodes = yield* start(new MemoryFleet(), 2, { limits: { maxSessions: 2 } })
      const [, copy] = yield* open(nodes)
      yield* copy!.post(call(1, "echo", { text: "" }))
      yield* open(nodes.slice(1))
      yield* open(nodes.slice(1))
      expect((yield* copy!.post(call(2, "echo", { text: "" }))).status).toBe(503)
    }))
})
