import { describe, expect, it } from "@effect/vitest"
import * as Json from "@skein/protocol/Json"
import { DefinitionError } from "@skein/server/DefinitionError"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Getter from "effect/SchemaGetter"
import * as kit from "./kit.ts"

/** The value that a handler with this input receives for these arguments, and the JSON Schema of the input. */
const meet = <S extends Tool.AnySchema>(input: S, args?: kit.Json) =>
  Effect.gen(function*() {
    let got: unknown
    const options = { input } as Tool.Options<S, never> & Tool.CheckedSchemas<S, never>
    const layer = Tool.layer(Tool.make("t", options), (given) => {
      got = given
      return Effect.void
    })
    const client = yield* kit.client(kit.server(layer))
    const { tools } = yield* client.result("tools/list")
    const result = yield* client.call("t", args)
    return { got, isError: result.isError === true, text: result.content[0]?.text, schema: tools[0].inputSchema }
  })

class Point extends Schema.Class<Point>("Point")({ x: Schema.Number, y: Schema.Number }) {
  get sum(): number {
    return this.x + this.y
  }
}

interface Tree {
  readonly value: number
  readonly kids: ReadonlyArray<Tree>
}
const Tree: Schema.Codec<Tree> = Schema.Struct({
  value: Schema.Int,
  kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
}).annotate({ identifier: "a/b~c %" })

