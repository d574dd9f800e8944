/** HTTP requests that one node of a fleet passes on to another. */
import { describe, expect, it } from "@effect/vitest"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { createSecretKey } from "node:crypto"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import type { NodeAddress } from "@skein/server/Fleet"
import { FrameCipher } from "../../../src/internal/http/adapters/nodeFrames.ts"
import type { NodeLink } from "../../../src/internal/http/adapters/nodeLink.ts"
import { PassedRequest } from "../../../src/internal/http/adapters/passedRequest.ts"
import type { PassedHead } from "../../../src/internal/http/sessions/nodeRequests.ts"
import { bounded, type Json, open as openStream, posting, type Request, send } from "../kit.ts"
import { call, initialize, notification, until } from "../session/kit.ts"
import { type Node, open, type Options, response, start, textOf } from "./kit.ts"
import { MemoryFleet } from "./memoryFleet.ts"
import { dial, outcomeOf, passOn, replyTo, secret } from "./nodeConnection.ts"

const keys = ["a key of the fleet of the tests of 48 characters"]
const options = { legacySse: LegacySse.make(), nodeRequests: { keys } }
const home: Options = { sessions: "home" }

/** Starts nodes that reach each other. */
const startAll = (count: number, more: Options = {}) =>
  Effect.gen(function*() {
    const fleet = new MemoryFleet()
    return { fleet, nodes: yield* start(fleet, count, { ...options, ...more }) }
  })

/** Opens a stream of HTTP+SSE at a node. Returns how to post a message at any node. */
const listen = (node: Node, headers: Request["headers"] = {}) =>
  Effect.gen(function*() {
    const stream = yield* openStream(node, {
      method: "GET",
      path: "/sse",
      headers: { accept: "text/event-stream", ...headers }
    })
    const path = (yield* stream.next).data!
    const say = (at: Node, body: Json, more: Request["headers"] = {}) =>
      send(at, { path, headers: { "content-type": "application/json", ...headers, ...more }, body })
    return { stream, path, say }
  })

/**
 * Puts a proxy before the listener for nodes of a node. `cut` ends its connections, as when the machine fails, and `stall` lets
 * the open ones pass nothing on any longer.
 */
const throughProxy = (fleet: MemoryFleet, { node }: Node) =>
  Effect.gen(function*() {
    const sockets = new Set<Socket>()
    const proxy = createServer((socket) => {
      const up = connect(fleet.addresses.get(node)!)
      for (const one of [socket, up]) {
        sockets.add(one)
        one.on("error", () => {})
        one.on("close", () => void sockets.delete(one))
      }
      socket.pipe(up).pipe(socket)
    })
    const cut = (): void => {
      proxy.close()
      for (const socket of sockets) socket.destroy()
    }
    const stall = (): void => {
      for (const socket of sockets) socket.unpipe().pause()
    }
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void proxy.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () => Effect.sync(cut)
    )
    // Each node has sent its own address.
    yield* until(() => fleet.counts["send Address"] === fleet.nodes.size * (fleet.nodes.size - 1) / 2)
    yield* fleet.readdress(node, { host: "127.0.0.1", port: (proxy.address() as AddressInfo).port })
    return { cut, stall }
  })

/** Puts a proxy before a listener, which records the bytes that it receives. Returns its address. */
const recorder = (address: NodeAddress, sent: Array<Uint8Array>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const proxy = createServer((socket) => {
          const up = connect(address)
          for (const one of [socket, up]) one.on("error", () => {})
          socket.on("data", (bytes: Buffer) => void sent.push(bytes))
          socket.pipe(up).pipe(socket)
        })
        proxy.listen(0, "127.0.0.1", () => resume(Effect.succeed(proxy)))
      }),
      (proxy) => Effect.sync(() => void proxy.close())
    ),
    (proxy) => ({ host: "127.0.0.1", port: (proxy.address() as AddressInfo).port })
  )

