/** Attacks with bodies that cost more to read than their size suggests. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { adapters } from "../adapters.ts"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"

const heap = (): number => {
  gc!()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}

describe("a body", () => {
  for (const adapter of adapters) {
    it.live(
      `uses no more memory for 100,000 chunks of one byte than for one chunk of as many bytes · ${adapter.name}`,
      () =>
        Effect.scoped(Effect.gen(function*() {
          const at = yield* adapter.serve(fixtures.server(fixtures.echo))
          const raw = yield* kit.raw(at)
          const chunks = "1\r\n \r\n".repeat(10_000)
          const before = heap()
          raw.write(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
          )
          for (let n = 0; n < 10; n++) {
            yield* Effect.callback<void>((resume) => void raw.socket.write(chunks, () => resume(Effect.void)))
          }
          // The server has read everything except the bytes that the two sockets buffer.
          let turns = 0
          yield* fixtures.until(() => ++turns > 200)
          expect(heap() - before).toBeLessThan(12_000_000)
          raw.write("0\r\n\r\n")
          expect(yield* raw.until("\r\n\r\n")).toContain("HTTP/1.1 400")
        })),
      120_000
    )
  }

  it.live("reads the same text from pieces of any size", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      const text = "grüezi ✓ 👋 ".repeat(500)
      const { body, headers } = kit.modern("tools/call", { name: "echo", arguments: { text } })
      const bytes = Buffer.from(JSON.stringify(body))
      const lines = Object.entries(headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
      for (const size of [1, 3, 1_000, 4_096]) {
        const raw = yield* kit.raw(at)
        raw.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${lines}transfer-encoding: chunked\r\n\r\n`)
        for (let at = 0; at < bytes.length; at += size) {
          const piece = bytes.subarray(at, at + size)
          raw.write(`${piece.length.toString(16)}\r\n`)
          raw.write(piece)
          raw.write("\r\n")
        }
        raw.write("0\r\n\r\n")
        raw.end()
        expect((yield* raw.closed).text).toContain(text)
      }
    })))
})
