import { globSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { alone, lists } from "../vitest.workspace.ts"

const root = join(import.meta.dirname, "..")

/** Returns the patterns without braces that a pattern stands for. */
const expand = (pattern: string): ReadonlyArray<string> => {
  const at = /^(.*?)\{((?:[^{}]|\{[^{}]*\})*)\}(.*)$/.exec(pattern)
  if (at === null) return [pattern]
  const [, before, inside, after] = at
  const alternatives = inside!.split(/,(?![^{]*\})/)
  return alternatives.flatMap((alternative) => expand(`${before}${alternative}${after}`))
}

const files = (patterns: ReadonlyArray<string>): ReadonlyArray<string> =>
  patterns.flatMap((pattern) => globSync(pattern, { cwd: root }))

describe("the tiers of tests", () => {
  it("expands braces in braces", () => {
    expect(expand("a/{b,c/{d,e},f/*}.ts")).toEqual(["a/b.ts", "a/c/d.ts", "a/c/e.ts", "a/f/*.ts"])
  })

  it("lists only files that exist", () => {
    const patterns = [...alone, ...Object.values(lists).flat()].flatMap(expand)
    expect(patterns.filter((pattern) => globSync(pattern, { cwd: root }).length === 0)).toEqual([])
  })

  it("lists a file at most once", () => {
    const listed = files(Object.values(lists).flat())
    expect(listed.filter((file, at) => listed.indexOf(file) !== at)).toEqual([])
    expect(files(alone).filter((file) => listed.includes(file))).toEqual([])
  })
})