describe("arguments", () => {
  it.effect("decodes transformations from JSON", () =>
    Effect.gen(function*() {
      const input = { when: Schema.Date, n: Schema.NumberFromString, big: Schema.BigInt, bytes: Schema.Uint8Array }
      const { got } = yield* meet(input, {
        when: "2026-01-01T00:00:00Z",
        n: "7",
        big: "12345678901234567890",
        bytes: "AQID"
      })
      expect(got).toEqual({
        when: new Date("2026-01-01T00:00:00Z"),
        n: 7,
        big: 12345678901234567890n,
        bytes: new Uint8Array([1, 2, 3])
      })
    }))

  it.effect("rejects an integer that JavaScript rounds, by its path, also where the schema allows any value", () =>
    Effect.gen(function*() {
      const given = Json.parse(`{"ad":{"ids":[1,1915883588174806058]}}`) as kit.Json
      for (
        const input of [
          JsonSchema.make({ type: "object" }),
          JsonSchema.make({ type: "object", properties: { ad: { type: "object" } } }),
          { ad: Schema.Struct({ ids: Schema.Array(Schema.Number) }) }
        ]
      ) {
        const { got, isError, text } = yield* meet(input as Tool.AnySchema, given)
        expect([got, isError]).toEqual([undefined, true])
        expect(text).toBe(
          "Invalid arguments for tool t: ad.ids[1] is 1915883588174806058, an integer beyond 2^53 that would be rounded: write it as a string"
        )
      }
      const exact = yield* meet(JsonSchema.make({ type: "object" }), Json.parse(`{"id":9007199254740992}`) as kit.Json)
      expect(exact.got).toEqual({ id: 9007199254740992 })
    }))

  it.effect("accepts absent optional members, and fills in defaults", () =>
    Effect.gen(function*() {
      const input = {
        key: Schema.optionalKey(Schema.String),
        value: Schema.optional(Schema.Int),
        fallback: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(9)))
      }
      const empty = yield* meet(input)
      expect(empty.got).toEqual({ fallback: 9 })
      expect(empty.schema.required).toBeUndefined()
      const { got } = yield* meet(input, { key: "k", value: 1, fallback: 2 })
      expect(got).toEqual({ key: "k", value: 1, fallback: 2 })
    }))

  it.effect("lists a default of the right type that its author annotates, before or after it is filled in", () =>
    Effect.gen(function*() {
      const filled = Schema.withDecodingDefaultKey<typeof Schema.Int>(Effect.succeed(9))
      const { got, schema } = yield* meet({
        before: Schema.Int.annotate({ default: 9 }).pipe(filled),
        after: Schema.Int.pipe(filled).annotate({ default: 9, description: "How many" }),
        silent: Schema.Int.pipe(filled),
        text: Schema.NumberFromString.pipe(Schema.withDecodingDefaultKey(Effect.succeed("9"))).annotate({ default: 9 })
      })
      expect(got).toEqual({ before: 9, after: 9, silent: 9, text: 9 })
      expect(schema.properties).toMatchObject({
        before: { default: 9 },
        after: { default: 9, description: "How many" }
      })
      expect(schema.properties.silent).not.toHaveProperty("default")
      expect(schema.properties.text).not.toHaveProperty("default")
    }))

  it.effect("creates a class, at the root and nested", () =>
    Effect.gen(function*() {
      const root = yield* meet(Point, { x: 1, y: 2 })
      expect(root.got).toBeInstanceOf(Point)
      expect((root.got as Point).sum).toBe(3)
      const inside = yield* meet({ at: Point, more: Schema.Array(Point) }, {
        at: { x: 1, y: 2 },
        more: [{ x: 3, y: 4 }]
      })
      expect((inside.got as { readonly more: ReadonlyArray<Point> }).more[0]!.sum).toBe(7)
    }))

  it.effect("decodes unions, at the root and nested", () =>
    Effect.gen(function*() {
      const Shape = Schema.Union([
        Schema.TaggedStruct("Circle", { r: Schema.Int }),
        Schema.TaggedStruct("Square", { side: Schema.Int })
      ])
      expect((yield* meet({ shape: Shape }, { shape: { _tag: "Square", side: 2 } })).got).toEqual({
        shape: { _tag: "Square", side: 2 }
      })
      const root = yield* meet(Shape, { _tag: "Circle", r: 2 })
      expect(root.got).toEqual({ _tag: "Circle", r: 2 })
      expect(root.schema).toMatchObject({ type: "object", anyOf: [{ type: "object" }, { type: "object" }] })
    }))

  it.effect("decodes a record, and an own __proto__ in it without changing a prototype", () =>
    Effect.gen(function*() {
      const args = JSON.parse("{\"__proto__\":{\"polluted\":true},\"a\":1}")
      const { got, schema } = yield* meet(Schema.Record(Schema.String, Schema.Unknown), args)
      expect(Object.keys(got as object)).toEqual(["__proto__", "a"])
      expect((got as { readonly polluted?: unknown }).polluted).toBeUndefined()
      expect(({} as { readonly polluted?: unknown }).polluted).toBeUndefined()
      expect(schema.type).toBe("object")
      const struct = yield* meet({ a: Schema.Int }, args)
      expect(struct.got).toEqual({ a: 1 })
      expect(Object.hasOwn(struct.got as object, "__proto__")).toBe(false)
      expect((struct.got as { readonly polluted?: unknown }).polluted).toBeUndefined()
    }))

  it.effect("leaves out members that the schema does not have", () =>
    Effect.gen(function*() {
      expect((yield* meet({ a: Schema.Int }, { a: 1, constructor: 2, b: 3 })).got).toEqual({ a: 1 })
    }))

  it.effect("accepts any arguments for a tool without input, and passes none on", () =>
    Effect.gen(function*() {
      let got: unknown
      const layer = Tool.layer(Tool.make("t"), (given) => Effect.sync(() => void (got = given)))
      const client = yield* kit.client(kit.server(layer))
      yield* client.call("t")
      expect(got).toEqual({})
      yield* client.call("t", { a: 1 })
      expect(got).toEqual({})
    }))

  it.effect("names every fault with its path", () =>
    Effect.gen(function*() {
      const { got, isError, text } = yield* meet({ a: Schema.Struct({ b: Schema.Array(Schema.Int) }), c: Schema.Int }, {
        a: { b: [1, "x"] }
      })
      expect(got).toBeUndefined()
      expect(isError).toBe(true)
      expect(text).toContain("at [\"a\"][\"b\"][1]")
      expect(text).toContain("at [\"c\"]")
    }))
})

