import { assert, describe, it } from "@effect/vitest"
import * as Text from "@skein/protocol/Text"
import * as Schema from "effect/Schema"

describe("clip", () => {
  it("returns a text of at most maxLength units unchanged, and cuts a longer one with an ellipsis", () => {
    assert.strictEqual(Text.clip("abc", 3), "abc")
    assert.strictEqual(Text.clip("abcd", 3), "abc…")
    assert.strictEqual(Text.clip("", 0), "")
    assert.strictEqual(Text.clip("a", 0), "…")
  })

  it("cuts at 128 units by default", () => {
    assert.strictEqual(Text.clip("a".repeat(128)), "a".repeat(128))
    assert.strictEqual(Text.clip("a".repeat(129)), `${"a".repeat(128)}…`)
  })

  it("never cuts a surrogate pair in half", () => {
    assert.strictEqual(Text.clip("ab😀c", 3), "ab…")
    assert.strictEqual(Text.clip("ab😀c", 4), "ab😀…")
    assert.strictEqual(Text.clip("\ud83d\ud83dx", 1), "\ud83d…")
  })

  it.prop("returns a prefix of the text", [Schema.String, Schema.Int], ([text, number]) => {
    const max = Math.abs(number % 20)
    const clipped = Text.clip(text, max)
    assert.isTrue(text.startsWith(clipped.replace(/…$/, "")))
    assert.isAtMost(clipped.length, max + 1)
  })
})

describe("cut", () => {
  it("returns the start of a longer text without a mark", () => {
    assert.strictEqual(Text.cut("abc", 3), "abc")
    assert.strictEqual(Text.cut("abcd", 3), "abc")
    assert.strictEqual(Text.cut("a", 0), "")
  })

  it("never cuts a surrogate pair in half", () => {
    assert.strictEqual(Text.cut("ab😀c", 3), "ab")
    assert.strictEqual(Text.cut("ab😀c", 4), "ab😀")
  })
})

describe("quote", () => {
  it("puts a text into quotes, escapes line breaks and control characters, and cuts it", () => {
    assert.strictEqual(Text.quote("add"), "\"add\"")
    assert.strictEqual(Text.quote("a\n\"b\"\u0000"), "\"a\\n\\\"b\\\"\\u0000\"")
    assert.strictEqual(Text.quote("abcdef", 3), "\"abc…\"")
    assert.strictEqual(Text.quote("x".repeat(1_000_000)).length, 131)
  })
})

describe("logValue", () => {
  it("returns a word of printable ASCII unchanged, also where it was cut", () => {
    for (const text of ["tools/call", "a\"b", "k=v"]) assert.strictEqual(Text.logValue(text), text)
    assert.strictEqual(Text.logValue("a".repeat(200)), `${"a".repeat(128)}…`)
  })

  it("quotes a text that could look like another field or another line", () => {
    assert.strictEqual(Text.logValue(""), "\"\"")
    assert.strictEqual(Text.logValue("a b"), "\"a b\"")
    assert.strictEqual(Text.logValue("a\nERROR forged"), "\"a\\nERROR forged\"")
    assert.strictEqual(Text.logValue("é"), "\"é\"")
    assert.strictEqual(Text.logValue("a\u001b[2J"), "\"a\\u001b[2J\"")
  })

  it.prop("never contains a line break", [Schema.String], ([text]) => {
    assert.notMatch(Text.logValue(text), /[\n\r]/)
  })
})

describe("printable", () => {
  it("escapes control characters, invisible characters and lone surrogates, and cuts the text", () => {
    assert.strictEqual(Text.printable("red\u001b[31m\nalert", 100), "red\\u{1b}[31m\\u{a}alert")
    assert.strictEqual(Text.printable("a\u202eb\u200bc\u2028d\ud800", 100), "a\\u{202e}b\\u{200b}c\\u{2028}d\\u{d800}")
    assert.strictEqual(Text.printable("héllo 日本 😀", 100), "héllo 日本 😀")
    assert.strictEqual(Text.printable("abcdef", 3), "abc…")
  })

  it.prop("contains no control character, whatever the text is", [Schema.String], ([text]) => {
    assert.notMatch(Text.printable(text, 1_000), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  })
})

describe("printableLines", () => {
  it("keeps line breaks and tabs, writes CRLF as LF, and escapes the rest", () => {
    assert.strictEqual(Text.printableLines("a\r\nb\tc\nd", 100), "a\nb\tc\nd")
    assert.strictEqual(Text.printableLines("a\rb\u0007", 100), "a\\u{d}b\\u{7}")
  })
})

describe("withoutColors", () => {
  it("removes colors and styles, and keeps other control sequences", () => {
    assert.strictEqual(Text.withoutColors("\u001b[1;38;5;249m3\u001b[0m │ \u001b[38:2:1:2:3ma\u001b[m"), "3 │ a")
    assert.strictEqual(Text.withoutColors("a\u001b[2Jb\u001b]0;title\u0007"), "a\u001b[2Jb\u001b]0;title\u0007")
  })
})

describe("wellFormed", () => {
  it("replaces surrogates without a partner, and keeps pairs", () => {
    assert.strictEqual(Text.wellFormed("a\ud800b\udc00c😀"), "a\ufffdb\ufffdc😀")
  })
})
