import * as MetaKey from "@skein/protocol/MetaKey"
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Timed from "./timed.ts"

const label = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
const rule = new RegExp(`^(?:${label}(?:\\.${label})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)

describe("MetaKey", () => {
  it("2026-07-28 · parses a key into an optional prefix and a name", () => {
    assert.deepStrictEqual(MetaKey.parse("io.modelcontextprotocol/clientInfo"), {
      labels: ["io", "modelcontextprotocol"],
      name: "clientInfo"
    })
    assert.deepStrictEqual(MetaKey.parse("progressToken"), { labels: [], name: "progressToken" })
    assert.isUndefined(MetaKey.parse("a/b/c"))
    assert.isUndefined(MetaKey.parse("/name"))
  })

  it("2026-07-28 · labels MUST start with a letter and end with a letter or digit, with hyphens inside", () => {
    for (const good of ["a/x", "a1/x", "a-b.c-d/x", "x--y/x", "A.B9/x"]) assert.isTrue(MetaKey.isValid(good), good)
    for (const bad of ["1a/x", "-a/x", "a-/x", "a..b/x", ".a/x", "a./x", "a_b/x", "ä/x", "a b/x", "a\n/x"]) {
      assert.isFalse(MetaKey.isValid(bad), bad)
    }
  })

  it("2026-07-28 · a name, unless empty, MUST begin and end with an alphanumeric character", () => {
    for (const good of ["", "a", "9", "a-b_c.d", "com.example/", "com.example/9"]) {
      assert.isTrue(MetaKey.isValid(good), good)
    }
    for (const bad of ["-a", "a-", "_a", "a.", ".", "a b", "é", "a\u0000b", "com.example/-", "com.example/a_"]) {
      assert.isFalse(MetaKey.isValid(bad), bad)
    }
  })

  it("2026-07-28 · reserves a prefix whose second label is modelcontextprotocol or mcp", () => {
    for (
      const key of [
        "io.modelcontextprotocol/x",
        "dev.mcp/",
        "org.modelcontextprotocol.api/x",
        "com.mcp.tools/x",
        "com.mcp/not a name"
      ]
    ) assert.isTrue(MetaKey.isReserved(key), key)
    for (
      const key of [
        "com.example.mcp/x",
        "mcp/x",
        "modelcontextprotocol.io/x",
        "mcp.dev/x",
        "com.mcpx/x",
        "com.mcp",
        "",
        "x",
        "com.mcp./x"
      ]
    ) {
      assert.isFalse(MetaKey.isReserved(key), key)
    }
  })

  it("2025-11-25 · reserves mcp as the second label of a prefix; 2025-06-18 · as any label but the last", () => {
    for (const key of ["modelcontextprotocol.io/x", "mcp.dev/", "api.modelcontextprotocol.org/x", "tools.mcp.com.a/"]) {
      assert.isTrue(MetaKey.isReserved(key, "2025-06-18"), key)
    }
    for (const key of ["io.modelcontextprotocol/x", "mcp/x", "com.example/x"]) {
      assert.isFalse(MetaKey.isReserved(key, "2025-06-18"), key)
    }
    for (const key of ["io.modelcontextprotocol/x", "com.mcp.tools/x", "tools.mcp.com/x"]) {
      assert.isTrue(MetaKey.isReserved(key, "2025-11-25"), key)
    }
    for (const key of ["com.example.mcp/x", "mcp.dev/x"]) assert.isFalse(MetaKey.isReserved(key, "2025-11-25"), key)
    assert.isFalse(MetaKey.isReserved("io.modelcontextprotocol/x", "2025-03-26"))
    assert.isFalse(MetaKey.isReserved("traceparent", "2025-11-25"))
    assert.isTrue(MetaKey.isReserved("progressToken", "2024-11-05"))
  })

  it("2026-07-28 · reserves progressToken, traceparent, tracestate and baggage without a prefix", () => {
    for (const key of ["progressToken", "traceparent", "tracestate", "baggage"]) {
      assert.isTrue(MetaKey.isReserved(key))
      assert.isTrue(MetaKey.isValid(key))
      assert.isFalse(MetaKey.isReserved(`com.example/${key}`))
    }
  })

  it.prop(
    "agrees with the rule as a regular expression",
    [Schema.Array(Schema.Literals(["a", "Z", "0", "-", "_", ".", "/", "é", " ", "\n"]))],
    ([characters]) => {
      const key = characters.join("")
      assert.strictEqual(MetaKey.isValid(key), key.search(rule) === 0 && !key.includes("\n"), key)
    }
  )

  it("takes linear time for a key of a megabyte", () => {
    const keys = [
      "a.".repeat(500_000) + "/",
      "a-".repeat(500_000),
      "-".repeat(1_000_000) + "/x",
      "a".repeat(1_000_000) + "_",
      "a/".repeat(500_000)
    ]
    for (const key of keys) {
      Timed.linear(() => {
        assert.isFalse(MetaKey.isValid(key))
        assert.isFalse(MetaKey.isReserved(key))
      })
    }
  })
})
