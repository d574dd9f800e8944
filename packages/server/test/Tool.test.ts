import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type * as McpServer from "@skein/server/McpServer"
import * as Content from "@skein/server/Content"
import * as HandlerError from "@skein/server/HandlerError"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

class OutOfTea extends Data.TaggedError("OutOfTea")<{ readonly message: string }> {}
class Silent extends Data.TaggedError("Silent")<{ readonly id: number }> {}

/** The result of one call of a tool, in a revision. */
const answerOf = (
  layer: McpServer.Definitions,
  name: string,
  revision: Revision.Revision = "2026-07-28",
  args: kit.Json = {}
) =>
  Effect.flatMap(
    kit.client(kit.server(layer) as kit.Server, revision),
    (client) => client.request("tools/call", { name, arguments: args })
  )

const development = Layer.succeed(HandlerError.Development, true)

const strip = ({ _meta, resultType: _type, ...result }: kit.Json): kit.Json => result

describe("the value of a handler", () => {
  for (
    const [what, answer, content] of [
      ["a string is one block of text", "hi", [{ type: "text", text: "hi" }]],
      ["one block", Content.text("hi"), [{ type: "text", text: "hi" }]],
      ["blocks", [Content.text("a"), Content.text("b")], [{ type: "text", text: "a" }, { type: "text", text: "b" }]],
      ["an empty array is data", [], [{ type: "text", text: "[]" }]],
      ["nothing", undefined, []],
      ["the empty string", "", [{ type: "text", text: "" }]]
    ] as const
  ) {
    it.effect(`without an output schema: ${what}`, () =>
      Effect.gen(function*() {
        const { result } = yield* answerOf(Tool.layer(Tool.make("t"), () => Effect.succeed(answer)), "t")
        expect(strip(result)).toEqual({ content })
      }))
  }

  const Point = Tool.make("point", { output: { x: Schema.Int, at: Schema.Date } })
  const at = new Date(0)
  const written = { x: 1, at: "1970-01-01T00:00:00.000Z" }

  it.effect("2025-06-18 · MUST provide structured results that conform to the output schema, and SHOULD repeat them as text", () =>
    Effect.gen(function*() {
      const { result } = yield* answerOf(Tool.layer(Point, () => Effect.succeed({ x: 1, at })), "point", "2025-06-18")
      expect(result).toEqual({
        content: [{ type: "text", text: JSON.stringify(written) }],
        structuredContent: written
      })
    }))

  it.effect("Tool.result returns structured content with separate content blocks and _meta", () =>
    Effect.gen(function*() {
      const { result } = yield* answerOf(
        Tool.layer(
          Point,
          () =>
            Effect.succeed(Tool.result({ structured: { x: 1, at }, content: "one", _meta: { "example.com/a": [1] } }))
        ),
        "point"
      )
      expect(strip(result)).toEqual({ content: [{ type: "text", text: "one" }], structuredContent: written })
      expect(result._meta["example.com/a"]).toEqual([1])
      expect(result._meta["io.modelcontextprotocol/serverInfo"]).toEqual({ name: "test", version: "1.0.0" })
    }))

  it.effect("Tool.result repeats structured content as text if it has no content blocks", () =>
    Effect.gen(function*() {
      const { result } = yield* answerOf(
        Tool.layer(Point, () => Effect.succeed(Tool.result({ structured: { x: 1, at } }))),
        "point"
      )
      expect(strip(result)).toEqual({
        content: [{ type: "text", text: JSON.stringify(written) }],
        structuredContent: written
      })
    }))

  it.effect("Tool.result with isError and content needs no structured content", () =>
    Effect.gen(function*() {
      const failed = Tool.result({ isError: true, content: [Content.text("no"), Content.image("AQID", "image/png")] })
      const { result } = yield* answerOf(Tool.layer(Point, () => Effect.succeed(failed)), "point")
      expect(strip(result)).toEqual({
        content: [{ type: "text", text: "no" }, { type: "image", data: "AQID", mimeType: "image/png" }],
        isError: true
      })
    }))

  it.effect("2025-06-18 · Tool.result without structured content is a defect for a tool that MUST provide it", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const { result } = yield* answerOf(
          Tool.layer(Point, () => Effect.succeed(Tool.result({ content: "x" }) as never)),
          "point"
        )
        kit.referenceOf(result, "point")
        expect(lines.join()).toContain("Expected object")
      })
    ))

  it.effect("Tool.result without an output schema carries any structured content", () =>
    Effect.gen(function*() {
      const tool = Tool.make("t")
      const { result } = yield* answerOf(Tool.layer(tool, () => Effect.succeed(Tool.result({ content: "x" }))), "t")
      expect(strip(result)).toEqual({ content: [{ type: "text", text: "x" }] })
    }))

  for (
    const [name, schema, value] of [
      ["a string", Schema.String, "text"],
      ["a number", Schema.Finite, 0.5],
      ["a boolean", Schema.Boolean, false],
      ["null", Schema.Null, null],
      ["a list", Schema.Array(Schema.Int), [1, 2]],
      ["an object", Schema.Struct({ a: Schema.NullOr(Schema.String) }), { a: null }]
    ] as ReadonlyArray<readonly [string, Schema.Codec<unknown>, unknown]>
  ) {
    it.effect(`2026-07-28 · structuredContent may be any JSON value: ${name}`, () =>
      Effect.gen(function*() {
        const tool = Tool.make("t", { output: schema })
        const { result } = yield* answerOf(Tool.layer(tool, () => Effect.succeed(value)), "t")
        expect(strip(result)).toEqual({
          content: [{ type: "text", text: JSON.stringify(value) }],
          structuredContent: value
        })
        const old = yield* answerOf(Tool.layer(tool, () => Effect.succeed(value)), "t", "2025-11-25")
        expect(old.result.content).toEqual([{ type: "text", text: JSON.stringify(value) }])
        expect("structuredContent" in old.result).toBe(name === "an object")
      }))
  }
})

