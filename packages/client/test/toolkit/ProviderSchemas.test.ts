/** The forms of the schemas that a model receives: what they change, and what they say about it. */
import { describe, expect, it } from "@effect/vitest"
import type { Tool } from "@skein/protocol/Tool"
import { counted, hostileSchemas, sizeOf } from "../../../protocol/test/reads.ts"
import type { Form } from "../../src/internal/toolkit/providerRules.ts"
import { fitSchema } from "../../src/internal/toolkit/providerSchemas.ts"

type InputSchema = Tool["inputSchema"]

const object = (properties: object, more: object = {}): InputSchema => ({ type: "object", properties, ...more })
const fit = (schema: object, form: Form) => fitSchema(schema as InputSchema, form)
const forms = ["all", "anthropic", "bedrock", "gemini", "openai"] as const

/** The fitted schema of one property. */
const property = (schema: unknown, form: Form = "gemini", more: object = {}) =>
  (fit(object({ a: schema }, more), form).schema["properties"] as Record<string, unknown>)["a"]
const notes = (schema: object, form: Form) =>
  fit(schema, form).changes.flatMap(({ at, weakened }) => weakened === undefined ? [] : [`${at}: ${weakened}`])

const gemini = new Set(
  ("type format description nullable enum items minItems maxItems properties required minProperties maxProperties " +
    "minLength maxLength pattern minimum maximum anyOf").split(" ")
)

/** The parts of a schema that Gemini refuses: the rules of its reference, without those of the code. */
const refusedByGemini = (schema: any, at = "$"): ReadonlyArray<string> => {
  const found = Object.keys(schema).filter((key) => !gemini.has(key)).map((key) => `${at} ${key}`)
  if (typeof schema.type !== "string" && !Array.isArray(schema.anyOf)) found.push(`${at} no type`)
  if (schema.enum?.some((each: unknown) => typeof each !== "string" || each === "")) found.push(`${at} enum`)
  if (schema.type === "array" && schema.items === undefined) found.push(`${at} no items`)
  for (const name of schema.required ?? []) {
    if (!Object.hasOwn(schema.properties ?? {}, name)) found.push(`${at} ${name}`)
  }
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if (!/^[a-zA-Z_]\w{0,63}$/.test(name)) found.push(`${at} the name ${name}`)
    found.push(...refusedByGemini(each, `${at}.${name}`))
  }
  if (schema.items !== undefined) found.push(...refusedByGemini(schema.items, `${at}[]`))
  for (const each of schema.anyOf ?? []) found.push(...refusedByGemini(each, `${at}|`))
  return found
}

const rich = object({
  id: { type: "integer", exclusiveMinimum: 0, format: "int64" },
  ratio: { type: "number", exclusiveMaximum: 1, multipleOf: 0.1 },
  kind: { const: "tea" },
  level: { enum: [1, 2, 3] },
  note: { type: ["string", "null"], format: "uri", default: "none", title: "Note" },
  either: { oneOf: [{ type: "string" }, { type: "array", items: { type: "integer" } }] },
  any: {},
  map: { type: "object", additionalProperties: { type: "number" } },
  pair: { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false },
  tree: { $ref: "#/$defs/node" },
  both: { allOf: [object({ x: { type: "string" } }, { required: ["x"] }), object({ y: { type: "boolean" } })] },
  when: { not: { const: 1 } },
  "filter[name]": { type: "string" },
  $select: { type: "array" }
}, {
  required: ["id", "filter[name]", "absent"],
  additionalProperties: false,
  $schema: "http://json-schema.org/draft-07/schema#",
  $defs: { node: object({ value: { type: "string" }, next: { $ref: "#/$defs/node" } }) }
})

