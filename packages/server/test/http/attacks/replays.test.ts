/** Attacks by clients that request much and read nothing. */
import { describe, expect, it } from "@effect/vitest"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Bounds, fixedBounds } from "../../../src/internal/base/fixedBounds.ts"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"
import { call, enter, serve } from "../session/kit.ts"

/** The heap, once the sockets have had time to report their buffered bytes. */
const heap = Effect.suspend(() => {
  let turns = 0
  return Effect.map(fixtures.until(() => ++turns > 500), () => {
    gc!()
    return process.memoryUsage().heapUsed
  })
})

const get = (headers: object, after: string): string => {
  const all = { host: "localhost", accept: "text/event-stream", "last-event-id": after, ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
  return `GET /mcp HTTP/1.1\r\n${lines}\r\n`
}

describe("a replayed stream", () => {
  it.live("replays events only as fast as the client reads, for any number of requests, until it disconnects", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      server.control.open("flood")
      const { events } = yield* client.post(call(1, "flood", { times: 14, waits: false }))
      const first = events[0]!.id!
      // The complete stream can be requested a second time.
      const again = yield* client.read({ "last-event-id": first })
      expect(again.text.length).toBeGreaterThan(900_000)
      expect(again.events.map(({ id }) => id)).toEqual(events.slice(1).map(({ id }) => id))
      const before = yield* heap
      const raw = yield* kit.raw(server)
      raw.socket.pause()
      raw.write(get(client.headers!, first).repeat(200))
      expect((yield* heap) - before).toBeLessThan(200 * 300_000)
      raw.socket.destroy()
      expect((yield* heap) - before).toBeLessThan(3_000_000)
      // The session still works.
      expect((yield* client.post(call(2, "echo", { text: "hi" }))).json.result.content[0].text).toBe("hi")
    })))
})

describe("pipelined requests on one connection", () => {
  it.live("2026-07-28 · interrupts pipelined requests with the connection, including requests with queued responses", () =>
    Effect.scoped(Effect.gen(function*() {
      const waiting = fixtures.waiting()
      const at = yield* kit.serve(fixtures.server(waiting.layer))
      const { body, headers } = kit.modern("tools/call", { name: "wait", arguments: {} })
      const text = JSON.stringify(body)
      const lines = Object.entries(headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
      const raw = yield* kit.raw(at)
      raw.write(
        `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${lines}content-length: ${text.length}\r\n\r\n${text}`.repeat(50)
      )
      yield* waiting.running(50)
      raw.socket.destroy()
      yield* fixtures.until(() => waiting.seen.interrupted === 50)
      expect([...at.endpoint.requests]).toEqual([])
    })))
})

describe("an unread response", () => {
  it.live(
    "aborts an unread response after some time, but not a slowly read one",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const size = 16_000_000
        const large = Tool.layer(Tool.make("large"), () => Effect.succeed("x".repeat(size)))
        const bounds = Layer.succeed(Bounds, { ...fixedBounds, sendTimeout: 3_000 })
        const { close, handler } = yield* Effect.promise(() =>
          NodeHttp.mount(Layer.provideMerge(fixtures.server(large), bounds))
        )
        // The first connection is never read, the second one slowly.
        const open: Array<boolean> = []
        const host = createServer(handler)
        host.on("connection", (socket) => {
          const at = open.push(true) - 1
          socket.once("close", () => void (open[at] = false))
        })
        yield* Effect.acquireRelease(
          Effect.callback<void>((resume) => void host.listen(0, "127.0.0.1", () => resume(Effect.void))),
          () =>
            Effect.promise(async () => {
              host.closeAllConnections()
              host.close()
              await close()
            })
        )
        const at = host.address() as AddressInfo
        const { body, headers } = kit.modern("tools/call", { name: "large", arguments: {} })
        const text = JSON.stringify(body)
        const lines = Object.entries(headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
        const bytes = `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${lines}content-length: ${text.length}\r\n\r\n${text}`
        const never = yield* kit.raw(at)
        never.socket.pause()
        never.write(bytes)
        const slow = yield* kit.raw(at)
        let read = 0
        slow.socket.on("data", (chunk) => {
          read += chunk.length
          slow.socket.pause()
          setTimeout(() => slow.socket.resume(), 16)
        })
        slow.write(bytes)
        yield* fixtures.until(() => !open[0]!)
        yield* fixtures.until(() => read > size || !open[1]!)
        expect(open).toEqual([false, true])
      })),
    120_000
  )
})
