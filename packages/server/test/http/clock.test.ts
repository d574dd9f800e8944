import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import type * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { logged, settle } from "../kit.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const wait = kit.modern("tools/call", { name: "wait", arguments: {} })
const listen = kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })

/** An endpoint, and the scope that closes it. */
const endpoint = (server: Layer.Layer<McpServer.McpServer, unknown>, options?: Http.Options) =>
  Effect.gen(function*() {
    const context = yield* Effect.orDie(Layer.build(server))
    const scope = yield* Scope.make()
    const made = yield* Scope.provide(
      Effect.provideContext(Http.make(options), context as Context.Context<McpServer.McpServer>),
      scope
    )
    const send = (request: kit.Request): kit.RecordedAnswer => {
      const answer = new kit.RecordedAnswer()
      made.handle(kit.recordedRequest(request), answer)
      return answer
    }
    return { made, send, close: Scope.close(scope, Exit.void) }
  })

const comments = ({ chunks }: kit.RecordedAnswer): number => chunks.filter((chunk) => chunk === ":\n\n").length

describe("keep-alive", () => {
  it.effect("2026-07-28 · servers are encouraged to periodically emit an SSE comment line as a keep-alive", () =>
    Effect.scoped(Effect.gen(function*() {
      const { made, send } = yield* endpoint(fixtures.server(fixtures.echo))
      const streams = Array.from({ length: 40 }, () => send(listen))
      expect(made.streams).toBe(40)
      yield* TestClock.adjust("14 seconds")
      expect(Math.max(...streams.map(comments))).toBe(1)
      yield* TestClock.adjust("1100 millis")
      expect(streams.map(comments)).toEqual(streams.map(() => 1))
      yield* TestClock.adjust("150 seconds")
      for (const stream of streams) expect(Math.abs(comments(stream) - 11)).toBeLessThanOrEqual(1)
    })))

  it.effect("sends no comments on an ended stream, to a slow client, or with an interval of 0", () =>
    Effect.scoped(Effect.gen(function*() {
      const { made, send } = yield* endpoint(fixtures.server(fixtures.echo))
      const [slow, gone, good] = [send(listen), send(listen), send(listen)] as const
      slow.slow = true
      yield* settle
      gone.leave()
      yield* settle
      expect(made.streams).toBe(2)
      yield* TestClock.adjust("1 minute")
      expect([comments(slow), comments(gone), comments(good)]).toEqual([0, 0, 4])
      const off = yield* endpoint(fixtures.server(fixtures.echo), { keepAliveInterval: 0 })
      const quiet = off.send(listen)
      yield* TestClock.adjust("1 hour")
      expect(comments(quiet)).toBe(0)
      const often = yield* endpoint(fixtures.server(fixtures.echo), { keepAliveInterval: "1 second" })
      const busy = often.send(listen)
      yield* TestClock.adjust("10500 millis")
      expect(comments(busy)).toBe(10)
    })))
})

