import * as Json from "@skein/protocol/Json"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Spec from "./oracle/Spec.ts"
import * as Validate from "./oracle/Validate.ts"

const message = (members: object) => JsonRpc.parse({ jsonrpc: "2.0", ...members })
const refused = (value: unknown): JsonRpc.Invalid => {
  const read = JsonRpc.parse(value)
  assert.strictEqual(read._tag, "Invalid")
  return read as JsonRpc.Invalid
}

const Id = Schema.Union([Schema.String, Schema.Int])
const Code = Schema.Int.check(Schema.isBetween({ minimum: -40_000, maximum: 40_000 }))
const JsonObject = Schema.Record(Schema.String, Schema.Json)
/** A value after a JSON round trip: -0 is 0, and `__proto__` is an ordinary member. */
const plain = <A>(value: A): A => JSON.parse(Json.wellFormed(JSON.stringify(value))) as A

describe("reading", () => {
  it("every revision · reads a request: a string or integer id, a method, and an object as params", () => {
    assert.deepStrictEqual(message({ id: "a", method: "ping" }), JsonRpc.request("a", "ping"))
    assert.deepStrictEqual(message({ id: 0, method: "m", params: { a: 1 } }), JsonRpc.request(0, "m", { a: 1 }))
    assert.deepStrictEqual(message({ id: "", method: "" }), JsonRpc.request("", ""))
    assert.deepStrictEqual(message({ id: -1, method: "m", params: {} }), JsonRpc.request(-1, "m", {}))
  })

  it("every revision · reads a message without an id as a notification", () => {
    assert.deepStrictEqual(message({ method: "m" }), JsonRpc.notification("m"))
    assert.deepStrictEqual(message({ method: "m", params: { a: [] } }), JsonRpc.notification("m", { a: [] }))
  })

  it("every revision · reads a response: a result or an error, and an id", () => {
    assert.deepStrictEqual(message({ id: 1, result: {} }), JsonRpc.success(1, {}))
    assert.deepStrictEqual(
      message({ id: 1, error: { code: 1, message: "" } }),
      JsonRpc.failure(1, { code: 1, message: "" })
    )
    assert.deepStrictEqual(
      message({ id: 1, error: { code: -32603, message: "m", data: null } }),
      JsonRpc.failure(1, { code: -32603, message: "m", data: null })
    )
  })

  it("2025-11-25 and later · reads an error response without an id, or with an id of null", () => {
    const error = { code: -32700, message: "m" }
    assert.deepStrictEqual(message({ error }), JsonRpc.failure(undefined, error))
    assert.deepStrictEqual(message({ id: null, error }), JsonRpc.failure(undefined, error))
  })

  it("every revision · refuses an id of null, and one that is neither a string nor an integer", () => {
    for (const id of [null, 1.5, 2 ** 53, -(2 ** 53), 1e300, true, {}, [], ["a"]]) {
      const invalid = refused({ jsonrpc: "2.0", id, method: "m" })
      assert.strictEqual(invalid.error.code, -32600)
      assert.isUndefined(invalid.id)
      assert.isFalse(invalid.answer)
    }
    assert.strictEqual(message({ id: Number.MAX_SAFE_INTEGER, method: "m" })._tag, "Request")
    assert.strictEqual(message({ id: Number.MIN_SAFE_INTEGER, method: "m" })._tag, "Request")
  })

  it("refuses an integer beyond 2^53 - 1 in the text", () => {
    for (
      const id of [
        "9007199254740992",
        "9007199254740993",
        "-9007199254740993",
        "1e400",
        "0.1",
        "1.0000000000000000001e-1"
      ]
    ) {
      assert.strictEqual(JsonRpc.parseText(`{"jsonrpc":"2.0","id":${id},"method":"m"}`)._tag, "Invalid", id)
    }
    assert.deepStrictEqual(JsonRpc.parseText(`{"jsonrpc":"2.0","id":1.0,"method":"m"}`), JsonRpc.request(1, "m"))
  })

  it("returns Invalid with the readable id for a value that is not a message", () => {
    for (const value of [null, undefined, 1, "x", true, [], [{}], {}]) assert.isUndefined(refused(value).id)
    for (
      const members of [
        { id: 7 },
        { id: 7, jsonrpc: "1.0", method: "m" },
        { id: 7, jsonrpc: 2, method: "m" },
        { id: 7, jsonrpc: "2.0", method: 1 },
        { id: 7, jsonrpc: "2.0", method: {} },
        { id: 7, jsonrpc: "2.0", method: null },
        { id: 7, jsonrpc: "2.0", method: "m", params: [] },
        { id: 7, jsonrpc: "2.0", method: "m", params: "x" },
        { id: 7, jsonrpc: "2.0", params: {} }
      ]
    ) {
      const invalid = refused(members)
      assert.strictEqual(invalid.id, 7)
      assert.strictEqual(invalid.error.code, -32600)
      assert.isFalse(invalid.answer, JSON.stringify(members))
    }
  })

  it("every revision · marks an invalid notification, since the receiver MUST NOT send a response", () => {
    for (const params of [[], [1], "x", 5, true]) {
      assert.deepStrictEqual(refused({ jsonrpc: "2.0", method: "m", params }), {
        _tag: "Invalid",
        answer: false,
        notification: true,
        id: undefined,
        error: { code: -32600, message: "Invalid Request: \"params\" must be an object" }
      })
      // With an id, even an invalid one, it is a request.
      for (const id of [7, null, 1.5]) {
        assert.isUndefined(refused({ jsonrpc: "2.0", id, method: "m", params }).notification)
      }
    }
    for (const members of [{ method: 1 }, { method: null }, {}]) {
      assert.isUndefined(refused({ jsonrpc: "2.0", params: {}, ...members }).notification)
    }
  })

  it("marks an invalid response, which must not be responded to", () => {
    for (
      const members of [
        { id: 7, result: {} },
        { id: 7, jsonrpc: "1.0", error: { code: 1, message: "m" } },
        { id: 7, jsonrpc: "2.0", result: [] },
        { id: 7, jsonrpc: "2.0", result: "x" },
        { id: 7, jsonrpc: "2.0", error: null },
        { id: 7, jsonrpc: "2.0", error: "x" },
        { id: 7, jsonrpc: "2.0", error: [] },
        { id: 7, jsonrpc: "2.0", error: {} },
        { id: 7, jsonrpc: "2.0", error: { code: 1 } },
        { id: 7, jsonrpc: "2.0", error: { code: 1.5, message: "m" } },
        { id: 7, jsonrpc: "2.0", error: { code: "1", message: "m" } },
        { id: 7, jsonrpc: "2.0", error: { code: 1, message: 1 } }
      ]
    ) {
      const invalid = refused(members)
      assert.isTrue(invalid.answer, JSON.stringify(members))
      assert.strictEqual(invalid.id, 7)
    }
    for (const id of [undefined, null, 1.5, true]) {
      const invalid = refused({ jsonrpc: "2.0", id, result: {} })
      assert.isTrue(invalid.answer)
      assert.isUndefined(invalid.id)
    }
    assert.isTrue(refused({ jsonrpc: "2.0", id: 1.5, error: { code: 1, message: "m" } }).answer)
  })

  it("reads members of null as absent", () => {
    assert.deepStrictEqual(message({ id: 1, result: null }), JsonRpc.success(1, {}))
    assert.deepStrictEqual(message({ id: 1, result: null, error: null }), JsonRpc.success(1, {}))
    assert.deepStrictEqual(message({ id: 1, result: {}, error: null }), JsonRpc.success(1, {}))
    assert.deepStrictEqual(message({ id: 1, method: null, result: {}, error: null }), JsonRpc.success(1, {}))
    assert.deepStrictEqual(
      message({ id: 1, result: null, error: { code: 1, message: "m" } }),
      JsonRpc.failure(1, { code: 1, message: "m" })
    )
    const request = message({ id: 1, method: "m", params: null, result: null, error: null })
    assert.deepStrictEqual(request, JsonRpc.request(1, "m"))
    assert.deepStrictEqual(message({ method: "m", params: null }), JsonRpc.notification("m"))
  })

  it("ignores unknown members, also in an error", () => {
    assert.deepStrictEqual(message({ id: 1, method: "m", extra: 1, _tag: "x" }), JsonRpc.request(1, "m"))
    assert.deepStrictEqual(message({ method: "m", extra: {} }), JsonRpc.notification("m"))
    assert.deepStrictEqual(message({ id: 1, result: { a: 1 }, extra: 1 }), JsonRpc.success(1, { a: 1 }))
    assert.deepStrictEqual(
      message({ id: 1, error: { code: 1, message: "m", stack: "s" }, extra: 1 }),
      JsonRpc.failure(1, { code: 1, message: "m" })
    )
  })

  it("CVE-2026-27896 · matches names exactly, and reads no members through an own __proto__", () => {
    for (
      const text of [
        `{"jsonrpc":"2.0","id":1,"Method":"m"}`,
        `{"JSONRPC":"2.0","id":1,"method":"m"}`,
        `{"__proto__":{"jsonrpc":"2.0","id":1,"method":"m"}}`,
        `{"jsonrpc":"2.0","id":1,"__proto__":{"method":"m"}}`,
        `{"jsonrpc":"2.0","id":1,"error":{"__proto__":{"code":1,"message":"m"}}}`
      ]
    ) assert.strictEqual(JsonRpc.parseText(text)._tag, "Invalid", text)
  })

  it("every revision · returns a parse error without an id for text that is not JSON", () => {
    for (
      const text of ["", " ", "{", "{\"jsonrpc\":\"2.0\"", "undefined", "NaN", "'x'", "{}{}", "\u0000", "{\"a\":1,}"]
    ) {
      assert.deepStrictEqual(JsonRpc.parseText(text), {
        _tag: "Invalid",
        answer: false,
        id: undefined,
        error: { code: -32700, message: "Parse error: not valid JSON" }
      })
    }
  })

  it("does not throw for text nested a million levels deep", () => {
    for (
      const text of ["[".repeat(1_000_000), "{\"a\":".repeat(1_000_000), "[".repeat(100_000) + "]".repeat(100_000)]
    ) {
      assert.include(["Invalid", "Batch"], JsonRpc.parseText(text)._tag)
    }
  })

  const tags = ["Request", "Notification", "Success", "Failure", "Invalid", "Batch"]
  const check = (read: JsonRpc.Inbound): void => {
    assert.include(tags, read._tag)
    if (read._tag === "Batch") return read.members.forEach(check)
    if (read._tag === "Request" || read._tag === "Success") assert.isTrue(JsonRpc.isId(read.id))
    if (read._tag !== "Notification" && read.id !== undefined) assert.isTrue(JsonRpc.isId(read.id))
    if (read._tag === "Invalid") assert.include([-32700, -32600], read.error.code)
  }

  it.prop("does not throw for fuzzed text", [Schema.String], ([text]) => {
    check(JsonRpc.parseText(text))
    check(JsonRpc.parseText(`{"jsonrpc":"2.0",${text}}`))
    check(JsonRpc.parseText(`[${text}]`))
  })

  it.prop("does not throw for fuzzed JSON", [Schema.Json], ([json]) => {
    check(JsonRpc.parse(json))
    check(JsonRpc.parseText(JSON.stringify(json)))
  })

  const Odd = Schema.Union([Schema.Json, Id, JsonObject, Schema.Undefined])
  const Envelope = Schema.Struct({
    jsonrpc: Schema.Literals(["2.0", "1.0"]),
    id: Odd,
    method: Odd,
    params: Odd,
    result: Odd,
    error: Odd
  })
  it.prop(
    "does not throw for fuzzed envelopes, and returns their members",
    [Envelope],
    ([envelope]) => {
      const value = plain(envelope)
      const read = JsonRpc.parse(value)
      check(read)
      if (read._tag === "Request" || read._tag === "Notification") {
        assert.strictEqual(read.method, value.method)
        assert.strictEqual<unknown>(read.params, value.params ?? undefined)
      }
      if (read._tag === "Success") assert.deepStrictEqual<unknown>(read.result, value.result ?? {})
    },
    { arbitrary: { runs: 500 } }
  )
})

