/**
 * A network with malformed HTTP. A call fails with a typed error in time; memory is bounded and no connection stays
 * open.
 */
import { assert, describe, it } from "@effect/vitest"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import type * as Net from "node:net"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { until } from "../http/support/connection.ts"
import { withBounds } from "../http/support/changedBounds.ts"

const mib = 1024 * 1024
const json = "Content-Type: application/json\r\n"
const body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"

/** Writes repeatedly for as long as the client reads. */
const pour = (socket: Net.Socket, start: string, text: string): void => {
  const go = (): void => {
    while (!socket.destroyed && socket.write(text));
    if (!socket.destroyed) socket.once("drain", go)
  }
  socket.write(start)
  go()
}

const ways: ReadonlyArray<readonly [string, (socket: Net.Socket) => void]> = [
  ["nothing", () => {}],
  ["garbage", (socket) => pour(socket, "", "\u0000\u0001garbage\r\n".repeat(1_000))],
  ["a status line without end", (socket) => pour(socket, "HTTP/1.1 200 ", "x".repeat(65_536))],
  ["headers without end", (socket) => pour(socket, "HTTP/1.1 200 OK\r\n", "X-A: b\r\n".repeat(5_000))],
  ["a header without end", (socket) => pour(socket, "HTTP/1.1 200 OK\r\nX-A: ", "x".repeat(65_536))],
  ["100 Continue without end", (socket) => pour(socket, "", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000))],
  ["102 Processing without end", (socket) => pour(socket, "", "HTTP/1.1 102 Processing\r\nX: y\r\n\r\n".repeat(1_000))],
  [
    "101 Switching Protocols",
    (socket) => void socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello")
  ],
  ["HTTP/0.9", (socket) => void socket.end(body)],
  ["HTTP/9.9", (socket) => void socket.end(`HTTP/9.9 200 OK\r\n${json}\r\n${body}`)],
  ["the status 99999", (socket) => void socket.end(`HTTP/1.1 99999 OK\r\n${json}\r\n${body}`)],
  ["the status 000", (socket) => void socket.end(`HTTP/1.1 000 OK\r\n${json}\r\n${body}`)],
  [
    "the status 204 with a body",
    (socket) => void socket.end(`HTTP/1.1 204 No\r\n${json}Content-Length: 5\r\n\r\n${body}`)
  ],
  ["a negative length", (socket) => void socket.write(`HTTP/1.1 200 OK\r\n${json}Content-Length: -1\r\n\r\n${body}`)],
  [
    "a length of 10^30",
    (socket) => void socket.write(`HTTP/1.1 200 OK\r\n${json}Content-Length: 1${"0".repeat(30)}\r\n\r\n${body}`)
  ],
  [
    "a length that is too large",
    (socket) => void socket.write(`HTTP/1.1 200 OK\r\n${json}Content-Length: 4000000000\r\n\r\n${body}`)
  ],
  [
    "a length that is cut short",
    (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${json}Content-Length: 1000\r\n\r\n${body}`)
  ],
  [
    "two lengths, and chunks without end",
    (socket) =>
      pour(
        socket,
        `HTTP/1.1 200 OK\r\n${json}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
        `10000\r\n${" ".repeat(65_536)}\r\n`
      )
  ],
  [
    "two lengths",
    (socket) =>
      pour(
        socket,
        `HTTP/1.1 200 OK\r\n${json}Content-Length: 5\r\nContent-Length: 50000000\r\n\r\n`,
        " ".repeat(65_536)
      )
  ],
  [
    "chunks without end",
    (socket) =>
      pour(socket, `HTTP/1.1 200 OK\r\n${json}Transfer-Encoding: chunked\r\n\r\n`, `10000\r\n${" ".repeat(65_536)}\r\n`)
  ],
  [
    "the extension of a chunk without end",
    (socket) => pour(socket, `HTTP/1.1 200 OK\r\n${json}Transfer-Encoding: chunked\r\n\r\n1;`, "x".repeat(65_536))
  ],
  [
    "an invalid chunk size",
    (socket) =>
      void socket.write(`HTTP/1.1 200 OK\r\n${json}Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n`)
  ],
  [
    "trailers without end",
    (socket) =>
      pour(
        socket,
        `HTTP/1.1 200 OK\r\n${json}Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n0\r\n`,
        "X-A: b\r\n".repeat(5_000)
      )
  ],
  [
    "a body until it closes, without end",
    (socket) => pour(socket, `HTTP/1.1 200 OK\r\n${json}\r\n`, " ".repeat(65_536))
  ],
  [
    "a body that is declared as gzip and is not",
    (socket) => void socket.end(`HTTP/1.1 200 OK\r\n${json}Content-Encoding: gzip\r\n\r\n${body}`)
  ],
  [
    "many nested content codings",
    (socket) =>
      void socket.end(`HTTP/1.1 200 OK\r\n${json}Content-Encoding: ${"gzip, ".repeat(500)}gzip\r\n\r\n${body}`)
  ],
  ["a reset", (socket) => void socket.resetAndDestroy()],
  [
    "a response before the request, and a second one",
    (socket) => void socket.write(`HTTP/1.1 200 OK\r\n${json}Content-Length: ${body.length}\r\n\r\n${body}`.repeat(50))
  ]
]

for (const [wire, transport] of [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const) {
  describe(`${wire} · a network that sends`, () => {
    for (const [what, way] of ways) {
      it.live(`${what}`, () =>
        Effect.gen(function*() {
          const server = yield* RawServer.tcp((socket) => void socket.once("data", () => way(socket)))
          globalThis.gc!()
          const before = process.memoryUsage().rss
          const made = Client.make(
            withBounds(transport({ url: server.url, shutdownTimeout: 50, maxMessageBytes: mib }), {
              endpointTimeout: 100
            }),
            {
              probeTimeout: 100,
              limits: { timeout: 150 }
            }
          )
          const error = yield* Effect.flip(Effect.scoped(made))
          assert.strictEqual(error._tag, "ClientError")
          assert.isBelow(error.message.length, 2_000)
          assert.isBelow(process.memoryUsage().rss - before, 96 * mib)
          // After an aborted request, fetch opens another connection, and keeps it unused for four seconds.
          yield* until(() => server.sockets.every(({ bytesRead, destroyed }) => destroyed || bytesRead === 0))
        }).pipe(Effect.scoped))
    }
  })
}