describe("the JSON Schema of arguments", () => {
  const schemaOf = (input: Tool.AnySchema) => Effect.map(meet(input), ({ schema }) => schema)

  it.effect("every revision · inputSchema has type object, and no $ref at its root", () =>
    Effect.gen(function*() {
      for (const input of [Point, Tree, Schema.Struct({}), Schema.Struct({}).annotate({ description: "none" }), {}]) {
        const schema = yield* schemaOf(input as Tool.AnySchema)
        expect(schema.type).toBe("object")
        expect(schema.$ref).toBeUndefined()
        expect(schema.not).toBeUndefined()
      }
    }))

  it.effect("a recursive schema refers to its definition, for any name", () =>
    Effect.gen(function*() {
      const schema = yield* schemaOf(Tree)
      expect(schema.properties.kids.items).toEqual({ $ref: "#/$defs/a~1b~0c%20%25" })
      expect(schema.$defs["a/b~c %"].properties.value.type).toBe("integer")
      const { got } = yield* meet(Tree, { value: 1, kids: [{ value: 2, kids: [] }] })
      expect(got).toEqual({ value: 1, kids: [{ value: 2, kids: [] }] })
    }))

  it.effect("dates and URLs have their format if they are transferred as text, and only then", () =>
    Effect.gen(function*() {
      const schema = yield* schemaOf(
        Schema.Struct({
          date: Schema.Date,
          utc: Schema.optionalKey(Schema.DateTimeUtc),
          text: Schema.DateFromString,
          dates: Schema.Array(Schema.Date),
          url: Schema.URL,
          millis: Schema.DateFromMillis,
          own: Schema.String.annotate({ format: "email" })
        })
      )
      const format = (node: kit.Json): string | undefined => node.format
      expect(Object.entries(schema.properties).map(([name, node]) => [name, format(node)])).toEqual([
        ["date", "date-time"],
        ["utc", "date-time"],
        ["text", "date-time"],
        ["dates", undefined],
        ["url", "uri"],
        ["millis", undefined],
        ["own", "email"]
      ])
      expect(schema.properties.dates.items).toEqual({ type: "string", format: "date-time" })
    }))

  it.effect("contains only referenced definitions: a class at the root is written once", () =>
    Effect.gen(function*() {
      class Leaf extends Schema.Class<Leaf>("InputLeaf")({ kind: Schema.String }) {}
      class Branch extends Schema.Class<Branch>("InputBranch")({ left: Leaf, right: Leaf }) {}
      expect(Object.keys(yield* schemaOf(Point))).not.toContain("$defs")
      expect(Object.keys((yield* schemaOf(Branch)).$defs)).toEqual(["InputLeafEncoded"])
    }))

  it.effect("describes numbers without the names of those that JSON does not have", () =>
    Effect.gen(function*() {
      const schema = yield* schemaOf({
        plain: Schema.Number,
        described: Schema.Number.annotate({ description: "how many" }),
        nullable: Schema.NullOr(Schema.Number),
        either: Schema.Union([Schema.Number, Schema.String]),
        list: Schema.Array(Schema.Number),
        deep: Schema.Struct({ n: Schema.Number })
      })
      expect(schema.properties).toMatchObject({
        plain: { type: "number" },
        described: { type: "number", description: "how many" },
        nullable: { anyOf: [{ type: "number" }, { type: "null" }] },
        either: { anyOf: [{ type: "number" }, { type: "string" }] },
        list: { type: "array", items: { type: "number" } },
        deep: { properties: { n: { type: "number" } } }
      })
      expect(JSON.stringify(schema)).not.toContain("Infinity")
    }))

  it.effect("contains the descriptions of transformed members, at any place", () =>
    Effect.gen(function*() {
      class Visit extends Schema.Class<Visit>("Visit")({ on: Schema.Date.annotate({ description: "The day" }) }) {}
      const schema = yield* schemaOf({
        n: Schema.NumberFromString.annotate({ description: "As text", title: "N" }),
        date: Schema.optionalKey(Schema.Date.annotate({ description: "optional" })),
        key: Schema.Date.annotateKey({ description: "of the key" }),
        checked: Schema.Number.annotate({ description: "before the check" }).check(Schema.isGreaterThan(0)),
        dates: Schema.Array(Schema.Date.annotate({ description: "one of them" })).annotate({
          description: "all of them"
        }),
        maybe: Schema.NullOr(Schema.Date.annotate({ description: "or null" })),
        visit: Visit.annotate({ description: "The visit" }),
        again: Visit,
        inner: Schema.Struct({ at: Schema.Date.annotate({ description: "inside" }) })
      })
      expect(schema.properties).toMatchObject({
        n: { type: "string", description: "As text", title: "N" },
        date: { type: "string", description: "optional" },
        key: { type: "string", allOf: [{ description: "of the key" }] },
        checked: { type: "number", description: "before the check" },
        dates: { items: { description: "one of them" }, description: "all of them" },
        maybe: { anyOf: [{ type: "string", description: "or null" }, { type: "null" }] },
        visit: { $ref: "#/$defs/VisitEncoded", description: "The visit" },
        again: { $ref: "#/$defs/VisitEncoded" },
        inner: { properties: { at: { description: "inside" } } }
      })
      expect(schema.$defs.VisitEncoded.properties.on).toEqual({
        type: "string",
        format: "date-time",
        description: "The day"
      })
    }))

  it.effect("contains descriptions, titles, bounds and literals", () =>
    Effect.gen(function*() {
      const schema = yield* schemaOf(
        Schema.Struct({
          city: Schema.String.annotate({ description: "Where", title: "City" }),
          days: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 7 })),
          unit: Schema.Literals(["C", "F"])
        }).annotate({ description: "A forecast" })
      )
      expect(schema.description).toBe("A forecast")
      expect(schema.properties.city).toMatchObject({ type: "string", description: "Where", title: "City" })
      expect(JSON.stringify(schema.properties.days)).toMatch(/"minimum":1\b.*"maximum":7\b/)
      expect(schema.properties.unit.enum).toEqual(["C", "F"])
      expect(schema.required).toEqual(["city", "days", "unit"])
    }))
})

