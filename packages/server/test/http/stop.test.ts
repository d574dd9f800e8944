/** The end of a listener: requests that clients have sent, or are sending, are answered. */
import { describe, expect, it } from "@effect/vitest"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { connect, type Socket } from "node:net"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const { until } = fixtures
const request = kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } })
const body = JSON.stringify(request.body)
const head = [
  "POST /mcp HTTP/1.1",
  "host: 127.0.0.1",
  ...Object.entries(request.headers ?? {}).map(([name, value]) => `${name}: ${String(value)}`),
  `content-length: ${body.length}`,
  "\r\n"
].join("\r\n")

/** A connection that one request after the other is sent on, and the text that has arrived. */
class Kept {
  readonly socket: Socket
  text = ""
  isClosed = false

  constructor(port: number) {
    this.socket = connect(port, "127.0.0.1")
    this.socket.setEncoding("utf8").on("data", (text: string) => this.text += text)
    this.socket.on("error", () => {})
    this.socket.on("close", () => this.isClosed = true)
  }

  /** The number of complete answers. */
  get answers(): number {
    return this.text.split("\"text\":\"hi\"").length - 1
  }

  /** Sends a request, and waits for its answer. */
  call(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const expected = this.answers + 1
      this.socket.write(head + body)
      return until(() => this.answers === expected)
    })
  }
}

// Longer than the test.
const long = 600_000

/** A listening server, and the function that begins its end and returns when new connections are refused. */
const serve = (idleCloseDelay: number, ...definitions: ReadonlyArray<typeof fixtures.echo>) =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const { port } = yield* Scope.provide(kit.serve(fixtures.server(fixtures.echo, ...definitions)), scope).pipe(
      kit.bounded({ idleCloseDelay, busyCloseDelay: long, firstRequestDelay: long, flushTimeout: long })
    )
    const isRefused = Effect.callback<boolean>((resume) => {
      const socket = connect(port, "127.0.0.1")
      socket.once("connect", () => {
        socket.destroy()
        resume(Effect.succeed(false))
      })
      socket.once("error", () => resume(Effect.succeed(true)))
    })
    const refused: Effect.Effect<void> = Effect.flatMap(isRefused, (done) => done ? Effect.void : refused)
    const stop = Effect.forkChild(Scope.close(scope, Exit.void))
    return { port, stop, begin: Effect.tap(stop, () => refused) }
  })

describe("the end of a listener", () => {
  it.live("answers a request that arrives on an idle connection, and closes the connection with the answer", () =>
    Effect.gen(function*() {
      const { begin, port } = yield* serve(long)
      const kept = [new Kept(port), new Kept(port), new Kept(port)]
      yield* Effect.forEach(kept, (one) => one.call())
      expect(kept.map(({ text }) => text.includes("close"))).toEqual([false, false, false])
      const stopped = yield* begin
      for (const one of kept) {
        yield* one.call()
        expect(one.text.toLowerCase()).toContain("connection: close")
        yield* until(() => one.isClosed)
      }
      // The end waits for nothing else.
      yield* Fiber.join(stopped)
      expect(kept.map(({ answers }) => answers)).toEqual([2, 2, 2])
    }))

  it.live("answers a request that has arrived while the process was busy, although its connection has been idle", () =>
    Effect.gen(function*() {
      const { begin, port } = yield* serve(1_000)
      const kept = new Kept(port)
      yield* kept.call()
      const stopped = yield* begin
      kept.socket.write(head + body)
      // The event loop stands still until the time of the connection has passed.
      const end = performance.now() + 1_100
      while (performance.now() < end);
      yield* until(() => kept.isClosed)
      expect(kept.answers).toBe(2)
      yield* Fiber.join(stopped)
    }))

  it.live("keeps idle connections while requests arrive on others, as those of a proxy under load", () =>
    Effect.gen(function*() {
      const { begin, port } = yield* serve(1_000)
      const [idle, busy] = [new Kept(port), new Kept(port)]
      yield* Effect.forEach([idle, busy], (one) => one.call())
      const stopped = yield* begin
      busy.socket.write(head + body)
      // Both have been idle for too long when the request is read.
      const end = performance.now() + 1_100
      while (performance.now() < end);
      yield* until(() => busy.isClosed)
      expect(idle.isClosed).toBe(false)
      yield* idle.call()
      yield* until(() => idle.isClosed)
      yield* Fiber.join(stopped)
    }))

  it.live("answers the connections of the kernel's queue", () =>
    Effect.gen(function*() {
      const { port, stop } = yield* serve(long)
      // The kernel has accepted them before the server does: nothing else runs between the two lines.
      const queued = Array.from({ length: 8 }, () => new Kept(port))
      const stopped = yield* stop
      yield* Effect.forEach(queued, (one) => one.call(), { concurrency: "unbounded" })
      // Those that were answered before it stopped listening stay open.
      for (const { socket } of queued) socket.end()
      yield* Fiber.join(stopped)
      expect(queued.map(({ answers }) => answers)).toEqual(queued.map(() => 1))
    }))

  it.live("answers a client that has just connected, after it has closed idle connections", () =>
    Effect.gen(function*() {
      const { begin, port } = yield* serve(1)
      const idle = new Kept(port)
      yield* idle.call()
      const fresh = new Kept(port)
      yield* Effect.callback<void>((resume) => void fresh.socket.once("connect", () => resume(Effect.void)))
      const stopped = yield* begin
      yield* until(() => idle.isClosed)
      yield* fresh.call()
      yield* until(() => fresh.isClosed)
      yield* Fiber.join(stopped)
    }))

  it.live("waits for the rest of a body that is being sent", () =>
    Effect.gen(function*() {
      const { begin, port } = yield* serve(long)
      const kept = new Kept(port)
      yield* kept.call()
      kept.socket.write(head + body.slice(0, 10))
      const other = new Kept(port)
      yield* other.call()
      const stopped = yield* begin
      kept.socket.write(body.slice(10))
      yield* until(() => kept.answers === 2)
      other.socket.destroy()
      yield* Fiber.join(stopped)
    }))

  it.live("lets a call in progress finish, and closes idle connections after a moment", () =>
    Effect.gen(function*() {
      const go = Deferred.makeUnsafe<void>()
      let isStarted = false
      const hold = Tool.layer(Tool.make("hold"), () => {
        isStarted = true
        return Effect.as(Deferred.await(go), "held")
      })
      const { begin, port } = yield* serve(1, hold)
      const idle = new Kept(port)
      yield* idle.call()
      const called = yield* Effect.forkChild(kit.send({ port }, kit.modern("tools/call", { name: "hold" })))
      yield* until(() => isStarted)
      const stopped = yield* begin
      yield* until(() => idle.isClosed)
      expect(stopped.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(go, undefined)
      const reply = yield* Fiber.join(called)
      expect([reply.status, reply.headers.connection]).toEqual([200, "close"])
      yield* Fiber.join(stopped)
    }))
})
