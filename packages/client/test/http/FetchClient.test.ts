/** The wire of `fetch`, against servers that say another length than they send. */
import { assert, describe, it } from "@effect/vitest"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import { make } from "../../src/internal/http/fetchClient.ts"

const wire = make(fetch)

const head = (rest: string) => `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${rest}\r\n\r\n`

const textOf = (url: URL, maxBytes: number) =>
  wire.exchange({ method: "POST", url, headers: {}, body: "{}" }, (reply) => reply.text(maxBytes))

describe("the wire of fetch", () => {
  it.live("more bytes than Content-Length says are no part of the body, nor of the next one", () =>
    Effect.gen(function*() {
      const { sockets, url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.write(`${head("Content-Length: 4")}true${"x".repeat(100_000)}`))
      )
      assert.strictEqual(yield* textOf(url, 10), "true")
      assert.strictEqual(yield* textOf(url, 10), "true")
      assert.strictEqual(sockets.length, 2)
    }))

  it.live("fewer bytes than Content-Length says, and the end: Lost", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.end(`${head("Content-Length: 9")}true`))
      )
      const error = yield* Effect.flip(textOf(url, 10))
      assert.strictEqual(error.reason._tag, "ConnectionLost")
      assert.match(error.message, /broke off/)
    }))

  it.live("a Content-Length of more than the bound fails before a byte is read, and the connection is closed", () =>
    Effect.gen(function*() {
      const { closed, url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.write(head("Content-Length: 11")))
      )
      const error = yield* Effect.flip(textOf(url, 10))
      assert.match(error.message, /more than 10 bytes \(maxMessageBytes\)/)
      yield* closed
    }))

  for (const length of ["-1", "4x", "4, 5", "1e1", "0x4"]) {
    it.live(`a Content-Length that is none, ${length}, does not lift the bound`, () =>
      Effect.gen(function*() {
        const { url } = yield* RawServer.tcp((socket) =>
          socket.on("data", () => socket.end(`${head(`Content-Length: ${length}`)}${"x".repeat(11)}`))
        )
        const error = yield* Effect.flip(textOf(url, 10))
        assert.isTrue(error.reason._tag === "ConnectionLost" || error.reason._tag === "OpenFailed", error.reason._tag)
      }))
  }

  it.live("two Content-Lengths, or one beside chunks, do not lift the bound", () =>
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
