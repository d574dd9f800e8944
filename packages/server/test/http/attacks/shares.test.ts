/**
 * One client takes all it can of a bound that all clients share. Another client, with an address of its own, is served
 * all the same.
 */
import { describe, expect, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Concurrency from "@skein/server/Concurrency"
import * as Elicitation from "@skein/server/Elicitation"
import * as EventStore from "@skein/server/EventStore"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as RateLimit from "@skein/server/RateLimit"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { fixedBounds } from "../../../src/internal/base/fixedBounds.ts"
import { MemoryEventStore } from "../../../src/internal/http/limits/eventStore.ts"
import { bounds } from "../../fixedBounds.ts"
import { adapters } from "../adapters.ts"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"
import { call, initialize, request } from "../session/kit.ts"
import { bytesOf, enter, head, hello, inSession, mebibyte, polite, type Port, served } from "./clients.ts"

/** Serves a tool that waits, and one that returns its input. */
const waitingServer = (options?: NodeHttp.Options) =>
  Effect.gen(function*() {
    const waiting = fixtures.waiting()
    const server = fixtures.server(fixtures.echo, waiting.layer)
    const at = yield* kit.serve(server, { shutdownTimeout: 0, ...options })
    return { ...waiting, at }
  })

describe("bodies: maxRetainedBytes", () => {
  const full: Http.Options = { limits: { maxRetainedBytes: mebibyte, maxMessageBytes: mebibyte } }

  for (const adapter of adapters) {
    it.live(`serves others while a client announces bodies, or sends them almost to the end · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* adapter.serve(fixtures.server(fixtures.echo), full)
        for (const length of ["content-length: 1000000", "transfer-encoding: chunked"]) {
          for (let n = 0; n < 32; n++) (yield* kit.raw(at)).write(head(length))
        }
        yield* served(at)
        for (let n = 0; n < 16; n++) {
          const raw = yield* kit.raw(at)
          raw.write(head("content-length: 200000") + " ".repeat(199_999))
        }
        for (let n = 0; n < 8; n++) {
          yield* served(at)
          // A body that arrives in several parts.
          const text = "x".repeat(100_000)
          yield* served(at, {
            ...kit.modern("tools/call", { name: "echo", arguments: { text } }),
            localAddress: polite
          })
        }
      })))
  }

  it.live("serves others while a client keeps large subscriptions and calls open", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, running } = yield* waitingServer(full)
      const padding = "x".repeat(100_000)
      // The parameters of a subscription are not retained.
      for (let n = 0; n < 50; n++) {
        const stream = yield* kit.open(at, kit.modern("subscriptions/listen", { notifications: { padding }, padding }))
        expect(stream.status).toBe(200)
      }
      const id = yield* enter(at, "127.0.0.1")
      for (let n = 0; n < 5; n++) {
        const sent = inSession(id, call(n, "wait", { padding }))
        yield* Effect.forkChild(kit.send(at, sent), { startImmediately: true })
      }
      yield* running(5)
      const text = "x".repeat(100_000)
      yield* served(at, { ...kit.modern("tools/call", { name: "echo", arguments: { text } }), localAddress: polite })
      const own = yield* enter(at, polite)
      yield* served(at, inSession(own, call(1, "echo", { text }), polite))
    })))
})

describe("messages", () => {
  it.live("counts the parsed values of requests, not only their characters", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at } = yield* waitingServer({ limits: { maxRetainedBytes: 16 * mebibyte } })
      const send = (count: number, localAddress: string) =>
        kit.send(at, {
          ...kit.modern("tools/call", {
            name: "wait",
            arguments: {},
            padding: Array.from({ length: count }, () => [])
          }),
          localAddress
        })
      // 600 KB of JSON become 13 MB.
      yield* Effect.forkChild(send(200_000, "127.0.0.1"), { startImmediately: true })
      yield* fixtures.until(() => at.endpoint.retainedBytes > 10 * mebibyte)
      const { json } = yield* send(200_000, "127.0.0.1")
      expect(json.error.message).toContain("the server is overloaded, and this client has the largest share")
      expect(at.endpoint.retainedBytes).toBeLessThan(16 * mebibyte)
      yield* served(at)
    })))

  it.live("serves small messages of the same address in place of its largest requests", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, running } = yield* waitingServer({ limits: { maxRetainedBytes: mebibyte } })
      const large = kit.modern("tools/call", { name: "wait", arguments: {}, padding: "x".repeat(101_000) })
      for (let n = 0; n < 10; n++) yield* Effect.forkChild(kit.send(at, large), { startImmediately: true })
      yield* running(10)
      expect((yield* kit.send(at, large)).status).toBe(503)
      const text = "x".repeat(5_000)
      const small = { ...kit.modern("tools/call", { name: "echo", arguments: { text } }) }
      for (let n = 0; n < 10; n++) yield* served(at, small)
    })))

  it.live("bounds the replies of a batch that is not complete", () =>
    Effect.scoped(Effect.gen(function*() {
      const waiting = fixtures.waiting()
      const large = Tool.layer(Tool.make("large"), () => Effect.succeed("x".repeat(100_000)))
      const server = fixtures.server(fixtures.echo, large, waiting.layer)
      const at = yield* kit.serve(server, { limits: { maxRetainedBytes: mebibyte }, shutdownTimeout: 0 })
      const id = yield* enter(at, "127.0.0.1", true, {}, {}, "2025-03-26")
      const batch = [call(0, "wait"), ...Array.from({ length: 20 }, (_, n) => call(n + 1, "large"))]
      yield* kit.send(at, inSession(id, batch))
      expect(waiting.seen.interrupted).toBe(waiting.seen.started)
      yield* served(at)
      expect(at.endpoint.retainedBytes).toBeLessThan(10_000)
    })))
})

describe("sessions", () => {
  for (const legacySse of [undefined, LegacySse.make()]) {
    it.live(`serves others while a client has maxSessions${legacySse === undefined ? "" : ", over HTTP+SSE"}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const at = yield* kit.serve(fixtures.server(fixtures.echo), { legacySse, limits: { maxSessions: 20 } })
        for (let n = 0; n < 40; n++) {
          if (legacySse === undefined) {
            const { status } = yield* kit.send(at, { headers: kit.posting, body: initialize("2025-11-25") })
            expect(status).toBe(200)
            continue
          }
          yield* kit.open(at, { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } })
        }
        const ids: Array<string> = []
        for (let n = 0; n < 5; n++) ids.push(yield* enter(at, polite))
        for (let n = 0; n < 40; n++) yield* kit.send(at, { headers: kit.posting, body: initialize("2025-11-25") })
        for (const id of ids) yield* served(at, inSession(id, call(1, "echo", { text: "hi" }), polite))
        expect(at.endpoint.sessions).toBe(20)
      })))
  }

  it.live("gives up sessions in use only for a client with half as many", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { limits: { maxSessions: 9 } })
      for (let n = 0; n < 9; n++) yield* enter(at, "127.0.0.1")
      const refused = { headers: kit.posting, body: initialize("2025-11-25") }
      expect((yield* kit.send(at, refused)).status).toBe(503)
      for (let n = 0; n < 3; n++) yield* enter(at, polite)
      expect((yield* kit.send(at, { ...refused, localAddress: polite })).status).toBe(503)
    })))

  it.live("bounds what all sessions store", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { limits: { maxRetainedBytes: mebibyte } })
      const title = "x".repeat(60_000)
      const own = yield* enter(at, polite)
      for (let n = 0; n < 40; n++) yield* enter(at, "127.0.0.1", false, { title })
      expect(at.endpoint.sessions).toBeLessThan(20)
      yield* enter(at, polite)
      yield* served(at, inSession(own, call(1, "echo", { text: "hi" }), polite))
    })))
})

