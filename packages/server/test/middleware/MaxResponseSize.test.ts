import { describe, expect, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Middleware from "@skein/server/Middleware"
import * as Resource from "@skein/server/Resource"
import * as MaxResponseSize from "@skein/server/MaxResponseSize"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

const text = Tool.layer(
  Tool.make("text", { input: { text: Schema.String } }),
  ({ text }) => Effect.succeed(text)
)

for (const revision of support.eras) {
  describe(`${revision} · response size`, () => {
    it.effect("sends a tool's result up to exactly maxBytes, and a result with isError beyond", () =>
      Effect.gen(function*() {
        const plain = yield* kit.client(kit.server(text), revision)
        for (const content of ["a".repeat(500), "é".repeat(250), "€".repeat(200), "😀".repeat(100)]) {
          const args = { text: content }
          const bytes = new TextEncoder().encode(JSON.stringify(yield* plain.call("text", args))).byteLength
          const exact = yield* kit.client(kit.server(MaxResponseSize.layer({ maxBytes: bytes }), text), revision)
          expect((yield* exact.call("text", args)).content[0].text).toBe(content)
          const less = yield* kit.client(kit.server(MaxResponseSize.layer({ maxBytes: bytes - 1 }), text), revision)
          expect(yield* less.call("text", args)).toMatchObject({
            isError: true,
            content: [{
              text: `The result of tools/call text has ${bytes} bytes, more than the maximum of ${
                bytes - 1
              }. Ask for less`
            }]
          })
        }
      }))

    it.effect("answers every other method with -32603 and the sizes", () =>
      Effect.gen(function*() {
        const large = Resource.layer(Resource.make("a://b"), Effect.succeed("x".repeat(2000)))
        const client = yield* kit.client(kit.server(MaxResponseSize.layer({ maxBytes: 1000 }), large), revision)
        const error = yield* client.error("resources/read", { uri: "a://b" })
        expect(error.code).toBe(-32603)
        expect(error.data.maxBytes).toBe(1000)
        expect(error.data.bytes).toBeGreaterThan(2000)
      }))

    it.effect("encodes the result once: outer middleware receives JSON text, and text stays unchanged", () =>
      Effect.gen(function*() {
        const answers: Array<unknown> = []
        const look = Middleware.layer((next) => (exchange) =>
          Effect.tap(next(exchange), (answer) => Effect.sync(() => void answers.push(answer)))
        )
        const encoded = new JsonRpc.Encoded(`{"resultType":"complete","content":[{"type":"text","text":"ready"}]}`)
        const ready = Middleware.layer((next) => (exchange) =>
          exchange.params?.["name"] === "ready" ? Effect.succeed(encoded) : next(exchange)
        )
        const client = yield* kit.client(kit.server(look, MaxResponseSize.layer(), ready, text), revision)
        answers.length = 0
        expect((yield* client.call("text", { text: "x" })).content[0].text).toBe("x")
        expect(answers[0]).toBeInstanceOf(JsonRpc.Encoded)
        expect((yield* client.call("ready")).content[0].text).toBe("ready")
        expect(answers[1]).toBe(encoded)
      }))

    it.effect("a result that is not an object, or has no JSON form, is a defect as without a limit", () =>
      Effect.gen(function*() {
        const odd = Middleware.layer((next) => (exchange) => {
          const name = exchange.params?.["name"]
          if (name === "array") return Effect.succeed([1] as never)
          if (name === "cycle") {
            const content: Array<unknown> = []
            content.push(content)
            return Effect.succeed({ resultType: "complete", content })
          }
          return next(exchange)
        })
        const client = yield* kit.client(kit.server(MaxResponseSize.layer(), odd, text), revision)
        for (const name of ["array", "cycle"]) {
          yield* client.defect(name)
        }
      }))
  })
}

it.effect("the default is 4 MiB", () =>
  Effect.gen(function*() {
    const client = yield* kit.client(kit.server(MaxResponseSize.layer(), text), "2026-07-28")
    const large = yield* client.call("text", { text: "x".repeat(4 * 1024 * 1024 - 1000) })
    expect(large.isError).toBeUndefined()
    expect((yield* client.call("text", { text: "x".repeat(4 * 1024 * 1024) })).isError).toBe(true)
  }))
