import { describe, expect, it } from "@effect/vitest"
import { Ajv2020 } from "ajv/dist/2020.js"
import { assemble } from "../src/internal/schema/assemble.ts"
import { Schemas } from "../src/internal/schema/convert.ts"

const convert = (schema: unknown, use: "arguments" | "results" = "arguments") =>
  new Schemas({}, use, "3.1").convert(schema)

describe("a schema of OpenAPI 3.0", () => {
  it.each([
    ["nullable", { type: "string", nullable: true }, { type: ["string", "null"] }],
    ["nullable with enum", { type: "string", enum: ["a"], nullable: true }, {
      type: ["string", "null"],
      enum: ["a", null]
    }],
    ["nullable with allOf", { allOf: [{ type: "object" }], description: "d", nullable: true }, {
      description: "d",
      anyOf: [{ allOf: [{ type: "object" }] }, { type: "null" }]
    }],
    ["exclusiveMinimum", { type: "integer", minimum: 1, exclusiveMinimum: true }, {
      type: "integer",
      exclusiveMinimum: 1
    }],
    ["exclusiveMinimum: false", { type: "integer", minimum: 1, exclusiveMinimum: false }, {
      type: "integer",
      minimum: 1
    }],
    ["exclusiveMaximum", { maximum: 1, exclusiveMaximum: true }, { exclusiveMaximum: 1 }],
    ["example", { type: "string", example: "Rex" }, { type: "string", examples: ["Rex"] }],
    ["binary", { type: "string", format: "binary" }, { type: "string", contentEncoding: "base64" }],
    ["byte", { type: "string", format: "byte" }, { type: "string", contentEncoding: "base64" }],
    ["file", { type: "file" }, { type: "string", contentEncoding: "base64" }],
    ["discriminator, xml, externalDocs, extensions", {
      type: "object",
      discriminator: { propertyName: "a" },
      xml: {},
      externalDocs: {},
      "x-a": 1
    }, { type: "object" }]
  ])("converts %s", (_, schema, expected) => {
    expect(convert(schema)).toEqual(expected)
  })
})

describe("a schema of OpenAPI 3.1", () => {
  it.each([
    ["types", { type: ["string", "null"] }, { type: ["string", "null"] }],
    ["const, prefixItems, if", { const: 1, prefixItems: [{}], if: { type: "null" }, else: false }, {
      const: 1,
      prefixItems: [{}],
      if: { type: "null" },
      else: false
    }],
    ["identifiers", { $id: "https://a.example", $schema: "x", $anchor: "a", $comment: "c", type: "null" }, {
      type: "null"
    }],
    ["oneOf", { oneOf: [{ type: "string" }, { type: "null" }] }, { anyOf: [{ type: "string" }, { type: "null" }] }]
  ])("converts %s", (_, schema, expected) => {
    expect(convert(schema)).toEqual(expected)
  })
})

describe("a faulty schema", () => {
  it.each([
    ["an unknown type", { type: "float" }, {}],
    ["a boolean as required", { type: "string", required: true }, { type: "string" }],
    ["repeated required names", { required: ["a", "a", 1] }, { required: ["a"] }],
    ["an empty enum", { enum: [] }, {}],
    ["an enum of other types", { type: "string", enum: [1, true, "1"] }, { type: "string", enum: ["1", "true"] }],
    ["numbers as texts", { type: "integer", minimum: "1", enum: ["1", "2"] }, { type: "integer", enum: [1, 2] }],
    ["negative counts", { minLength: -1, maxItems: 1.5 }, {}],
    ["a list of items", { items: [{ type: "string" }] }, { prefixItems: [{ type: "string" }] }],
    ["an unknown format", { type: "string", format: "unix-time" }, {
      type: "string",
      description: "Format: unix-time"
    }],
    ["look-around", { type: "string", pattern: "^(?!a)" }, { type: "string", description: "Pattern: ^(?!a)" }],
    ["an invalid pattern", { type: "string", pattern: "[" }, { type: "string", description: "Pattern: [" }],
    ["a large example", { example: "x".repeat(300), default: "x".repeat(300) }, {}],
    ["no schema", "string", {}]
  ])("is read leniently: %s", (_, schema, expected) => {
    expect(convert(schema)).toEqual(expected)
  })
})

describe("properties", () => {
  const pet = {
    type: "object",
    properties: { id: { type: "integer", readOnly: true }, secret: { type: "string", writeOnly: true }, name: {} },
    required: ["id", "secret", "name"]
  }

  it("that are readOnly leave the arguments, and writeOnly ones the results", () => {
    expect(convert(pet)).toEqual({
      type: "object",
      properties: { secret: { type: "string" }, name: {} },
      required: ["secret", "name"]
    })
    expect(convert(pet, "results")).toEqual({
      type: "object",
      properties: { id: { type: "integer" }, name: {} },
      required: ["id", "name"]
    })
  })

  it("that are readOnly in a member of allOf are not required by another", () => {
    expect(convert({ allOf: [{ properties: { id: { readOnly: true } } }, { required: ["id", "a"] }] }))
      .toEqual({ allOf: [{}, { required: ["a"] }] })
  })

  it("are readOnly through a reference", () => {
    const schemas = new Schemas({ a: { type: "string", readOnly: true } }, "arguments", "3.1")
    expect(schemas.convert({ properties: { a: { $ref: "#/a" }, b: {} } })).toEqual({ properties: { b: {} } })
  })
})

