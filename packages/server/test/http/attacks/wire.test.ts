/** Attacks with the bytes of HTTP itself, by a client that writes to the socket. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"

const server = fixtures.server(fixtures.echo)

const head = "host: localhost\r\ncontent-type: application/json\r\naccept: */*\r\n"

/** The status lines of the responses, once the connection is closed. */
const answers = (at: { readonly port: number }, bytes: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.scoped(Effect.gen(function*() {
    const raw = yield* kit.raw(at)
    raw.write(bytes)
    raw.end()
    return (yield* raw.closed).text.match(/HTTP\/1\.1 \d+/g) ?? []
  }))

describe("the bytes of HTTP", () => {
  it.live("rejects a request with an ambiguous length, and ignores all bytes after it", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const smuggled = "GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n"
      const ambiguous = [
        "content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        "content-length: 2, 3\r\n\r\n{}",
        "content-length: +2\r\n\r\n{}",
        "content-length: 0x2\r\n\r\n{}",
        "content-length : 2\r\n\r\n{}",
        "content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
        "x: a\r\n content-length: 2\r\n\r\n{}",
        "x: a\rcontent-length: 2\r\n\r\n{}",
        "x: a\0\r\n\r\n"
      ]
      for (const rest of ambiguous) {
        expect([rest, yield* answers(at, `POST /mcp HTTP/1.1\r\n${head}${rest}${smuggled}`)]).toEqual([
          rest,
          ["HTTP/1.1 400"]
        ])
      }
    })))

  it.live("does not read trailers as headers", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const trailers =
        "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nhost: evil.com\r\norigin: https://evil.com\r\n\r\n"
      // The request is refused because of its body.
      expect(yield* answers(at, `POST /mcp HTTP/1.1\r\n${head}${trailers}`)).toEqual(["HTTP/1.1 400"])
    })))

  it.live("does not pass bytes after a request to its stream", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(server)
      const { body, headers } = kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
      const text = JSON.stringify(body)
      const lines = Object.entries(headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join("")
      const raw = yield* kit.raw(at)
      raw.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${lines}content-length: ${text.length}\r\n\r\n${text}`)
      yield* raw.until("acknowledged")
      raw.write("nonsense\r\n\r\n")
      const { text: received } = yield* raw.closed
      expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"])
      expect(received).not.toContain("Bad Request")
      yield* fixtures.until(() => at.endpoint.streams === 0)
    })))
})
