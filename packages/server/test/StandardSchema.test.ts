/** Schemas of other libraries, as the input and the output of tools. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as StandardSchema from "@skein/server/StandardSchema"
import * as Tool from "@skein/server/Tool"
import { type } from "arktype"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as v from "valibot"
import { z } from "zod"
import * as kit from "./kit.ts"

const ValibotCity = v.object({ city: v.pipe(v.string(), v.minLength(1)), days: v.optional(v.number(), 3) })
const cityJson = {
  type: "object",
  properties: { city: { type: "string", minLength: 1 }, days: { type: "number", default: 3 } },
  required: ["city"]
}

const libraries = [
  ["zod", z.object({ city: z.string().min(1), days: z.number().default(3) })],
  ["valibot", StandardSchema.withJsonSchema(ValibotCity, cityJson)],
  ["arktype", type({ city: "string > 0", days: "number = 3" })]
] as const

const forecast = (input: Tool.AnySchema) =>
  Tool.layer(Tool.make("forecast", { input }), (args) => Effect.succeed(JSON.stringify(args)))

describe("arguments", () => {
  for (const [library, input] of libraries) {
    it.effect(`${library} · the JSON Schema of the input side is listed`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(forecast(input)))
        const { tools: [{ inputSchema }] } = yield* client.result("tools/list")
        expect(inputSchema).toMatchObject({
          type: "object",
          properties: { city: { type: "string", minLength: 1 }, days: { type: "number" } },
          required: ["city"]
        })
      }))

    for (const revision of Revision.all) {
      it.effect(`${library} · ${revision} · validates and transforms arguments, and reports faults with paths`, () =>
        Effect.gen(function*() {
          const client = yield* kit.client(kit.server(forecast(input)), revision)
          const { content } = yield* client.call("forecast", { city: "Wien" })
          expect(JSON.parse(content[0].text)).toEqual({ city: "Wien", days: 3 })
          const message = yield* client.request("tools/call", { name: "forecast", arguments: { city: 1 } })
          if (revision < "2025-11-25") expect(message.error.code).toBe(-32602)
          else expect(message.result.isError).toBe(true)
          const text = message.error?.message ?? message.result.content[0].text
          expect(text).toMatch(/^Invalid arguments for tool forecast: [^]+\n {2}at \["city"\]/)
        }))
    }
  }

  it.effect("zod · validates asynchronously", () =>
    Effect.gen(function*() {
      let calls = 0
      const input = z.object({
        name: z.string().refine((name) => Promise.resolve(name !== "taken"), "This name is taken")
      })
      const layer = Tool.layer(Tool.make("claim", { input }), ({ name }) => Effect.sync(() => `${name} ${++calls}`))
      const client = yield* kit.client(kit.server(layer))
      expect((yield* client.call("claim", { name: "free" })).content[0].text).toBe("free 1")
      const refused = yield* client.call("claim", { name: "taken" })
      expect(refused).toMatchObject({
        isError: true,
        content: [{ text: "Invalid arguments for tool claim: This name is taken\n  at [\"name\"]" }]
      })
      expect(calls).toBe(1)
    }))

  it.effect("a schema that is rejected, or throws, is a defect, and its reason is not sent", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const failing = (validate: () => Promise<never>): Tool.AnySchema => ({
          "~standard": {
            version: 1,
            vendor: "test",
            validate,
            jsonSchema: { input: () => ({ type: "object" }), output: () => ({}) }
          }
        } as StandardSchema.WithJsonSchema<{}, {}>)
        const rejected = failing(() => Promise.reject(new Error("the secret")))
        const thrown = failing(() => {
          throw new Error("the secret")
        })
        for (const input of [rejected, thrown]) {
          const client = yield* kit.client(kit.server(Tool.layer(Tool.make("t", { input }), () => Effect.void)))
          yield* client.defect("t", { a: "x" })
        }
        expect(lines.join()).toContain("the secret")
      })
    ))

  it.effect("zod · lists a union of objects with the type object at its root, in every revision", () =>
    Effect.gen(function*() {
      const input = z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("a"), n: z.number() }),
        z.object({ kind: z.literal("b") })
      ])
      for (const revision of Revision.all) {
        const client = yield* kit.client(kit.server(forecast(input)), revision)
        const { tools: [{ inputSchema }] } = yield* client.result("tools/list")
        expect(inputSchema.type).toBe("object")
        expect((inputSchema.oneOf ?? inputSchema.anyOf).length).toBe(2)
      }
    }))

  it.effect("zod · accepts a recursive schema", () =>
    Effect.gen(function*() {
      const Tree = z.object({
        name: z.string(),
        get children() {
          return z.array(Tree).optional()
        }
      })
      const client = yield* kit.client(kit.server(forecast(Tree)))
      const { tools: [{ inputSchema }] } = yield* client.result("tools/list")
      expect(inputSchema).toMatchObject({ type: "object", required: ["name"] })
      expect((yield* client.call("forecast", { name: "a", children: [{ name: "b" }] })).isError).toBeUndefined()
      expect((yield* client.call("forecast", { name: "a", children: [{}] })).isError).toBe(true)
    }))

  it.effect("an Effect Schema that was converted to a Standard Schema is used as an Effect Schema", () =>
    Effect.gen(function*() {
      const input = Schema.toStandardSchemaV1(Schema.Struct({ at: Schema.Date }))
      const layer = Tool.layer(Tool.make("t", { input }), ({ at }) => Effect.succeed(String(at.getTime())))
      const client = yield* kit.client(kit.server(layer))
      expect((yield* client.call("t", { at: "1970-01-01T00:00:01.000Z" })).content[0].text).toBe("1000")
    }))
})

describe("structured content", () => {
  const Report = z.object({
    ok: z.boolean(),
    note: z.string().default("none"),
    at: z.string().transform((text) => text.length).pipe(z.number())
  })
  const report = Tool.make("report", { output: Report })

  it.effect("zod · 2025-06-18 · is validated and transformed before it is sent, and listed with its output side", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(
        kit.server(Tool.layer(report, () => Effect.succeed({ ok: true, at: "four" }))),
        "2025-06-18"
      )
      const { tools: [{ outputSchema }] } = yield* client.result("tools/list")
      expect(outputSchema).toMatchObject({
        type: "object",
        properties: { at: { type: "number" } },
        required: ["ok", "note", "at"]
      })
      const result = yield* client.call("report")
      expect(result).toEqual({
        content: [{ type: "text", text: "{\"ok\":true,\"note\":\"none\",\"at\":4}" }],
        structuredContent: { ok: true, note: "none", at: 4 }
      })
    }))

  it.effect("zod · is a defect and is not sent if it does not match", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const client = yield* kit.client(
          kit.server(Tool.layer(report, () => Effect.succeed({ ok: "secret" as never, at: "" })))
        )
        yield* client.defect("report")
        expect(lines).toEqual([expect.stringMatching(
          / Error: The result of the tool report does not match its output schema: .+ at \["ok"\](; .+ at \["\w+"\])*$/
        )])
      })
    ))

  it.effect("zod · is validated asynchronously, also with separate content blocks", () =>
    Effect.gen(function*() {
      const output = z.object({ n: z.number().refine((n) => Promise.resolve(n > 0)) })
      const tool = Tool.make("t", { input: z.object({ n: z.number() }), output })
      const layer = Tool.layer(tool, ({ n }) => Effect.succeed(Tool.result({ structured: { n }, content: "mine" })))
      const client = yield* kit.client(kit.server(layer))
      expect(yield* client.call("t", { n: 1 })).toMatchObject({
        structuredContent: { n: 1 },
        content: [{ text: "mine" }]
      })
      yield* kit.logged(() => client.defect("t", { n: 0 }))
    }))

  it.effect("is not required of a failure", () =>
    Effect.gen(function*() {
      const layer = Tool.layer(report, () => Effect.succeed(Tool.result({ isError: true, content: "no" })))
      const client = yield* kit.client(kit.server(layer))
      expect(yield* client.call("report")).toMatchObject({ isError: true, content: [{ text: "no" }] })
    }))
})

describe("an invalid schema", () => {
  for (
    const [what, options, problem] of [
      [
        "has no JSON Schema",
        { input: ValibotCity },
        "valibot schemas do not provide JSON Schema; pass one with withJsonSchema"
      ],
      [
        "is given by its fields",
        { input: { city: z.string() } as never },
        "the field \"city\" is a schema of its own: pass the schema of the whole object, such as z.object({ … })"
      ],
      [
        "is JSON Schema as it is",
        { input: { type: "object", properties: {} } as never },
        "the field \"type\" is not a schema: for JSON Schema, use jsonSchema of skein, or JsonSchema.make of @skein/server"
      ],
      ["is none", { input: null as never }, "expected a schema or the fields of a struct"],
      ["cannot describe its JSON Schema", { input: z.object({ at: z.date() }) }, "an invalid input schema: "],
      ["is of no object", { input: z.string() }, "it must describe an object"],
      ["cannot describe its output", { output: z.object({ at: z.date() }) }, "an invalid output schema: "],
      [
        "has a header of the wrong type",
        { input: z.object({ a: z.number().meta({ "x-mcp-header": "A" }) }) },
        "x-mcp-header at 'a'"
      ]
    ] as ReadonlyArray<readonly [string, Tool.Options<Tool.AnySchema, Tool.AnySchema>, string]>
  ) {
    it.effect(`one that ${what} fails the layer, and names the tool`, () =>
      Effect.gen(function*() {
        const bad = Tool.layer(Tool.make("bad", options), () => Effect.succeed({}) as never)
        const error = yield* kit.failure(kit.server(Tool.layer(Tool.make("good"), () => Effect.void), bad))
        expect(error).toMatchObject({
          _tag: "DefinitionError",
          reason: { _tag: "InvalidSchema" },
          kind: "tool",
          definition: "bad"
        })
        expect((error as DefinitionError).message).toContain("The tool \"bad\" has an invalid")
        expect((error as DefinitionError).message).toContain(problem)
      }))
  }
})