describe("the form of a schema", () => {
  it("none is the schema of the server, and the others do not change what all providers accept", () => {
    expect(fit(rich, "none").schema).toBe(rich)
    const plain = object({
      city: { type: "string", description: "A city", minLength: 1, enum: ["Kyoto", "Uji"] },
      cups: { type: "array", items: { type: "integer", minimum: 1 }, maxItems: 4 }
    }, { required: ["city"] })
    for (const form of forms) {
      const { changes, describe, schema } = fit(plain, form)
      expect(schema).toEqual(plain)
      expect(changes).toEqual([])
      expect(describe("Brews")).toBe("Brews")
    }
  })

  it("all and gemini have only what Gemini accepts", () => {
    const unions = { anyOf: [rich, { $ref: "#/$defs/node" }, { type: "null" }], $defs: rich["$defs"] }
    for (const schema of [rich, unions, { type: "object" }, ...hostileSchemas.map(([, schema]) => schema)]) {
      for (const form of ["all", "gemini"] as const) expect(refusedByGemini(fit(schema, form).schema)).toEqual([])
    }
  })

  it.each(forms)("%s: has a root of the type object without unions", (form) => {
    const branches = [
      object({ title: {} }, { required: ["id", "title"] }),
      object({ body: {} }, { required: ["id", "body"] })
    ]
    for (
      const root of [
        { type: "object", properties: { id: { type: "string" } }, anyOf: branches },
        { oneOf: branches },
        { allOf: [{ type: "object", properties: { id: { type: "string" } } }, { anyOf: branches }] },
        { $ref: "#/$defs/Input", $defs: { Input: { oneOf: branches } } }
      ]
    ) {
      const { changes, describe, schema } = fit(root, form)
      expect(schema.type).toBe("object")
      for (const key of ["anyOf", "oneOf", "allOf", "$ref"]) expect(schema).not.toHaveProperty(key)
      expect(Object.keys(schema["properties"] as object)).toEqual(
        expect.arrayContaining(["title", "body", "id"].slice(0, 2))
      )
      expect(schema["required"]).toEqual(["id"])
      expect(changes.length).toBeGreaterThan(0)
      expect(describe("Edits.")).toMatch(
        /^Edits\.\n\nThe schema of the arguments is simplified\..*one of these sets of properties: \(id, title\) or \(id, body\)/s
      )
    }
  })

  it("anthropic keeps what is below the root, definitions and recursion included", () => {
    const { changes, schema } = fit(rich, "anthropic")
    expect(schema["$defs"]).toEqual(rich["$defs"])
    expect(schema["additionalProperties"]).toBe(false)
    const { "filter[name]": filter, "$select": select, ...others } = rich["properties"] as Record<string, unknown>
    expect(schema["properties"]).toMatchObject(others)
    expect(changes.map(({ refused }) => refused)).toEqual([
      "the property name \"filter[name]\"",
      "the property name \"$select\""
    ])
    expect([filter, select]).toEqual(Object.values(schema["properties"] as object).slice(-2))
  })

  it("anthropic reads the forms of older drafts", () => {
    const old = { type: "array", items: [{ type: "string" }, { type: "number", minimum: 1, exclusiveMinimum: true }] }
    expect(property(old, "anthropic")).toEqual({
      type: "array",
      prefixItems: [{ type: "string" }, { type: "number", minimum: 1, exclusiveMinimum: 1 }]
    })
    expect(property({ type: "string", required: true }, "anthropic")).toEqual({ type: "string" })
  })

  it("openai has no enum, const and not at the root, items in lists, and the formats that it knows", () => {
    const root = object({
      a: { type: "array" },
      b: { type: "string", format: "uri" },
      c: { type: "string", format: "uuid" }
    }, {
      not: { required: ["a", "b"] }
    })
    const { schema } = fit(root, "openai")
    expect(schema).toEqual(
      object({ a: { type: "array", items: {} }, b: { type: "string" }, c: { type: "string", format: "uuid" } })
    )
    expect(notes(root, "openai")).toEqual([": the rule \"not\" of the server", "b: format \"uri\""])
    expect(fit({ type: "object" }, "openai").schema).toEqual({ type: "object", properties: {} })
  })

  it("bedrock has only type, properties and required at the root, without references", () => {
    const { schema } = fit(rich, "bedrock")
    expect(Object.keys(schema).toSorted()).toEqual(["properties", "required", "type"])
    expect(JSON.stringify(schema)).not.toContain("$ref")
    expect(notes(rich, "bedrock")).toContain("tree.next: the form of a part above")
  })

  it("gemini keeps the meaning where it can, and names the rest", () => {
    expect(property({ type: "integer", exclusiveMinimum: 0 })).toEqual({ type: "integer", minimum: 1 })
    expect(property({ type: "string", format: "uri", default: "none", description: "Where" }))
      .toEqual({ type: "string", description: "Where\nDefault: \"none\"" })
    expect(notes(object({ a: { anyOf: [{ type: "string" }, { type: "null" }], default: null } }), "all")).toEqual([])
    expect(property({ const: "tea" })).toEqual({ type: "string", enum: ["tea"] })
    expect(property({ type: ["string", "null"] })).toEqual({ type: "string", nullable: true })
    expect(property({ anyOf: [{ type: "string", description: "Text" }, { type: "null" }] }))
      .toEqual({ type: "string", description: "Text", nullable: true })
    expect(property({ type: ["string", "integer"], minLength: 2, minimum: 3 }))
      .toEqual({ anyOf: [{ type: "string", minLength: 2 }, { type: "integer", minimum: 3 }] })
    expect(property({ oneOf: [{ const: "a" }, { const: "b" }] })).toEqual({ type: "string", enum: ["a", "b"] })
    expect(
      property({ $ref: "#/$defs/A", description: "Mine" }, "gemini", {
        $defs: { A: { type: "string", description: "A" } }
      })
    )
      .toEqual({ type: "string", description: "Mine" })
    expect(notes(rich, "gemini")).toEqual([
      "ratio: less than 1",
      "ratio: a multiple of 0.1",
      "level: one of: 1, 2, 3",
      "note: format \"uri\"",
      "map: properties of any name, of the type \"number\"",
      "pair[]: each item has its own form, by its position",
      "tree.next: the form of a part above"
    ])
    expect(notes(rich, "all")).toContain("note: may also be null")
  })

  it("keeps the properties of an object whose alternatives only require some of them", () => {
    const schema = {
      type: "object",
      properties: { x: { type: "string" }, y: { type: "string" } },
      anyOf: [{ required: ["x"] }, { required: ["y"] }]
    }
    expect(property(schema)).toEqual({ type: "object", properties: { x: { type: "string" }, y: { type: "string" } } })
    expect(notes(object({ a: schema }), "gemini")).toEqual(["a: at least one of these sets of properties: (x) or (y)"])
  })

  it.each(forms)(
    "%s: replaces names that the provider refuses, and restores them in arguments at every depth",
    (form) => {
      const schema = object({
        "user id": { type: "string" },
        list: { type: "array", items: object({ "@type": { type: "string" } }, { required: ["@type"] }) },
        ["x".repeat(70)]: { type: "string" },
        __proto__x: { type: "string" }
      }, { required: ["user id"] })
      const { restore, schema: fitted } = fit(schema, form)
      const [user, , long] = Object.keys(fitted["properties"] as object)
      for (const name of [user!, long!]) expect(name).toMatch(/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/)
      expect(fitted["required"]).toEqual([user])
      const { items } = (fitted["properties"] as any).list
      const [type] = Object.keys(items.properties)
      expect(items.required).toEqual([type])
      expect(restore({ [user!]: "ada", list: [{ [type!]: "tea", user_id: 1 }], [long!]: "y" })).toEqual({
        "user id": "ada",
        list: [{ "@type": "tea", user_id: 1 }],
        ["x".repeat(70)]: "y"
      })
      const proto = JSON.parse("{\"__proto__\":1}")
      expect(JSON.stringify(restore(proto))).toBe("{\"__proto__\":1}")
    }
  )

  it("gives other names to properties that differ in refused characters only", () => {
    const { schema } = fit(object({ "a b": {}, "a:b": {}, a_b: {} }), "all")
    expect(new Set(Object.keys(schema["properties"] as object)).size).toBe(3)
  })

  it.each(hostileSchemas)("reads a schema about once, whatever it is long for: %s", (_, schema) => {
    for (const form of forms) {
      const { reads, value } = counted(schema)
      fit(value, form)
      expect(reads()).toBeLessThan(4 * sizeOf(schema) + 40_000)
    }
  })

  it.each(forms)("%s: bounds copies, depth and notes", (form) => {
    const nodes = Array.from({ length: 40 }, (_, at) => [`d${at}`, {
      anyOf: [{ $ref: `#/$defs/d${at + 1}` }, { type: "object", properties: { x: { $ref: `#/$defs/d${at + 1}` } } }],
      description: "x".repeat(1_000)
    }])
    const doubling = object({ a: { $ref: "#/$defs/d0" } }, { $defs: Object.fromEntries(nodes) })
    expect(JSON.stringify(fit(doubling, form).schema).length).toBeLessThan(8 * JSON.stringify(doubling).length + 60_000)
    const deep = JSON.parse("{\"properties\":{\"a\":".repeat(5_000) + "{}" + "}}".repeat(5_000))
    expect(JSON.stringify(fit(deep, form).schema).length).toBeLessThan(4_000)
    const self = { type: "object", $ref: "#", allOf: [{ $ref: "#" }] }
    expect(fit(self, form).schema.type).toBe("object")
    const many = object(
      Object.fromEntries(
        Array.from({ length: 200 }, (_, at) => [`p${at}`, { format: "x".repeat(500), type: "string", $ref: "#/no" }])
      )
    )
    expect(fit(many, form).describe("d")!.length).toBeLessThan(4_000)
    expect(fit(many, form).describe("d")).toMatch(/and \d+ more, which errors of the tool name$/)
  })

  it("names the constants that tell alternatives apart", () => {
    const kind = (kind: string, other: string) =>
      object({ kind: { const: kind }, [other]: { type: "string" } }, { required: ["kind", other] })
    const { describe, schema } = fit({ oneOf: [kind("a", "x"), kind("b", "y")] }, "all")
    expect(schema["properties"]).toEqual({
      kind: { type: "string", enum: ["a", "b"] },
      x: { type: "string" },
      y: { type: "string" }
    })
    expect(schema["required"]).toEqual(["kind"])
    expect(describe(undefined)).toMatch(
      /exactly one of these sets of properties: \(kind: "a", x\) or \(kind: "b", y\)$/
    )
  })

  it("reads a definition that several parts share, and is not recursive for that", () => {
    const $defs = {
      Base: object({ id: { type: "string" } }, { required: ["id"] }),
      A: { allOf: [{ $ref: "#/$defs/Base" }], properties: { a: { $ref: "#/$defs/B" } } },
      B: { allOf: [{ $ref: "#/$defs/Base" }], properties: { b: { type: "string" } } }
    }
    const b = object({ b: { type: "string" }, id: { type: "string" } }, { required: ["id"] })
    const both = { allOf: [{ $ref: "#/$defs/Base" }, { $ref: "#/$defs/A" }], $defs }
    expect(fit(both, "gemini").schema).toEqual(object({ id: { type: "string" }, a: b }, { required: ["id"] }))
    const either = { anyOf: [{ $ref: "#/$defs/A" }, { $ref: "#/$defs/B" }], $defs }
    expect(fit(either, "gemini").schema).toEqual(
      object({ a: b, id: { type: "string" }, b: { type: "string" } }, { required: ["id"] })
    )
    expect(notes(both, "gemini")).toEqual([])
  })

  const refs = (part: object) =>
    object({}, {
      properties: Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`p${at}`, { $ref: "#/$defs/part" }])),
      $defs: { part }
    })
  const wide = Array.from({ length: 3_000 }, (_, at) => at)
  it.each([
    ["types", refs({ type: wide.map(() => "string") })],
    ["unknown types", refs({ type: wide.map(() => "x") })],
    ["null values", refs({ enum: wide.map(() => null) })],
    ["items by position", refs({ type: "array", prefixItems: wide.map(() => ({})) })],
    ["texts", refs({ enum: wide.map((at) => `v${at}`) })],
    ["alternatives at the root", {
      anyOf: wide.map((at) => ({ $ref: `#/$defs/d${at}` })),
      $defs: Object.fromEntries(wide.map((at) => [`d${at}`, { properties: { a: {} } }]))
    }]
  ])("reads a schema about once where many places refer to many %s", (_, schema) => {
    for (const form of forms) {
      const { reads, value } = counted(schema)
      fit(value, form)
      expect(reads()).toBeLessThan(4 * sizeOf(schema) + 40_000)
    }
  })

  it("is made once for each schema", () => {
    expect(fit(rich, "all")).toBe(fit(rich, "all"))
  })
})
