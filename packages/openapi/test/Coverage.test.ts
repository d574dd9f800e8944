import { describe, expect, it } from "@effect/vitest"
import * as OpenApi from "@skein/openapi/OpenApi"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import { coverage, type ObjectName } from "../src/internal/plan/coverage.ts"
import { Schemas } from "../src/internal/schema/convert.ts"
import { connect, documentOf, MockApi, operation, textOf } from "./kit.ts"

const treatments = ["honoured", "translated", "reported", "unused"] as const
const listed = ["honoured", "translated", "reported"] as const

describe("the list of docs/openapi.md", () => {
  it("has each field that is not unused, with its treatment", () => {
    const text = readFileSync(new URL("../../../docs/openapi.md", import.meta.url), "utf8")
    const section = text.slice(text.indexOf("## Keywords of the specifications"), text.indexOf("Details:"))
    const table = Array.from(section.matchAll(/^- ([A-Z][\w ]+): (.*)\.$/gm), ([, name = "", cells = ""]) => [
      name,
      ...listed.map((each) => {
        const [, fields = ""] = new RegExp(`(?:^|; )${each} ([^;]*)`).exec(cells) ?? []
        return fields.split(", ").filter((field) => field !== "").map((field) => field.replaceAll("`", ""))
      })
    ])
    expect(table).toEqual(
      (Object.keys(coverage) as ReadonlyArray<ObjectName>)
        .map((name) => [name, ...listed.map((each) => fieldsOf(name, each))])
        .filter(([, ...fields]) => fields.some((each) => each.length > 0))
    )
  })

  it("has each field once", () => {
    for (const [name, fields] of Object.entries(coverage)) {
      const all = treatments.flatMap((each) => fields[each] ?? [])
      expect([name, new Set(all).size]).toEqual([name, all.length])
    }
  })
})