describe("streams and subscriptions", () => {
  const open = (at: Port, localAddress?: string): Effect.Effect<kit.Stream, never, Scope.Scope> =>
    kit.open(at, {
      ...kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } }),
      ...(localAddress === undefined ? {} : { localAddress })
    })
  const listening = (at: Port) =>
    Effect.gen(function*() {
      const first = yield* open(at)
      for (let n = 0; n < 30; n++) yield* open(at)
      const stream = yield* open(at, polite)
      expect(stream.status).toBe(200)
      expect((yield* stream.message).method).toBe("notifications/subscriptions/acknowledged")
      // The oldest one of the other client was completed.
      expect(yield* first.ended).toBe("end")
      expect(stream.waiting()).toEqual([])
    })

  it.live("serves others while a client has maxStreams", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { limits: { maxStreams: 20 } })
      yield* listening(at)
      const id = yield* enter(at, "127.0.0.3")
      const headers = { accept: "text/event-stream", "mcp-session-id": id }
      const get = yield* kit.open(at, { method: "GET", headers, localAddress: "127.0.0.3" })
      expect(get.status).toBe(200)
      expect(at.endpoint.streams).toBe(20)
    })))

  it.live("serves others while a client has maxListens", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = fixtures.server(fixtures.echo)
      yield* listening(yield* kit.serve(Layer.provide(server, bounds({ maxListens: 20 }))))
    })))

  it.live("bounds the URIs that all sessions subscribe to", () =>
    Effect.scoped(Effect.gen(function*() {
      const uri = `a://${"x".repeat(50_000)}`
      const resource = Resource.layer(Resource.make(uri), Effect.succeed("x"))
      const at = yield* kit.serve(fixtures.server(fixtures.echo, resource), { limits: { maxRetainedBytes: 400_000 } })
      for (let n = 0; n < 20; n++) {
        const id = yield* enter(at, "127.0.0.1")
        yield* kit.send(at, inSession(id, request(1, "resources/subscribe", { uri })))
        yield* kit.send(at, inSession(id, request(2, "ping")))
      }
      const text = "x".repeat(100_000)
      yield* served(at, { ...kit.modern("tools/call", { name: "echo", arguments: { text } }), localAddress: polite })
    })))
})

