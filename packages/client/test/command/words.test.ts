import { assert, describe, it } from "@effect/vitest"
import { resultText, tame, toolLine } from "../../src/internal/command/words.ts"

describe("what a terminal is shown", () => {
  it("keeps lines and tabs, and lets nobody steer the terminal", () => {
    const tamed = tame("a\tb\r\nc\u001b[2J\u0007\u202ed")
    assert.match(tamed, /^a\tb\nc[^]*\[2J[^]*d$/)
    for (const control of ["\u001b", "\u0007", "\u202e"]) assert.notInclude(tamed, control)
  })

  it("a tool is one line, with its arguments and their types", () => {
    const inputSchema = {
      type: "object" as const,
      properties: {
        a: { type: "number" },
        b: { type: "array", items: { type: "string" } },
        c: { enum: ["x", "y"] },
        d: { anyOf: [{ type: "string" }, { type: "null" }] },
        e: { $ref: "#/$defs/e" },
        f: { type: ["string", "null"] },
        g: true
      },
      required: ["a", "b"]
    }
    assert.strictEqual(
      toolLine({ name: "t", description: "First.\nSecond.", inputSchema }),
      "t(a: number, b: string[], c?: \"x\"|\"y\", d?: string|null, e?: any, f?: string|null, g?: any)  First."
    )
    assert.notInclude(toolLine({ name: "t\u001b", inputSchema: { type: "object" } }), "\u001b")
  })

  it("a schema that is endless, or has endless arguments, is cut short", () => {
    let items: object = { type: "string" }
    for (let depth = 0; depth < 1_000; depth++) items = { type: "array", items }
    const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`a${at}`, items]))
    const line = toolLine({ name: "t", inputSchema: { type: "object", properties: { ...properties } } })
    assert.isAtMost(line.length, 513)
    assert.include(line, "a0?: any[][][]")
  })

  it("a result is its content, or else its structured content", () => {
    const text = { type: "text", text: "Hello" } as const
    const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const
    const link = { type: "resource_link", name: "n", uri: "file:///a" } as const
    const blob = { type: "resource", resource: { uri: "file:///b", blob: "AAA=" } } as const
    assert.strictEqual(
      resultText({ content: [text, image, link, blob] }),
      "Hello\n[image: image/png, 3 bytes]\n[resource: n] file:///a\n[file:///b: application/octet-stream, 2 bytes]"
    )
    assert.strictEqual(resultText({ content: [text], structuredContent: { a: 1 } }), "Hello")
    assert.strictEqual(resultText({ content: [], structuredContent: { a: 1 } }), "{\n  \"a\": 1\n}")
  })
})
