/** The keywords that `JsonSchema.make` supports and refuses, alone and as the schema of a tool. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as kit from "./kit.ts"

type Schema = Parameters<typeof JsonSchema.make>[0]

/** The texts of a value's faults. */
const faults = (schema: Schema, value: unknown): ReadonlyArray<string> => {
  const result = JsonSchema.make<unknown>(schema)["~standard"].validate(value)
  if (result instanceof Promise) throw new Error("It validates at once")
  return (result.issues ?? []).map(({ message, path = [] }) => `${path.map(String).join(".")}: ${message}`)
}

/** The reason why a schema cannot be used. */
const refusal = (schema: Schema, options?: JsonSchema.Options): string => {
  try {
    JsonSchema.make(schema, options)["~standard"].jsonSchema.input({ target: "draft-2020-12" })
  } catch (error) {
    return (error as Error).message
  }
  return "none"
}

const old = "http://json-schema.org/draft-07/schema#"

describe("keywords", () => {
  for (
    const [schema, right, wrong] of [
      [true, [1, null, "x"], []],
      [false, [], [1, null, {}]],
      [{ type: "integer" }, [1, 1.0, -3, 1e300], [1.5, "1", null, true]],
      [{ type: ["string", "null"] }, ["x", null], [1, [], {}]],
      [{ const: { a: [1] } }, [{ a: [1] }], [{ a: [1, 1] }, { a: [1], b: 1 }, null]],
      [{ enum: ["a", 1, null, [2]] }, ["a", 1, null, [2]], ["b", "1", [], [3], {}]],
      [{ minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, "x"], [0, 3]],
      [{ exclusiveMinimum: 1, maximum: 3 }, [1.1, 3], [1, 3.1]],
      [{ multipleOf: 0.1 }, [0.3, 1.1, 0, "x"], [0.35]],
      [{ multipleOf: 3 }, [9, -3], [10, 1.5]],
      // "The length of a string instance is defined as the number of its characters", not of UTF-16 units.
      [{ minLength: 2, maxLength: 3 }, ["ab", "😀😀😀", 7], ["a", "😀", "abcd"]],
      [{ pattern: "^a+$" }, ["aa", 1], ["ab", ""]],
      [{ pattern: "b" }, ["abc"], ["ac"]],
      [{ items: { type: "integer" } }, [[], [1, 2], "x"], [[1, "x"]]],
      [{ prefixItems: [{ type: "integer" }, { type: "string" }], items: false }, [[], [1], [1, "a"]], [["a"], [
        1,
        "a",
        2
      ]]],
      [{ minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3]]],
      [{ uniqueItems: true }, [[1, "1", [1], { a: 1, b: 2 }, true, null]], [[1, 1], [{ a: 1, b: 2 }, { b: 2, a: 1 }], [[
        1
      ], [1]]]],
      [{ contains: { type: "integer" } }, [["x", 1]], [[], ["x"]]],
      [{ contains: { type: "integer" }, minContains: 2, maxContains: 3 }, [[1, 2], [1, 2, 3]], [[1], [1, 2, 3, 4]]],
      [{ contains: { type: "integer" }, minContains: 0 }, [[], ["x"]], []],
      [{ properties: { a: { type: "integer" } }, required: ["b"] }, [{ a: 1, b: 2 }, { b: 1 }, 3], [{ a: 1 }, {
        a: "x",
        b: 1
      }]],
      [{ patternProperties: { "^x-": { type: "string" } } }, [{ "x-a": "b", y: 1 }], [{ "x-a": 1 }]],
      [
        { properties: { a: true }, patternProperties: { "^b": true }, additionalProperties: false },
        [{ a: 1, b1: 1 }, {}],
        [{ c: 1 }]
      ],
      [{ propertyNames: { maxLength: 2 } }, [{ ab: 1 }], [{ abc: 1 }]],
      [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }], [{}, { a: 1, b: 1, c: 1 }]],
      [{ dependentRequired: { a: ["b"] } }, [{ a: 1, b: 1 }, { c: 1 }], [{ a: 1 }]],
      [{ dependentSchemas: { a: { required: ["b"] } } }, [{ a: 1, b: 1 }, {}], [{ a: 1 }]],
      [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
      [{ anyOf: [{ type: "string" }, { minimum: 3 }] }, ["x", 3], [2]],
      [{ oneOf: [{ minimum: 1 }, { maximum: 3 }] }, [0, 4], [2]],
      [{ not: { type: "string" } }, [1], ["x"]],
      [
        JSON.parse("{\"if\":{\"minimum\":5},\"then\":{\"multipleOf\":5},\"else\":{\"maximum\":3}}"),
        [10, 2],
        [7, 4]
      ],
      [{ $ref: "#/$defs/a", $defs: { a: { type: "integer" } } }, [1], ["x"]],
      // Beside a reference the other keywords apply.
      [{ $ref: "#/$defs/a", minimum: 2, $defs: { a: { type: "integer" } } }, [2], [1]],
      [{ $ref: "#here", $defs: { a: { $anchor: "here", type: "integer" } } }, [1], ["x"]],
      [{ $ref: "#/$defs/a~1b%20c", $defs: { "a/b c": { type: "integer" } } }, [1], ["x"]],
      [{ properties: { next: { $ref: "#" } }, additionalProperties: false }, [{ next: { next: {} } }], [{
        next: { x: 1 }
      }]],
      [{ $dynamicRef: "#node", $defs: { a: { $dynamicAnchor: "node", type: "integer" } } }, [1], ["x"]],
      [{ allOf: [{ properties: { a: true } }], unevaluatedProperties: false }, [{ a: 1 }], [{ a: 1, b: 1 }]],
      [
        {
          anyOf: [{ properties: { a: { const: 1 } }, required: ["a"] }, { properties: { b: true } }],
          unevaluatedProperties: false
        },
        [{ a: 1, b: 1 }, { b: 1 }],
        [{ a: 2 }]
      ],
      [{ prefixItems: [true], unevaluatedItems: { type: "string" } }, [[1, "x"]], [[1, 2]]],
      [{ contains: { type: "integer" }, unevaluatedItems: false }, [[1, 2]], [[1, "x"]]],
      // "format" is an annotation and does not validate, and neither do unknown keywords.
      [{ format: "email", contentEncoding: "base64", "x-mine": { type: 3 } }, ["no", 1], []],
      [
        JSON.parse(
          "{\"properties\":{\"__proto__\":{\"type\":\"integer\"}},\"required\":[\"__proto__\",\"constructor\"]}"
        ),
        [
          JSON.parse("{\"__proto__\":1,\"constructor\":1}")
        ],
        [{}, JSON.parse("{\"__proto__\":\"x\",\"constructor\":1}")]
      ],
      [{ $schema: old, items: [{ type: "integer" }], additionalItems: { type: "string" } }, [[1, "x"]], [["x"], [
        1,
        1
      ]]],
      [{ $schema: old, dependencies: { a: ["b"], c: { required: ["d"] } } }, [{ a: 1, b: 1 }, { c: 1, d: 1 }], [{
        a: 1
      }, { c: 1 }]],
      // In draft-07 "all other properties in a `$ref` object MUST be ignored".
      [{
        $schema: old,
        properties: { a: { $ref: "#/definitions/i", minimum: 9 } },
        definitions: { i: { type: "integer" } }
      }, [{
        a: 1
      }], [{ a: "x" }]],
      [{ $schema: old, dependentRequired: { a: ["b"] }, unevaluatedProperties: false }, [{ a: 1 }], []]
    ] as ReadonlyArray<readonly [Schema, ReadonlyArray<unknown>, ReadonlyArray<unknown>]>
  ) {
    it(JSON.stringify(schema).slice(0, 100), () => {
      for (const value of right) expect([value, faults(schema, value)]).toEqual([value, []])
      for (const value of wrong) expect([value, faults(schema, value).length > 0]).toEqual([value, true])
    })
  }

  it("reports each of the first ten faults, with its path", () => {
    const schema = { properties: { n: { type: "integer" }, list: { items: { maxLength: 1 } } }, required: ["q"] }
    expect(faults(schema, { n: "x", list: ["a", "bb"] })).toEqual([
      "q: Missing key",
      "n: Expected integer, got string",
      "list.1: Expected at most 1 characters"
    ])
    expect(faults({ items: false }, Array.from({ length: 50 }))).toHaveLength(10)
    expect(faults({ anyOf: [{ type: "string" }, { type: "null" }] }, 1)).toEqual([
      ": Expected a value that matches at least one schema in `anyOf`"
    ])
    expect(faults({ oneOf: [true, {}] }, 1)).toEqual([": Expected a value that matches only one schema in `oneOf`"])
  })
})