describe("HTTP+SSE at several nodes", () => {
  it.live("2024-11-05 · serves a session whose messages arrive at any node", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(3)
      const { say, stream } = yield* listen(nodes[0]!)
      expect(yield* say(nodes[1]!, initialize("2024-11-05"))).toMatchObject({ status: 202, text: "" })
      expect((yield* stream.message).id).toBe("init")
      yield* say(nodes[2]!, notification("notifications/initialized"))
      for (const [id, node] of nodes.entries()) {
        yield* say(node, call(id, "echo", { text: `${id}` }))
        expect(textOf(yield* stream.message)).toBe(`${id}`)
      }
      yield* say(nodes[1]!, call(9, "ask"))
      const question = yield* stream.message
      yield* say(nodes[2]!, response(question.id, "m"))
      expect(textOf(yield* stream.message)).toBe("m")
    }))

  it.live("answers 404 to another principal, at each node, and for a session that does not exist", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2)
      const { path, say } = yield* listen(nodes[0]!, { "x-user": "ann" })
      for (const node of nodes) {
        for (const user of ["bob", undefined]) {
          expect((yield* say(node, initialize("2024-11-05"), { "x-user": user })).status).toBe(404)
        }
        const unknown = `${path.slice(0, -22)}${"x".repeat(22)}`
        const refused = yield* send(node, { path: unknown, headers: posting, body: initialize("2024-11-05") })
        expect(refused.status).toBe(404)
      }
      expect((yield* say(nodes[1]!, initialize("2024-11-05"))).status).toBe(202)
    }))

  it.live("answers 503 while the node of a session cannot be reached, and 404 when it has gone", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2)
      const { say } = yield* listen(nodes[0]!)
      yield* nodes[0]!.close
      const refused = yield* say(nodes[1]!, initialize("2024-11-05"))
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"])
      fleet.stop(nodes[0]!.node)
      expect((yield* say(nodes[1]!, initialize("2024-11-05"))).status).toBe(404)
    }))

  it.live("answers 413 to a body above maxMessageBytes at any node", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2, { limits: { maxMessageBytes: 1_000 } })
      const { say } = yield* listen(nodes[0]!)
      for (const node of nodes) {
        expect((yield* say(node, call(1, "echo", { text: "x".repeat(1_000) }))).status).toBe(413)
      }
    }))
})

