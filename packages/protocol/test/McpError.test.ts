import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"

const session = Revision.sessionBased
const newest = Revision.latest

const one: Record<McpError.Reason, McpError.McpError> = {
  ParseError: McpError.parseError(),
  InvalidRequest: McpError.invalidRequest(),
  MethodNotFound: McpError.methodNotFound("tools/sing"),
  InvalidParams: McpError.invalidParams("Unknown tool: x"),
  InternalError: McpError.internal("ref-1"),
  ResourceNotFound: McpError.resourceNotFound("file:///none"),
  UrlElicitationRequired: new McpError.McpError({
    reason: "UrlElicitationRequired",
    message: "This request requires more information",
    data: { elicitations: [{ mode: "url", elicitationId: "e", url: "https://a", message: "m" }] }
  }),
  HeaderMismatch: McpError.headerMismatch("Mcp-Name header value 'foo' does not match body value 'bar'"),
  MissingRequiredClientCapability: McpError.missingRequiredClientCapability({ elicitation: {} }),
  UnsupportedProtocolVersion: McpError.unsupportedProtocolVersion({ supported: [newest], requested: "1900-01-01" }),
  Other: McpError.other(7, "seven", { a: 1 })
}
const errors = Object.values(one)
const code = (error: McpError.McpError, revision: Revision.Revision) => McpError.toErrorObject(error, revision).code

describe("the class", () => {
  it("each constructor sets its reason", () => {
    for (const [reason, error] of Object.entries(one)) assert.strictEqual(error.reason, reason)
  })

  it("is an Error that an effect can fail with and catchTag can catch", () => {
    const error = McpError.invalidParams("no", { at: "x" })
    assert.instanceOf(error, Error)
    assert.isTrue(McpError.isMcpError(error))
    const caught = Effect.runSync(Effect.catchTag(Effect.fail(error), "McpError", (e) => Effect.succeed(e.data)))
    assert.deepStrictEqual(caught, { at: "x" })
  })

  it("can be yielded in Effect.gen", () => {
    const exit = Effect.runSyncExit(Effect.gen(function*() {
      return yield* McpError.methodNotFound("x")
    }))
    assert.isTrue(Exit.isFailure(exit) && McpError.isMcpError(Cause.squash(exit.cause)))
  })

  it("has a stack trace only if made with `new`", () => {
    assert.strictEqual(McpError.invalidParams("no").stack, "McpError: no")
    assert.include(new McpError.McpError({ reason: "InvalidParams", message: "no" }).stack, "McpError.test")
  })

  it("is logged as its name and message, with and without a stack trace", () => {
    for (
      const error of [McpError.invalidParams("no"), new McpError.McpError({ reason: "InvalidParams", message: "no" })]
    ) {
      assert.include(Cause.pretty(Cause.fail(error)), "McpError: no")
      error.stack = "other"
      assert.strictEqual(error.stack, "other")
    }
  })

  it("is serialized as its fields", () => {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(McpError.other(7, "seven", { a: 1 }))), {
      _tag: "McpError",
      reason: "Other",
      code: 7,
      message: "seven",
      data: { a: 1 }
    })
  })

  it("quotes at most 128 characters of a method name", () => {
    assert.isBelow(McpError.methodNotFound("x".repeat(1_000_000)).message.length, 200)
    assert.isBelow(McpError.missingRequiredClientCapability({ ["x".repeat(1_000_000)]: {} }).message.length, 200)
  })

  it("writes only a reference of an internal error", () => {
    assert.deepStrictEqual(McpError.toErrorObject(McpError.internal("ref-1"), newest), {
      code: -32603,
      message: "Internal error",
      data: { reference: "ref-1" }
    })
    assert.deepStrictEqual(McpError.toErrorObject(McpError.internal(), newest), {
      code: -32603,
      message: "Internal error"
    })
  })
})