describe("a silent call", () => {
  const lookup = kit.modern("unknown/method")
  const slow = Middleware.layer((next) => (request) =>
    request.method === "unknown/method" ? Effect.andThen(Effect.sleep("1 minute"), next(request)) : next(request)
  )

  it.effect("2026-07-28 · becomes a stream with comments after streamAfter, and ends with its result", () =>
    Effect.scoped(Effect.gen(function*() {
      const tool = fixtures.waiting()
      const { send } = yield* endpoint(fixtures.server(tool.layer))
      const first = send(wait)
      yield* TestClock.adjust("2 seconds")
      const second = send(wait)
      yield* TestClock.adjust("2900 millis")
      expect([first.status, second.status]).toEqual([undefined, undefined])
      yield* TestClock.adjust("100 millis")
      expect([first.status, first.chunks, second.status]).toEqual([200, [":\n\n"], undefined])
      yield* TestClock.adjust("2 seconds")
      expect([second.status, second.chunks]).toEqual([200, [":\n\n"]])
      yield* TestClock.adjust("1 minute")
      expect([comments(first), comments(second)]).toEqual([5, 5])
      yield* tool.go
      yield* settle
      for (const { chunks, isClosed } of [first, second]) {
        expect(isClosed).toBe(true)
        expect(JSON.parse(chunks.at(-1)!.slice("data: ".length)).result.content[0].text).toBe("waited")
      }
    })))

  it.effect("2026-07-28 · is answered with JSON if it ends before, and with 404 if the server lacks its method", () =>
    Effect.scoped(Effect.gen(function*() {
      const tool = fixtures.waiting()
      const { send } = yield* endpoint(fixtures.server(tool.layer, slow))
      const [answer, missing] = [send(wait), send(lookup)]
      yield* TestClock.adjust("4 seconds")
      yield* tool.go
      yield* settle
      expect(JSON.parse(answer.chunks[0]!).result.content[0].text).toBe("waited")
      yield* TestClock.adjust("1 minute")
      expect([missing.status, missing.chunks.length]).toEqual([404, 1])
    })))

  it.effect("2026-07-28 · stays silent with streamAfter: 0, and is a stream at once with alwaysStream", () =>
    Effect.scoped(Effect.gen(function*() {
      const tool = fixtures.waiting()
      const never = (yield* endpoint(fixtures.server(tool.layer), { streamAfter: 0 })).send(wait)
      const always = yield* endpoint(fixtures.server(tool.layer, slow), { alwaysStream: true })
      const [atOnce, missing] = [always.send(wait), always.send(lookup)]
      expect([atOnce.status, missing.status]).toEqual([200, undefined])
      yield* TestClock.adjust("5 minutes")
      expect([never.status, missing.status]).toEqual([undefined, 404])
      expect(comments(atOnce)).toBeGreaterThan(15)
      yield* tool.go
      yield* settle
      expect([never.status, never.chunks.length]).toEqual([200, 1])
    })))

  it.effect("leaves no timer when the endpoint has closed", () =>
    Effect.scoped(Effect.gen(function*() {
      const { close, send } = yield* endpoint(fixtures.server(fixtures.waiting().layer), { shutdownTimeout: 0 })
      const answer = send(wait)
      const closing = yield* Effect.forkChild(close)
      yield* TestClock.adjust(0)
      yield* Fiber.join(closing)
      const sent = answer.chunks.length
      yield* TestClock.adjust("1 minute")
      expect([answer.isClosed, answer.chunks.length]).toEqual([true, sent])
    })))
})

describe("a client that does not read", () => {
  const flood = Tool.layer(Tool.make("flood"), () =>
    Effect.andThen(
      Effect.forEach(
        Array.from({ length: 100 }, (_, number) => number + 1),
        (progress) => Effect.forkChild(Progress.report({ progress, message: "x".repeat(1000) })),
        { discard: true }
      ),
      Effect.never
    ))
  const call = kit.modern("tools/call", { name: "flood", arguments: {} }, { _meta: { progressToken: 1 } })

  it.effect("2026-07-28 · disconnects a client beyond the bound of unsent characters, and cancels its request", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const { made, send } = yield* kit.bounded({ maxUnsentChars: 10_000 })(endpoint(fixtures.server(flood)))
        const slow = new kit.RecordedAnswer()
        slow.slow = true
        made.handle(kit.recordedRequest(call), slow)
        yield* settle
        expect(slow.isClosed).toBe(true)
        // Only the last message exceeds the bound.
        expect(slow.chunks.slice(0, -1).join("").length).toBeLessThanOrEqual(10_000)
        expect(slow.chunks.join("").length).toBeGreaterThan(10_000)
        expect([...made.requests]).toEqual([])
        expect(lines.filter((line) => line.includes("its client does not read")).length).toBe(1)
        const good = send(call)
        yield* settle
        expect([good.isClosed, good.chunks.length, [...made.requests].length]).toEqual([false, 100, 1])
      }))
    ))
})