describe("references", () => {
  const root = {
    components: {
      schemas: {
        Tree: {
          type: "object",
          properties: {
            children: { type: "array", items: { $ref: "#/components/schemas/Tree" } },
            "a~b/c": { type: "null" }
          }
        },
        Small: { type: "string" },
        "Odd name": { type: "object", properties: { description: { type: "string", description: "Long ".repeat(40) } } }
      }
    }
  }
  const assembled = (schema: object, maxChars = 10_000, version: "3.0" | "3.1" = "3.1") => {
    const schemas = new Schemas(root, "arguments", version)
    return assemble(schemas.convert(schema) as object as Record<string, unknown>, schemas.definitions, maxChars)
  }
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

  it("that are circular stay references to $defs", () => {
    const schema = assembled({ properties: { tree: ref("Tree") } })
    expect(schema).toEqual({
      properties: { tree: { $ref: "#/$defs/Tree" } },
      $defs: {
        Tree: {
          type: "object",
          properties: { children: { type: "array", items: { $ref: "#/$defs/Tree" } }, "a~b/c": { type: "null" } }
        }
      }
    })
    const validate = new Ajv2020({ strict: false }).compile(schema)
    expect([validate({ tree: { children: [{}] } }), validate({ tree: { children: [1] } })]).toEqual([true, false])
  })

  it("that are short or used once are written in place", () => {
    expect(assembled({ properties: { a: ref("Small"), b: { ...ref("Small"), description: "B" } } }))
      .toEqual({ properties: { a: { type: "string" }, b: { type: "string", description: "B" } } })
    expect(assembled({ properties: { a: ref("Odd name") } })["$defs"]).toBeUndefined()
    const twice = assembled({ properties: { a: ref("Odd%20name"), b: ref("Odd%20name") } })
    expect(Object.keys(twice["$defs"] as object)).toEqual(["Odd_name"])
  })

  it.each([
    ["a default", { default: "a" }, { type: "string", default: "a" }],
    ["an assertion", { minLength: 2 }, { type: "string", minLength: 2 }],
    ["null", { nullable: true }, { anyOf: [{ type: "string" }, { type: "null" }] }],
    ["another type", { type: ["string", "null"] }, { allOf: [{ type: "string" }], type: ["string", "null"] }],
    ["properties", { properties: { a: {} }, required: ["a"] }, {
      allOf: [{ type: "string" }],
      properties: { a: {} },
      required: ["a"]
    }],
    ["allOf", { allOf: [{ minLength: 1 }] }, { allOf: [{ type: "string" }, { minLength: 1 }] }],
    ["another reference below", { items: ref("Small") }, { allOf: [{ type: "string" }], items: { type: "string" } }]
  ])("3.1 · apply together with the keywords beside them: %s", (_, beside, expected) => {
    expect(assembled({ properties: { a: { ...ref("Small"), ...beside } } })).toEqual({ properties: { a: expected } })
  })

  it.each([
    ["annotations", { default: "a", description: "A" }, { type: "string", default: "a", description: "A" }],
    ["nullable", { nullable: true }, { anyOf: [{ type: "string" }, { type: "null" }] }],
    ["assertions", { minLength: 2, properties: { a: {} }, required: ["a"] }, { type: "string" }]
  ])("3.0 · have annotations and nullable beside them, and nothing else: %s", (_, beside, expected) => {
    expect(assembled({ properties: { a: { ...ref("Small"), ...beside } } }, 10_000, "3.0"))
      .toEqual({ properties: { a: expected } })
  })

  it("lead into the parts of a schema", () => {
    expect(assembled({ properties: { a: { $ref: "#/components/schemas/Tree/properties/a~0b~1c" } } }))
      .toEqual({ properties: { a: { type: "null" } } })
  })

  it("to nothing, and in a circle of references, are faults", () => {
    expect(() => assembled(ref("Missing"))).toThrow("The reference \"#/components/schemas/Missing\" leads to nothing")
  })
})

describe("a large schema", () => {
  const wide = (count: number, description: string) => ({
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        `p${at}`,
        { type: "object", description: "Short", properties: { a: { type: "string", description } } }
      ])
    )
  })
  const fit = (schema: object, maxChars: number) => {
    const schemas = new Schemas({}, "arguments", "3.1")
    return assemble(schemas.convert(schema) as Record<string, unknown>, schemas.definitions, maxChars)
  }

  it("loses the annotations of nested parts first", () => {
    const schema = fit(wide(10, "x".repeat(400)), 2_000)
    expect(schema).toEqual(fit(wide(10, ""), 10_000))
  })

  it("then loses its largest parts", () => {
    const schema = fit(wide(20, ""), 1_900)
    expect(JSON.stringify(schema).length).toBeLessThanOrEqual(1_900 + 400)
    const properties = Object.values(schema["properties"] as Record<string, { readonly description: string }>)
    expect(properties).toHaveLength(20)
  })
})
