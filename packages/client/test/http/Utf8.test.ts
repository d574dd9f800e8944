/** UTF-8 in chunks, compared with what the platform makes of the same bytes. */
import { describe, expect, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { Utf8 } from "../../src/internal/http/utf8.ts"

const read = (chunks: ReadonlyArray<Uint8Array>): ReadonlyArray<string> => {
  const reader = new Utf8()
  return [...chunks.map((chunk) => reader.read(chunk)), reader.end()]
}

const streamed = (chunks: ReadonlyArray<Uint8Array>): ReadonlyArray<string> => {
  const decoder = new TextDecoder()
  return [...chunks.map((chunk) => decoder.decode(chunk, { stream: true })), decoder.decode()]
}

const bytes = (...parts: ReadonlyArray<string | number>) =>
  Uint8Array.from(parts.flatMap((part) => typeof part === "string" ? [...new TextEncoder().encode(part)] : [part]))

describe("UTF-8 in chunks", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Uint8Array>]> = [
    ["nothing", []],
    ["empty chunks", [bytes(), bytes("a"), bytes()]],
    ["chunks of ASCII", [bytes("data: a\n"), bytes("\n")]],
    ["whole characters before ASCII", [bytes("é€😀."), bytes("é€😀.")]],
    ["a character in two chunks", [bytes("a", 0xe2, 0x82), bytes(0xac, "b"), bytes("é.")]],
    ["a byte order mark", [bytes("\ufeffa"), bytes("b")]],
    ["a byte order mark in two chunks", [bytes(0xef), bytes(0xbb, 0xbf, "a")]],
    ["a byte order mark by itself, and then another", [bytes("\ufeff"), bytes("\ufeffa")]],
    ["a byte order mark after the beginning, which is a character", [bytes("a"), bytes("\ufeffb"), bytes("\ufeffé")]],
    ["an empty chunk before a byte order mark", [bytes(), bytes("\ufeffa")]],
    ["what is no UTF-8", [bytes("a", 0xff, "b"), bytes(0xe2, "b"), bytes(0x80, "c")]],
    ["an end within a character", [bytes("a"), bytes(0xe2, 0x82)]]
  ]
  for (const [what, chunks] of cases) {
    it(what, () => {
      expect(read(chunks)).toEqual(streamed(chunks))
    })
  }

  // Often of what matters: ASCII, the parts of a character, and the parts of a byte order mark.
  const byte = Schema.Literals([0x61, 0x0a, 0xe2, 0x82, 0xac, 0xef, 0xbb, 0xbf, 0xff])
  it.prop("any bytes, cut anywhere, as one decoder reads them", [Schema.Array(Schema.Array(byte))], ([chunks]) => {
    const cut = chunks.map((chunk) => Uint8Array.from(chunk))
    expect(read(cut).join("")).toBe(streamed(cut).join(""))
  })
})
