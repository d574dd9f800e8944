import * as Header from "@skein/protocol/Header"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Timed from "./timed.ts"

describe("encoding a value", () => {
  it("2026-07-28 · the examples of the page and of SEP-2243", () => {
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

  it("2026-07-28 · control characters MUST NOT reach a header", () => {
    for (let code = 0; code < 0x20; code++) {
      assert.match(Header.encode(`a${String.fromCharCode(code)}b`), /^=\?base64\?/)
    }
    assert.match(Header.encode("a\x7fb"), /^=\?base64\?/)
  })

  it("2026-07-28 · a value with one of the two markers stands as it is", () => {
    for (const value of ["=?base64?literal", "literal?=", "=?BASE64?x?="]) {
      assert.strictEqual(Header.encode(value), value)
    }
  })

  it("2026-07-28 · a value that matches the sentinel pattern MUST be encoded, markers that overlap included", () => {
    for (const value of ["=?base64??=", "=?base64?=", "=?base64?x?="]) {
      assert.notStrictEqual(Header.encode(value), value)
      assert.strictEqual(Header.decode(Header.encode(value)), value)
    }
  })

  it.prop(
    "what is encoded is a legal header value, needs no trimming, and decodes to itself",
    [Schema.String],
    ([text]) => {
      const value = text.replace(/\p{Surrogate}/gu, "?")
      const encoded = Header.encode(value)
      assert.match(encoded, /^(?:[!-~](?:[ -~]*[!-~])?)?$/)
      assert.strictEqual(Header.decode(encoded), value)
    }
  )

  it("a byte order mark at the start survives", () => {
    assert.strictEqual(Header.decode(Header.encode("\ufeffname")), "\ufeffname")
  })
})

describe("decoding a value", () => {
  it("SEP-2243 · valid base64 is decoded", () => {
    assert.strictEqual(Header.decode("=?base64?SGVsbG8=?="), "Hello")
    assert.strictEqual(Header.decode("=?base64??="), "")
  })

  it("SEP-2243 · invalid padding, invalid characters and what is not UTF-8 are refused", () => {
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

  it("2026-07-28 · the markers are case-sensitive and MUST appear exactly as shown; without both a value is literal", () => {
    for (const value of ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "=?base64?=", "SGVsbG8=?="]) {
      assert.strictEqual(Header.decode(value), value)
    }
  })

  it("2026-07-28 · servers MUST reject invalid characters", () => {
    for (const bad of ["a\nb", "a\rb", "a\0b", "a\x7fb", "caf\u00e9", "日"]) assert.isUndefined(Header.decode(bad), bad)
    assert.strictEqual(Header.decode("a\tb"), "a\tb")
  })

  it("SEP-2243 · extra whitespace around a value is trimmed", () => {
    assert.strictEqual(Header.decode("  foo\t "), "foo")
    assert.strictEqual(Header.decode(" \t "), "")
  })

  it.prop("never throws", [Schema.String, Schema.Boolean], ([text, wrapped]) => {
    const decoded = Header.decode(wrapped ? `=?base64?${text}?=` : text)
    assert.isTrue(decoded === undefined || typeof decoded === "string")
  })

  it("takes linear time, also for a value of a megabyte", () => {
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

  it("2026-07-28 · a value that differs MUST be refused, in the words of the page's example", () => {
    assert.strictEqual(name("foo", "bar"), "Mcp-Name header value 'foo' does not match body value 'bar'")
    assert.isUndefined(name("foo", "foo"))
    assert.isString(name("Foo", "foo"))
  })

  it("2026-07-28 · a required header that is missing or malformed MUST be refused", () => {
    assert.strictEqual(name(undefined, "foo"), "Mcp-Name header is missing")
    assert.strictEqual(name("=?base64?x?=", "foo"), "Mcp-Name header is malformed")
  })

  it("2026-07-28 · servers MUST decode an encoded value before comparing it", () => {
    assert.isUndefined(name("=?base64?Zm9v?=", "foo"))
    assert.isString(name("=?base64?Zm9v?=", "=?base64?Zm9v?="))
  })

  it("2026-07-28 · servers SHOULD compare integers numerically", () => {
    for (const header of ["42", "42.0", "4.2e1", "042"]) assert.isUndefined(name(header, 42), header)
    assert.isUndefined(name("-7", -7))
    assert.isUndefined(name("-0", 0))
    assert.isUndefined(name("3.14159", 3.14159))
    for (const header of ["41", "0x2A", "", " ", "42n", "forty-two", "4 2", "+42", "42.", "Infinity", "4_2"]) {
      assert.isString(name(header, 42), header)
    }
    for (const header of ["", "0x0", "null"]) assert.isString(name(header, 0), header)
  })

  it("2026-07-28 · integer values MUST be within the safe range", () => {
    assert.isUndefined(name("9007199254740991", Number.MAX_SAFE_INTEGER))
    assert.isUndefined(name("-9007199254740991", Number.MIN_SAFE_INTEGER))
    assert.isString(name("9007199254740992", 2 ** 53))
    assert.isString(name("9007199254740993", 2 ** 53))
  })

  it("2026-07-28 · a boolean is lowercase true or false", () => {
    assert.isUndefined(name("true", true))
    assert.isUndefined(name("false", false))
    for (const header of ["True", "1", "", "yes"]) assert.isString(name(header, true))
  })

  it("a string is compared as a string, whatever it looks like", () => {
    assert.isString(name("42.0", "42"))
    assert.isString(name("TRUE", "true"))
  })

  it("a header without a body value is refused, and none without either is fine", () => {
    assert.isString(name("foo", undefined))
    assert.isUndefined(name(undefined, undefined))
  })

  it("the method and the version are literal: no sentinel, and case-sensitive", () => {
    assert.isString(Header.mismatch("Mcp-Method", "=?base64?cGluZw==?=", "ping"))
    assert.isString(Header.mismatch("Mcp-Method", "TOOLS/CALL", "tools/call"))
    assert.isUndefined(Header.mismatch("Mcp-Method", " tools/call ", "tools/call"))
  })

  it("a surrogate without its partner compares as the replacement character that its encoding is", () => {
    assert.isUndefined(name(Header.encode("a\ud800b"), "a\ud800b"))
    assert.isString(name(Header.encode("a\ud800b"), "ab"))
  })

  it("a refusal quotes 64 characters at most", () => {
    assert.isBelow(name("x".repeat(1_000_000), "y".repeat(1_000_000))!.length, 250)
  })

  it.prop(
    "what a client writes for a value, a server accepts, and not for another",
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
  const read = (headers: Record<string, string>): Header.Lookup => {
    const lower = new Map(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]))
    return (key) => lower.get(key)
  }

  it("2026-07-28 · MCP-Protocol-Version, Mcp-Method and Mcp-Name mirror the body", () => {
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

  it("2026-07-28 · header names are case-insensitive: each key is its name in lower case", () => {
    for (const which of Object.keys(Header.names) as Array<keyof typeof Header.names>) {
      assert.strictEqual(Header.keys[which], Header.names[which].toLowerCase())
    }
    assert.strictEqual(Header.paramKeyPrefix, Header.paramPrefix.toLowerCase())
    assert.isUndefined(Header.standardMismatch(read(Header.standard(body)), body))
  })

  it("2026-07-28 · a required standard header that is missing, or that differs, MUST be refused", () => {
    const headers = Header.standard(body)
    for (const name of Object.keys(headers)) {
      const { [name]: _, ...rest } = headers
      assert.strictEqual(Header.standardMismatch(read(rest), body), `${name} header is missing`)
      assert.include(
        Header.standardMismatch(read({ ...headers, [name]: "other" }), body),
        `${name} header value 'other'`
      )
    }
  })

  it("a repeated header, joined by a comma, does not match", () => {
    assert.isString(
      Header.standardMismatch(read({ ...Header.standard(body), "Mcp-Method": "tools/call, tools/list" }), body)
    )
  })

  it("Mcp-Name is not looked at where nothing names it", () => {
    const lookup = read({
      ...Header.standard({ protocolVersion: "2026-07-28", method: "tools/list" }),
      "Mcp-Name": "x"
    })
    assert.isUndefined(Header.standardMismatch(lookup, { protocolVersion: "2026-07-28", method: "tools/list" }))
  })
})