describe("schemas that cannot be used", () => {
  for (
    const [schema, problem] of [
      // "Implementations MUST NOT automatically dereference `$ref` values that resolve to a network URI."
      [{ $ref: "https://example.com/schema.json" }, "A reference must lead to a place in the same schema"],
      [{ properties: { a: { $ref: "other.json#/a" } } }, "at #/properties/a/$ref"],
      [{ $ref: "#/$defs/none" }, "The target of the reference \"#/$defs/none\" does not exist at #/$ref"],
      [{ $ref: "#none" }, "does not exist"],
      [{ $ref: "#/%" }, "is malformed"],
      [{ $ref: 1 }, "A reference must be a string"],
      [{ $ref: "#" }, "A cycle of references applies a schema to the same value"],
      [
        { anyOf: [{ type: "null" }, { $ref: "#/$defs/a" }], $defs: { a: { allOf: [{ $ref: "#/$defs/a" }] } } },
        "A cycle of references"
      ],
      [{ properties: { a: { $id: "https://example.com/a" } } }, "$id is supported only at the root at #/properties/a"],
      [{ $defs: { a: { $anchor: "x" }, b: { $anchor: "x" } } }, "The anchor \"x\" occurs twice"],
      // "Clients and servers MUST handle unsupported dialects gracefully by returning an appropriate error."
      [{ $schema: "https://json-schema.org/draft/2019-09/schema" }, "use 2020-12 (the default) or draft-07"],
      [{ $schema: "https://example.com/mine" }, "is not supported"],
      [{ pattern: "(" }, "The pattern \"(\" cannot be used"],
      [{ pattern: "^(?=.*a)" }, "look-around is not supported"],
      [{ pattern: "(a)\\1" }, "back references are not supported"],
      [{ patternProperties: { "(?<!a)b": true } }, "look-around is not supported"],
      [{ pattern: "(a{100}){100}" }, "it has more than 2000 instructions"],
      // "Schemas MUST be valid according to their declared or default dialect."
      [{ type: "text" }, "type must be the name of a type"],
      [{ type: [] }, "type must be the name of a type"],
      [{ properties: { a: { minimum: "1" } } }, "minimum must be a number at #/properties/a"],
      [{ minLength: -1 }, "minLength must be an integer of at least 0"],
      [{ multipleOf: 0 }, "multipleOf must be above 0"],
      [{ required: "a" }, "required must be a list of strings"],
      [{ enum: "a" }, "enum must be a list"],
      [{ uniqueItems: 1 }, "uniqueItems must be a boolean"],
      [{ properties: [] }, "properties must be an object of schemas"],
      [{ properties: { a: 1 } }, "A schema must be an object or a boolean at #/properties/a"],
      [{ $defs: { unused: { anyOf: [] } } }, "anyOf must be a list of schemas that is not empty at #/$defs/unused"],
      [{ items: [{}] }, "A schema must be an object or a boolean at #/items"],
      [{ not: null }, "A schema must be an object or a boolean at #/not"],
      [1, "A schema must be an object or a boolean"],
      [undefined, "The schema cannot be written as JSON"]
    ] as ReadonlyArray<readonly [Schema, string]>
  ) {
    it(`${JSON.stringify(schema)}: ${problem}`, () => expect(refusal(schema)).toContain(problem))
  }

  it("nativePatterns: patterns without a linear-time match are refused unless the option allows them", () => {
    const schema = { pattern: "^(?=.*\\d)(\\w)\\1" }
    expect(refusal(schema)).toContain("look-around is not supported")
    expect(refusal(schema, { nativePatterns: true })).toBe("none")
    const { validate } = JsonSchema.make<unknown>(schema, { nativePatterns: true })["~standard"]
    expect(validate("aa1")).toEqual({ value: "aa1" })
    for (const text of ["ab1", "aa"]) expect(validate(text)).toHaveProperty("issues")
    expect(refusal({ pattern: "(" }, { nativePatterns: true })).toContain("cannot be used")
  })

  it("refuses a schema that contains itself as a value", () => {
    const schema: Record<string, unknown> = { type: "object" }
    schema["properties"] = { a: schema }
    expect(refusal(schema as Schema)).toBe("The schema cannot be written as JSON")
  })
})