describe("requests in flight: maxInFlightRequests", () => {
  it.live("serves others while the stateless calls of a client hang", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, running } = yield* waitingServer({ limits: { maxInFlightRequests: 20 } })
      const wait = kit.modern("tools/call", { name: "wait", arguments: {} })
      const first = yield* Effect.forkChild(kit.send(at, wait), { startImmediately: true })
      yield* running(1)
      for (let n = 0; n < 19; n++) yield* Effect.forkChild(kit.send(at, wait), { startImmediately: true })
      yield* running(20)
      expect((yield* kit.send(at, wait)).status).toBe(503)
      yield* served(at)
      // Not 503 with `Retry-After`: the call may have run.
      const { headers, json, status } = yield* Fiber.join(first)
      expect([status, headers["retry-after"], json.error.code]).toEqual([200, undefined, -32603])
      expect(json.error.message).toContain("may have run: check that before you send it again")
    })))

  it.live("serves others while the calls of a client's sessions hang", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, running, seen } = yield* waitingServer({ limits: { maxInFlightRequests: 20 } })
      const id = yield* enter(at, "127.0.0.1")
      const calls: Array<Fiber.Fiber<kit.Reply>> = []
      for (let n = 0; n < 20; n++) {
        calls.push(
          yield* Effect.forkChild(kit.send(at, inSession(id, call(n, "wait"))), { startImmediately: true })
        )
      }
      yield* running(20)
      const own = yield* enter(at, polite)
      yield* served(at, inSession(own, call(1, "echo", { text: "hi" }), polite))
      yield* fixtures.until(() => seen.interrupted > 0)
      const given = yield* Effect.raceAll(calls.map(Fiber.join))
      expect([given.status, given.headers["retry-after"]]).toEqual([200, undefined])
      expect(given.json).toMatchObject({ error: { code: -32603, message: expect.stringContaining("may have run") } })
    })))
})

