/** The text of generated modules, and the cost of making it of the lists of a hostile server. */
import { describe, expect, it } from "@effect/vitest"
import * as Timed from "../../protocol/test/timed.ts"
import { clientModule, type Offered } from "../src/internal/generate/clientModule.ts"
import { Names } from "../src/internal/generate/names.ts"
import { schemaCode } from "../src/internal/generate/schemaCode.ts"
import { printCode } from "../src/internal/generate/sourceText.ts"

const nothing: Offered = { server: undefined, tools: [], prompts: [], resources: [], templates: [] }
const tool = (name: string, inputSchema: object = { type: "object" }, more: object = {}) =>
  ({ name, inputSchema, ...more }) as Offered["tools"][number]

describe("the text of a module", () => {
  it("has each text of the server as it is, also one that looks like an escape", () => {
    const texts = ["a\\u000ab", "a\nb", "a\\nb", "a\u2028b", "a\u0000b"]
    const { text } = clientModule({
      ...nothing,
      tools: [tool("t", { type: "object", properties: { a: { enum: texts } } })]
    })
    const [, literals = ""] = /Schema\.Literals\(\[([^\]]*)\]/.exec(text) ?? []
    expect(JSON.parse(`[${literals}]`)).toEqual(texts)
  })

  it("has types for the members of a schema with a refused one, as far as the bound of attempts goes", () => {
    const count = 400
    const $defs = Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`d${at}`, {
        type: "object",
        properties: { next: at + 1 < count ? { $ref: `#/$defs/d${at + 1}` } : {}, text: { type: "string" } }
      }])
    )
    const members = (schema: object, more: object) => {
      const properties = Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, schema]))
      const input = { type: "object", properties: { ...properties, bad: { $ref: "https://other.example/x" } }, ...more }
      const { text } = clientModule({ ...nothing, tools: [tool("t", input)] })
      const code = text.slice(text.indexOf("export const TInput"), text.indexOf("export type TInput"))
      return Array.from(code.matchAll(/p\d+"?: ([^,]*)/g), ([, type]) => type!)
    }
    const typed = (types: ReadonlyArray<string>) => types.filter((type) => !/Json|Unknown/.test(type)).length
    const long = typed(members({ $ref: "#/$defs/d0" }, { $defs }))
    expect(long).toBeGreaterThan(1)
    expect(long).toBeLessThan(20)
    // A member has the definitions that it uses itself.
    expect(typed(members({ $ref: `#/$defs/d${count - 1}` }, { $defs }))).toBe(count)
  })

  it("has no note about a text of the server that looks like one", () => {
    const description = "A part of its schema has no type, and is any JSON value."
    expect(clientModule({ ...nothing, tools: [tool("t", undefined, { description })] }).notes).toEqual([])
  })

  it("breaks lines of code in time that does not depend on its depth", () => {
    let schema: object = { type: "string" }
    for (let at = 0; at < 60; at++) {
      const others = Array.from({ length: 60 }, (_, at) => [`m${at}`, { type: "string", minLength: 3 }])
      schema = { type: "object", properties: { inner: schema, ...Object.fromEntries(others) } }
    }
    const { code } = schemaCode(schema as never, "arguments", "T", new Names())
    expect(code.length).toBeGreaterThan(400_000)
    expect(Timed.linear(() => printCode(code))).toContain("\"inner\"")
  })

  it("gives many equal names their numbers in linear time", () => {
    const names = new Names()
    const last = Timed.linear(() => {
      for (let at = 1; at < 50_000; at++) names.take("Same", ["Input", "Output"])
      return names.take("Same", ["Input", "Output"])
    })
    expect(last).toBe("Same50000")
    expect([names.take("Same50000"), names.take("Same50000", ["Input"])]).toEqual(["Same50000", "Same500002"])
  })
})