describe("writing", () => {
  it("writes members in the usual order, and leaves out absent ones", () => {
    assert.strictEqual(JsonRpc.encode(JsonRpc.request(1, "m")), `{"jsonrpc":"2.0","id":1,"method":"m"}`)
    assert.strictEqual(
      JsonRpc.encode(JsonRpc.request("a", "m", {})),
      `{"jsonrpc":"2.0","id":"a","method":"m","params":{}}`
    )
    assert.strictEqual(JsonRpc.encode(JsonRpc.notification("m")), `{"jsonrpc":"2.0","method":"m"}`)
    assert.strictEqual(JsonRpc.encode(JsonRpc.success(1, { a: 1 })), `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`)
    assert.strictEqual(
      JsonRpc.encode(JsonRpc.failure(undefined, { code: 1, message: "m" })),
      `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`
    )
  })

  it("writes an Encoded result as it is", () => {
    const text = `{"tools":[ ]}`
    assert.strictEqual(
      JsonRpc.encode(JsonRpc.success(1, new JsonRpc.Encoded(text))),
      `{"jsonrpc":"2.0","id":1,"result":${text}}`
    )
  })

  it("replaces surrogates without a partner by U+FFFD in every kind of message, and in names of members", () => {
    const half = "\ud83d"
    const params = { [`a${half}`]: `${half}b`, list: [`\udc00${half}`], whole: "👍" }
    const expected = { "a\ufffd": "\ufffdb", list: ["\ufffd\ufffd"], whole: "👍" }
    for (
      const message of [
        JsonRpc.request(1, "m", params),
        JsonRpc.notification("m", params),
        JsonRpc.success(1, params),
        JsonRpc.success(1, new JsonRpc.Encoded(JSON.stringify(params))),
        JsonRpc.failure(1, { code: 1, message: "m", data: params })
      ]
    ) {
      const text = JsonRpc.encode(message)
      assert.notMatch(text, /\\ud/)
      assert.deepStrictEqual(new TextDecoder().decode(new TextEncoder().encode(text)), text)
      const read = JsonRpc.parseText(text) as unknown as { readonly [name: string]: { readonly data?: unknown } }
      assert.deepStrictEqual<unknown>(read["params"] ?? read["result"] ?? read["error"]?.data, expected)
    }
    // The peer that wrote the id finds its request by it.
    const failed = JsonRpc.encode(JsonRpc.failure(half, { code: 1, message: half }))
    assert.strictEqual(failed, `{"jsonrpc":"2.0","id":"\\ud83d","error":{"code":1,"message":"\ufffd"}}`)
  })

  it("leaves texts with backslashes and escaped surrogate pairs as they are", () => {
    const params = { path: String.raw`C:\ud83d\\udc4d`, escape: "\\ud83d" }
    assert.deepStrictEqual(JsonRpc.parseText(JsonRpc.encode(JsonRpc.request(1, "m", params))), {
      _tag: "Request",
      id: 1,
      method: "m",
      params
    })
    for (
      const text of [String.raw`{"a":"\ud83d\udc4d"}`, String.raw`{"a":"\\ud83d"}`, String.raw`{"a":"\uD83D\uDC4D"}`]
    ) {
      assert.strictEqual(new JsonRpc.Encoded(text).text, text)
    }
    for (const text of [String.raw`{"a":"\uD83D"}`, String.raw`{"a":"\uD83D\u0041"}`, "{\"a\":\"\ud83d\"}"]) {
      assert.isTrue(JSON.parse(new JsonRpc.Encoded(text).text).a.startsWith("\ufffd"))
    }
  })

  it.prop("writes a request that parses to itself", [Id, Schema.String, JsonObject], ([id, method, params]) => {
    const request = plain(JsonRpc.request(id, method, params))
    assert.deepStrictEqual(JsonRpc.parseText(JsonRpc.encode(request)), request)
  })

  it.prop("writes a notification that parses to itself", [Schema.String, JsonObject], ([method, params]) => {
    const notification = plain(JsonRpc.notification(method, params))
    assert.deepStrictEqual(JsonRpc.parseText(JsonRpc.encode(notification)), notification)
  })

  it.prop("writes a success that parses to itself", [Id, JsonObject], ([id, result]) => {
    const success = plain(JsonRpc.success(id, result))
    assert.deepStrictEqual(JsonRpc.parseText(JsonRpc.encode(success)), success)
    const encoded = JsonRpc.success(success.id, new JsonRpc.Encoded(JSON.stringify(result)))
    assert.deepStrictEqual(JsonRpc.parseText(JsonRpc.encode(encoded)), success)
  })

  it.prop(
    "writes a failure that parses to itself",
    [Schema.Union([Id, Schema.Undefined]), Code, Schema.String, Schema.Json],
    ([id, code, message, data]) => {
      const error = plain({ code, message, data })
      const failure = JsonRpc.failure(id === undefined ? id : plain(id), error)
      assert.deepStrictEqual(JsonRpc.parseText(JsonRpc.encode(failure)), failure)
    }
  )

  it.prop("writes no line break", [Id, Schema.String, JsonObject], ([id, text, params]) => {
    for (
      const line of [JsonRpc.request(id, text, params), JsonRpc.failure(id, { code: 1, message: text, data: params })]
    ) {
      assert.notMatch(JsonRpc.encode(line), /[\n\r]/)
    }
  })

  it("throws for a value without a JSON form", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    let deep: Record<string, unknown> = {}
    for (let i = 0; i < 200_000; i++) deep = { deep }
    for (const result of [cycle, { big: 1n }, { toJSON: () => undefined }]) {
      assert.throws(() => JsonRpc.encode(JsonRpc.success(1, result)), TypeError)
      assert.throws(() => JsonRpc.encode(JsonRpc.request(1, "m", result)), TypeError)
    }
    assert.throws(() => JsonRpc.encode(JsonRpc.success(1, deep)), RangeError)
  })
})