describe("connections: maxConnections", () => {
  it.live("serves others while a client has all connections", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { limits: { maxConnections: 20 } })
      const raws: Array<kit.Raw> = []
      for (let n = 0; n < 20; n++) raws.push(yield* kit.raw(at))
      for (const raw of raws) raw.write("POST /mcp HTTP/1.1\r\n")
      yield* served(at)
      expect((yield* raws[0]!.closed).text).toBe("")
    })))

  it.live("serves the same address while all its connections wait for bodies", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { limits: { maxConnections: 20 } })
      for (let n = 0; n < 20; n++) (yield* kit.raw(at)).write(head("content-length: 1000") + " ")
      const { localAddress: _, ...own } = hello
      for (let n = 0; n < 5; n++) yield* served(at, own)
    })))

  it.live("serves others while all connections of a client have requests in progress", () =>
    Effect.scoped(Effect.gen(function*() {
      const { at, running } = yield* waitingServer({ limits: { maxConnections: 20 } })
      const wait = kit.modern("tools/call", { name: "wait", arguments: {} })
      for (let n = 0; n < 20; n++) {
        yield* kit.raw(at).pipe(Effect.tap((raw) => Effect.sync(() => raw.write(bytesOf(wait)))))
      }
      yield* running(20)
      yield* served(at)
    })))
})