describe("a schema that cannot be listed", () => {
  const refusal = (tool: Tool.Tool<string, never, never>) =>
    kit.failure(kit.server(Tool.layer(tool, () => Effect.succeed(undefined as never))))

  for (
    const [what, input] of [
      ["text", Schema.String],
      ["a list", Schema.Array(Schema.String)],
      ["a union with text", Schema.Union([Schema.Struct({ a: Schema.Int }), Schema.String])],
      ["a number", Schema.Number]
    ] as ReadonlyArray<readonly [string, Tool.Codec]>
  ) {
    it.effect(`every revision · a schema whose root is not an object fails the layer: ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* refusal(Tool.make("odd", { input }) as never)
        expect(error).toBeInstanceOf(DefinitionError)
        expect(error).toMatchObject({ reason: { _tag: "InvalidSchema" }, kind: "tool", definition: "odd" })
        expect((error as DefinitionError).message).toContain("The tool \"odd\" has an invalid")
      }))
  }

  for (const member of ["input", "output"] as const) {
    it.effect(`a schema without a JSON Schema fails the layer, and names the tool: ${member}`, () =>
      Effect.gen(function*() {
        const symbolic = Schema.Struct({ [Symbol.for("a")]: Schema.String } as never) as unknown as Tool.Codec
        const Endless: Tool.Codec = Schema.Union([Point, Schema.suspend((): Tool.Codec => Endless)])
          .annotate({ identifier: `Endless ${member}` })
        for (const schema of [symbolic, Endless]) {
          const error = yield* refusal(Tool.make("odd", { [member]: schema }) as never)
          expect(error).toMatchObject({
            _tag: "DefinitionError",
            reason: { _tag: "InvalidSchema" },
            kind: "tool",
            definition: "odd"
          })
          expect((error as DefinitionError).message).toContain(
            `The tool "odd" has an invalid ${member} schema: `
          )
        }
      }))
  }

  const isId = (value: unknown): value is string => typeof value === "string" && value.startsWith("tea_")

  for (const member of ["input", "output"] as const) {
    for (
      const [what, shape, where] of [
        ["an instance of a class", { pot: Schema.instanceOf(AbortController) }, " at pot"],
        ["a function", { f: Schema.declare((value): value is () => void => typeof value === "function") }, " at f"],
        ["an id without a codec", { ids: Schema.Array(Schema.Struct({ id: Schema.declare(isId) })) }, " at ids.[].id"],
        ["within an option", { maybe: Schema.Option(Schema.instanceOf(AbortController)) }, " at maybe"],
        ["within a record", { pots: Schema.Record(Schema.String, Schema.instanceOf(AbortController)) }, " at pots.*"],
        [
          "within a union",
          { a: Schema.Union([Schema.Int, Schema.suspend(() => Schema.instanceOf(AbortController))]) },
          " at a"
        ]
      ] as ReadonlyArray<readonly [string, Tool.AnySchema, string]>
    ) {
      it.effect(`a declaration without a JSON representation fails the layer: ${member}, ${what}`, () =>
        Effect.gen(function*() {
          const error = yield* refusal(Tool.make("odd", { [member]: shape }) as never)
          expect((error as DefinitionError).message).toBe(
            `The tool "odd" has an invalid ${member} schema: no JSON representation is known for this declaration${where}; ` +
              "add a toCodecJson annotation"
          )
        }))
    }
  }

  it.effect("accepts declarations with a JSON representation: classes, options, JSON values, and an annotated id", () =>
    Effect.gen(function*() {
      class Order extends Schema.Class<Order>("Order")({
        tea: Schema.String,
        next: Schema.optional(Schema.suspend((): Schema.Codec<Order, unknown> => Order as never))
      }) {}
      const input = {
        order: Order,
        type: Schema.toType(Order),
        maybe: Schema.Option(Schema.URL),
        json: Schema.Json,
        id: Schema.declare(isId, { toCodecJson: () => undefined })
      }
      const client = yield* kit.client(kit.server(Tool.layer(
        Tool.make("fine", { input: input as never }),
        ({ id }: { readonly id: string }) => Effect.succeed(id)
      )))
      const args = {
        order: { tea: "oolong" },
        type: { tea: "sencha" },
        maybe: { _tag: "None" },
        json: [1],
        id: "tea_1"
      }
      expect(yield* client.call("fine", args)).toMatchObject({ content: [{ text: "tea_1" }] })
      expect(yield* client.call("fine", { ...args, id: "pot_1" })).toMatchObject({ isError: true })
    }))
})

it.effect("compiles no schema per request or per listing", () =>
  Effect.gen(function*() {
    let compiled = 0
    // The JSON representation of a declaration is requested whenever a codec or a JSON Schema is built from it.
    const Counted = Schema.declare((value: unknown): value is URL => value instanceof URL, {
      toCodecJson: () => {
        compiled++
        return Schema.link<URL>()(Schema.String, {
          decode: Getter.transform((text) => new URL(text)),
          encode: Getter.transform((url) => url.href)
        })
      }
    })
    const tool = Tool.make("t", { input: { a: Counted }, output: { b: Counted } })
    const client = yield* kit.client(kit.server(Tool.layer(tool, ({ a }) => Effect.succeed({ b: a }))))
    const atStart = compiled
    expect(atStart).toBeGreaterThan(0)
    for (let i = 0; i < 5; i++) {
      const { structuredContent } = yield* client.call("t", { a: "https://example.com/" })
      expect(structuredContent).toEqual({ b: "https://example.com/" })
      yield* client.result("tools/list")
    }
    const other = yield* client.call("t", { a: 1 })
    expect(other.isError).toBe(true)
    expect(compiled).toBe(atStart)
  }))
