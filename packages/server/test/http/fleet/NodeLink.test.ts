/** The times and bounds of a connection between two nodes. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { once } from "node:events"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { afterEach, vi } from "vitest"
import { Frames } from "../../../src/internal/http/adapters/nodeFrames.ts"
import { type LinkStream, NodeLink } from "../../../src/internal/http/adapters/nodeLink.ts"
import { receive } from "../../../src/internal/http/adapters/passedRequest.ts"
import type { HttpRequest } from "../../../src/internal/http/messages/adapter.ts"

/** A connection to a listener that only receives. */
const socket = Effect.gen(function*() {
  const accepted: Array<Socket> = []
  const server = yield* Effect.acquireRelease(
    Effect.sync(() => createServer((one) => void accepted.push(one.resume())).listen(0, "127.0.0.1")),
    (server) =>
      Effect.sync(() => {
        for (const one of accepted) one.destroy()
        server.close()
      })
  )
  yield* Effect.promise(() => once(server, "listening"))
  const opened = connect((server.address() as AddressInfo).port, "127.0.0.1")
  yield* Effect.promise(() => once(opened, "connect"))
  return opened
})

describe("a connection between two nodes", () => {
  afterEach(() => void vi.useRealTimers())

  it.live("is closed when it had no stream for some time", () =>
    Effect.gen(function*() {
      const opened = yield* socket
      const link = new NodeLink(new Frames(opened), 20)
      const stream = link.open({ received: () => {}, closed: () => {} })
      yield* Effect.promise(() => once(opened, "timeout"))
      expect([opened.destroyed, link.isOpen]).toEqual([false, true])
      const closed = once(opened, "close")
      stream.end(false)
      yield* Effect.promise(() => closed)
      expect(link.isOpen).toBe(false)
    }).pipe(Effect.scoped))

  it.live("has 65,536 streams at most", () =>
    Effect.gen(function*() {
      const link = new NodeLink(new Frames(yield* socket), 30_000)
      const handler = { received: () => {}, closed: () => {} }
      const streams = Array.from({ length: 65_535 }, () => link.open(handler))
      expect(link.isOpen).toBe(true)
      link.open(handler)
      expect(link.isOpen).toBe(false)
      streams[0]!.close()
      expect(link.isOpen).toBe(true)
    }).pipe(Effect.scoped))

  it("gives up a request whose body has not arrived within a minute", () => {
    vi.useFakeTimers()
    let isEnded = false
    const stream = { end: () => void (isEnded = true), take: () => {}, unsent: 0 } as unknown as LinkStream
    const bodies: Array<unknown> = []
    const read = (request: HttpRequest): void =>
      request.read(100, (body) => void bodies.push(body), { arrived: () => {} })
    const head = JSON.stringify({ method: "POST", path: "/mcp", headers: {} })
    receive(stream, read).received(head, Buffer.from("{"), false)
    const whole = receive(stream, read)
    whole.received(head, Buffer.from("{"), false)
    whole.received("", Buffer.from("}"), true)
    vi.advanceTimersByTime(59_999)
    expect([bodies, isEnded]).toEqual([[{ text: "{}" }], false])
    vi.advanceTimersByTime(1)
    expect([bodies, isEnded]).toEqual([[{ text: "{}" }, { fault: "Aborted" }], true])
  })
})
