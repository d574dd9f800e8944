/**
 * Arguments that fill a body of 4 MiB (the default bound of HTTP) with faults are refused as fast as they are read. The
 * limits of time are far above the measured times (a few milliseconds) and far below the time of a search for every
 * fault (a second and more).
 */
import { describe, expect, it } from "@effect/vitest"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { z } from "zod"
import * as kit from "./kit.ts"

const million = Array.from({ length: 1_000_000 }, () => "x")
const unknown = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`unknown${i}`, i]))

const shapes = [
  ["Effect Schema", {
    list: Schema.Array(Schema.Int),
    map: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
  }],
  [
    "JSON Schema",
    JsonSchema.make({
      type: "object",
      properties: {
        list: { type: "array", items: { type: "integer" } },
        map: { type: "object", additionalProperties: { type: "string" } }
      },
      required: ["list"],
      additionalProperties: false
    })
  ]
] as ReadonlyArray<readonly [string, Tool.AnySchema]>

describe("a body full of faults", () => {
  for (const [what, input] of shapes) {
    it.effect(`${what} · refuses a million wrong members, 100,000 wrong or unknown keys`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(Tool.layer(Tool.make("t", { input }), () => Effect.succeed("ok"))))
        // The time of the JSON parser is not counted.
        for (
          const args of [{ list: million }, { list: [], map: unknown }, { ...unknown }, { list: ["x"], ...unknown }]
        ) {
          const id = client.send("tools/call", { name: "t", arguments: args })
          const { result } = yield* client.answer(id)
          expect(result.isError).toBe(true)
          expect(result.content[0].text.length).toBeLessThan(4200)
          expect(result.content[0].text).toMatch(/at \["(list|map|unknown0)"\]/)
        }
      }))
  }

  it.effect("does not run a schema of another library over more than 100,000 values", () =>
    Effect.gen(function*() {
      const input = z.object({ list: z.array(z.int()) })
      const tool = Tool.layer(Tool.make("count", { input }), ({ list }) => Effect.succeed(String(list.length)))
      const client = yield* kit.client(kit.server(tool))
      const list = Array.from({ length: 100_000 }, () => 1)
      // The other library looks for every fault. The object and the list are values too.
      expect(yield* client.call("count", { list: list.slice(2) })).toMatchObject({ content: [{ text: "99998" }] })
      for (const length of [99_999, 1_000_000]) {
        const list = Array.from({ length }, () => "x")
        const { content, isError } = yield* client.call("count", { list })
        expect(isError).toBe(true)
        expect(content[0].text).toBe(
          "Invalid arguments for tool count: the arguments have more than 100000 values"
        )
      }
    }))

  it.effect("reports all faults of few values, and the first fault of many", () =>
    Effect.gen(function*() {
      const input = { list: Schema.Array(Schema.Int) }
      const client = yield* kit.client(kit.server(Tool.layer(Tool.make("t", { input }), () => Effect.succeed("ok"))))
      const faults = (length: number) =>
        Effect.map(
          client.call("t", { list: million.slice(0, length) }),
          ({ content }) => content[0].text.match(/ at \["list"\]/g).length
        )
      expect(yield* faults(3)).toBe(3)
      expect(yield* faults(9_000)).toBeGreaterThan(50)
      expect(yield* faults(11_000)).toBe(1)
    }))

  it.effect("refuses a prompt's arguments full of faults", () =>
    Effect.gen(function*() {
      const prompt = Prompt.make("p", { arguments: { n: Schema.FiniteFromString } })
      const client = yield* kit.client(kit.server(Prompt.layer(prompt, () => Effect.succeed("ok"))))
      const texts = Object.fromEntries(Object.keys(unknown).map((key) => [key, "x"]))
      const error = yield* client.error("prompts/get", { name: "p", arguments: { n: "x".repeat(1_000_000), ...texts } })
      expect(error.code).toBe(-32602)
      expect(error.message.length).toBeLessThan(4200)
    }))
})
