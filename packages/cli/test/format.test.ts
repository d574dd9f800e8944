import { assert, describe, it } from "@effect/vitest"
import { resultText, sanitize, sanitizeOutput, toolLine } from "../src/internal/base/format.ts"

describe("text for a terminal", () => {
  it("keeps lines and tabs, and escapes characters that control the terminal", () => {
    const sanitized = sanitize("a\tb\r\nc\u001b[2J\u0007\u202ed")
    assert.match(sanitized, /^a\tb\nc[^]*\[2J[^]*d$/)
    for (const control of ["\u001b", "\u0007", "\u202e"]) assert.notInclude(sanitized, control)
  })

  it("removes the colors of another program, and escapes its other control characters", () => {
    assert.strictEqual(sanitizeOutput("\u001b[38;5;249m3\u001b[0m │\ta\u0007"), "3 │\ta\\u{7}")
  })

  it("shows a tool in one line, with its arguments and their types", () => {
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

  it("cuts a tool with a deep schema or many arguments short", () => {
    let items: object = { type: "string" }
    for (let depth = 0; depth < 1_000; depth++) items = { type: "array", items }
    const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`a${at}`, items]))
    const line = toolLine({ name: "t", inputSchema: { type: "object", properties: { ...properties } } })
    assert.isAtMost(line.length, 513)
    assert.include(line, "a0?: any[][][]")
  })

  it("shows the content of a result, or its structured content when there is none", () => {
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
