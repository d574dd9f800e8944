import * as Header from "@skein/protocol/Header"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Timed from "./timed.ts"

describe("encoding a value", () => {
  it("2026-07-28 · encodes the examples of the specification and of SEP-2243", () => {
    const examples: ReadonlyArray<readonly [string, string]> = [
      ["us-west1", "us-west1"],
      ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
      [" padded ", "=?base64?IHBhZGRlZCA=?="],
      ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
      ["line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="],
      ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
      [" us-west1", "=?base64?IHVzLXdlc3Qx?="],
      ["us-west1 ", "=?base64?dXMtd2VzdDEg?="],
      [" us-west1 ", "=?base64?IHVzLXdlc3QxIA==?="],
      ["us west 1", "us west 1"],
      ["日本語", "=?base64?5pel5pys6Kqe?="],
      ["\tindented", "=?base64?CWluZGVudGVk?="],
      ["", ""],
      ["my-tool-name", "my-tool-name"],
      ["my_tool_name", "my_tool_name"],
      ["file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"],
      ["https://example.com/resource?id=123", "https://example.com/resource?id=123"]
    ]
    for (const [value, encoded] of examples) {
      assert.strictEqual(Header.encode(value), encoded)
      assert.strictEqual(Header.decode(encoded), value)
    }
  })

  it("2026-07-28 · encodes control characters, which MUST NOT be in a header", () => {
    for (let code = 0; code < 0x20; code++) {
      assert.match(Header.encode(`a${String.fromCharCode(code)}b`), /^=\?base64\?/)
    }
    assert.match(Header.encode("a\x7fb"), /^=\?base64\?/)
  })

  it("2026-07-28 · keeps a value with only one of the two markers", () => {
    for (const value of ["=?base64?literal", "literal?=", "=?BASE64?x?="]) {
      assert.strictEqual(Header.encode(value), value)
    }
  })

  it("2026-07-28 · encodes a value that matches the sentinel pattern, overlapping markers included", () => {
    for (const value of ["=?base64??=", "=?base64?=", "=?base64?x?="]) {
      assert.notStrictEqual(Header.encode(value), value)
      assert.strictEqual(Header.decode(Header.encode(value)), value)
    }
  })

  it.prop(
    "returns a valid header value that decodes to the original",
    [Schema.String],
    ([text]) => {
      const value = text.replace(/\p{Surrogate}/gu, "?")
      const encoded = Header.encode(value)
      assert.match(encoded, /^(?:[!-~](?:[ -~]*[!-~])?)?$/)
      assert.strictEqual(Header.decode(encoded), value)
    }
  )

  it("keeps a byte order mark at the start", () => {
    assert.strictEqual(Header.decode(Header.encode("\ufeffname")), "\ufeffname")
  })
})

describe("decoding a value", () => {
  it("SEP-2243 · decodes valid base64", () => {
    assert.strictEqual(Header.decode("=?base64?SGVsbG8=?="), "Hello")
    assert.strictEqual(Header.decode("=?base64??="), "")
  })

  it("SEP-2243 · refuses invalid padding, invalid characters and text that is not UTF-8", () => {
    for (
      const bad of [
        "=?base64?SGVsbG8?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?base64?SGVsbG8==?=",
        "=?base64?SGVsbG9-?=",
        "=?base64?=AAA?=",
        "=?base64?/w==?=",
        "=?base64?SGVs bG8=?="
      ]
    ) assert.isUndefined(Header.decode(bad), bad)
  })

  it("2026-07-28 · takes a value literally unless both markers appear exactly as shown, in lower case", () => {
    for (const value of ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "=?base64?=", "SGVsbG8=?="]) {
      assert.strictEqual(Header.decode(value), value)
    }
  })

  it("2026-07-28 · refuses invalid characters: servers MUST reject them", () => {
    for (const bad of ["a\nb", "a\rb", "a\0b", "a\x7fb", "caf\u00e9", "日"]) assert.isUndefined(Header.decode(bad), bad)
    assert.strictEqual(Header.decode("a\tb"), "a\tb")
  })

  it("SEP-2243 · trims whitespace around a value", () => {
    assert.strictEqual(Header.decode("  foo\t "), "foo")
    assert.strictEqual(Header.decode(" \t "), "")
  })

  it.prop("does not throw for any text", [Schema.String, Schema.Boolean], ([text, wrapped]) => {
    const decoded = Header.decode(wrapped ? `=?base64?${text}?=` : text)
    assert.isTrue(decoded === undefined || typeof decoded === "string")
  })

  it("takes linear time for a value of a megabyte", () => {
    for (
      const value of [
        " ".repeat(1_000_000),
        " ".repeat(500_000) + "x" + " ".repeat(500_000),
        "=?base64?".repeat(100_000),
        "1".repeat(1_000_000)
      ]
    ) {
      Timed.linear(() => {
        Header.decode(value)
        assert.isString(Header.mismatch("Mcp-Param-X", value, 1))
      })
    }
  })
})