describe("as the schema of a tool", () => {
  const given = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $comment: "kept",
    type: "object",
    properties: { n: { type: "integer", default: 3, "x-mine": [1, { deep: true }] }, any: true },
    required: ["n"],
    examples: [{ n: 1 }],
    additionalProperties: false
  } as const

  it.effect("2026-07-28 · is listed exactly as given, even if the given value changes later", () =>
    Effect.gen(function*() {
      const mutable = structuredClone(given) as unknown as { $comment: string } & typeof given
      const tool = Tool.make("raw", { input: JsonSchema.make(mutable), output: JsonSchema.make(mutable) })
      const client = yield* kit.client(kit.server(Tool.layer(tool, (args) => Effect.succeed(args))))
      ;(mutable as { $comment: string }).$comment = "changed"
      const { tools: [listed] } = yield* client.result("tools/list")
      expect(listed.inputSchema).toEqual(given)
      expect(Object.keys(listed.inputSchema)).toEqual(Object.keys(given))
      expect(listed.outputSchema).toEqual(given)
      expect((yield* client.call("raw", { n: 1 })).structuredContent).toEqual({ n: 1 })
    }))

  for (const revision of Revision.all) {
    it.effect(`${revision} · validates arguments, and reports their faults`, () =>
      Effect.gen(function*() {
        const tool = Tool.make("raw", { input: JsonSchema.make(given) })
        const layer = Tool.layer(tool, ({ n }) => Effect.succeed(String(n)))
        const client = yield* kit.client(kit.server(layer), revision)
        expect((yield* client.call("raw", { n: 1 })).content[0].text).toBe("1")
        const message = yield* client.request("tools/call", { name: "raw", arguments: { n: "x", m: 1 } })
        const text = message.error?.message ?? message.result.content[0].text
        expect(text).toBe(
          "Invalid arguments for tool raw: Expected integer, got string\n  at [\"n\"]\nUnexpected value\n  at [\"m\"]"
        )
      }))
  }

  it.effect("2025-11-25 · a result that its output schema does not allow is a defect and is not sent", () =>
    kit.logged((lines) =>
      Effect.gen(function*() {
        const tool = Tool.make("raw", { output: JsonSchema.make<{ readonly n: unknown }>(given) })
        const client = yield* kit.client(
          kit.server(Tool.layer(tool, () => Effect.succeed({ n: "secret" }))),
          "2025-11-25"
        )
        yield* client.defect("raw")
        expect(lines).toEqual([
          expect.stringMatching(
            / Error: The result of the tool raw does not match its output schema: Expected integer, got string at \["n"\]$/
          )
        ])
      })
    ))

  it.effect("an unusable schema fails the layer, and names the tool and the path", () =>
    Effect.gen(function*() {
      for (const member of ["input", "output"] as const) {
        const schema = JsonSchema.make({ type: "object", properties: { a: { $ref: "https://example.com/a" } } })
        const bad = Tool.layer(Tool.make("bad", { [member]: schema }), () => Effect.succeed({}) as never)
        const error = yield* kit.failure(kit.server(Tool.layer(Tool.make("good"), () => Effect.void), bad))
        expect(error).toMatchObject({
          _tag: "DefinitionError",
          reason: { _tag: "InvalidSchema" },
          kind: "tool",
          definition: "bad"
        })
        expect((error as DefinitionError).message).toBe(
          `The tool "bad" has an invalid ${member} schema: A reference must lead to a place in the same schema ` +
            "(\"#…\") at #/properties/a/$ref"
        )
      }
    }))

  it.effect("every revision · a schema whose root is not an object fails the layer", () =>
    Effect.gen(function*() {
      for (const schema of [{}, { type: "array" }, true, { anyOf: [{ type: "object" }] }]) {
        const tool = Tool.make("bad", { input: JsonSchema.make(schema) })
        const error = yield* kit.failure(kit.server(Tool.layer(tool, () => Effect.void)))
        expect((error as DefinitionError).message).toContain("must have \"type\": \"object\" at its root")
      }
    }))
})

