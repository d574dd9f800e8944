import { decode, encode } from "@jridgewell/sourcemap-codec"
import { describe, expect, it } from "@effect/vitest"
import { Script } from "node:vm"
import { edit } from "./eager.ts"

const code = [
  `const a = () => "5 °C", b = function() { return async x => "…" }`,
  `const o = { m() { return 1 }, get g() { return 2 }, f: () => 3, ["…"]: "…" }`,
  `class C { static m() { return () => /°/ } }`,
  `function d() { return [o, C, a(), b()] }`
].join("\n")

/** All offsets: those of the functions are among them. */
const everywhere = new Set(code.split("").keys())

const names = /\b(?:[abodC]|async|static|return)\b/g

/** A mapping for each name of the code, from itself. */
const mappingsOf = (text: string) =>
  encode(
    text.split("\n").map((line, at) =>
      Array.from(line.matchAll(names), ({ index }): [number, number, number, number] => [index, 0, at, index])
    )
  )

describe("eager", () => {
  it("puts functions in parentheses, and neither methods nor declarations", async () => {
    expect((await edit(code, "", everywhere)).code.split("\n")).toEqual([
      String.raw`const a = (() => "5 \u00b0C"), b = (function() { return (async x => "\u2026") })`,
      String.raw`const o = { m() { return 1 }, get g() { return 2 }, f: (() => 3), ["\u2026"]: "\u2026" }`,
      String.raw`class C { static m() { return (() => /\u00b0/) } }`,
      "function d() { return [o, C, a(), b()] }"
    ])
  })

  it("only escapes characters in a file of which no function ran", async () => {
    const { code: escaped } = await edit(code, "", new Set())
    expect(escaped).not.toContain("(()")
    expect(escaped).toMatch(/^[\0-\x7f]*$/)
    expect(new Script(`${escaped}; d()[2] + C.m()()`).runInThisContext()).toBe("5 °C/\\u00b0/")
  })

  it("moves the mappings with the text", async () => {
    const { code: moved, mappings } = await edit(code, mappingsOf(code), everywhere)
    const [before, after] = [code.split("\n"), moved.split("\n")]
    const segments = decode(mappings).flatMap((line, at) => line.map((segment) => ({ at, segment })))
    expect(segments).toHaveLength(code.match(names)!.length)
    for (const { at, segment: [column, , line, original] } of segments) {
      const name = before[line!]!.slice(original).match(/^\w+/)![0]
      expect(after[at]!.slice(column)).toMatch(new RegExp(`^${name}\\b`))
    }
  })

  it("lets V8 store the functions with the file", async () => {
    const text = `const a = () => { ${"console.log(1);".repeat(100)} }`
    const { code: eager } = await edit(text, "", everywhere)
    const stored = (source: string) => new Script(source).createCachedData().length
    expect(stored(eager)).toBeGreaterThan(2 * stored(text))
  })
})
