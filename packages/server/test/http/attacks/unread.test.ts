/**
 * One client leaves its answers unread, or reads a little now and then. Its pending answers are bounded, and others are
 * served.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { connect } from "node:net"
import { adapters } from "../adapters.ts"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"
import { bytesOf, mebibyte, polite, served } from "./clients.ts"

const heap = (): number => {
  gc!()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

describe("unsent answers", () => {
  const size = 3_000_000
  const large = Tool.layer(Tool.make("large"), () => Effect.succeed("x".repeat(size)))
  const ask = bytesOf(kit.modern("tools/call", { name: "large", arguments: {} }))

  for (const adapter of adapters) {
    it.live(`bounds the answers that a client does not read · ${adapter.name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = fixtures.server(fixtures.echo, large)
        const at = yield* adapter.serve(server, { limits: { maxRetainedBytes: 16 * mebibyte } })
        const raws: Array<kit.Raw> = []
        const cut = new Set<number>()
        for (let n = 0; n < 16; n++) {
          const raw = yield* kit.raw(at)
          raw.socket.pause()
          for (const event of ["end", "error"]) raw.socket.once(event, () => cut.add(n))
          raw.write(ask.repeat(3))
          raws.push(raw)
        }
        yield* served(at)
        // A client notices a closed connection when it reads.
        for (const { socket } of raws) socket.resume()
        yield* fixtures.until(() => cut.size > 4)
        yield* served(at, { ...kit.modern("tools/call", { name: "large", arguments: {} }), localAddress: polite })
      })))

    it.live(
      `closes the connection of a client that reads a little now and then · ${adapter.name}`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const more = Tool.layer(Tool.make("more"), () => Effect.succeed("x".repeat(16_000_000)))
          const bounds = { minReadBytesPerSecond: 4_000_000, sendTimeout: 500 }
          const at = yield* kit.bounded(bounds)(adapter.serve(fixtures.server(more)))
          const raw = yield* kit.raw(at)
          let read = 0
          raw.socket.on("data", (chunk) => {
            read += chunk.length
            raw.socket.pause()
            // At most 64 KiB in each 50 ms: 1.3 MB per second.
            setTimeout(() => raw.socket.resume(), 50)
          })
          raw.write(bytesOf(kit.modern("tools/call", { name: "more", arguments: {} })))
          yield* raw.closed
          expect(read).toBeLessThan(16_000_000)
        })),
      120_000
    )
  }

  it.live("logs an answer that is larger than maxRetainedBytes", () =>
    Effect.scoped(Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ logLevel, message }) => void logged.push(`${logLevel} ${message}`))
      const answer = Tool.layer(Tool.make("large"), () => Effect.succeed("x".repeat(20_000_000)))
      const server = Layer.provideMerge(fixtures.server(answer), Logger.layer([logger]))
      const at = yield* kit.serve(server, { limits: { maxRetainedBytes: mebibyte } })
      const raw = yield* kit.raw(at)
      raw.socket.pause()
      raw.write(ask)
      yield* fixtures.until(() => logged.some((line) => line.startsWith("Warn closed a connection")))
    })))

  it.live(
    "bounds 200 answers of 5 MB, of which each client reads a little now and then",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const answer = Effect.succeed("x".repeat(5_000_000))
        const server = fixtures.server(fixtures.echo, Tool.layer(Tool.make("large"), () => answer))
        const at = yield* kit.serve(server)
        const before = heap()
        let most = 0
        let cut = 0
        for (let n = 0; n < 200; n++) {
          const socket = yield* Effect.acquireRelease(
            Effect.sync(() => connect({ host: "127.0.0.1", port: at.port, allowHalfOpen: true })),
            (socket) => Effect.sync(() => void socket.destroy())
          )
          socket.on("data", () => {
            socket.pause()
            setTimeout(() => socket.resume(), 200)
          })
          for (const event of ["end", "error"]) socket.once(event, () => cut++)
          socket.write(ask)
          if (n % 20 === 0) yield* served(at)
          most = Math.max(most, at.endpoint.retainedBytes)
          if (n % 50 === 49) expect(heap() - before).toBeLessThan(200 * mebibyte)
        }
        for (let n = 0; n < 10; n++) yield* served(at)
        yield* fixtures.until(() => cut > 50)
        expect(most).toBeLessThan(140 * mebibyte)
        yield* served(at)
      })),
    60_000
  )
})
