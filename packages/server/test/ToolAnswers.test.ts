/** The values that the handler of a tool without an output schema returns, and what the client receives. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Content from "@skein/server/Content"
import * as Tool from "@skein/server/Tool"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { z } from "zod"
import * as kit from "./input/kit.ts"
import * as base from "./kit.ts"

interface Tea {
  readonly id: number
  readonly name: string
  readonly content: string
}

const tea: Tea = { id: 7, name: "oolong", content: "100 g" }

class Row {
  readonly id = 1
}

const circle: Record<string, unknown> = {}
circle["self"] = circle

const text = (text: string) => [{ type: "text", text }]
const image = Content.image("AAAA", "image/png")

/** The values, as a JavaScript handler may return them, and the content of the result. */
const sent: Readonly<Record<string, readonly [value: unknown, content: unknown]>> = {
  "a text": ["tea", text("tea")],
  "an empty text": ["", text("")],
  "a number": [3, text("3")],
  "a number that JSON does not have": [NaN, text("NaN")],
  "a boolean": [false, text("false")],
  "a bigint": [2n ** 64n, text("18446744073709551616")],
  "an object": [tea, text("{\"id\":7,\"name\":\"oolong\",\"content\":\"100 g\"}")],
  "an empty object": [{}, text("{}")],
  "an object without a prototype": [Object.create(null), text("{}")],
  "an instance": [new Row(), text("{\"id\":1}")],
  "an instance with toJSON": [new Date(0), text("\"1970-01-01T00:00:00.000Z\"")],
  "an object with another type": [{ type: "oolong", grams: 1 }, text("{\"type\":\"oolong\",\"grams\":1}")],
  "a page whose list is named content": [
    { content: [tea], total: 1 },
    text(JSON.stringify({ content: [tea], total: 1 }))
  ],
  "an empty page whose list is named content": [{ content: [], total: 0 }, text("{\"content\":[],\"total\":0}")],
  "an array": [[1, "a", { b: 2 }], text("[1,\"a\",{\"b\":2}]")],
  "an array of arrays": [[[1], []], text("[[1],[]]")],
  "a search without hits": [[], text("[]")],
  null: [null, text("null")],
  nothing: [undefined, []],
  "a block": [image, [image]],
  blocks: [[Content.text("a"), image], [...text("a"), image]],
  "a result": [Tool.result({ content: "a" }), text("a")]
}

/** The values for which the model receives an error, and what the error says. */
const refused: Readonly<Record<string, readonly [value: unknown, problem: string]>> = {
  "a function": [() => 1, "a function, which has no JSON: call it, and return its result"],
  "a symbol": [Symbol("a"), "a symbol, which has no JSON"],
  "a circular value": [circle, "a value that has no JSON, such as one that refers to itself or has a bigint"],
  "an object with a bigint": [{ n: 1n }, "a value that has no JSON, such as one that refers to itself or has a bigint"],
  "a Map": [new Map([[1, 2]]), "a Map, which has no JSON: return Object.fromEntries(map), or an array"],
  "a Set": [new Set([1]), "a Set, which has no JSON: return Array.from(set)"],
  "a response": [
    new Response("a"),
    "a Response, which has no JSON: return await response.text(), or await response.json()"
  ],
  "a generator": [
    (function*() {})(),
    "a generator, which has no JSON: return Array.from(generator), or use Effect.gen"
  ],
  "an instance of a class without a name": [
    new (class {
      toJSON() {}
    })(),
    "an instance of Object, which has no JSON: return its content as an object or text"
  ],
  "a block of a type that does not exist": [
    [{ type: "txt", text: "a" }],
    "a content block of the type \"txt\", which does not exist: the types are text, image, audio, resource_link, resource; " +
    "return JSON.stringify(value) if it is data"
  ],
  "an error": [
    new Error("hunter2"),
    "an instance of Error, which has no JSON: return its content as an object or text"
  ],
  "a value whose toJSON returns nothing": [
    { toJSON: () => undefined },
    "an instance of Object, which has no JSON: return its content as an object or text"
  ],
  bytes: [Buffer.from("a"), "bytes, which have no JSON: return Content.image, Content.audio or Content.resource"],
  "an effect": [
    Effect.succeed(1),
    "an effect that did not run: run it, or return it as the effect of Tool.layer"
  ],
  "a result of another SDK": [
    { content: text("a") },
    "a whole result: return the content blocks themselves, or Tool.result({ content, … })"
  ],
  "an empty result of another SDK": [
    { content: [], isError: true },
    "a whole result: return the content blocks themselves, or Tool.result({ content, … })"
  ],
  ...Object.fromEntries(
    ([
      [{ type: "text", value: "a" }, "its text"],
      [{ type: "image", url: "https://a.example" }, "data and mimeType"],
      [{ type: "audio", data: "AAAA" }, "data and mimeType"],
      [{ type: "resource_link", uri: "a://b" }, "uri and name"],
      [{ type: "resource", uri: "a://b", text: "" }, "a resource with uri, and text or blob"],
      [{ type: "resource", resource: { uri: "a://b" } }, "a resource with uri, and text or blob"]
    ] as const).map(([value, missing], at) => [
      `a malformed block, ${at}`,
      [
        value,
        `a content block of type ${value.type} without ${missing}: ` +
        "make it with the module Content, or return JSON.stringify(value) if it is data"
      ]
    ])
  ),
  "a malformed block among blocks": [
    [image, { type: "text" }],
    "a content block of type text without its text: " +
    "make it with the module Content, or return JSON.stringify(value) if it is data"
  ],
  "blocks among other items": [
    [image, "a"],
    "content blocks among other items: return blocks only, or JSON.stringify(value) if it is data"
  ]
}