describe("the stream of a request in progress", () => {
  it.live("2025-11-25 · goes on through another node", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(3)
      const clients = yield* open(nodes)
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      const resumed = yield* clients[1]!.get({ "last-event-id": seen.id! })
      // It is open before the rest is there.
      expect(resumed.status).toBe(200)
      clients[0]!.server.control.open("a")
      expect((yield* resumed.message).params.progress).toBe(2)
      expect((yield* resumed.message).id).toBe(1)
      expect(yield* resumed.ended).toBe("end")
      // And it is complete, also at the third node.
      const again = yield* clients[2]!.read({ "last-event-id": seen.id! })
      expect(again.messages.map(({ id, params }) => id ?? params.progress)).toEqual([2, 1])
    }))

  it.live("2025-11-25 · without nodeRequests is unknown at another node, with 400, until its first event is stored", () =>
    Effect.gen(function*() {
      const nodes = yield* start(new MemoryFleet(), 2, { sharesEvents: true, alwaysStream: "session" })
      const clients = yield* open(nodes)
      const stream = yield* clients[0]!.stream(call(1, "hold", { key: "a" }))
      // The event that primes the client has no data, and is not stored.
      const primed = yield* stream.next
      expect(primed).toMatchObject({ data: "", id: expect.stringMatching(/-0-1$/) })
      const resume = clients[1]!.read({ "last-event-id": primed.id! })
      expect((yield* resume).status).toBe(400)
      nodes[0]!.control.open("a")
      expect((yield* stream.message).id).toBe(1)
      const { messages, status } = yield* resume
      expect([status, messages.map(({ id }) => id)]).toEqual([200, [1]])
    }))

  it.live("ends at its node when the client leaves, and its request goes on", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2)
      const clients = yield* open(nodes)
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      const resumed = yield* clients[1]!.get({ "last-event-id": seen.id! })
      yield* until(() => nodes[0]!.endpoint.streams === 1 && nodes[1]!.endpoint.streams === 1)
      resumed.leave()
      yield* until(() => nodes[0]!.endpoint.streams === 0 && nodes[1]!.endpoint.streams === 0)
      nodes[0]!.control.open("a")
      const rest = yield* clients[1]!.read({ "last-event-id": seen.id! })
      expect(rest.messages.map(({ id, params }) => id ?? params.progress)).toEqual([2, 1])
    }))

  it.live("goes on while its node shuts down", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2, { shutdownTimeout: "30 seconds" })
      const clients = yield* open(nodes)
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      fleet.stop(nodes[0]!.node)
      const closing = yield* Effect.forkChild(nodes[0]!.endpoint.close)
      yield* Effect.yieldNow
      const resumed = yield* clients[1]!.get({ "last-event-id": seen.id! })
      expect(resumed.status).toBe(200)
      nodes[0]!.control.open("a")
      expect((yield* resumed.message).params.progress).toBe(2)
      expect((yield* resumed.message).id).toBe(1)
      yield* Fiber.join(closing)
    }))

  it.live("is cut when its node fails, and is polled then", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2)
      const proxy = yield* throughProxy(fleet, nodes[0]!)
      const clients = yield* bounded({ retryDelay: 5 })(open(nodes))
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      stream.leave()
      const resumed = yield* clients[1]!.get({ "last-event-id": seen.id! })
      yield* until(() => nodes[1]!.endpoint.streams === 1)
      proxy.cut()
      expect(yield* resumed.ended).toBe("cut")
      expect(nodes[1]!.endpoint.streams).toBe(0)
      const polled = yield* clients[1]!.read({ "last-event-id": seen.id! })
      expect([polled.status, polled.messages, polled.events[0]?.retry]).toEqual([200, [], expect.any(Number)])
    }))

  it.live("waits for a client that reads slowly, and has every message for it", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2, home)
      const clients = yield* open(nodes)
      const stream = yield* clients[1]!.get()
      stream.pause()
      const text = "x".repeat(64 * 1024)
      const numbers = Array.from({ length: 400 }, (_, n) => n)
      const sent = yield* Effect.forkChild(Effect.forEach(
        numbers,
        (n) => clients[0]!.post(call(n, "announce", { text: `${n}${text}` })),
        { discard: true }
      ))
      // The handler waits for the client, whose messages fill the sockets of both nodes.
      yield* until(() => nodes[1]!.endpoint.retainedBytes > text.length)
      expect(nodes[1]!.endpoint.retainedBytes).toBeLessThan(1024 * 1024)
      expect(sent.pollUnsafe()).toBeUndefined()
      // Other requests share the connection between the nodes.
      expect(textOf((yield* clients[1]!.post(call("other", "echo", { text }))).json)).toBe(text)
      stream.resume()
      for (const n of numbers) expect((yield* stream.message).params.text).toBe(`${n}${text}`)
      yield* Fiber.join(sent)
    }))

  it.live("is not another principal's at any node", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2)
      const clients = yield* open(nodes, { headers: { "x-user": "ann" } })
      const stream = yield* clients[0]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      const [own] = yield* open(nodes.slice(1), { headers: { "x-user": "bob" } })
      const stolen = yield* clients[1]!.read({ "last-event-id": seen.id!, "x-user": "bob" })
      expect(stolen.status).toBe(404)
      // Not in a session of its own either.
      const mixed = yield* own!.read({ "last-event-id": seen.id! })
      expect(mixed.messages).toEqual([])
      nodes[0]!.control.open("a")
      expect((yield* stream.message).params.progress).toBe(2)
    }))
})

