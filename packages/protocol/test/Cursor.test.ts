import * as Cursor from "@skein/protocol/Cursor"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { assert, describe, it } from "@effect/vitest"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Timed from "./timed.ts"

const list = "tools/list"
const decode = (cursor: string) => Cursor.decode(list, cursor)
const read = (cursor: string) => Result.getOrThrow(decode(cursor))
const resume = (names: ReadonlyArray<string>, last: string) =>
  Cursor.resume(names, (name) => name, read(Cursor.encode(list, last)))

describe("a cursor", () => {
  it.prop("decodes to the name it was made from, and consists of base64url characters", [Schema.String], ([name]) => {
    for (const text of [name, `${name}\ud800`, `\udc00${name}`]) {
      const cursor = Cursor.encode(list, text)
      assert.match(cursor, /^[A-Za-z0-9_-]+$/)
      assert.strictEqual(read(cursor), text)
    }
  })

  it("every revision · invalid cursors SHOULD result in an error with code -32602 (Invalid params)", () => {
    const good = Cursor.encode(list, "a")
    for (
      const bad of [
        "",
        " ",
        "x",
        "eyJwYWdlIjogM30=",
        `${good}=`,
        ` ${good}`,
        `${good}\n`,
        good.slice(1),
        "é",
        "=",
        "A",
        Cursor.encode("prompts/list", "a"),
        Cursor.encode("", "a"),
        ...["a", "null", "7", "\"a\"", "{}", "[]", "[\"tools/list\"]", "[\"tools/list\",7]", "[\"tools/list\",\"a\",1]"]
          .map(
            (text) => Base64Url.encode(text)
          ),
        Base64Url.encode(JSON.stringify([list, "a".repeat(8193)]))
      ]
    ) {
      const result = decode(bad)
      assert.isTrue(Result.isFailure(result), bad)
      if (Result.isFailure(result)) {
        for (const revision of Revision.all) {
          assert.deepStrictEqual(McpError.toErrorObject(result.failure, revision), {
            code: -32602,
            message: "Invalid cursor"
          })
        }
      }
    }
  })

  it.prop("decode does not throw for any text", [Schema.String, Schema.Boolean], ([text, wrapped]) => {
    assert.isTrue(Result.isResult(decode(wrapped ? Base64Url.encode(`["${list}",${text}`) : text)))
  })

  it("has at most 100,000 characters for any name, and decodes to the first 8,192 units of the name", () => {
    for (const part of ["日", "\u0001", "\ud800", "😀", "a"]) {
      const cursor = Cursor.encode(list, part.repeat(100_000))
      assert.isAtMost(cursor.length, 100_000)
      assert.strictEqual(read(cursor), part.repeat(100_000).slice(0, 8192))
    }
  })

  it("decode refuses more than 100,000 characters in linear time", () => {
    const padded = (length: number) => Base64Url.encode(`["${list}","a"${" ".repeat(length)}]`)
    assert.isTrue(Result.isSuccess(decode(padded(70_000))))
    assert.isTrue(Result.isFailure(decode(padded(80_000))))
    Timed.linear(() => {
      assert.isTrue(Result.isFailure(decode("A".repeat(10_000_000))))
    })
  })
})

describe("resuming", () => {
  it("returns the index after the last entry", () => {
    const names = ["a", "b", "c", "d", "e", "f"]
    names.forEach((name, index) => assert.strictEqual(resume(names, name), index + 1))
  })

  it("returns the index after the last entry when entries before it were added or removed", () => {
    assert.strictEqual(resume(["a", "a2", "b", "c", "d"], "c"), 4)
    assert.strictEqual(resume(["c", "d"], "c"), 1)
  })

  it("returns the position of the last entry when it was removed", () => {
    assert.strictEqual(resume(["a", "b", "d", "e"], "c"), 2)
    assert.strictEqual(resume(["d", "e"], "c"), 0)
    assert.strictEqual(resume(["a", "b"], "c"), 2)
    assert.strictEqual(resume([], "c"), 0)
  })

  it("skips entries that share the first 8,192 units of the last name", () => {
    const long = "x".repeat(8192)
    const names = ["a", long, `${long}a`, `${long}\uffff\uffff`, "y"]
    for (const name of names.slice(1, 4)) assert.strictEqual(resume(names, name), 4)
    assert.strictEqual(resume([`${long.slice(1)}a`, `${long.slice(1)}b`], `${long.slice(1)}a`), 1)
  })

  it.prop(
    "returns entries that stay in a changing list exactly once",
    [Schema.Array(Schema.String), Schema.Array(Schema.String), Schema.Array(Schema.String), Schema.Int],
    ([stay, leave, come, number]) => {
      const size = Math.abs(number % 4) + 1
      const before = [...new Set([...stay, ...leave])].sort()
      const after = [...new Set([...stay, ...come])].sort()
      const given: Array<string> = []
      let now = before
      let start = 0
      for (let page = 0; start < now.length && page < 10_000; page++) {
        given.push(...now.slice(start, start + size))
        const last = given.at(-1)!
        now = page % 2 === 0 ? after : before
        start = resume(now, last)
      }
      assert.strictEqual(new Set(given).size, given.length)
      for (const name of stay) assert.include(given, name)
    },
    { arbitrary: { runs: 1000 } }
  )
})
