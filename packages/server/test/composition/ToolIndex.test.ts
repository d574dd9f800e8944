/** The search of the tools: it finds the tools, in the order, that a comparison of the query with every word gives. */
import { describe, expect, it } from "@effect/vitest"
import type { ToolEntry } from "@skein/server/Catalog"
import * as Schema from "effect/Schema"
import { ToolIndex, wordsOf } from "../../src/internal/composition/toolIndex.ts"

type Described = { readonly name: string; readonly title: string; readonly description: string; readonly tag: string }

const weights = { name: 4, title: 3, tag: 3, description: 1 } as const

const entriesOf = (tools: ReadonlyArray<Described>): ReadonlyArray<readonly [string, ToolEntry]> =>
  tools.map(({ description, name, tag, title }, position) => [
    `${position}`,
    { definition: { name, title, description, inputSchema: { type: "object" } }, tags: [tag] } as unknown as ToolEntry
  ])

/** BM25 without an index. A word that begins with a word of the query counts half. */
const scan = (tools: ReadonlyArray<Described>, query: ReadonlyArray<string>): ReadonlyArray<string> => {
  const counts = tools.map((tool) => {
    const words = new Map<string, number>()
    for (const field of ["name", "title", "tag", "description"] as const) {
      for (const word of wordsOf(tool[field])) words.set(word, (words.get(word) ?? 0) + weights[field])
    }
    return words
  })
  const lengths = counts.map((words) => [...words.values()].reduce((sum, count) => sum + count, 0))
  const meanLength = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, tools.length) || 1
  const scores = new Map<number, number>()
  const add = (word: string, factor: number): void => {
    const having = counts.filter((words) => words.has(word)).length
    const rarity = Math.log(1 + (tools.length - having + 0.5) / (having + 0.5))
    for (const [tool, words] of counts.entries()) {
      const count = words.get(word)
      if (count === undefined) continue
      const score = factor * rarity * (count * 2.2) / (count + 1.2 * (0.25 + 0.75 * lengths[tool]! / meanLength))
      scores.set(tool, (scores.get(tool) ?? 0) + score)
    }
  }
  const all = new Set(counts.flatMap((words) => [...words.keys()]))
  for (const word of new Set(query)) {
    add(word, 1)
    if (word.length < 3) continue
    for (const other of all) if (other !== word && other.startsWith(word)) add(other, 0.5)
  }
  return [...scores].sort(([a, one], [b, other]) => other - one || a - b).map(([tool]) => `${tool}`)
}

/** Texts of few letters, so that many words begin with others. Some letters are pairs of surrogates. */
const Text = Schema.Array(
  Schema.Array(Schema.Literals(["a", "b", "B", "1", "é", "\uff41", "𝒶"])).check(Schema.isMaxLength(6))
).check(Schema.isMaxLength(6))

const textOf = (words: typeof Text.Type): string => words.map((letters) => letters.join("")).join(" ")

describe("a tool index", () => {
  it.prop(
    "finds the tools that a comparison with every word finds, in the same order",
    [Schema.Array(Schema.Tuple([Text, Text, Text, Text])).check(Schema.isMaxLength(12)), Text],
    ([texts, query]) => {
      const tools = texts.map(([name, title, description, tag]) => ({
        name: textOf(name),
        title: textOf(title),
        description: textOf(description),
        tag: textOf(tag)
      }))
      const words = wordsOf(textOf(query))
      const index = new ToolIndex(entriesOf(tools), 8192)
      expect(index.search(words)).toEqual(scan(tools, words))
      // Every indexed word and each of its beginnings, the first and the last in the order of words among them.
      for (const word of new Set(tools.flatMap(({ description, name }) => wordsOf(`${name} ${description}`)))) {
        for (const beginning of [word, word.slice(0, 3)]) {
          expect(index.search([beginning])).toEqual(scan(tools, [beginning]))
        }
      }
    }
  )

  it("finds nothing without tools, and without words", () => {
    expect(new ToolIndex([], 8192).search(["abc"])).toEqual([])
    const tools = [{ name: "abc", title: "", description: "", tag: "" }]
    expect(new ToolIndex(entriesOf(tools), 8192).search([])).toEqual([])
  })
})
