/**
 * Races between nodes: a session is looked up while it changes, its client opens its stream at two nodes, a copy is removed
 * while other nodes send to it.
 */
import { describe, expect, it } from "@effect/vitest"
import type * as Http from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { bounded, type Json } from "../kit.ts"
import { FakeAnswer, FakeRequest } from "../session/fake.ts"
import { call, initialize, notification, request } from "../session/kit.ts"
import { type FakeNode, read, startNode } from "./fakeNode.ts"
import { uri } from "./kit.ts"
import { MemoryFleet } from "./memoryFleet.ts"

interface Client {
  readonly fleet: MemoryFleet
  readonly nodes: ReadonlyArray<FakeNode>
  readonly id: string
  readonly send: (node: number, method: string, body?: Json, headers?: object, user?: string) => FakeAnswer
  readonly post: (node: number, body: Json) => FakeAnswer
  readonly get: (node: number, lastEventId?: string) => FakeAnswer
}

/** Opens a session at the first of three nodes. */
const open = (options: Http.Options = {}, isInitialized = true) =>
  Effect.gen(function*() {
    const fleet = new MemoryFleet(() => 10)
    const nodes = yield* Effect.forEach([0, 1, 2], () => startNode(fleet, options))
    const session: { [name: string]: string } = {}
    const send: Client["send"] = (node, method, body, headers = {}, user = "ann") => {
      const answer = new FakeAnswer()
      const sent = new FakeRequest(method, { ...session, ...headers }, body)
      nodes[node]!.endpoint.handle(sent, answer, () => ({ id: user }))
      return answer
    }
    const opened = send(0, "POST", initialize("2025-11-25"))
    yield* TestClock.adjust(100)
    const id = session["mcp-session-id"] = opened.headers["mcp-session-id"]!
    const post: Client["post"] = (node, body) => send(node, "POST", body)
    const get: Client["get"] = (node, lastEventId) =>
      send(node, "GET", undefined, lastEventId === undefined ? {} : { "last-event-id": lastEventId })
    if (isInitialized) post(0, notification("notifications/initialized"))
    yield* TestClock.adjust(100)
    return { fleet, nodes, id, send, post, get } satisfies Client
  })

const texts = (answer: FakeAnswer): Array<string> =>
  read(answer).flatMap(({ json }) => json?.method === "notifications/test" ? [json.params.text] : [])
const methods = (answer: FakeAnswer): Array<string> => read(answer).flatMap(({ json }) => json?.method ?? [])
const lastId = (answer: FakeAnswer): string => read(answer).at(-1)!.id!

/** Subscribes a client to the resource, and opens its stream at the second node. */
const listen = () =>
  Effect.gen(function*() {
    const client = yield* open()
    client.post(0, request("s", "resources/subscribe", { uri }))
    const first = client.get(1)
    yield* TestClock.adjust(200)
    return { ...client, first, seen: lastId(first) }
  })
const announce = (text: string) => call(text, "announce", { text })
const updated = "notifications/resources/updated"

describe("a request whose session is looked up", () => {
  it.effect("is handled if its client leaves meanwhile, except GET", () =>
    Effect.gen(function*() {
      const { fleet, get, id, nodes, send } = yield* open()
      get(2).leave()
      send(1, "DELETE").leave()
      yield* TestClock.adjust(200)
      expect(fleet.records.size).toBe(0)
      expect(nodes[2]!.endpoint.streams).toBe(0)
      expect(id).not.toBe("")
    }))

  it.effect("is refused with 503 after more messages than maxPendingMessages, and after a gap", () =>
    bounded({ maxPendingMessages: 3 })(Effect.gen(function*() {
      const { fleet, nodes, post } = yield* open()
      fleet.delay = () => 1_000
      const waiting = post(1, call(1, "echo", { text: "" }))
      fleet.delay = () => 0
      for (let n = 0; n < 5; n++) {
        post(0, request(`${n}`, "logging/setLevel", { level: "error" }))
        yield* TestClock.adjust(10)
      }
      yield* TestClock.adjust(2_000)
      expect([waiting.status, waiting.headers["retry-after"]]).toEqual([503, "1"])
      const cut = post(1, call(2, "echo", { text: "" }))
      for (const receiver of fleet.nodes.get(nodes[1]!.number)!.receivers) receiver.gap()
      yield* TestClock.adjust(100)
      expect(cut.status).toBe(503)
      const again = post(1, call(3, "log"))
      yield* TestClock.adjust(100)
      expect([again.status, methods(again)]).toEqual([200, []])
    })))

  it.effect("is cancelled by a cancellation that has overtaken it", () =>
    Effect.gen(function*() {
      const { fleet, nodes, post } = yield* open()
      fleet.delay = () => 100
      post(1, call(1, "hold", { key: "a" }))
      fleet.delay = () => 0
      post(0, notification("notifications/cancelled", { requestId: 1 }))
      yield* TestClock.adjust(500)
      const { interrupted, started } = nodes[1]!.control
      expect([started, interrupted]).toEqual([["a"], ["a"]])
    }))

  it.effect("gives its place to another client's at maxInFlightRequests", () =>
    Effect.gen(function*() {
      const { nodes, send } = yield* open({ limits: { maxInFlightRequests: 2 } })
      const lookups = ["ann", "ann"].map((user) => send(1, "POST", call(1, "echo", { text: "" }), {}, user))
      const other = send(1, "POST", call(1, "echo", { text: "" }), {}, "bob")
      expect(lookups.map(({ status }) => status).toSorted()).toEqual([0, 503])
      yield* TestClock.adjust(100)
      expect(other.status).toBe(404)
      expect([nodes[1]!.endpoint.inFlightRequests, nodes[1]!.sharing.size]).toEqual([0, 1])
    }))

  it.effect("of another principal is looked up at a node that has it, too", () =>
    Effect.gen(function*() {
      const { fleet, send } = yield* open()
      const refused = send(0, "POST", call(1, "echo", { text: "" }), {}, "bob")
      expect([refused.status, fleet.counts["find"]]).toEqual([0, 1])
      yield* TestClock.adjust(100)
      expect(refused.status).toBe(404)
    }))
})