describe("writing", () => {
  it("every revision · writes the standard JSON-RPC codes", () => {
    for (const revision of Revision.all) {
      assert.strictEqual(code(one.ParseError, revision), -32700)
      assert.strictEqual(code(one.InvalidRequest, revision), -32600)
      assert.strictEqual(code(one.MethodNotFound, revision), -32601)
      assert.strictEqual(code(one.InvalidParams, revision), -32602)
      assert.strictEqual(code(one.InternalError, revision), -32603)
    }
  })

  it("up to 2025-11-25 · writes ResourceNotFound as -32002", () => {
    for (const revision of session) {
      assert.deepStrictEqual(McpError.toErrorObject(one.ResourceNotFound, revision), {
        code: -32002,
        message: "Resource not found",
        data: { uri: "file:///none" }
      })
    }
  })

  it("2026-07-28 · writes ResourceNotFound as -32602", () => {
    assert.deepStrictEqual(McpError.toErrorObject(one.ResourceNotFound, newest), {
      code: -32602,
      message: "Resource not found",
      data: { uri: "file:///none" }
    })
  })

  it("2026-07-28 · writes HeaderMismatch -32020, MissingRequiredClientCapability -32021, UnsupportedProtocolVersion -32022", () => {
    assert.deepStrictEqual(McpError.toErrorObject(one.HeaderMismatch, newest), {
      code: -32020,
      message: "Header mismatch: Mcp-Name header value 'foo' does not match body value 'bar'"
    })
    const capability = McpError.toErrorObject(one.MissingRequiredClientCapability, newest)
    assert.strictEqual(capability.code, -32021)
    assert.deepStrictEqual(capability.data, { requiredCapabilities: { elicitation: {} } })
    assert.deepStrictEqual(McpError.toErrorObject(one.UnsupportedProtocolVersion, newest), {
      code: -32022,
      message: "Unsupported protocol version",
      data: { supported: [newest], requested: "1900-01-01" }
    })
  })

  it("up to 2025-11-25 · writes UnsupportedProtocolVersion as -32602 with data.supported and data.requested", () => {
    for (const revision of session) {
      assert.deepStrictEqual(McpError.toErrorObject(one.UnsupportedProtocolVersion, revision), {
        code: -32602,
        message: "Unsupported protocol version",
        data: { supported: [newest], requested: "1900-01-01" }
      })
      assert.strictEqual(code(one.HeaderMismatch, revision), -32600)
      assert.strictEqual(code(one.MissingRequiredClientCapability, revision), -32600)
    }
  })

  it("2025-11-25 · writes UrlElicitationRequired as -32042 with the elicitations, which it MUST include", () => {
    const written = McpError.toErrorObject(one.UrlElicitationRequired, "2025-11-25")
    assert.strictEqual(written.code, -32042)
    assert.deepStrictEqual(written.data, {
      elicitations: [{ mode: "url", elicitationId: "e", url: "https://a", message: "m" }]
    })
    for (const revision of Revision.all) {
      if (revision !== "2025-11-25") assert.strictEqual(code(one.UrlElicitationRequired, revision), -32603)
    }
  })

  it.prop(
    "2026-07-28 · never writes -32002, -32042, an undefined code from -32020 to -32099, or a code that is not an integer",
    [Schema.Int.check(Schema.isBetween({ minimum: -32110, maximum: -31990 }))],
    ([number]) => {
      for (const error of [McpError.other(number, "x"), ...errors]) {
        const written = code(error, newest)
        assert.isTrue(Number.isInteger(written))
        assert.notInclude([-32002, -32042], written)
        assert.isFalse(written <= -32023 && written >= -32099, `${written}`)
      }
    }
  )

  it("2026-07-28 · writes an application's -32002 as -32602", () => {
    assert.strictEqual(code(McpError.other(-32002, "x"), newest), -32602)
    assert.strictEqual(code(McpError.other(-32042, "x"), newest), -32603)
    assert.strictEqual(code(McpError.other(-32050, "x"), newest), -32603)
    for (const forbidden of [-32023, -32099]) assert.strictEqual(code(McpError.other(forbidden, "x"), newest), -32603)
    for (const kept of [-32000, -32019, -32100, 0]) {
      assert.strictEqual(code(McpError.other(kept, "x"), newest), kept)
    }
  })

  it("2026-07-28 · replaces an application's -32020 to -32099: defined codes MUST have their specified meanings", () => {
    for (const defined of [-32020, -32021, -32022]) {
      assert.strictEqual(code(McpError.other(defined, "x", { a: 1 }), newest), -32603)
      assert.strictEqual(code(McpError.other(defined, "x"), "2025-11-25"), defined)
      // A received error keeps its meaning.
      const read = McpError.fromErrorObject({ code: defined, message: "x" }, newest)
      assert.strictEqual(code(read, newest), defined)
    }
  })

  it("every revision · keeps an application's code, and writes one that is not an integer as -32603", () => {
    for (const revision of Revision.all) {
      assert.deepStrictEqual(McpError.toErrorObject(one.Other, revision), { code: 7, message: "seven", data: { a: 1 } })
      for (const bad of [Number.NaN, 1.5, Infinity, 2 ** 60]) {
        assert.strictEqual(code(McpError.other(bad, "x"), revision), -32603)
      }
      assert.strictEqual(code(new McpError.McpError({ reason: "Other", message: "x" }), revision), -32603)
    }
  })
})

