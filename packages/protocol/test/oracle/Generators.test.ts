import { AnyNumber, AnyObject, AnyValue } from "@skein/protocol/Primitive"
import { isDeepStrictEqual } from "node:util"
import { expect, it } from "vitest"
import * as Check from "./Check.ts"
import * as JsonSchemaArbitrary from "./JsonSchemaArbitrary.ts"
import * as Spec from "./Spec.ts"
import * as Validate from "./Validate.ts"

Spec.describeSpec("the generators of values", () => {
  for (const name of Spec.names) {
    it(`${name} · generate values that their definition accepts`, () => {
      const document = Spec.load(name)
      const arbitrary = JsonSchemaArbitrary.make(document)
      const refused: Array<string> = []
      for (const definition of Object.keys(document.definitions)) {
        for (let seed = 0; seed < 60; seed++) {
          const value = arbitrary.value(definition, seed)
          const message = Validate.refusal(document, definition, value)
          if (message !== undefined) refused.push(`${definition} #${seed}: ${message}`)
        }
      }
      expect(refused).toEqual([])
    })
  }

  it("generate the same value for the same seed, and another one for another seed", () => {
    const document = Spec.load("2026-07-28")
    const values = (offset: number) =>
      Array.from({ length: 20 }, (_, seed) => JsonSchemaArbitrary.make(document).value("CallToolResult", seed + offset))
    expect(isDeepStrictEqual(values(0), values(0))).toBe(true)
    expect(isDeepStrictEqual(values(0), values(100))).toBe(false)
  })

  it("generate optional members present and absent, unknown members and unusual keys", () => {
    const arbitrary = JsonSchemaArbitrary.make(Spec.load("2025-11-25"))
    const values = Array.from({ length: 300 }, (_, seed) => arbitrary.value("Tool", seed) as Record<string, unknown>)
    expect(Object.keys(values[0]!).sort()).toEqual(["inputSchema", "name"])
    const known = Object.keys(Spec.load("2025-11-25").definitions["Tool"]!.properties!)
    for (const name of known) expect(Object.hasOwn(values[1]!, name)).toBe(true)
    expect(values.some((value) => Object.keys(value).some((key) => !known.includes(key)))).toBe(true)
    expect(values.some((value) => Object.hasOwn(value, "__proto__"))).toBe(true)
    expect(new Set(values.map((value) => value["name"])).has("")).toBe(true)
  })

  it("generate any JSON for an open value of the model, and fractions for a number", () => {
    const kinds = (values: ReadonlyArray<unknown>) =>
      new Set(values.map((value) =>
        value === null
          ? "null"
          : typeof value === "number"
          ? Number.isInteger(value) ? "integer" : "fraction"
          : typeof value
      ))
    const numbers = Check.canonical({ schema: AnyNumber }, "numbers", 50)
    const values = Check.canonical({ schema: AnyValue }, "values", 200)
    const members = Check.canonical({ schema: AnyObject }, "objects", 200).flatMap((value) =>
      Object.values(value as object)
    )
    expect([...kinds(numbers)].sort()).toEqual(["fraction", "integer"])
    const all = ["boolean", "fraction", "integer", "null", "object", "string"]
    expect([...kinds(values)].sort()).toEqual(all)
    expect([...kinds(members)].sort()).toEqual(all)
    expect(numbers.every(Number.isFinite)).toBe(true)
  })

  it("Validate.refusal names the position of an invalid value", () => {
    const document = Spec.load("2025-06-18")
    const sound = { content: [{ type: "text", text: "a" }] }
    expect(Validate.refusal(document, "CallToolResult", sound)).toBeUndefined()
    expect(Validate.refusal(document, "CallToolResult", {})).toContain("content")
    expect(Validate.refusal(document, "CallToolResult", { content: [{ type: "text", text: 1 }] })).toContain(
      "/content/0"
    )
    expect(Validate.refusal(document, "ResourceLink", { type: "resource_link", name: "a", uri: "not a uri" }))
      .toContain("uri")
    expect(Validate.refusal(document, "ImageContent", { type: "image", mimeType: "image/png", data: "%" })).toContain(
      "byte"
    )
  })

  it("2026-07-28 · the official schema accepts every example", () => {
    const document = Spec.load("2026-07-28")
    const all = Spec.examples()
    expect(all.length).toBeGreaterThanOrEqual(129)
    const refused = all.map((example) => [example.file, Validate.refusal(document, example.definition, example.value)])
      .filter(([, message]) => message !== undefined)
    expect(refused).toEqual([])
  })
})
