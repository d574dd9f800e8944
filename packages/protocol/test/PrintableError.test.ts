/** Text of the other side in errors, which are written to logs and terminals. */
import { describe, expect, it } from "@effect/vitest"
import * as Capabilities from "@skein/protocol/Capabilities"
import * as McpError from "@skein/protocol/McpError"
import * as Nesting from "@skein/protocol/Nesting"
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Text from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { inspect } from "node:util"

const hostile = "a\u001b[31m\u009b2J\u202eb\tc\nd"
const shown = "a\\u{1b}[31m\\u{9b}2J\\u{202e}b\tc\nd"
const control = /[^\P{C}\t\n]/u

class Quoting extends PrintableError.tagged("Quoting")<{ readonly text: string }> {}

class Reasoned extends PrintableError.withReason("Reasoned")<{ readonly reason: Quoting; readonly attempt: number }> {}

describe("text of the other side", () => {
  it("escapes unprintable characters in the message of an error, and in no other member", () => {
    const error = new Quoting({ message: hostile, text: hostile })
    expect(error).toMatchObject({ _tag: "Quoting", message: shown, text: hostile })
    expect(error.stack).not.toMatch(control)
    expect(Cause.pretty(Cause.fail(error))).not.toMatch(control)
    expect(inspect(new Quoting({ message: hostile, text: "" }))).not.toMatch(control)
  })

  it("is the message of an error with a reason, which has the members of its own and no others", () => {
    const reason = new Quoting({ message: hostile, text: hostile })
    const error = new Reasoned({ reason, attempt: 2 })
    expect(error).toMatchObject({ _tag: "Reasoned", message: shown, attempt: 2 })
    expect(error.reason).toBe(reason)
    expect(error).not.toHaveProperty("text")
    const caught = Effect.catchReason(Effect.fail(error), "Reasoned", "Quoting", ({ text }) => Effect.succeed(text))
    expect(Effect.runSync(caught)).toBe(hostile)
  })

  it("is printed with its tag if a bundler has renamed its class", () => {
    const Quoting$1 = class Quoting$1 extends PrintableError.tagged("Quoting")<{ readonly text: string }> {}
    expect(inspect(new Quoting$1({ message: "no tea", text: "" }))).toMatch(/^Quoting: no tea\n/)
  })

  it("escapes them in the message of a received JSON-RPC error", () => {
    const error = McpError.fromErrorObject({ code: -32_000, message: hostile }, "2025-11-25")
    expect(error.message).toBe(shown)
    expect(Cause.pretty(Cause.fail(error))).not.toMatch(control)
  })

  it("escapes them in a quoted text and in a field of a log line, which remain JSON", () => {
    for (const text of [Text.quote(hostile), Text.logValue(hostile)]) {
      expect(text).not.toMatch(control)
      expect(JSON.parse(text)).toBe(hostile)
    }
  })
})

describe("declared capabilities", () => {
  it("does not throw for any JSON, and counts null and false as not declared", () => {
    for (const value of [undefined, null, false]) {
      expect(Capabilities.elicits({ elicitation: value }, "form")).toBe(false)
      expect(Capabilities.declares({ roots: value }, "roots")).toBe(false)
    }
    for (const value of [null, 1, "a", [], { elicitation: { form: null, url: {} } }]) {
      expect(Capabilities.elicits(value, "form")).toBe(false)
    }
    expect(Capabilities.elicits({ elicitation: {} }, "form")).toBe(true)
    expect(Capabilities.elicits({ elicitation: { url: {} } }, "url")).toBe(true)
    expect(Capabilities.declares({ sampling: { tools: {} } }, "sampling", "tools")).toBe(true)
  })
})

describe("values nested deeper than the stack", () => {
  it("recognizes the error of the stack, also as a cause, and no other error", () => {
    const deepest = (): unknown => [deepest()]
    let error: unknown
    try {
      deepest()
    } catch (caught) {
      error = caught
    }
    expect(Nesting.exceedsStack(error)).toBe(true)
    expect(Nesting.exceedsStack(new Error("outer", { cause: Cause.die(error) }))).toBe(true)
    expect(Nesting.exceedsStack(new RangeError("Invalid array length"))).toBe(false)
    expect(Nesting.exceedsStack("a text")).toBe(false)
  })
})
