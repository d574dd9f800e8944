/**
 * Bodies of error responses and of responses that are not MCP: how long the client reads them, and which part it
 * quotes.
 */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as Credentials from "../../src/Credentials.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { connected, entered, type Exchange, type Json, note, settle, until } from "./support/connection.ts"
import { fieldsOf } from "../support/fields.ts"

/** Writes a few bytes and never ends the response. */
const endless = (hit: Exchange, status: number, type: string): void => {
  hit.response.writeHead(status, { "content-type": type })
  hit.response.write("<p>Who are you")
}

const transports = [["Http", Http.transport], ["NodeHttp", NodeHttp.transport]] as const

describe("the body of an error response that never ends", () => {
  it.effect("does not delay the report that the standalone SSE stream is not available beyond refusalTimeout", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
        standaloneStream: (hit) => endless(hit, 405, "text/plain")
      }))
      const { received } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      yield* settle
      yield* TestClock.adjust("4999 millis")
      yield* settle
      assert.lengthOf(received.gaps, 0)
      yield* TestClock.adjust("1 millis")
      yield* until(() => received.gaps.length === 1)
      assert.deepInclude(fieldsOf(received.gaps[0]), { reason: "MessageRejected", status: 405 })
      assert.include(received.gaps[0]!.message, "<p>Who are you")
      yield* until(() => server.byMethod("GET")[0]!.closedByClient)
    }).pipe(Effect.scoped))

  it.effect("does not delay the failure of a call whose stream cannot be resumed", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
        if (hit.method === "POST") return hit.openStream(ScriptedHttpServer.event(note(1), "e-1")).end()
        endless(hit, 200, "text/html")
      }))
      const { request, received } = yield* entered({ url: server.url }, { refusalTimeout: 2_000 })
      request(1, "tools/call", { name: "t" })
      const resumed = () => server.byMethod("GET").filter(({ headers }) => headers["last-event-id"] === "e-1")
      yield* until(() => server.byMethod("POST").length === 3)
      yield* settle
      yield* TestClock.adjust("1 second")
      yield* until(() => resumed().length === 1)
      yield* settle
      assert.isUndefined(received.error(1))
      yield* TestClock.adjust("2 seconds")
      yield* until(() => received.error(1) !== undefined)
      assert.include(received.error(1)!.message, "could not be resumed")
    }).pipe(Effect.scoped))

  for (const [name, transport] of transports) {
    for (const [status, type] of [[200, "text/html"], [500, "text/plain"], [401, "application/json"]] as const) {
      it.effect(`${name}: does not delay the failure of its call beyond refusalTimeout, and is quoted in part: ${type} (${status})`, () =>
        Effect.gen(function*() {
          const server = yield* ScriptedHttpServer.make(
            ScriptedHttpServer.session<Json>((hit) => endless(hit, status, type))
          )
          const client = yield* Client.make(
            transport({ url: server.url, shutdownTimeout: 0, standaloneStream: false }),
            {
              revisions: ["2025-11-25"],
              enforceCapabilities: false
            }
          )
          const called = () => server.exchanges.find(({ json }) => json?.method === "tools/call")
          const call = yield* Effect.forkScoped(Effect.flip(client.callTool("t")), { startImmediately: true })
          yield* until(() => called() !== undefined)
          yield* settle
          yield* TestClock.adjust("5 seconds")
          yield* until(() => call.pollUnsafe() !== undefined)
          const error = yield* Fiber.join(call)
          assert.strictEqual(error.reason._tag, status === 401 ? "Unauthorized" : "HttpError")
          assert.include(error.message, "Who are you")
          yield* until(() => called()!.closedByClient)
        }).pipe(Effect.scoped))
    }
  }

  it.effect("is quoted up to maxMessageBytes", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respond(500, `Oh no! ${"x".repeat(5_000)}`))
      )
      const { request, received } = yield* entered({ url: server.url, maxMessageBytes: 1_000 })
      request(1, "tools/list")
      yield* until(() => received.error(1) !== undefined)
      assert.include(received.error(1)!.message, "Oh no!")
    }).pipe(Effect.scoped))
})

describe("an error response that repeats parts of the request", () => {
  const token = "s3cr3t-t0ken-of-mine"
  const echo = (hit: Exchange): string =>
    `I do not know ${hit.headers.authorization}, nor ${token} nor ${hit.headers["x-api-key"]}, in ${
      hit.headers["x-env"]
    }`

  for (const [name, transport] of transports) {
    for (
      const [what, say] of [
        ["text", (hit: Exchange) => hit.respond(403, echo(hit), { "content-type": "text/plain" })],
        [
          "a JSON-RPC error",
          (hit: Exchange) => hit.respondJson({ jsonrpc: "2.0", error: { code: -32_600, message: echo(hit) } }, {}, 403)
        ],
        ["HTML", (hit: Exchange) => hit.respond(200, echo(hit), { "content-type": "text/html" })],
        [
          "JSON that is not a message",
          (hit: Exchange) => hit.respond(200, echo(hit), { "content-type": "application/json" })
        ]
      ] as const
    ) {
      it.effect(`${name}: ${what} is quoted without the credentials`, () =>
        Effect.gen(function*() {
          const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>(say))
          const client = yield* Client.make(
            transport({
              url: server.url,
              shutdownTimeout: 0,
              standaloneStream: false,
              headers: { "X-Api-Key": "key/with+signs=", "x-env": "test" },
              credentials: Credentials.bearer(Redacted.make(token))
            }),
            { revisions: ["2025-11-25"], enforceCapabilities: false }
          )
          const { message } = yield* Effect.flip(client.callTool("t"))
          assert.include(message, "I do not know [redacted], nor [redacted] nor [redacted], in test")
        }).pipe(Effect.scoped))
    }
  }

  it.effect("is quoted without the values of the configured headers; values of other headers stay", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.respond(500, `${hit.headers["x-key"]} ${hit.headers["content-type"]}`)
      )
      const { request, received } = yield* connected({ url: server.url, headers: { "x-key": `${token} ${token}-2` } })
      request(1, "tools/list")
      yield* until(() => received.error(1) !== undefined)
      assert.include(received.error(1)!.message, ": [redacted] application/json")
    }).pipe(Effect.scoped))
})