describe("shutdown of an endpoint", () => {
  // Not 503 with `Retry-After`: the call may have run.
  const interrupted = {
    code: -32603,
    message: expect.stringContaining("may have run: check that before you send it again")
  }

  it.effect("lets requests in flight finish within shutdownTimeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const tool = fixtures.waiting()
      const { close, made, send } = yield* endpoint(fixtures.server(tool.layer))
      const answer = send(wait)
      const closing = yield* Effect.forkChild(close)
      yield* TestClock.adjust("4 seconds")
      expect(answer.isClosed).toBe(false)
      // No new request is accepted meanwhile.
      expect(send(wait).status).toBe(503)
      yield* tool.go
      yield* Fiber.join(closing)
      expect([answer.status, JSON.parse(answer.chunks[0]!).result.content[0].text]).toEqual([200, "waited"])
      expect([...made.requests]).toEqual([])
    })))

  it.effect("interrupts the remaining requests afterwards, and answers them with an error if the head is unsent", () =>
    Effect.scoped(Effect.gen(function*() {
      const tool = fixtures.waiting()
      const { close, send } = yield* endpoint(fixtures.server(tool.layer), { shutdownTimeout: "3 seconds" })
      const answer = send(wait)
      const closing = yield* Effect.forkChild(close)
      yield* TestClock.adjust("2900 millis")
      expect(answer.isClosed).toBe(false)
      yield* TestClock.adjust("200 millis")
      yield* Fiber.join(closing)
      expect(tool.seen.interrupted).toBe(1)
      expect([answer.status, JSON.parse(answer.chunks[0]!)]).toMatchObject([200, { id: 1, error: interrupted }])
    })))

  it.effect("answers an interrupted request on its stream, if the stream has begun, and ends the stream", () =>
    Effect.scoped(Effect.gen(function*() {
      const stuck = Tool.layer(Tool.make("stuck"), () => Effect.andThen(Progress.report({ progress: 1 }), Effect.never))
      const { close, send } = yield* endpoint(fixtures.server(stuck), { shutdownTimeout: 0 })
      const answer = send(kit.modern("tools/call", { name: "stuck" }, { _meta: { progressToken: 1 } }))
      const closing = yield* Effect.forkChild(close)
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      const messages = answer.chunks.map((chunk) => JSON.parse(chunk.slice("data: ".length)))
      expect(messages).toMatchObject([{ method: "notifications/progress" }, { id: 1, error: interrupted }])
      expect([answer.status, answer.isClosed]).toEqual([200, true])
    })))

  it.effect("waits for the same shutdown when it is closed a second time, without another shutdownTimeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const { close, made, send } = yield* endpoint(fixtures.server(fixtures.waiting().layer), {
        shutdownTimeout: "3 seconds"
      })
      send(wait)
      const first = yield* Effect.forkChild(close)
      yield* TestClock.adjust("2 seconds")
      const second = yield* Effect.forkChild(made.close)
      yield* TestClock.adjust("999 millis")
      expect(second.pollUnsafe()).toBe(undefined)
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      yield* made.close
    })))

  it.effect("2026-07-28 · the server SHOULD respond to the original subscriptions/listen request before closing the stream", () =>
    Effect.scoped(Effect.gen(function*() {
      const { close, made, send } = yield* endpoint(fixtures.server(fixtures.echo))
      const streams = Array.from({ length: 100 }, () => send(listen))
      yield* close
      expect(made.streams).toBe(0)
      for (const { isClosed, chunks } of streams) {
        expect([isClosed, chunks.length]).toEqual([true, 2])
        expect(JSON.parse(chunks[1]!.slice("data: ".length))).toMatchObject({
          id: 1,
          result: { resultType: "complete", _meta: { "io.modelcontextprotocol/subscriptionId": 1 } }
        })
      }
    })))

  it.effect("leaves a handler behind that ignores its interruption for 5 seconds, and logs that", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const tool = fixtures.stubborn()
        const { close, send } = yield* endpoint(fixtures.server(tool))
        const answer = send(kit.modern("tools/call", { name: "stubborn", arguments: {} }))
        const closing = yield* Effect.forkChild(close)
        yield* TestClock.adjust("5 seconds")
        yield* TestClock.adjust("5 seconds")
        yield* Fiber.join(closing)
        expect(answer.isClosed).toBe(true)
        expect(lines.join()).toContain("1 requests did not stop after their interruption: tools/call")
      }))
    ))
})