describe("principals", () => {
  for (const adapter of adapters) {
    it.live(`serves others while one principal takes all it can, from the same address · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const waiting = fixtures.waiting()
        const at = yield* adapter.serve(fixtures.server(fixtures.echo, waiting.layer), {
          limits: { maxInFlightRequests: 20, maxStreams: 20, maxRetainedBytes: mebibyte },
          shutdownTimeout: 0
        })
        const as = (user: string, method: string, params: JsonRpc.JsonObject): kit.Request => {
          const sent = kit.modern(method, params)
          return { ...sent, headers: { ...sent.headers, "x-user": user } }
        }
        const padding = "x".repeat(60_000)
        for (let n = 0; n < 20; n++) {
          yield* kit.open(at, as("eve", "subscriptions/listen", { notifications: { toolsListChanged: true }, padding }))
          const wait = as("eve", "tools/call", { name: "wait", arguments: {}, padding })
          yield* Effect.forkChild(kit.send(at, wait), { startImmediately: true })
        }
        yield* waiting.running(17)
        const text = "x".repeat(60_000)
        for (let n = 0; n < 4; n++) yield* served(at, as("ada", "tools/call", { name: "echo", arguments: { text } }))
        const filter = { notifications: { toolsListChanged: true } }
        expect((yield* kit.open(at, as("ada", "subscriptions/listen", filter))).status).toBe(200)
      })))
  }
})

describe("input requests", () => {
  for (const [who, other] of [["others", polite], ["others of the same address", "127.0.0.1"]] as const) {
    it.live(`serves ${who} while a client leaves the questions of its calls unanswered`, () =>
      Effect.scoped(Effect.gen(function*() {
        let asked = 0
        const ask = Tool.layer(Tool.make("ask"), () =>
          Effect.andThen(
            Effect.sync(() => void asked++),
            Effect.as(Effect.ignore(Elicitation.form("Who are you?", { name: Schema.String })), "asked")
          ))
        const at = yield* kit.serve(fixtures.server(fixtures.echo, ask), {
          limits: { maxInFlightRequests: 20 },
          shutdownTimeout: 0
        })
        for (let session = 0; session < 4; session++) {
          const id = yield* enter(at, "127.0.0.1", true, {}, { elicitation: {} })
          for (let n = 0; n < 5; n++) {
            yield* Effect.forkChild(kit.send(at, inSession(id, call(n, "ask"))), { startImmediately: true })
          }
        }
        yield* fixtures.until(() => asked === 20)
        const own = yield* enter(at, other, true, {}, { elicitation: {} })
        yield* served(at, inSession(own, call(1, "echo", { text: "hi" }), other))
        yield* served(at, { ...hello, localAddress: other })
      })))
  }
})

describe("stored events", () => {
  it("deletes those of the client with the most", () => {
    const store = new MemoryEventStore({ ...fixedBounds, maxEventChars: 1_000 })
    const read = (session: string) => Effect.runSync(store.read(session, 1, 0))
    for (let event = 1; event <= 5; event++) store.append("polite", 1, event, "x".repeat(10), "p")
    for (let session = 0; session < 100; session++) {
      for (let event = 1; event <= 5; event++) store.append(`hostile ${session}`, 1, event, "x".repeat(10), "h")
      store.complete(`hostile ${session}`, 1, "h")
    }
    expect(store.size).toBeLessThanOrEqual(1_000)
    expect(read("polite")).toHaveLength(5)
    store.trim(200)
    expect(store.size).toBeLessThanOrEqual(200)
    expect(read("polite")).toHaveLength(5)
    for (const session of ["polite", ...Array.from({ length: 100 }, (_, n) => `hostile ${n}`)]) store.forget(session)
    expect(store.size).toBe(0)
  })

  it("deletes complete streams without events of the client with the most", () => {
    const store = EventStore.make()
    store.append("polite", 1, 1, "x", "p")
    store.complete("polite", 1, "p")
    for (let stream = 1; stream <= 10_050; stream++) store.complete("hostile", stream, "h")
    expect(Effect.runSync(store.read("polite", 1, 0))).toEqual(["x"])
    expect(Effect.runSync(store.read("hostile", 1, 0))).toBeUndefined()
  })

  it.live("gives way to requests", () =>
    Effect.scoped(Effect.gen(function*() {
      const report = Tool.layer(Tool.make("report"), () =>
        Effect.as(Progress.report({ progress: 1, message: "x".repeat(100_000) }), "done"))
      const at = yield* kit.serve(fixtures.server(fixtures.echo, report), { limits: { maxRetainedBytes: 400_000 } })
      const id = yield* enter(at, "127.0.0.1")
      for (let n = 0; n < 10; n++) {
        expect((yield* kit.send(at, inSession(id, call(n, "report")))).status).toBe(200)
      }
      const text = "x".repeat(300_000)
      yield* served(at, { ...kit.modern("tools/call", { name: "echo", arguments: { text } }), localAddress: polite })
    })))
})

describe("limits of handlers", () => {
  it.live("counts addresses separately: RateLimit", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(RateLimit.layer({ limit: 3 }), fixtures.echo))
      const { localAddress: _, ...hostile } = hello
      for (let n = 0; n < 3; n++) yield* served(at, hostile)
      expect((yield* kit.send(at, hostile)).json.error.code).toBe(RateLimit.code)
      yield* served(at)
    })))

  it.live("distinguishes the clients of trusted proxies only", () =>
    Effect.scoped(Effect.gen(function*() {
      for (const trustedProxies of [0, 1, 2]) {
        const at = yield* kit.serve(fixtures.server(RateLimit.layer({ limit: 1 }), fixtures.echo), { trustedProxies })
        const from = (forwarded: string) => {
          const sent = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
          return kit.send(at, { ...sent, headers: { ...sent.headers, "x-forwarded-for": forwarded } })
        }
        const isServed = (forwarded: string) => Effect.map(from(forwarded), ({ json }) => json.error === undefined)
        expect(yield* isServed("10.0.0.1, 10.1.1.1")).toBe(true)
        // The same proxy, and another client; then another entry that the client has written itself.
        expect(yield* isServed("10.0.0.2, 10.1.1.1")).toBe(trustedProxies === 2)
        expect(yield* isServed("1.1.1.1, 10.0.0.1, 10.1.1.1")).toBe(false)
        expect(yield* isServed("10.0.0.1, 10.1.1.2")).toBe(trustedProxies === 1)
      }
    })))

  it.live("serves others while the calls of a client hang: Concurrency", () =>
    Effect.scoped(Effect.gen(function*() {
      const waiting = fixtures.waiting()
      const limit = Concurrency.layer({ limit: 4, maxQueuedRequests: 4 })
      const at = yield* kit.serve(fixtures.server(limit, fixtures.echo, waiting.layer))
      const wait = kit.modern("tools/call", { name: "wait", arguments: {} })
      const hanging = Effect.forkChild(kit.send(at, wait), { startImmediately: true })
      for (let n = 0; n < 7; n++) yield* hanging
      yield* waiting.running(3)
      expect((yield* kit.send(at, wait)).json.error.code).toBe(Concurrency.code)
      yield* served(at)
      // With all places taken by several clients, another one still gets into the queue.
      yield* Effect.forkChild(kit.send(at, { ...wait, localAddress: "127.0.0.3" }), { startImmediately: true })
      yield* waiting.running(4)
      const queued = yield* Effect.forkChild(kit.send(at, hello), { startImmediately: true })
      yield* waiting.go
      const { json } = yield* Fiber.join(queued)
      expect(json.error).toBeUndefined()
    })))
})