describe("reading", () => {
  const reason = (object: JsonRpc.ErrorObject, revision: Revision.Revision) =>
    McpError.fromErrorObject(object, revision).reason
  const at = (number: number, data?: unknown): JsonRpc.ErrorObject =>
    data === undefined ? { code: number, message: "m" } : { code: number, message: "m", data }

  it("reads a written error with its reason, message and data, where the revision has a code for it", () => {
    for (const revision of Revision.all) {
      for (const error of errors) {
        const back = McpError.fromErrorObject(McpError.toErrorObject(error, revision), revision)
        assert.strictEqual(back.message, error.message)
        assert.deepStrictEqual(back.data, error.data)
        const lost = error.reason === "UrlElicitationRequired"
          ? revision !== "2025-11-25"
          : revision !== newest && ["HeaderMismatch", "MissingRequiredClientCapability"].includes(error.reason)
        if (!lost) assert.strictEqual(back.reason, error.reason, `${revision} ${error.reason}`)
      }
    }
  })

  it("2026-07-28 · reads -32002 as ResourceNotFound, as clients SHOULD", () => {
    for (const revision of Revision.all) assert.strictEqual(reason(at(-32002), revision), "ResourceNotFound")
  })

  it("2026-07-28 · reads -32602 as ResourceNotFound where data has a URI, else as InvalidParams", () => {
    assert.strictEqual(reason(at(-32602, { uri: "a:b" }), newest), "ResourceNotFound")
    for (const data of [undefined, null, 1, "uri", [], { uri: 1 }, Object.create({ uri: "a:b" })]) {
      assert.strictEqual(reason(at(-32602, data), newest), "InvalidParams")
    }
    assert.strictEqual(reason(at(-32602, { uri: "a:b" }), "2025-11-25"), "InvalidParams")
  })

  it("2026-07-28 · reads -32000 to -32019 except -32002 as Other: receivers MUST NOT assume any specific meaning", () => {
    for (let code = -32019; code <= -32000; code++) {
      if (code === -32002) continue
      for (const data of [undefined, { requiredCapabilities: {} }, { supported: [], requested: "x" }, { uri: "a:b" }]) {
        for (const revision of Revision.all) assert.strictEqual(reason(at(code, data), revision), "Other")
        assert.isFalse(McpError.isStateless({ ...at(code, data), message: "Header mismatch: x" }))
      }
    }
  })

  it("SEP-2243 · reads -32001 as HeaderMismatch only where the message says so", () => {
    const draft = {
      code: -32001,
      message: "Header mismatch: Mcp-Name header value 'foo' does not match body value 'bar'"
    }
    for (const revision of Revision.all) {
      assert.strictEqual(reason(draft, revision), "HeaderMismatch")
      assert.strictEqual(reason({ code: -32001, message: "Session not found" }, revision), "Other")
      assert.strictEqual(reason({ code: -32001, message: "No header mismatch" }, revision), "Other")
    }
  })

  it("keeps an unknown code, and writes it unchanged", () => {
    const object = at(4711, ["x"])
    const error = McpError.fromErrorObject(object, newest)
    assert.strictEqual(error.reason, "Other")
    for (const revision of Revision.all) assert.deepStrictEqual(McpError.toErrorObject(error, revision), object)
  })

  it("converts -32002 of an older server to -32602 for a 2026-07-28 client, and back", () => {
    const up = McpError.toErrorObject(McpError.fromErrorObject(at(-32002, { uri: "a:b" }), "2025-06-18"), newest)
    assert.strictEqual(up.code, -32602)
    assert.strictEqual(McpError.toErrorObject(McpError.fromErrorObject(up, newest), "2025-06-18").code, -32002)
  })

  it.prop("does not throw for any data", [Schema.Int, Schema.Unknown], ([number, data]) => {
    for (const revision of Revision.all) {
      const back = McpError.fromErrorObject({ code: number, message: "m", data }, revision)
      assert.strictEqual(back.message, "m")
      assert.strictEqual(back.code, number)
    }
  })

  it("2026-07-28 · recognizes the errors after which a probing client must not fall back to initialize", () => {
    for (const reason of ["HeaderMismatch", "MissingRequiredClientCapability", "UnsupportedProtocolVersion"] as const) {
      assert.isTrue(McpError.isStateless(McpError.toErrorObject(one[reason], newest)))
    }
    for (const code of [-32000, -32002, -32019, -32023, -32600, -32602]) assert.isFalse(McpError.isStateless(at(code)))
  })
})