describe("a session", () => {
  it.effect("does not expire while its client listens", () =>
    Effect.gen(function*() {
      const { get, post } = yield* open()
      get(1)
      for (let minute = 0; minute < 120; minute++) yield* TestClock.adjust(60_000)
      const reply = post(2, call(1, "echo", { text: "" }))
      yield* TestClock.adjust(100)
      expect(reply.status).toBe(200)
    }))

  it.effect("is initialized everywhere when the notification is answered, or the answer is 503", () =>
    Effect.gen(function*() {
      const { fleet, id, post } = yield* open({}, false)
      fleet.isDown = true
      const refused = post(0, notification("notifications/initialized"))
      yield* TestClock.adjust(100)
      fleet.isDown = false
      expect(refused.status).toBe(503)
      const accepted = post(0, notification("notifications/initialized"))
      expect(accepted.status).toBe(0)
      yield* TestClock.adjust(100)
      expect([accepted.status, fleet.records.find(id, "ann", 0)?.isInitialized]).toEqual([202, true])
    }))

  it.effect("has its later copy, when an earlier one ends whose request did not stop at once", () =>
    Effect.gen(function*() {
      const { fleet, id, nodes, post } = yield* open()
      const { control, sharing } = nodes[1]!
      post(1, call(1, "stubborn", { key: "a" }))
      yield* TestClock.adjust(100)
      expect(control.started).toEqual(["a"])
      // The node removes its copy.
      sharing.message({ _tag: "Ended", id })
      const reply = post(1, call(2, "echo", { text: "" }))
      yield* TestClock.adjust(100)
      control.open("a")
      yield* TestClock.adjust(100)
      expect([reply.status, nodes[1]!.endpoint.sessions, fleet.counts["find"]]).toEqual([200, 1, 2])
      post(1, call(3, "echo", { text: "" }))
      expect(fleet.counts["find"]).toBe(2)
    }))

  it.effect("is removed at all nodes if it has ended while it was stored", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* open()
      const answer = new FakeAnswer()
      fleet.delay = () => 70_000
      nodes[0]!.endpoint.handle(new FakeRequest("POST", {}, initialize("2025-11-25")), answer, () => ({ id: "ann" }))
      yield* TestClock.adjust(65_000)
      expect(answer.status).toBe(503)
      yield* TestClock.adjust(10_000)
      expect(fleet.records.size).toBe(2)
      yield* TestClock.adjust(300_000)
      expect(fleet.records.size).toBe(1)
    }))

  it.effect("has the changes that arrive while its record is read again", () =>
    Effect.gen(function*() {
      const { fleet, nodes, post } = yield* open()
      post(0, request("1", "logging/setLevel", { level: "info" }))
      post(0, call("hold", "hold", { key: "a" }))
      yield* TestClock.adjust(100)
      fleet.delay = () => 100
      for (const receiver of fleet.nodes.get(nodes[0]!.number)!.receivers) receiver.gap()
      // The record is read after 100 ms, and arrives 100 ms later.
      yield* TestClock.adjust(150)
      fleet.delay = () => 1
      const set = post(1, request("2", "logging/setLevel", { level: "error" }))
      yield* TestClock.adjust(40)
      expect(set.status).toBe(200)
      yield* TestClock.adjust(300)
      const logged = post(0, call("log", "log"))
      yield* TestClock.adjust(10)
      expect([logged.status, methods(logged)]).toEqual([200, []])
    }))

  it.effect("numbers its requests to the client from another id than the session before", () =>
    Effect.gen(function*() {
      const { nodes } = yield* open()
      const { sharing } = nodes[0]!
      const ids = [sharing.requestIds, sharing.requestIds].map(({ first, next = 0 }) => next - first)
      expect(ids).toEqual([1_000, 2_000])
    }))

  it.effect("leaves no events behind at a node that has removed its copy", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post, send } = yield* open()
      const stream = get(1)
      yield* TestClock.adjust(100)
      post(0, announce("1"))
      yield* TestClock.adjust(100)
      expect(texts(stream)).toEqual(["1"])
      stream.leave()
      yield* TestClock.adjust(121_000)
      expect([nodes[1]!.endpoint.sessions, fleet.events.size! > 0]).toEqual([0, true])
      send(2, "DELETE")
      yield* TestClock.adjust(100)
      expect(nodes.map(({ endpoint }) => endpoint.retainedBytes)).toEqual([0, 0, 0])
    }))
})

