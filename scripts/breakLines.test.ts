/** Minified code with broken lines: it has the same effect, and its source map the same positions. */
import { describe, expect, it } from "@effect/vitest"
import { SourceMap } from "node:module"
import { minifySync } from "rolldown/utils"
import { breakLines, lineLimit } from "./breakLines.ts"

/** A module with many functions, classes and objects, and with texts that have line breaks. */
const source = Array.from({ length: 60 }, (_, at) => `
  const text${at} = (value) => \`\${value}${
  at % 20 === 10 ? "\n" : " "
}of \${(() => { const next = value + ${at}; return next })()}\`
  class Box${at} { value = ${at}; get double() { return this.value * 2 } add(other) { return this.value + other } }
  export const made${at} = { text: text${at}(${at}), double: new Box${at}().double, sum: new Box${at}().add(1) }
`).join("")

const { code, map } = minifySync("source.js", source, { sourcemap: true })
const broken = breakLines(code, map!.mappings)

const load = (code: string): Promise<unknown> => import(`data:text/javascript,${encodeURIComponent(code)}`)

/** The place of each `new` in the code, as it is in the source. */
const placesOf = (code: string, mappings: string) => {
  const read = new SourceMap({ ...map!, mappings } as never)
  return code.split("\n").flatMap((line, at) =>
    Array.from(line.matchAll(/new (?=\w)/g), ({ index }) => {
      const { originalColumn, originalLine } = read.findEntry(at, index) as SourceMapping
      return `${originalLine}:${originalColumn}`
    })
  )
}

interface SourceMapping {
  readonly originalLine: number
  readonly originalColumn: number
}

describe("breakLines", () => {
  it("limits the lines, and changes nothing but them", async () => {
    const longest = (text: string) => Math.max(...text.split("\n").map((line) => line.length))
    expect(longest(code)).toBeGreaterThan(10 * lineLimit)
    expect(longest(broken.code)).toBeLessThan(2 * lineLimit)
    expect({ ...await load(broken.code) as object }).toEqual({ ...await load(code) as object })
    expect(minifySync("source.js", broken.code).code).toBe(minifySync("source.js", code).code)
  })

  it("keeps the places of the source map", () => {
    const places = placesOf(code, map!.mappings)
    expect(new Set(places).size).toBeGreaterThan(100)
    expect(placesOf(broken.code, broken.mappings)).toEqual(places)
  })

  it("fails for text that is not code", () => {
    expect(() => breakLines("const", "")).toThrow("the code cannot be parsed")
  })
})
