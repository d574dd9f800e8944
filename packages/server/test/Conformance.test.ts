/** Compares a tool's listed schemas with the values that it reads and writes, using an independent validator. */
import { describe, expect, it } from "@effect/vitest"
import * as Tool from "@skein/server/Tool"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Formats from "ajv-formats"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

class Point extends Schema.Class<Point>("Point")({ x: Schema.Number, y: Schema.optionalKey(Schema.Number) }) {}

interface Tree {
  readonly value: string
  readonly kids: ReadonlyArray<Tree>
}
const Tree: Schema.Codec<Tree> = Schema.Struct({
  value: Schema.String,
  kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
}).annotate({ identifier: "Tree" })

// RFC 3339, and so the format `date-time`, has years of four digits only.
const years = { minimum: new Date("0000-01-01T00:00:00Z"), maximum: new Date("9999-12-31T23:59:59Z") }

const shapes: { readonly [name: string]: Schema.Codec<any, any> } = {
  scalars: Schema.Struct({ s: Schema.String, n: Schema.Number, f: Schema.Finite, i: Schema.Int, b: Schema.Boolean }),
  absent: Schema.Struct({
    key: Schema.optionalKey(Schema.String),
    value: Schema.optional(Schema.Int),
    nul: Schema.NullOr(Schema.String),
    none: Schema.Undefined
  }),
  transformed: Schema.Struct({
    date: Schema.Date.check(Schema.isBetweenDate(years)),
    big: Schema.BigInt,
    bytes: Schema.Uint8Array,
    option: Schema.Option(Schema.Int),
    text: Schema.NumberFromString
  }),
  checks: Schema.Struct({
    short: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(3)),
    few: Schema.Array(Schema.Int).check(Schema.isMaxLength(2)),
    small: Schema.Finite.check(Schema.isBetween({ minimum: -1, maximum: 1 })),
    matched: Schema.String.check(Schema.isPattern(/^[a-z]{1,4}$/))
  }),
  unions: Schema.Struct({
    either: Schema.Union([Schema.String, Schema.Int, Schema.Struct({ a: Schema.Boolean })]),
    literal: Schema.Literals(["a", 1, true]),
    tuple: Schema.Tuple([Schema.String, Schema.Int]),
    record: Schema.Record(Schema.String, Schema.Int)
  }),
  point: Point,
  points: Schema.Struct({ list: Schema.Array(Point), one: Point }),
  tree: Tree
}

/** The faults of a value by a schema. */
const refusal = (schema: object, value: unknown): unknown => {
  const ajv = new Ajv2020({ strict: false })
  Formats.default.default(ajv)
  const validate = ajv.compile(schema)
  return validate(value) ? undefined : { value, errors: validate.errors }
}

for (const [name, shape] of Object.entries(shapes)) {
  const encode = Schema.encodeUnknownSync(Schema.toCodecJson(shape))
  const build = (value: unknown) =>
    Effect.gen(function*() {
      let got: unknown
      const write = Tool.layer(Tool.make("write", { output: shape }), () => Effect.succeed(value))
      const read = Tool.layer(Tool.make("read", { input: shape }), (input: unknown) => {
        got = input
        return Effect.void
      })
      const client = yield* kit.client(kit.server(read, write))
      const { tools } = yield* client.result("tools/list")
      return { client, tools, got: () => got }
    })

  describe(name, () => {
    it.effect.prop(
      `2025-06-18 · servers MUST provide structured results that conform to this schema: ${name}`,
      [shape],
      ([value]) =>
        Effect.gen(function*() {
          const { client, tools } = yield* build(value)
          const { structuredContent } = yield* client.call("write")
          expect(refusal(tools[1].outputSchema, structuredContent)).toBeUndefined()
        }),
      { arbitrary: { runs: 20 } }
    )

    it.effect.prop(
      `the output of a tool is valid input of a tool with the same schema, as read and as listed: ${name}`,
      [shape],
      ([value]) =>
        Effect.gen(function*() {
          const { client, got, tools } = yield* build(value)
          const { structuredContent } = yield* client.call("write")
          expect(yield* client.call("read", structuredContent)).not.toHaveProperty("isError")
          // JSON has no -0: a value that was read is written a second time.
          expect(JSON.stringify(encode(got()))).toBe(JSON.stringify(structuredContent))
          // The input schema allows only the numbers that JSON can represent.
          if (/NaN|Infinity/.test(JSON.stringify(structuredContent))) return
          expect(refusal(tools[0].inputSchema, structuredContent)).toBeUndefined()
        }),
      { arbitrary: { runs: 20 } }
    )
  })
}
