import * as Cursor from "@skein/protocol/Cursor"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { assert, describe, it } from "@effect/vitest"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Timed from "./timed.ts"

const list = "tools/list"
const decode = (cursor: string, options?: { readonly maxLength?: number }) => Cursor.decode(list, cursor, options)
const position = (name: string, index: number) => Result.getOrThrow(decode(Cursor.encode(list, name, index)))

describe("a cursor", () => {
  it.prop(
    "reads back, whatever the name is, and holds nothing but base64url",
    [Schema.String, Schema.Int],
    ([name, number]) => {
      const index = Math.abs(number) + 1
      const cursor = Cursor.encode(list, name, index)
      assert.match(cursor, /^[A-Za-z0-9_-]+$/)
      assert.strictEqual(Result.getOrThrow(decode(cursor)).index, index)
      const names = [...Array.from({ length: 3 }, (_, i) => `${name}${i}`), name]
      assert.strictEqual(Cursor.resume(names, position(name, 4)), 4)
    }
  )

  it("every revision · invalid cursors SHOULD result in an error with code -32602 (Invalid params)", () => {
    const good = Cursor.encode(list, "a", 1)
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
        Cursor.encode("prompts/list", "a", 1),
        ...["2.a.1.a.\"x\"", "1..1.a.\"x\"", "1.a.1.a", "1.a.-1.a.\"x\"", "1.a.0.a.\"x\""].map((text) =>
          Base64Url.encode(text)
        ),
        Cursor.encode(list, "a", 0),
        Cursor.encode(list, "a", 2 ** 54)
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

  it("a cursor whose name is not a text, or is longer than one that is written, is refused", () => {
    const [head] = Result.getOrThrow(Base64Url.decodeString(Cursor.encode(list, "a", 1))).split("\"")
    assert.isTrue(Result.isSuccess(decode(Base64Url.encode(`${head}"a"`))))
    assert.isTrue(Result.isFailure(decode(Base64Url.encode(`${head!.replace("1.", "2.")}"a"`))))
    for (const name of ["", "a", "1", "null", "[]", "\"a", `"${"a".repeat(129)}"`]) {
      assert.isTrue(Result.isFailure(decode(Base64Url.encode(head + name))), name)
    }
  })

  it.prop("never throws, whatever the text is", [Schema.String, Schema.Boolean], ([text, wrapped]) => {
    assert.isTrue(Result.isResult(decode(wrapped ? Base64Url.encode(`1.${text}`) : text)))
  })

  it("is at most 1,200 characters long, however long the name is, and reads back", () => {
    const name = "日".repeat(100_000)
    for (const text of [name, "\u0001".repeat(1000), "\ud800".repeat(1000), "😀".repeat(1000)]) {
      const cursor = Cursor.encode(list, text, Number.MAX_SAFE_INTEGER)
      assert.isAtMost(cursor.length, 1200)
      assert.strictEqual(Result.getOrThrow(decode(cursor)).name, text.slice(0, 128))
    }
    const names = [`${name}x`, name, `${name}y`]
    assert.strictEqual(Cursor.resume(names, position(name, 2)), 2)
    assert.strictEqual(Cursor.resume(["new", ...names], position(name, 2)), 3)
    for (const split of ["😀".repeat(128) + "x", "x" + "😀".repeat(200), "\u0000".repeat(500)]) {
      assert.strictEqual(Cursor.resume(["a", split], position(split, 2)), 2)
      assert.strictEqual(Cursor.resume(["a", "b", split], position(split, 2)), 3)
    }
  })

  it("is read only up to maxLength characters, 2,048 by default", () => {
    const long = Base64Url.encode(`1.a.1.a."${"x".repeat(2000)}"`)
    assert.isTrue(Result.isFailure(decode(long)))
    const good = Cursor.encode(list, "name", 1)
    assert.isTrue(Result.isSuccess(decode(good, { maxLength: good.length })))
    assert.isTrue(Result.isFailure(decode(good, { maxLength: good.length - 1 })))
    Timed.within(50, () => {
      assert.isTrue(Result.isFailure(decode("A".repeat(10_000_000))))
    })
  })
})

describe("resuming", () => {
  const names = ["a", "b", "c", "d", "e", "f"]
  const at = (now: ReadonlyArray<string>, name: string, index: number, sorted = true) =>
    Cursor.resume(now, position(name, index), { sorted })

  it("a list that did not change goes on behind the last entry, and ends", () => {
    for (let index = 1; index <= names.length; index++) assert.strictEqual(at(names, names[index - 1]!, index), index)
  })

  it("a name with the same digest is another name", () => {
    // A known collision of FNV-1a.
    assert.strictEqual(at(["costarring", "liquid", "z"], "liquid", 1), 2)
    assert.strictEqual(at(["costarring", "z"], "liquid", 1), 1)
    assert.strictEqual(at(["costarring", "z"], "liquid", 1, false), 0)
  })

  it("entries that came or went in front: behind the last entry all the same", () => {
    assert.strictEqual(at(["a", "a2", "b", "c", "d"], "c", 3), 4)
    assert.strictEqual(at(["c", "d"], "c", 3), 1)
    assert.strictEqual(at(["z", "c", "a"], "c", 3, false), 2)
  })

  it("the last entry is gone: where it would stand in a sorted list", () => {
    assert.strictEqual(at(["a", "b", "d", "e"], "c", 3), 2)
    assert.strictEqual(at(["d", "e"], "c", 3), 0)
    assert.strictEqual(at(["a", "a1", "a2", "b", "b2", "d"], "c", 3), 5)
    assert.strictEqual(at(["a", "b"], "c", 3), 2)
    assert.strictEqual(at([], "c", 3), 0)
  })

  it("the last entry is gone: at its old index in a list that is not sorted", () => {
    assert.strictEqual(at(["f", "b", "d", "e"], "c", 3, false), 2)
    assert.strictEqual(at(["f"], "c", 3, false), 1)
    assert.strictEqual(at([], "c", 3, false), 0)
  })

  it.prop(
    "a sorted list that changes between pages: whatever stays in it is given exactly once",
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
        const end = Math.min(start + size, now.length)
        const cursor = Cursor.encode(list, now[end - 1]!, end)
        now = page % 2 === 0 ? after : before
        start = Cursor.resume(now, Result.getOrThrow(decode(cursor)), { sorted: true })
      }
      assert.strictEqual(new Set(given).size, given.length)
      for (const name of stay) assert.include(given, name)
    },
    { arbitrary: { runs: 1000 } }
  )
})