describe("comparing with the body", () => {
  const name = (header: string | undefined, body: string | number | boolean | undefined) =>
    Header.mismatch("Mcp-Name", header, body)

  it("2026-07-28 · refuses a different value, in the words of the specification's example", () => {
    assert.strictEqual(name("foo", "bar"), "Mcp-Name header value 'foo' does not match body value 'bar'")
    assert.isUndefined(name("foo", "foo"))
    assert.isString(name("Foo", "foo"))
  })

  it("2026-07-28 · refuses a missing or malformed required header", () => {
    assert.strictEqual(name(undefined, "foo"), "Mcp-Name header is missing")
    assert.strictEqual(name("=?base64?x?=", "foo"), "Mcp-Name header is malformed")
  })

  it("2026-07-28 · decodes an encoded value before comparing it: servers MUST", () => {
    assert.isUndefined(name("=?base64?Zm9v?=", "foo"))
    assert.isString(name("=?base64?Zm9v?=", "=?base64?Zm9v?="))
  })

  it("2026-07-28 · compares integers numerically: servers SHOULD", () => {
    for (const header of ["42", "42.0", "4.2e1", "042"]) assert.isUndefined(name(header, 42), header)
    assert.isUndefined(name("-7", -7))
    assert.isUndefined(name("-0", 0))
    assert.isUndefined(name("3.14159", 3.14159))
    for (const header of ["41", "0x2A", "", " ", "42n", "forty-two", "4 2", "+42", "42.", "Infinity", "4_2"]) {
      assert.isString(name(header, 42), header)
    }
    for (const header of ["", "0x0", "null"]) assert.isString(name(header, 0), header)
  })

  it("2026-07-28 · refuses integers outside the safe range", () => {
    assert.isUndefined(name("9007199254740991", Number.MAX_SAFE_INTEGER))
    assert.isUndefined(name("-9007199254740991", Number.MIN_SAFE_INTEGER))
    assert.isString(name("9007199254740992", 2 ** 53))
    assert.isString(name("9007199254740993", 2 ** 53))
  })

  it("2026-07-28 · compares a boolean with lowercase true or false", () => {
    assert.isUndefined(name("true", true))
    assert.isUndefined(name("false", false))
    for (const header of ["True", "1", "", "yes"]) assert.isString(name(header, true))
  })

  it("compares a string as a string, also one that looks like a number or a boolean", () => {
    assert.isString(name("42.0", "42"))
    assert.isString(name("TRUE", "true"))
  })

  it("refuses a header without a body value, and accepts neither", () => {
    assert.isString(name("foo", undefined))
    assert.isUndefined(name(undefined, undefined))
  })

  it("compares the method and the version literally and case-sensitively", () => {
    assert.isString(Header.mismatch("Mcp-Method", "=?base64?cGluZw==?=", "ping"))
    assert.isString(Header.mismatch("Mcp-Method", "TOOLS/CALL", "tools/call"))
    assert.isUndefined(Header.mismatch("Mcp-Method", " tools/call ", "tools/call"))
  })

  it("compares a lone surrogate as the replacement character", () => {
    assert.isUndefined(name(Header.encode("a\ud800b"), "a\ud800b"))
    assert.isString(name(Header.encode("a\ud800b"), "ab"))
  })

  it("quotes at most 64 characters of each value", () => {
    assert.isBelow(name("x".repeat(1_000_000), "y".repeat(1_000_000))!.length, 250)
  })

  it.prop(
    "accepts the encoded value and refuses it for another value",
    [Schema.String, Schema.String],
    ([a, b]) => {
      assert.isUndefined(name(Header.encode(a), a))
      const same = a.replace(/\p{Surrogate}/gu, "\ufffd") === b.replace(/\p{Surrogate}/gu, "\ufffd")
      if (!same) assert.isString(name(Header.encode(a), b))
    }
  )
})

describe("the standard headers", () => {
  const body = { protocolVersion: "2026-07-28", method: "tools/call", name: "wetter_für_日" }
  const headers = Header.standard(body)

  it("2026-07-28 · mirror the body in MCP-Protocol-Version, Mcp-Method and Mcp-Name", () => {
    assert.deepStrictEqual(
      Header.standard({ protocolVersion: "2026-07-28", method: "tools/call", name: "get_weather" }),
      {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "get_weather"
      }
    )
    assert.notProperty(Header.standard({ protocolVersion: "2026-07-28", method: "tools/list" }), "Mcp-Name")
  })

  it("2026-07-28 · have their names in lower case as keys: header names are case-insensitive", () => {
    for (const which of Object.keys(Header.names) as Array<keyof typeof Header.names>) {
      assert.strictEqual(Header.keys[which], Header.names[which].toLowerCase())
    }
    assert.strictEqual(Header.paramKeyPrefix, Header.paramPrefix.toLowerCase())
  })

  it("2026-07-28 · rejects a missing or different header", () => {
    for (const key of ["protocolVersion", "method", "name"] as const) {
      const [name, value] = [Header.names[key], body[key]]
      assert.isUndefined(Header.mismatch(name, headers[name], value))
      assert.strictEqual(Header.mismatch(name, undefined, value), `${name} header is missing`)
      assert.include(Header.mismatch(name, "other", value), `${name} header value 'other'`)
    }
  })

  it("rejects a repeated header, joined by a comma", () => {
    assert.isString(Header.mismatch(Header.names.method, "tools/call, tools/list", body.method))
  })
})