describe("the stream of a client", () => {
  it.effect("continues at the third node what the client has not received at the second", () =>
    Effect.gen(function*() {
      const { get, post } = yield* open()
      const first = get(0)
      yield* TestClock.adjust(100)
      post(1, announce("1"))
      yield* TestClock.adjust(100)
      const seen = lastId(first)
      post(1, announce("2"))
      yield* TestClock.adjust(100)
      // The client receives nothing there.
      const second = get(1, seen)
      yield* TestClock.adjust(100)
      post(1, announce("3"))
      yield* TestClock.adjust(100)
      expect(texts(second)).toEqual(["2", "3"])
      const third = get(2, seen)
      yield* TestClock.adjust(100)
      expect([texts(third), first.isClosed, second.isClosed]).toEqual([["2", "3"], true, true])
      post(0, announce("4"))
      yield* TestClock.adjust(100)
      expect(texts(third)).toEqual(["2", "3", "4"])
    }))

  it.effect("ends at one of two nodes at which it was opened at once, and all nodes know the other one", () =>
    Effect.gen(function*() {
      const { fleet, get, id, nodes, post } = yield* open()
      for (const node of [0, 1, 2]) post(node, call(node, "echo", { text: "" }))
      yield* TestClock.adjust(100)
      let delay = 0
      // The second is stored before the first.
      fleet.delay = () => delay += 7
      const streams = [get(1), get(2)]
      yield* TestClock.adjust(500)
      const { listensAt } = fleet.records.find(id, "ann", 0)!
      const at = nodes.findIndex(({ number }) => number === listensAt)
      expect(streams[2 - at]!.isClosed).toBe(true)
      // It may have ended there, too: then the client opens it again.
      const stream = streams[at - 1]!.isClosed ? get(at) : streams[at - 1]!
      for (const node of [0, 1, 2]) post(node, announce(`${node}`))
      yield* TestClock.adjust(2_000)
      expect(texts(stream).toSorted()).toEqual(["0", "1", "2"])
    }))

  it.effect("moves to the node that opened the session before that node knows that the stream was elsewhere", () =>
    Effect.gen(function*() {
      const { fleet, get, id, nodes, post } = yield* open()
      post(1, call(1, "echo", { text: "" }))
      yield* TestClock.adjust(100)
      const first = get(1)
      const second = get(0, lastId(first))
      post(2, announce("1"))
      yield* TestClock.adjust(300)
      expect(fleet.records.find(id, "ann", 0)?.listensAt).toBe(nodes[0]!.number)
      expect([first.isClosed, second.isClosed, texts(second)]).toEqual([true, false, ["1"]])
    }))

  it.effect("does not end when its node receives late where it was before", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post } = yield* open()
      fleet.delayAll(nodes[2]!.number, true)
      const first = get(1)
      yield* TestClock.adjust(50)
      const second = get(2)
      yield* TestClock.adjust(50)
      fleet.delayAll(nodes[2]!.number, false)
      yield* TestClock.adjust(100)
      post(0, announce("1"))
      yield* TestClock.adjust(100)
      expect([first.isClosed, second.isClosed, texts(second)]).toEqual([true, false, ["1"]])
    }))

  it.effect("has one notification of a change that happens while it moves", () =>
    Effect.gen(function*() {
      const { get, post } = yield* open()
      post(0, request("s", "resources/subscribe", { uri }))
      let stream = get(0)
      yield* TestClock.adjust(200)
      for (let pause = 0; pause <= 60; pause += 5) {
        const seen = lastId(stream)
        const next = get(pause % 2 === 0 ? 1 : 2, seen)
        yield* TestClock.adjust(pause)
        post(0, call(`${pause}`, "touch"))
        yield* TestClock.adjust(300)
        expect([pause, methods(next).filter((method) => method === updated).length]).toEqual([pause, 1])
        stream = next
      }
    }))

  it.effect("has the changes that its node has not noticed while it was cut off", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post, first, seen } = yield* listen()
      fleet.cut(nodes[1]!.number, true)
      post(0, call("t", "touch"))
      yield* TestClock.adjust(100)
      const second = get(2, seen)
      yield* TestClock.adjust(1_200)
      expect([methods(second).includes(updated), first.isClosed]).toEqual([true, false])
      fleet.cut(nodes[1]!.number, false)
      yield* TestClock.adjust(200)
      expect(first.isClosed).toBe(true)
    }))

  it.effect("has all changes when its node does not confirm that it has stopped sending", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post, first, seen } = yield* listen()
      post(1, announce("stored"))
      fleet.delayAll(nodes[1]!.number, true)
      post(1, announce("waits"))
      yield* TestClock.adjust(100)
      const second = get(2, seen)
      yield* TestClock.adjust(1_200)
      expect([texts(second), methods(second).includes(updated)]).toEqual([["stored"], true])
      post(2, announce("new"))
      fleet.delayAll(nodes[1]!.number, false)
      yield* TestClock.adjust(200)
      expect([texts(second), first.isClosed]).toEqual([["stored", "new"], true])
    }))

  it.effect("has all changes if its client has not received an event of a later stream", () =>
    Effect.gen(function*() {
      const { get, post, first, seen } = yield* listen()
      first.leave()
      for (const node of [2, 0]) {
        const later = get(node)
        yield* TestClock.adjust(100)
        post(1, call(`t${node}`, "touch"))
        yield* TestClock.adjust(100)
        expect(methods(later)).toContain(updated)
        later.leave()
        const again = get(0, seen)
        yield* TestClock.adjust(200)
        expect(methods(again)).toContain(updated)
        again.leave()
      }
    }))

  it.effect("begins anew at a node that was cut off, and does not know its latest events", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post } = yield* open()
      const first = get(1)
      yield* TestClock.adjust(200)
      fleet.cut(nodes[1]!.number, true)
      const second = get(2, lastId(first))
      yield* TestClock.adjust(200)
      post(0, announce("1"))
      yield* TestClock.adjust(100)
      const third = get(1, lastId(second))
      yield* TestClock.adjust(100)
      expect([third.status, methods(third).length > 0]).toEqual([200, true])
    }))

  it.effect("ends if the other nodes cannot learn where it is", () =>
    Effect.gen(function*() {
      const { fleet, get, post } = yield* open()
      post(1, call(1, "echo", { text: "" }))
      yield* TestClock.adjust(100)
      fleet.isDown = true
      const stream = get(1)
      expect(stream.isClosed).toBe(false)
      yield* TestClock.adjust(100)
      expect(stream.isClosed).toBe(true)
      fleet.isDown = false
      post(0, announce("kept"))
      const again = get(1)
      yield* TestClock.adjust(100)
      expect(texts(again)).toEqual(["kept"])
    }))

  it.effect("has the messages and changes since its node has removed the session", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post } = yield* open()
      post(0, request("s", "resources/subscribe", { uri }))
      const first = get(1)
      yield* TestClock.adjust(100)
      const seen = lastId(first)
      first.leave()
      yield* TestClock.adjust(121_000)
      expect([nodes[1]!.endpoint.sessions, fleet.records.size]).toEqual([0, 1])
      post(0, call("t", "touch"))
      post(0, announce("returned"))
      yield* TestClock.adjust(100)
      for (const node of [1, 2]) {
        const stream = get(node, seen)
        yield* TestClock.adjust(200)
        if (node === 1) expect(texts(stream)).toEqual(["returned"])
        expect(methods(stream)).toContain(updated)
      }
    }))

  it.effect("has the messages that waited at an idle copy, while no node could notify the client", () =>
    Effect.gen(function*() {
      const { fleet, get, nodes, post } = yield* open()
      fleet.stop(nodes[0]!.number)
      post(1, announce("waits"))
      yield* TestClock.adjust(240_000)
      const stream = get(2)
      yield* TestClock.adjust(100)
      expect(texts(stream)).toEqual(["waits"])
    }))
})