it.effect("a handler of Tool.layer that returns no effect", () =>
  Effect.gen(function*() {
    const returning = (value: () => unknown) =>
      Effect.gen(function*() {
        const server = base.server(Tool.layer(Tool.make("t"), value as () => Effect.Effect<string>))
        return (yield* (yield* base.client(server)).call("t")).content[0].text
      })
    expect(yield* returning(() => Promise.resolve("a"))).toBe(
      "The handler of the tool t returned a promise, and not an effect: use Tool.async, or wrap it in Effect.promise"
    )
    expect(yield* returning(() => Promise.reject(new Error("a")))).toContain("a promise, and not an effect")
    expect(yield* returning(function*() {})).toContain("a generator, and not an effect: wrap it in Effect.gen")
    expect(yield* returning(() => "a")).toContain("no effect: return Effect.succeed(value), or use Tool.async")
    expect(yield* returning(() => Effect.fail("sold out"))).toBe("sold out")
  }))

/** A server with a tool for each value, named by its position, whose handler is not checked by types. */
const serverOf = (values: ReadonlyArray<unknown>) =>
  base.server(
    ...values.map((value, at) => Tool.async(Tool.make(`async${at}`), () => value as string)),
    ...values.map((value, at) => Tool.layer(Tool.make(`layer${at}`), () => Effect.succeed(value as string)))
  )

/** The names of the tools, with the entry of the table of each. */
const toolsOf = <A>(table: Readonly<Record<string, readonly [value: unknown, expected: A]>>) =>
  Object.entries(table).flatMap(([title, [, expected]], at) =>
    [`async${at}`, `layer${at}`].map((name) => ({ name, title, expected }))
  )

const valuesOf = (table: Readonly<Record<string, readonly [value: unknown, expected: unknown]>>) =>
  Object.values(table).map(([value]) => value)

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("sends data as JSON, numbers as text, and content as it is", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(serverOf(valuesOf(sent)), { revision })
        for (const { expected, name, title } of toolsOf(sent)) {
          const { result: { content, isError, structuredContent } } = yield* client.request("tools/call", { name })
          expect({ title, content, isError, structuredContent }).toEqual({ title, content: expected })
        }
      }))

    it.effect("answers a value without JSON with isError and the remedy, which no client receives as a log", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(serverOf(valuesOf(refused)), { revision })
        for (const { expected, name, title } of toolsOf(refused)) {
          const text = yield* client.call(name)
          expect({ title, text }).toEqual({
            title,
            text: `failed: The handler of the tool ${name} returned ${expected}`
          })
        }
        expect(client.notices("notifications/message")).toEqual([])
      }))

    it.effect("sends structured content with an output schema, as before", () =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          base.server(
            Tool.async(Tool.make("sum", { output: { sum: Schema.Finite } }), () => ({ sum: 3 })),
            Tool.async(Tool.make("list", { output: z.array(z.number()) }), () => [])
          ),
          { revision }
        )
        expect(yield* client.call("sum")).toBe("{\"sum\":3}")
        expect(yield* client.call("list")).toBe("[]")
      }))
  })
}

describe("a refused value", () => {
  it.effect("is logged once, as an error, with what JSON.stringify threw", () =>
    Effect.gen(function*() {
      const logged: Array<string> = []
      const logger = Logger.make<unknown, void>(({ cause, logLevel, message }) => {
        logged.push(`${logLevel}: ${String(message)} ${Cause.pretty(cause)}`.trim())
      })
      const leaking = {
        toJSON: () => {
          throw new Error("hunter2")
        }
      }
      const layer = Logger.layer([logger])
      const client = yield* Effect.provide(kit.client(serverOf([leaking, () => 1]), { revision: "2025-11-25" }), layer)
      expect(yield* client.call("async0")).not.toContain("hunter2")
      expect(yield* client.call("async1")).toContain("a function")
      expect(logged).toHaveLength(2)
      expect(logged[0]).toMatch(
        /^Error: The handler of the tool async0 returned a value that has no JSON.*\n?.*hunter2/
      )
      expect(logged[1]).toBe(
        "Error: The handler of the tool async1 returned a function, which has no JSON: call it, and return its result"
      )
    }))
})