for (const revision of Revision.all) {
  describe(`${revision} · failures`, () => {
    const answer = (layer: McpServer.Definitions, args?: kit.Json) => answerOf(layer, "t", revision, args)
    const tool = Tool.make("t")

    it.effect(`${revision} · a tagged error is a tool result with isError and the error's message`, () =>
      Effect.gen(function*() {
        const { result } = yield* answer(Tool.layer(tool, () => Effect.fail(new OutOfTea({ message: "No tea today" }))))
        expect(strip(result)).toEqual({ content: [{ type: "text", text: "No tea today" }], isError: true })
      }))

    it.effect(`${revision} · an error without a message is reported by its tag`, () =>
      Effect.gen(function*() {
        const { result } = yield* answer(Tool.layer(tool, () => Effect.fail(new Silent({ id: 1 }))))
        expect(strip(result)).toEqual({ content: [{ type: "text", text: "Silent" }], isError: true })
      }))

    it.effect(`${revision} · an McpError is a JSON-RPC error with its own code and data`, () =>
      Effect.gen(function*() {
        const { error } = yield* answer(Tool.layer(tool, () => Effect.fail(McpError.other(42, "mine", { why: 1 }))))
        expect(error).toEqual({ code: 42, message: "mine", data: { why: 1 } })
      }))

    for (
      const [what, handler] of [
        ["a defect", () => Effect.die(new Error("the secret"))],
        ["a throw inside of the effect", () =>
          Effect.sync(() => {
            throw new Error("the secret")
          })],
        ["a throw before there is an effect", () => {
          throw new Error("the secret")
        }]
      ] as ReadonlyArray<readonly [string, () => Effect.Effect<never>]>
    ) {
      it.effect(`${revision} · ${what} is a result with a reference, and nothing else; the log has the cause`, () =>
        kit.logged((lines) =>
          Effect.gen(function*() {
            const { result } = yield* answer(Tool.layer(tool, handler))
            const reference = kit.referenceOf(result, "t")
            expect(lines.join()).toContain("the secret")
            expect(lines.join()).toContain(reference)
          })
        ))
    }

    it.effect(`${revision} · a defect is shown with its line in development, and one of Effect.tryPromise with its cause`, () =>
      kit.logged(() =>
        Effect.gen(function*() {
          const developed = (handler: () => Effect.Effect<never, { readonly message: string }>) =>
            Effect.map(
              kit.client(Layer.provide(kit.server(Tool.layer(tool, handler)), development), revision),
              (client) => client.call("t")
            ).pipe(Effect.flatten, Effect.map(({ content }) => content[0].text))
          const failing = () => Effect.die(new TypeError("no such tea"))
          expect(yield* developed(failing)).toMatch(
            /^The tool t failed unexpectedly: TypeError: no such tea \(.*Tool\.test\.ts:\d+:\d+\)\. The log .* reference [\da-f-]{36}$/
          )
          const rejecting = () => Effect.tryPromise(() => Promise.reject(new Error("no connection")))
          expect(yield* developed(rejecting)).toMatch(/unexpectedly: Error: no connection \(/)
          expect(yield* developed(() => Effect.die("a text".repeat(1000)))).toMatch(/: (a text)+[^.]*…\. The log/)
        })
      ))

    it.effect(`${revision} · a defect of a tool that declares so may be tried again`, () =>
      kit.logged(() =>
        Effect.gen(function*() {
          for (const annotations of [{ readOnlyHint: true }, { idempotentHint: true }]) {
            const { result } = yield* answer(Tool.layer(Tool.make("t", { annotations }), () => Effect.die("no")))
            expect(result.content[0].text).toContain("unexpectedly. The call may be tried again. The log")
          }
        })
      ))

    it.effect(`${revision} · structured content that does not match the output schema is a defect and is not sent`, () =>
      kit.logged((lines) =>
        Effect.gen(function*() {
          const typed = Tool.make("t", { output: { sum: Schema.Int } })
          for (const value of [{ sum: 0.5 }, { sum: "secret" }, {}, undefined, null]) {
            const { result } = yield* answer(Tool.layer(typed, () => Effect.succeed(value as never)))
            kit.referenceOf(result, "t")
          }
          // One line each, without a stack.
          const line = / Error: The result of the tool t does not match its output schema: [^\n]+$/
          expect(lines).toEqual(Array(5).fill(expect.stringMatching(line)))
          expect(lines[2]).toContain(`output schema: Missing key at ["sum"]`)
        })
      ))

    it.effect(`${revision} · invalid arguments never reach the handler`, () =>
      Effect.gen(function*() {
        let calls = 0
        const typed = Tool.make("t", { input: { a: Schema.Int, b: Schema.String } })
        const message = yield* answer(
          Tool.layer(typed, () => {
            calls++
            return Effect.succeed("ok")
          }),
          { a: "x" }
        )
        expect(calls).toBe(0)
        // 2025-11-25: "Input validation errors" are tool execution errors; before, "invalid arguments" are protocol
        // errors.
        if (revision >= "2025-11-25") {
          expect(strip(message.result).isError).toBe(true)
          expect(message.result.content[0].text).toMatch(/^Invalid arguments for tool t: /)
          expect(message.result.content[0].text).toMatch(/at \["a"\][^]*Missing key\n {2}at \["b"\]/)
        } else {
          expect(message.error.code).toBe(-32602)
          expect(message.error.message).toMatch(/at \["a"\][^]*Missing key\n {2}at \["b"\]/)
        }
      }))
  })
}

it.effect("answers a thousand invalid arguments with a bounded text", () =>
  Effect.gen(function*() {
    const tool = Tool.make("t", { input: { list: Schema.Array(Schema.Int) } })
    const list = Array.from({ length: 1000 }, () => "x")
    const { result } = yield* answerOf(Tool.layer(tool, () => Effect.succeed("ok")), "t", "2026-07-28", { list })
    expect(result.isError).toBe(true)
    expect(result.content[0].text.length).toBeLessThan(4200)
    expect(result.content[0].text).toMatch(/…$/)
  }))