Spec.describeSpec("the official schemas", () => {
  const result = (revision: Revision.Revision) => revision === "2026-07-28" ? { resultType: "complete" } : {}
  const names = (document: Spec.Document) => ({
    success: document.definitions["JSONRPCResultResponse"] === undefined ? "JSONRPCResponse" : "JSONRPCResultResponse",
    failure: document.definitions["JSONRPCErrorResponse"] === undefined ? "JSONRPCError" : "JSONRPCErrorResponse"
  })

  for (const revision of Revision.all) {
    it.prop(
      `${revision} · written messages validate against the official schema`,
      [Id, Schema.String, JsonObject, Code],
      ([id, text, params, code]) => {
        const document = Spec.load(revision)
        const { failure, success } = names(document)
        const refusal = (definition: string, message: JsonRpc.Message) =>
          Validate.refusal(document, definition, JSON.parse(JsonRpc.encode(message)))
        // The model checks `_meta` and a token in it; the envelope does not.
        const { _meta: _, ...rest } = params
        assert.isUndefined(refusal("JSONRPCRequest", JsonRpc.request(id, text, rest)))
        assert.isUndefined(refusal("JSONRPCNotification", JsonRpc.notification(text, rest)))
        assert.isUndefined(refusal(success, JsonRpc.success(id, { ...rest, ...result(revision) })))
        assert.isUndefined(refusal(failure, JsonRpc.failure(id, { code, message: text, data: params })))
      }
    )

    it.prop(
      `${revision} · refuses exactly the envelopes that the official schema refuses`,
      [
        Schema.Union([Id, Schema.Null, Schema.Undefined, Schema.Finite, Schema.Boolean]),
        Schema.Union([Schema.String, Schema.Undefined, Schema.Int]),
        // `null` is read as absent, although the schemas refuse it.
        Schema.Union([JsonObject, Schema.Undefined, Schema.Array(Schema.Json)])
      ],
      ([id, method, params]) => {
        if (params !== undefined) delete (params as Record<string, unknown>)["_meta"]
        const value = plain({ jsonrpc: "2.0", id, method, params }) as { readonly id?: unknown }
        const document = Spec.load(revision)
        // The schema of a notification allows an id, which the specification forbids.
        const accepted = Validate.refusal(document, "JSONRPCRequest", value) === undefined ||
          (value.id === undefined && Validate.refusal(document, "JSONRPCNotification", value) === undefined)
        const unsafe = typeof value.id === "number" && !Number.isSafeInteger(value.id)
        assert.strictEqual(JsonRpc.parse(value)._tag !== "Invalid", accepted && !unsafe)
      }
    )
  }

  it("2025-11-25 and later · a written failure without an id validates", () => {
    for (const revision of ["2025-11-25", "2026-07-28"] as const) {
      const text = JsonRpc.encode(JsonRpc.failure(undefined, { code: -32700, message: "m" }))
      assert.isUndefined(Validate.refusal(Spec.load(revision), "JSONRPCErrorResponse", JSON.parse(text)))
    }
  })
})