describe("sessions: \"home\"", () => {
  it.live("handles each message at the node that has opened the session", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(3, home)
      const clients = yield* open(nodes)
      for (const [index, client] of clients.entries()) {
        yield* client.post(call(`${index}`, "hold", { key: `${index}` })).pipe(Effect.forkChild)
        yield* until(() => nodes[0]!.control.started.includes(`${index}`))
      }
      const stream = yield* clients[1]!.get()
      yield* clients[2]!.post(call(1, "announce", { text: "hi" }))
      expect((yield* stream.message).params.text).toBe("hi")
      const asked = yield* clients[1]!.stream(call(2, "ask"))
      yield* asked.next
      const question = (yield* asked.next).json
      expect((yield* clients[2]!.post(response(question.id, "m"))).status).toBe(202)
      expect(textOf((yield* asked.next).json)).toBe("m")
      yield* clients[1]!.post(notification("notifications/cancelled", { requestId: "0" }))
      yield* until(() => nodes[0]!.control.interrupted.includes("0"))
      expect((yield* clients[2]!.delete()).status).toBe(204)
      for (const client of clients) expect((yield* client.post(call(3, "echo", { text: "" }))).status).toBe(404)
      expect([fleet.counts["create"], fleet.counts["find"]]).toEqual([undefined, undefined])
    }))

  it.live("answers -32603 to a call whose node fails, and 404 to the next when the node has gone", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2, home)
      const proxy = yield* throughProxy(fleet, nodes[0]!)
      const clients = yield* open(nodes)
      const held = yield* Effect.forkChild(clients[1]!.post(call(1, "hold", { key: "a" })))
      yield* until(() => nodes[0]!.control.started.includes("a"))
      proxy.cut()
      const { json, status } = yield* Fiber.join(held)
      expect([status, json.id, json.error.code]).toEqual([200, 1, -32603])
      expect(json.error.message).toContain("may have run")
      expect((yield* clients[1]!.post(call(2, "echo", { text: "" }))).status).toBe(503)
      fleet.stop(nodes[0]!.node)
      expect((yield* clients[1]!.post(call(2, "echo", { text: "" }))).status).toBe(404)
    }))

  it.live("passes a request on to a node that has joined a moment ago", () =>
    Effect.gen(function*() {
      const { fleet, nodes: [first] } = yield* startAll(1, home)
      const { unheard } = fleet.nodes.get(first!.node)!
      unheard.add(first!.node + 1)
      const [joined] = yield* start(fleet, 1, { ...options, ...home })
      const clients = yield* open([joined!, first!])
      const answered = yield* Effect.forkChild(clients[1]!.post(call(1, "echo", { text: "hi" })))
      yield* until(() => fleet.counts["hasGone"] === 1)
      unheard.clear()
      yield* fleet.readdress(joined!.node, fleet.addresses.get(joined!.node)!)
      expect(textOf((yield* Fiber.join(answered)).json)).toBe("hi")
    }))

  it.live("answers 503, and not -32603, after the node has stopped: an open connection is not used", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2, home)
      const clients = yield* open(nodes)
      expect(textOf((yield* clients[1]!.post(call(1, "echo", { text: "hi" }))).json)).toBe("hi")
      yield* nodes[0]!.close
      expect((yield* clients[1]!.post(call(2, "echo", { text: "" }))).status).toBe(503)
    }))

  it.live("answers -32603 to a call without a sign of life, and opens another connection for the next", () =>
    Effect.gen(function*() {
      // An answer that is not there yet shows that it is awaited.
      const { fleet, nodes } = yield* startAll(2, { ...home, keepAliveInterval: 300, streamAfter: 300 })
      const proxy = yield* throughProxy(fleet, nodes[0]!)
      const clients = yield* open(nodes)
      const held = yield* Effect.forkChild(clients[1]!.post(call(1, "hold", { key: "a" })))
      yield* until(() => nodes[0]!.control.started.includes("a"))
      proxy.stall()
      const { text } = yield* Fiber.join(held)
      expect(text).toContain("-32603")
      expect(text).toContain("may have run")
      expect(textOf((yield* clients[1]!.post(call(2, "echo", { text: "hi" }))).json)).toBe("hi")
    }))

  it.live("passes on long texts in many parts", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2, home)
      const clients = yield* open(nodes)
      const text = "ab€😀".repeat(150_000)
      expect(textOf((yield* clients[1]!.post(call(1, "echo", { text }))).json)).toBe(text)
    }))

  it.live("answers 503 to a head that is too long to pass on", () =>
    Effect.gen(function*() {
      const claims = { text: "x".repeat(100_000) }
      const { nodes } = yield* startAll(2, { ...home, principal: () => ({ id: "ann", claims }) })
      const clients = yield* open(nodes)
      expect((yield* clients[0]!.post(call(1, "echo", { text: "" }))).status).toBe(200)
      expect((yield* clients[1]!.post(call(2, "echo", { text: "" }))).status).toBe(503)
    }))

  it.live("2025-03-26 · answers each request of a batch whose node fails, as a single call", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2, home)
      const proxy = yield* throughProxy(fleet, nodes[0]!)
      const clients = yield* open(nodes, { revision: "2025-03-26" })
      const batch = [
        call(1, "hold", { key: "a" }),
        notification("notifications/test"),
        call("two", "echo", { text: "" })
      ]
      const held = yield* Effect.forkChild(clients[1]!.post(batch as unknown as Json))
      yield* until(() => nodes[0]!.control.started.includes("a"))
      proxy.cut()
      const { json, status } = yield* Fiber.join(held)
      expect(status).toBe(200)
      expect(json.map(({ error, id }: Json) => [id, error.code])).toEqual([[1, -32603], ["two", -32603]])
    }))

  it.live("cancels nothing when a client leaves, and ends the request to the other node", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2, home)
      const clients = yield* open(nodes)
      const stream = yield* clients[1]!.stream(call(1, "steps", { key: "a" }))
      yield* stream.next
      const seen = yield* stream.next
      expect(nodes[1]!.endpoint.inFlightRequests).toBe(1)
      stream.leave()
      yield* until(() => nodes[1]!.endpoint.inFlightRequests === 0)
      nodes[0]!.control.open("a")
      const rest = yield* clients[1]!.get({ "last-event-id": seen.id! })
      expect((yield* rest.message).params.progress).toBe(2)
      expect((yield* rest.message).id).toBe(1)
    }))

  it.live("answers 503 above maxInFlightRequests of the node that passes on", () =>
    Effect.gen(function*() {
      const { nodes } = yield* startAll(2, { ...home, limits: { maxInFlightRequests: 1 } })
      const clients = yield* open(nodes)
      const held = yield* Effect.forkChild(clients[1]!.post(call(1, "hold", { key: "a" })))
      yield* until(() => nodes[0]!.control.started.includes("a"))
      expect((yield* clients[1]!.post(call(2, "echo", { text: "" }))).status).toBe(503)
      nodes[0]!.control.open("a")
      expect((yield* Fiber.join(held)).status).toBe(200)
    }))

  it.live("needs nodes that reach each other", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(start(new MemoryFleet(), 1, home))
      expect(String(exit)).toContain("needs nodes that reach each other")
    }))
})

