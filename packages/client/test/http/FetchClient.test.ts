/** The HTTP client on `fetch`, against servers that send a body of another length than their Content-Length. */
import { assert, describe, it } from "@effect/vitest"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import { make } from "../../src/internal/http/fetchClient.ts"

const wire = make(fetch)

const head = (rest: string) => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${rest}\r\n\r\n`

const textOf = (url: URL, maxBytes: number) =>
  wire.exchange({ method: "POST", url, headers: {}, body: "{}" }, (reply) => reply.text(maxBytes))

describe("the HTTP client on fetch", () => {
  it.live("discards bytes beyond Content-Length and does not use them for the next response", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.write(`${head("Content-Length: 4")}true${"x".repeat(100_000)}`))
      )
      assert.strictEqual(yield* textOf(url, 10), "true")
      assert.strictEqual(yield* textOf(url, 10), "true")
      assert.strictEqual(sockets.length, 2)
    }))

  it.live("fails with ConnectionLost if the body is shorter than Content-Length", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.end(`${head("Content-Length: 9")}true`))
      )
      const error = yield* Effect.flip(textOf(url, 10))
      assert.strictEqual(error.reason._tag, "ConnectionLost")
      assert.match(error.message, /broke off/)
    }))

  it.live("fails on a Content-Length above the bound before it reads a byte, and closes the connection", () =>
    Effect.gen(function*() {
      const { closed, url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.write(head("Content-Length: 11")))
      )
      const error = yield* Effect.flip(textOf(url, 10))
      assert.match(error.message, /exceeds maxMessageBytes \(10\)/)
      yield* closed
    }))

  for (const length of ["-1", "4x", "4, 5", "1e1", "0x4"]) {
    it.live(`bounds the body also with the invalid Content-Length ${length}`, () =>
      Effect.gen(function*() {
        const { url } = yield* RawServer.tcp((socket) =>
          socket.on("data", () => socket.end(`${head(`Content-Length: ${length}`)}${"x".repeat(11)}`))
        )
        const error = yield* Effect.flip(textOf(url, 10))
        assert.isTrue(error.reason._tag === "ConnectionLost" || error.reason._tag === "OpenFailed", error.reason._tag)
      }))
  }

  it.live("bounds the body also with two Content-Lengths, or with one beside chunked encoding", () =>
    Effect.gen(function*() {
      const heads = [
        head("Content-Length: 4\r\nContent-Length: 4000"),
        head("Content-Length: 4\r\nTransfer-Encoding: chunked")
      ]
      for (const begin of heads) {
        const { url } = yield* RawServer.tcp((socket) =>
          socket.on("data", () => socket.end(`${begin}b\r\n12345678901\r\n0\r\n\r\n`))
        )
        const error = yield* Effect.flip(textOf(url, 10))
        assert.strictEqual(error.reason._tag, "ConnectionLost")
      }
    }))
})
