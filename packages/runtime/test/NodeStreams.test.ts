import { describe, expect, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, End } from "@skein/runtime/Connection"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { once } from "node:events"
import { connect as dial, createServer, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PassThrough, Writable } from "node:stream"

/** An output whose writes complete only when the test completes them. */
class Slow extends Writable {
  readonly taken: Array<string> = []
  #held: Array<() => void> = []
  holding = false
  constructor() {
    super({ highWaterMark: 10, decodeStrings: false })
  }
  override _write(chunk: string, _encoding: unknown, done: (error?: Error) => void): void {
    this.taken.push(chunk)
    if (this.holding) this.#held.push(done)
    else done()
  }
  takeOne(): void {
    this.#held.shift()!()
  }
  take(): void {
    this.holding = false
    for (const done of this.#held.splice(0)) done()
  }
}

const note = (method: string): JsonRpc.Notification => ({ _tag: "Notification", method, params: undefined })
const line = (method: string) => `${JSON.stringify({ jsonrpc: "2.0", method })}\n`
const tick = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

const listen = (connection: Connection) => {
  const seen: Array<string> = []
  const ends: Array<End> = []
  connection.open({
    message: (message) => seen.push(message._tag === "Notification" ? message.method : message._tag),
    end: (end) => ends.push(end)
  })
  return { seen, ends }
}

const setup = (options?: NodeStreams.Options) =>
  Effect.map(Effect.all([Effect.sync(() => new PassThrough()), Effect.sync(() => new Slow())]), ([input, output]) => ({
    input,
    output,
    connection: NodeStreams.makeUnsafe(input, output, options)
  }))

describe("NodeStreams", () => {
  it.effect("delivers messages that arrived before open, in order", () =>
    Effect.gen(function*() {
      const { connection, input } = yield* setup()
      input.write(line("a"))
      yield* tick
      const { ends, seen } = listen(connection)
      input.write(line("b"))
      yield* tick
      expect(seen).toEqual(["a", "b"])
      expect(ends).toEqual([])
      yield* connection.close
    }))

  it.effect("reports Ended after the last line of the input, and still sends messages", () =>
    Effect.gen(function*() {
      const { connection, input, output } = yield* setup()
      const { ends, seen } = listen(connection)
      input.end(line("a").trim())
      yield* tick
      expect(seen).toEqual(["a"])
      expect(ends).toEqual([{ _tag: "ClosedByPeer" }])
      output.holding = true
      connection.send(note("answer one, which is slow"))
      yield* tick
      expect(connection.send(note("answer two"))).toBe(false)
      const waiting = yield* Effect.forkChild(connection.drained)
      yield* tick
      expect(waiting.pollUnsafe()).toBe(undefined)
      output.take()
      yield* Fiber.join(waiting)
      yield* connection.close
      expect(output.taken.join("")).toBe(line("answer one, which is slow") + line("answer two"))
      expect(ends.length).toBe(1)
    }))

  it.effect("reports Ended for an input that closes, and drops the rest of its line", () =>
    Effect.gen(function*() {
      const { connection, input } = yield* setup()
      const { ends, seen } = listen(connection)
      input.write(line("a") + line("b").trim())
      yield* tick
      input.destroy()
      yield* tick
      expect(seen).toEqual(["a"])
      expect(ends).toEqual([{ _tag: "ClosedByPeer" }])
      yield* connection.close
    }))

  it.effect("reports Lost when the input or the output fails", () =>
    Effect.gen(function*() {
      for (const which of ["input", "output"] as const) {
        const streams = yield* setup()
        const { ends } = listen(streams.connection)
        streams[which].destroy(new Error("bad sector"))
        yield* tick
        expect(ends.length).toBe(1)
        const [end] = ends
        expect(end!._tag === "Lost" && [end.cause.reason._tag, end.cause.message]).toEqual([
          "ConnectionLost",
          `the ${which} failed: bad sector`
        ])
        yield* streams.connection.close
      }
    }))

  it.effect("reports Ended when either stream is closed by the peer, for each error code, and drops later messages", () =>
    Effect.gen(function*() {
      for (const which of ["input", "output"] as const) {
        for (const code of ["EPIPE", "ECONNRESET"]) {
          const streams = yield* setup()
          const { ends } = listen(streams.connection)
          streams[which].destroy(Object.assign(new Error(code), { code }))
          yield* tick
          expect(ends).toEqual([{ _tag: "ClosedByPeer" }])
          if (which === "output") expect(streams.connection.send(note("late"))).toBe(true)
          yield* streams.connection.drained
          yield* streams.connection.close
        }
      }
    }))

  it.effect("reports an end that preceded open", () =>
    Effect.gen(function*() {
      const { connection, output } = yield* setup()
      output.destroy()
      yield* tick
      expect(listen(connection).ends).toEqual([{ _tag: "ClosedByPeer" }])
      yield* connection.close
    }))

  it.effect("reads all of its input, and its end, while the output is backed up", () =>
    Effect.gen(function*() {
      const { connection, input, output } = yield* setup({ maxUnsentChars: 1_000_000 })
      const { ends, seen } = listen(connection)
      output.holding = true
      expect(connection.isOutputFull).toBe(false)
      expect(connection.send(note("x".repeat(70_000)))).toBe(false)
      input.write(line("a") + line("b"))
      yield* tick
      expect(connection.isOutputFull).toBe(false)
      for (let i = 0; i < 7; i++) connection.send(note("y".repeat(70_000)))
      expect(connection.isOutputFull).toBe(true)
      input.end(line("c"))
      yield* tick
      expect([seen, ends]).toEqual([["a", "b", "c"], [{ _tag: "ClosedByPeer" }]])
      output.take()
      yield* tick
      expect(connection.isOutputFull).toBe(false)
      yield* connection.close
    }))

  it.effect("passes the length of a message to the receiver, if it is 16 KiB or more", () =>
    Effect.gen(function*() {
      const { connection, input } = yield* setup()
      const sizes: Array<number | undefined> = []
      connection.open({ message: (_, origin) => sizes.push(origin?.size), end: () => {} })
      const method = (length: number) => "x".repeat(length - line("").length + 1)
      for (const length of [16_383, 16_384]) input.write(line(method(length)))
      input.write(line("ü".repeat(100_000)))
      yield* tick
      expect(sizes).toEqual([undefined, 16_384, 200_000 + line("").length - 1])
      yield* connection.close
    }))

  it.effect("resumes an input that other code has paused", () =>
    Effect.gen(function*() {
      const { connection, input } = yield* setup()
      const { ends, seen } = listen(connection)
      input.write(line("a"))
      yield* tick
      input.pause()
      input.write(line("b"))
      yield* tick
      expect(seen).toEqual(["a", "b"])
      input.pause()
      input.end()
      yield* tick
      expect(ends).toEqual([{ _tag: "ClosedByPeer" }])
      yield* connection.close
    }))

  it.effect("reports Lost at maxUnsentChars for a peer that never reads", () =>
    Effect.gen(function*() {
      const { connection, output } = yield* setup({ maxUnsentChars: 1000 })
      const { ends } = listen(connection)
      output.holding = true
      connection.send(note("x".repeat(100)))
      yield* tick
      for (let i = 0; i < 100; i++) connection.send(note("x".repeat(100)))
      expect(ends.length).toBe(1)
      const [end] = ends
      expect(end!._tag === "Lost" && end.cause.message).toBe(
        "the peer does not read: more than 1000 characters are waiting (maxUnsentChars)"
      )
      yield* connection.drained
      output.take()
      yield* connection.close
    }))

  it.effect("waits in close until the messages are written, two seconds by default, and may be closed again", () =>
    Effect.gen(function*() {
      const { connection, output } = yield* setup()
      const { ends } = listen(connection)
      output.holding = true
      connection.send(note("a"))
      const closing = yield* Effect.forkChild(connection.close)
      yield* TestClock.adjust("1999 millis")
      expect(ends).toEqual([{ _tag: "ClosedByUs" }])
      expect(output.taken).toEqual([line("a")])
      expect(closing.pollUnsafe()).toBe(undefined)
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      yield* connection.close
      expect(ends.length).toBe(1)
      // The output is abandoned with unwritten data: a later error on it has no effect.
      output.destroy(new Error("late"))
      yield* tick
    }))

  it.effect("flushes the messages of this tick in close, and leaves the output open", () =>
    Effect.gen(function*() {
      const { connection, output } = yield* setup()
      connection.send(note("a"))
      yield* connection.close
      expect(output.taken).toEqual([line("a")])
      expect(output.writableEnded).toBe(false)
    }))

  it.effect("removes every listener when the scope closes", () =>
    Effect.gen(function*() {
      const input = new PassThrough()
      const output = new Slow()
      const before = [listenerCount(input), listenerCount(output)]
      for (let i = 0; i < 20; i++) {
        const scope = Scope.makeUnsafe()
        const connection = yield* Scope.provide(NodeStreams.make(input, output), scope)
        const { ends } = listen(connection)
        connection.send(note("a"))
        yield* Scope.close(scope, Exit.void)
        expect(ends).toEqual([{ _tag: "ClosedByUs" }])
      }
      expect([listenerCount(input), listenerCount(output)]).toEqual(before)
      expect(output.taken.length).toBe(20)
    }))

  it.live("2026-07-28 · the wire format works over Unix domain sockets", () =>
    Effect.gen(function*() {
      const path = join(tmpdir(), `skein-${process.pid}-${Date.now()}.sock`)
      const server = createServer({ allowHalfOpen: true })
      server.listen(path)
      yield* Effect.promise(() => once(server, "listening"))
      const near = dial(path)
      const [far] = (yield* Effect.promise(() => once(server, "connection"))) as [Socket]
      const client = NodeStreams.makeUnsafe(near, near, { endOutput: true })
      const service = NodeStreams.makeUnsafe(far, far, { endOutput: true })
      const ended = yield* Effect.forkChild(Effect.callback<End>((resume) =>
        service.open({
          message: (message) => void service.send(note(message._tag === "Notification" ? `${message.method}!` : "?")),
          end: (end) => resume(Effect.succeed(end))
        })
      ))
      const reply = yield* Effect.callback<string>((resume) => {
        client.open({
          message: (message) => resume(Effect.succeed(message._tag === "Notification" ? message.method : "?")),
          end: () => {}
        })
        client.send(note("hello"))
      })
      expect(reply).toBe("hello!")
      yield* client.close
      expect(yield* Fiber.join(ended)).toEqual({ _tag: "ClosedByPeer" })
      yield* service.close
      yield* Effect.promise(() => new Promise((resolve) => server.close(resolve)))
      if (!near.closed) yield* Effect.promise(() => once(near, "close"))
      expect([near.destroyed, far.destroyed]).toEqual([true, true])
    }))
})

const listenerCount = (stream: NodeJS.EventEmitter): number =>
  stream.eventNames().reduce((sum, name) => sum + stream.listenerCount(name), 0)