describe("a value that looks like an effect", () => {
  it.effect("is returned like any other, with an output schema of each kind", () =>
    Effect.gen(function*() {
      const value = { a: { "~effect/Effect": {}, "~effect/Result": {} }, "~effect/Effect": {} }
      const record = Schema.Record(Schema.String, Schema.Json)
      const encoded = Tool.make("encoded", { input: record, output: record })
      const verbatim = Tool.make("verbatim", {
        input: JsonSchema.make({ type: "object" }),
        output: JsonSchema.make({ type: "object" })
      })
      const client = yield* kit.client(kit.server(
        Tool.layer(encoded, (given) => Effect.sync(() => given)),
        Tool.layer(verbatim, (given) => Effect.sync(() => given))
      ))
      for (const name of ["encoded", "verbatim"]) {
        const result = yield* client.call(name, value)
        expect([name, result.structuredContent]).toEqual([name, value])
      }
    }))
})

describe("a large value", () => {
  it.effect("does not delay other calls while it is validated, and is validated", () =>
    Effect.gen(function*() {
      const input = JsonSchema.make({
        type: "object",
        properties: { list: { items: { allOf: Array.from({ length: 5 }, () => ({ type: "integer" })) } } }
      })
      const output = JsonSchema.make({ type: "object", properties: { list: { items: { minimum: 1 } } } })
      const client = yield* kit.client(kit.server(Tool.layer(
        Tool.make("large", { input, output }),
        ({ list }) => Effect.succeed({ list })
      )))
      const ended: Array<string> = []
      const call = (name: string, list: ReadonlyArray<unknown>) =>
        Effect.tap(client.call("large", { list }), () => Effect.sync(() => ended.push(name)))
      const list = Array.from({ length: 300_000 }, () => 1)
      const [large, small, wrong] = yield* Effect.all([
        call("large", list),
        call("small", [1]),
        call("wrong", [...list, "x"])
      ], { concurrency: "unbounded" })
      expect(ended[0]).toBe("small")
      expect(large.structuredContent.list).toHaveLength(300_000)
      expect(small.isError).toBeUndefined()
      expect(wrong.content[0].text).toContain("Expected integer, got string\n  at [\"list\"][300000]")
    }))
})