describe("the listener for nodes", () => {
  const head: PassedHead = {
    method: "POST",
    path: "/mcp",
    headers: { ...posting },
    principal: { id: "ann" }
  }
  const body = JSON.stringify(initialize("2025-11-25"))
  const otherKeys = ["another key of 48 characters, as all the others."]

  /** A frame before the keys of a connection are there. */
  const frame = (text: string): Buffer => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(Buffer.byteLength(text))
    return Buffer.concat([length, Buffer.from(text)])
  }

  it.live("accepts a node with a key of the fleet, and refuses all others in the same way", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2)
      const [from, to] = nodes.map(({ node }) => node) as [number, number]
      const address = fleet.addresses.get(to)!
      const { link, outcome } = yield* dial(address, { from, to, keys })
      expect(outcome).toBe("accepted")
      expect(yield* passOn(link, head, body)).toBe(200)
      const refused = [
        // Of another key, of none, for another node, of itself, of a node that is not there.
        { from, to, keys: otherKeys },
        { from, to },
        { from, to: 3, keys },
        { from: to, to, keys },
        { from: 3, to, keys }
      ]
      const outcomes = yield* Effect.forEach(refused, (options) => outcomeOf(address, options))
      expect(outcomes).toEqual(refused.map(() => "refused"))
      const greeting = { version: 1, from, to, nonce: "x".repeat(43), proof: "x".repeat(43) }
      const greetings = [
        "",
        "x",
        "null",
        "[]",
        "{}",
        JSON.stringify(greeting),
        JSON.stringify({ ...greeting, version: 2 })
      ]
      for (const text of greetings) expect(yield* replyTo(address, frame(text))).toBe("00000000")
      // Clients that find the port.
      for (const text of ["GET / HTTP/1.1\r\nhost: node\r\n\r\n", "\0\0\x02\x01"]) {
        expect(yield* replyTo(address, Buffer.from(text))).toBe("")
      }
    }))

  it.live("accepts any of its keys", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2, { nodeRequests: { keys: [keys[0]!, otherKeys[0]!] } })
      const [from, to] = nodes.map(({ node }) => node) as [number, number]
      const outcome = (own: ReadonlyArray<string>) => outcomeOf(fleet.addresses.get(to)!, { from, to, keys: own })
      expect(yield* Effect.forEach([keys, otherKeys], outcome)).toEqual(["accepted", "accepted"])
      expect(yield* outcome(["a third key of 48 characters, which is not there"])).toBe("refused")
    }))

  it.live("handles nothing of a connection that was recorded", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2)
      const [from, to] = nodes.map(({ node }) => node) as [number, number]
      const address = fleet.addresses.get(to)!
      const { link, socket } = yield* dial(address, { from, to, keys })
      const sent: Array<Uint8Array> = []
      const { socket: recorded } = yield* dial(yield* recorder(address, sent), { from, to, keys })
      recorded.destroy()
      expect(sent.length).toBeGreaterThan(0)
      // The listener answers the greeting with another nonce, and the first frame is of another key.
      expect(yield* replyTo(address, Buffer.concat(sent))).not.toBe("00000000")
      expect(nodes[1]!.endpoint.sessions).toBe(0)
      expect([yield* passOn(link, head, body), socket.destroyed]).toEqual([200, false])
    }))

  it.live("closes a connection without a greeting", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2)
      expect(yield* replyTo(fleet.addresses.get(nodes[1]!.node)!, Buffer.alloc(0))).toBe("")
    }))

  it.live("closes the connection of a node that does not follow the protocol", () =>
    Effect.gen(function*() {
      const { fleet, nodes } = yield* startAll(2)
      const [from, to] = nodes.map(({ node }) => node) as [number, number]
      const opened = dial(fleet.addresses.get(to)!, { from, to, keys })
      const text = JSON.stringify({ ...head, method: "POST" })
      const wrong: ReadonlyArray<(link: NodeLink, socket: Socket) => void> = [
        // A frame of another key, a frame that is too long, and one of an unknown kind.
        (_, socket) => void socket.write(frame("x".repeat(40))),
        (link) => link.send(0, 1, "x".repeat(200_000), Buffer.alloc(0)),
        (link) => {
          link.send(0, 1, text, Buffer.from("{"))
          link.send(9, 1, "", Buffer.alloc(0))
        },
        // More than the other node wants.
        (link) => {
          link.send(0, 1, text, Buffer.from("{"))
          link.send(3, 1, "", Buffer.from([255, 255, 255, 255]))
        }
      ]
      for (const send of wrong) {
        const { link, socket } = yield* opened
        send(link, socket)
        yield* until(() => socket.destroyed)
      }
      // The head of one stream is its own problem.
      const { link } = yield* opened
      expect(yield* passOn(link, {} as PassedHead, body)).toBeUndefined()
      expect(yield* passOn(link, head, body)).toBe(200)
      expect(nodes[1]!.endpoint.inFlightRequests).toBe(0)
    }))

  it("reads frames once, and in their order", () => {
    const [first, second] = ["one", "two"].map((text) => createSecretKey(secret(text.padEnd(32))))
    const own = new FrameCipher(first!, second!)
    const sealed = ["a", "b", "c"].map((text) => Buffer.concat(own.seal(Buffer.from(text))))
    const read = (...frames: ReadonlyArray<Buffer>) => {
      const other = new FrameCipher(second!, first!)
      return frames.map((frame) => other.open(frame)?.toString())
    }
    expect(read(...sealed)).toEqual(["a", "b", "c"])
    expect(read(sealed[0]!, sealed[0]!)).toEqual(["a", undefined])
    expect(read(sealed[1]!)).toEqual([undefined])
    const changed = Buffer.from(sealed[0]!)
    changed[0]! ^= 1
    expect([read(changed), read(Buffer.alloc(3)), own.open(sealed[0]!)]).toEqual([[undefined], [undefined], undefined])
  })

  it("has the headers, the principal and the body of the client", () => {
    const taken: Array<number> = []
    const stream = { take: (bytes: number) => void taken.push(bytes) }
    const passed = new PassedRequest(
      { ...head, headers: { "mcp-param-a": "1", accept: "x" }, address: "192.0.2.1" },
      stream
    )
    expect([passed.header("accept"), passed.header("__proto__"), passed.params]).toEqual(["x", undefined, [
      "mcp-param-a"
    ]])
    expect([passed.principal, passed.address]).toEqual([{ id: "ann" }, "192.0.2.1"])
    const bodies: Array<unknown> = []
    const counter = { arrived: () => {} }
    passed.add(Buffer.from("te"), false)
    expect(taken).toEqual([])
    passed.read(100, (body) => void bodies.push(body), counter)
    passed.add(Buffer.from("xt"), true)
    expect(taken).toEqual([2])
    for (
      const end of [(one: PassedRequest) => one.abort(), (one: PassedRequest) => one.add(Buffer.from([255]), true)]
    ) {
      const other = new PassedRequest(head, stream)
      end(other)
      other.read(100, (body) => void bodies.push(body), counter)
    }
    expect(bodies).toEqual([{ text: "text" }, { fault: "Aborted" }, { fault: "Encoding" }])
  })
})
