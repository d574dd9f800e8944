/** Servers of plain `node:http` and `node:net`. */
import * as RawServer from "@skein/testing/RawServer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { bytes, post } from "./rawClients.ts"

const portOf = ({ url }: { readonly url: URL }): number => Number(url.port)

describe("RawServer", () => {
  it.live("tcp · writes bytes that are not HTTP", () =>
    Effect.gen(function*() {
      const server = yield* RawServer.tcp((socket) => socket.resume().end("This is not HTTP"))
      expect((yield* bytes(portOf(server), "x")).text).toBe("This is not HTTP")
      yield* server.closed
      expect(server.sockets).toHaveLength(1)
    }))

  it.live("http · calls a listener of node:http, and closes the port with the scope", () =>
    Effect.gen(function*() {
      const port = yield* Effect.scoped(Effect.gen(function*() {
        const server = yield* RawServer.http((request, response) => {
          void RawServer.readBody(request).then((body) => response.end(body))
        })
        expect((yield* post(server.url.href, { a: 1 })).text).toBe("{\"a\":1}")
        return portOf(server)
      }))
      expect((yield* bytes(port, "")).end).toBe("ECONNREFUSED")
    }))
})