const fieldsOf = (name: ObjectName, treatment: typeof treatments[number]) =>
  (coverage[name][treatment] ?? []).map((field) => field.replace(/ \(.*/, ""))

describe("a keyword of a schema", () => {
  const root = { Small: { type: "string" }, hidden: {} }
  const convert = (schema: object) => {
    const schemas = new Schemas(root, "arguments", "3.1")
    return JSON.stringify([schemas.convert(schema), [...schemas.definitions]])
  }
  const a = { a: { type: "integer" } }
  // The keyword beside others that it needs.
  const samples: Readonly<Record<string, readonly [keyword: unknown, beside?: object]>> = {
    type: ["string"],
    enum: [["a"]],
    multipleOf: [2],
    maximum: [2],
    minimum: [2],
    maxLength: [2],
    minLength: [2],
    maxItems: [2],
    minItems: [2],
    uniqueItems: [true],
    maxProperties: [2],
    minProperties: [2],
    required: [["a"]],
    properties: [a],
    additionalProperties: [false],
    items: [{ type: "null" }],
    allOf: [[{ type: "null" }]],
    anyOf: [[{ type: "null" }]],
    not: [{ type: "null" }],
    $ref: ["#/Small"],
    const: [1],
    prefixItems: [[{ type: "null" }]],
    contains: [{ type: "null" }],
    minContains: [2],
    maxContains: [2],
    ...Object.fromEntries(["if", "then", "else"].map((keyword) => [keyword, [{ type: "null" }]])),
    propertyNames: [{ type: "null" }],
    dependentSchemas: [a],
    dependentRequired: [{ a: ["b"] }],
    unevaluatedItems: [false],
    unevaluatedProperties: [false],
    contentEncoding: ["base64"],
    contentMediaType: ["image/png"],
    contentSchema: [{ type: "null" }],
    title: ["A"],
    description: ["A"],
    default: ["A"],
    deprecated: [true],
    example: ["A"],
    examples: [["A"]],
    format: ["unix-time"],
    pattern: ["^(?!a)"],
    oneOf: [[{ type: "null" }]],
    nullable: [true, { type: "string" }],
    exclusiveMaximum: [true, { maximum: 1 }],
    exclusiveMinimum: [true, { minimum: 1 }],
    patternProperties: [{ "^a": { type: "null" } }],
    discriminator: [{ propertyName: "kind", mapping: { dog: "#/Small" } }, { oneOf: [{ $ref: "#/Small" }] }]
  }
  // Those that concern the properties of an object, or are read before schemas are converted: see `Documents`.
  const others = new Set(["readOnly", "writeOnly", "$id", "$anchor", "$defs", "$dynamicAnchor"])
  const keywords = (["honoured", "translated"] as const).flatMap((each) => fieldsOf("Schema", each))

  it.each(keywords.filter((each) => !others.has(each)))("reaches the model: %s", (keyword) => {
    const [value, beside = {}] = samples[keyword]!
    expect(convert({ ...beside, [keyword]: value })).not.toBe(convert(beside))
  })

  it.each(fieldsOf("Schema", "unused"))("has no effect: %s", (keyword) => {
    expect(convert({ [keyword]: { name: "a" } })).toBe(convert({}))
  })

  it("discriminator names the values of its property", () => {
    expect(convert({ ...samples["discriminator"]![1], discriminator: { propertyName: "kind" } })).toContain(
      JSON.stringify("\"kind\" selects the schema: \"Small\"").slice(1, -1)
    )
  })
})

const schema = (node: object) => ({ requestBody: { content: { "application/json": { schema: node } } } })
const form = (type: string, encoding: object) => ({
  requestBody: { content: { [type]: { schema: { type: "object", properties: { a: {} } }, encoding: { a: encoding } } } }
})

describe("a field that is reported", () => {
  const body = "#/paths/~1/post/requestBody/content"
  const json = `${body}/application~1json`
  const multipart = `${body}/multipart~1form-data`
  const samples: Readonly<Record<string, readonly [document: object, place: string]>> = {
    "OpenAPI jsonSchemaDialect": [documentOf({}, { jsonSchemaDialect: "https://a.example" }), "#/jsonSchemaDialect"],
    "OpenAPI webhooks": [documentOf({}, { webhooks: { a: {} } }), "#/webhooks"],
    "Path Item trace": [operation("/", "trace", {}), "#/paths/~1/trace"],
    "Operation callbacks": [operation("/", "post", { callbacks: { a: {} } }), "#/paths/~1/post/callbacks"],
    "Parameter name": [
      operation("/{b}", "post", { parameters: [{ name: "a", in: "path" }, { name: "b", in: "path" }] }),
      "#/paths/~1{b}/post/parameters/0/name"
    ],
    "Parameter in": [
      operation("/", "post", { parameters: [{ name: "a", in: "body" }] }),
      "#/paths/~1/post/parameters/0/in"
    ],
    "Parameter style": [
      documentOf({ "/": { post: { parameters: [{ $ref: "#/components/parameters/A" }] } } }, {
        components: { parameters: { A: { name: "a", in: "header", style: "form" } } }
      }),
      "#/components/parameters/A/style"
    ],
    "Parameter allowReserved": [
      documentOf({ "/": { parameters: [{ name: "a", in: "cookie", allowReserved: true }], post: {} } }),
      "#/paths/~1/parameters/0/allowReserved"
    ],
    "Request Body content": [
      operation("/", "post", { requestBody: { content: { "": { schema: { type: "object" } } } } }),
      `${body}/`
    ],
    "Media Type schema": [
      operation("/", "post", { requestBody: { content: { "text/xml": { schema: { type: "object" } } } } }),
      `${body}/text~1xml/schema`
    ],
    ...Object.fromEntries(
      ["itemSchema", "prefixEncoding", "itemEncoding"].map((field) => [
        `Media Type ${field}`,
        [
          operation("/", "post", { requestBody: { content: { "application/jsonl": { [field]: {} } } } }),
          `${body}/application~1jsonl/${field}`
        ]
      ])
    ),
    ...Object.fromEntries(
      ["headers", "encoding", "prefixEncoding", "itemEncoding"].map((field) => [
        `Encoding ${field}`,
        [
          operation("/", "post", form("multipart/form-data", { [field]: { b: {} } })),
          `${multipart}/encoding/a/${field}`
        ]
      ])
    ),
    ...Object.fromEntries(
      ["style", "explode", "allowReserved"].map((field) => [
        `Encoding ${field}`,
        [operation("/", "post", form("multipart/form-data", { [field]: true })), `${multipart}/encoding/a/${field}`]
      ])
    ),
    "Response links": [
      operation("/", "post", { responses: { 200: { links: { a: {} } } } }),
      "#/paths/~1/post/responses/200/links"
    ],
    "Schema discriminator": [
      operation("/", "post", schema({ properties: { a: { discriminator: { propertyName: "kind" } } } })),
      `${json}/schema/properties/a/discriminator`
    ],
    "Schema patternProperties": [
      operation("/", "post", schema({ patternProperties: { "^(?!a)": {} } })),
      `${json}/schema/patternProperties/^(?!a)`
    ],
    "Schema $dynamicRef": [
      operation("/", "post", schema({ $dynamicRef: "#item" }), {
        components: {
          schemas: { A: { $dynamicAnchor: "item" }, B: { $id: "b", $dynamicAnchor: "item" } }
        }
      }),
      `${json}/schema/$dynamicRef`
    ],
    "Schema $schema": [
      operation("/", "post", schema({ $schema: "http://json-schema.org/draft-04/schema#" })),
      `${json}/schema/$schema`
    ]
  }
  const all = (Object.keys(coverage) as ReadonlyArray<ObjectName>).flatMap((name) =>
    fieldsOf(name, "reported").map((field) => `${name} ${field}`)
  )

  it.effect.each(all)("is in leftOut with its place: %s", (field) =>
    Effect.gen(function*() {
      const [document, place] = samples[field]!
      const { leftOut } = yield* OpenApi.list(document)
      expect(leftOut.map((each) => each.place)).toEqual([place])
    }))

  it.effect("is absent from leftOut where it has its effect, and where no operation is selected", () =>
    Effect.gen(function*() {
      const { leftOut } = yield* OpenApi.list(
        documentOf({
          "/": {
            post: {
              ...form("application/x-www-form-urlencoded", { style: "deepObject", explode: true, allowReserved: true }),
              parameters: [
                { name: "a", in: "query", style: "pipeDelimited", allowReserved: true },
                { name: "b", in: "cookie", style: "cookie" }
              ]
            }
          },
          "/other": { post: { operationId: "other", callbacks: { a: {} } } }
        }, { jsonSchemaDialect: "https://spec.openapis.org/oas/3.1/dialect/base" }),
        { exclude: { ids: ["other"] } }
      )
      expect(leftOut).toEqual([])
    }))

  it.effect("is found behind a long chain of references, once", () =>
    Effect.gen(function*() {
      const schemas = Object.fromEntries(
        Array.from({ length: 20_000 }, (_, at) => [`S${at}`, { items: { $ref: `#/components/schemas/S${at + 1}` } }])
      )
      const use = { post: schema({ $ref: "#/components/schemas/S0" }) }
      const { leftOut } = yield* OpenApi.list(documentOf({ "/a": use, "/b": use }, {
        components: { schemas: { ...schemas, S20000: { discriminator: { propertyName: "kind" } } } }
      }))
      expect(leftOut).toEqual([{
        kind: "part",
        place: "#/components/schemas/S20000/discriminator",
        message: expect.stringContaining("not listed in oneOf or anyOf")
      }])
    }))
})

describe("OpenAPI 3.2", () => {
  const send = Effect.fnUntraced(function*(document: object, args: Record<string, unknown>) {
    const api = new MockApi()
    const client = yield* connect({ ...document, openapi: "3.2.0" }, {}, api)
    const [tool] = yield* client.listTools()
    expect(textOf(yield* client.callTool(tool!.name, args))).toBe("{}")
    return api.last
  })

  it.effect("has the method QUERY, and others of additionalOperations", () =>
    Effect.gen(function*() {
      const text = { requestBody: { content: { "text/plain": {} } } }
      expect(yield* send(operation("/", "query", text), { body: "x" })).toMatchObject({ method: "QUERY", body: "x" })
      const copy = documentOf({ "/": { additionalOperations: { COPY: { operationId: "copy" } } } })
      expect((yield* send(copy, {})).method).toBe("COPY")
      expect((yield* OpenApi.list(copy)).definitions).toEqual([])
      const { leftOut } = yield* OpenApi.list({
        ...documentOf({ "/": { additionalOperations: { CONNECT: {}, "A B": {} } } }),
        openapi: "3.2.0"
      })
      expect(leftOut.map(({ place }) => place)).toEqual([
        "#/paths/~1/additionalOperations/CONNECT",
        "#/paths/~1/additionalOperations/A B"
      ])
    }))

  it.effect("has parameters that are the whole query", () =>
    Effect.gen(function*() {
      const query = (mediaType: string) =>
        operation("/", "get", { parameters: [{ name: "q", in: "querystring", content: { [mediaType]: {} } }] })
      const urlOf = (mediaType: string, q: unknown) => Effect.map(send(query(mediaType), { q }), (seen) => seen.url)
      expect(yield* urlOf("application/x-www-form-urlencoded", { a: "x&y", b: [1, 2] })).toBe(
        "https://pets.example/v1/?a=x%26y&b=1&b=2"
      )
      expect(yield* urlOf("application/json", { a: 1 })).toBe("https://pets.example/v1/?%7B%22a%22%3A1%7D")
      expect(yield* urlOf("text/plain", "a b")).toBe("https://pets.example/v1/?a%20b")
    }))

  it.effect("has the style cookie", () =>
    Effect.gen(function*() {
      const document = operation("/", "get", { parameters: [{ name: "c", in: "cookie", style: "cookie" }] })
      expect((yield* send(document, { c: ["a=b", "c;d e"] })).headers["cookie"]).toBe("c=a=b; c=c%3Bd%20e")
    }))

  it.effect("has the URL of the document in $self", () =>
    Effect.gen(function*() {
      const document = documentOf({
        "/": { get: { parameters: [{ $ref: "https://pets.example/openapi.json#/components/parameters/A" }] } }
      }, { components: { parameters: { A: { name: "a", in: "query" } } }, $self: "https://pets.example/openapi.json" })
      expect((yield* send(document, { a: "1" })).url).toBe("https://pets.example/v1/?a=1")
    }))
})

describe("the arguments of a tool", () => {
  const toolOf = (node: object, more: object = {}) =>
    Effect.gen(function*() {
      const client = yield* connect(operation("/", "post", node, more))
      return (yield* client.listTools())[0]!
    })

  it.effect("have the examples of parameters and bodies", () =>
    Effect.gen(function*() {
      const { inputSchema } = yield* toolOf({
        parameters: [{ name: "a", in: "query", deprecated: true, examples: { one: { value: 1 } }, schema: {} }],
        requestBody: {
          content: {
            "application/json": { schema: { type: "object", properties: { b: {} } }, example: { b: "x" } }
          }
        }
      })
      expect(inputSchema.properties).toEqual({ a: { deprecated: true, examples: [1] }, b: { examples: ["x"] } })
      const whole = yield* toolOf({ requestBody: { content: { "text/csv": { examples: { one: { value: "a,b" } } } } } })
      expect(whole.inputSchema.properties).toMatchObject({ body: { examples: ["a,b"] } })
    }))

  it.effect("are described where the document has a choice, or a number, of members", () =>
    Effect.gen(function*() {
      const properties = { id: {}, name: {}, kind: {} }
      const { description } = yield* toolOf({
        summary: "Finds a pet",
        ...schema({ properties, anyOf: [{ required: ["id"] }, { required: ["name", "kind"] }], minProperties: 1 })
      })
      expect(description).toBe(
        "Finds a pet\n\nGive at least one of these: id; name and kind. Give at least 1 of the members of the body."
      )
    }))

  it.effect("are one body where the document has keywords about the whole object", () =>
    Effect.gen(function*() {
      const { inputSchema } = yield* toolOf(schema({ properties: { a: {}, b: {} }, dependentRequired: { a: ["b"] } }))
      expect(inputSchema.properties).toMatchObject({ body: { dependentRequired: { a: ["b"] } } })
    }))

  it.effect("have the schemas of each declaration of a member", () =>
    Effect.gen(function*() {
      const { inputSchema } = yield* toolOf(
        schema({ allOf: [{ properties: { a: { type: "string" } } }, { properties: { a: { minLength: 1 } } }] })
      )
      expect(inputSchema.properties).toEqual({ a: { allOf: [{ type: "string" }, { minLength: 1 }] } })
    }))

  it.effect("of keywords beside a reference are arguments since 3.1", () =>
    Effect.gen(function*() {
      const node = schema({ $ref: "#/components/schemas/P", required: ["b"], properties: { b: { type: "string" } } })
      const components = { schemas: { P: { type: "object", properties: { a: { type: "string" } } } } }
      const { inputSchema } = yield* toolOf(node, { components })
      expect(inputSchema).toMatchObject({ properties: { a: {}, b: {} } })
      const old = yield* toolOf(node, { components, openapi: "3.0.3" })
      expect(Object.keys(old.inputSchema.properties!)).toEqual(["a"])
    }))
})
