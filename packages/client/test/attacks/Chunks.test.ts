/** An HTTP server that sends each byte in a chunk of its own. The memory is in proportion to the bytes. */
import { assert, describe, it } from "@effect/vitest"
import type { Transport } from "@skein/runtime/Connection"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import type { Exchange, Json } from "../http/support/connection.ts"
import { withBounds } from "../http/support/changedBounds.ts"

const mib = 1024 * 1024

// `fetch` reads chunks much more slowly than `node:http` does.
const wires: ReadonlyArray<readonly [string, number, (options: Http.Options) => Transport]> = [
  ["fetch", 1, Http.transport],
  ["node:http", 4, NodeHttp.transport]
]

/** A text of ASCII characters as the chunks of an HTTP body, one for each character. */
const chunksOf = (text: string): Buffer => {
  const bytes = Buffer.alloc(text.length * 6, "1\r\n_\r\n")
  for (let at = 0; at < text.length; at++) bytes[at * 6 + 3] = text.charCodeAt(at)
  return bytes
}

/** Writes a response whose body has one byte in each chunk, as fast as the client reads. */
const respondInChunks = (hit: Exchange, status: string, type: string, body: Buffer): void => {
  const socket = hit.response.socket!
  socket.write(`HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`)
  let at = 0
  const go = (): void => {
    while (at < body.length) {
      const isWritten = socket.write(body.subarray(at, at += 65_536))
      if (!isWritten) return void socket.once("drain", go)
    }
    socket.end("0\r\n\r\n")
  }
  go()
}

/** The most memory of the process above that at the start, while an effect runs. */
const peakOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const used = (): number => {
      const { external, heapUsed } = process.memoryUsage()
      return heapUsed + external
    }
    globalThis.gc!()
    const before = used()
    let peak = 0
    const timer = setInterval(() => {
      peak = Math.max(peak, used() - before)
    }, 5)
    const result = yield* Effect.ensuring(effect, Effect.sync(() => clearInterval(timer)))
    return { result, peak: Math.max(peak, used() - before) }
  })

for (const [wire, size, transport] of wires) {
  const text = "x".repeat(size * mib - 4_096)
  const message = (id: Json) => JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } })
  const responses: ReadonlyArray<readonly [string, string, string, (id: Json) => string, number]> = [
    ["a body", "200 OK", "application/json", message, text.length],
    ["an event", "200 OK", "text/event-stream", (id) => `data: ${message(id)}\n\n`, text.length],
    [
      "an event with a line for each byte",
      "200 OK",
      "text/event-stream",
      (id) =>
        `${"data: \n".repeat(text.length / 14)}data: ${
          JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })
        }\n\n`,
      0
    ],
    ["the body of an error", "500 No", "text/plain", () => text, -1],
    ["the body of a refusal", "401 No", "text/plain", () => text, -1]
  ]

  describe(`${wire} · one byte in each chunk`, () => {
    for (const [what, status, type, body, length] of responses) {
      it.live(`reads ${what} of ${size} MB in bounded memory`, () =>
        Effect.gen(function*() {
          const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
            if (hit.json.method !== "tools/call") return hit.respond(202)
            respondInChunks(hit, status, type, chunksOf(body(hit.json.id)))
          }))
          const client = yield* Client.make(
            withBounds(transport({ url: server.url, shutdownTimeout: 0 }), { refusalTimeout: 30_000 }),
            {
              revisions: ["2025-11-25"],
              enforceCapabilities: false,
              validateOutput: false,
              limits: { maxRetries: 0 }
            }
          )
          const { peak, result } = yield* peakOf(Effect.result(client.callTool("t", {}, { timeout: "1 minute" })))
          const read = result._tag === "Failure" ? -1 : (result.success.content[0] as Json)?.text.length ?? 0
          assert.strictEqual(read, length)
          // The chunks of this server are 24 MB of it.
          assert.isBelow(peak, 200 * mib)
        }).pipe(Effect.scoped), 120_000)
    }
  })
}
