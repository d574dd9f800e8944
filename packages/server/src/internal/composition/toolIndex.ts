/**
 * A ranked text search over tools: BM25 over their names, titles, descriptions, arguments and tags.
 */
import { cut } from "@skein/protocol/Text"
import { isObject } from "@skein/protocol/JsonRpc"
import type { ToolEntry } from "../../Catalog.ts"

// The usual parameters of BM25: how fast repeated words stop to count, and how much a long text counts less.
const k1 = 1.2
const b = 0.75

/** How often a word of each field counts. */
const weights = { name: 4, title: 3, tags: 3, arguments: 1, description: 1 }

// A word that only begins with the word of the query counts less than the word itself.
const prefixFactor = 0.5
const minPrefixChars = 3

/** Splits a text into words: at punctuation, and between `lowerCase` and `UpperCase`. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  // Unicode properties take several times as long.
  /^[\0-\x7f]*$/.test(text)
    ? text.replace(/([a-z\d])(?=[A-Z])/g, "$1 ").toLowerCase().match(/[a-z\d]+/g) ?? []
    : text.replace(/(\p{Ll}|\p{N})(?=\p{Lu})/gu, "$1 ").toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []

interface Posting {
  readonly tool: number
  readonly count: number
}

/** A word with the tools that have it. Words are numbered in the order in which they were indexed. */
interface Indexed {
  readonly word: string
  readonly order: number
  readonly postings: ReadonlyArray<Posting>
}

const byOrder = (one: Indexed, other: Indexed): number => one.order - other.order

export class ToolIndex {
  readonly #names: ReadonlyArray<string>
  readonly #lengths: ReadonlyArray<number>
  readonly #meanLength: number
  readonly #postings = new Map<string, Array<Posting>>()
  /** By the code units of the words, so that words with the same beginning are next to each other. */
  readonly #sorted: ReadonlyArray<Indexed>

  /** Indexes tools by at most `maxChars` characters of each. */
  constructor(tools: ReadonlyArray<readonly [string, ToolEntry]>, maxChars: number) {
    this.#names = tools.map(([name]) => name)
    this.#lengths = tools.map(([, entry], tool) => this.#add(tool, entry, maxChars))
    this.#meanLength = this.#lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, tools.length) || 1
    this.#sorted = [...this.#postings]
      .map(([word, postings], order) => ({ word, order, postings }))
      .sort((one, other) => one.word < other.word ? -1 : 1)
  }

  #add(tool: number, { definition, tags = [] }: ToolEntry, maxChars: number): number {
    const { annotations, description = "", inputSchema, name, title } = definition
    const properties = isObject(inputSchema["properties"]) ? Object.entries(inputSchema["properties"]) : []
    const fields: ReadonlyArray<readonly [number, string]> = [
      [weights.name, name],
      [weights.title, title ?? annotations?.title ?? ""],
      [weights.tags, tags.join(" ")],
      [weights.description, description],
      ...properties.map(([argument, schema]) =>
        [weights.arguments, `${argument} ${isObject(schema) ? schema["description"] ?? "" : ""}`] as const
      )
    ]
    const counts = new Map<string, number>()
    let left = maxChars
    let length = 0
    for (const [weight, text] of fields) {
      for (const word of wordsOf(cut(text, left))) {
        counts.set(word, (counts.get(word) ?? 0) + weight)
        length += weight
      }
      left = Math.max(0, left - text.length)
    }
    for (const [word, count] of counts) {
      const postings = this.#postings.get(word)
      if (postings === undefined) this.#postings.set(word, [{ tool, count }])
      else postings.push({ tool, count })
    }
    return length
  }

  /** Returns the names of the tools that match a word of the query, the best first. */
  search(query: ReadonlyArray<string>): ReadonlyArray<string> {
    const scores = new Map<number, number>()
    for (const word of new Set(query)) {
      this.#score(this.#postings.get(word), 1, scores)
      if (word.length < minPrefixChars) continue
      for (const { postings } of this.#longer(word)) this.#score(postings, prefixFactor, scores)
    }
    // Tools with the same score are in the order of the list.
    return [...scores].sort(([a, one], [b, other]) => other - one || a - b).map(([tool]) => this.#names[tool]!)
  }

  /**
   * Returns the words that begin with a word and are longer, in the order in which they were indexed: sums of scores in
   * another order would be rounded in another way, and could change the order of tools with the same score.
   */
  #longer(word: string): ReadonlyArray<Indexed> {
    const words = this.#sorted
    let start = 0
    for (let end = words.length; start < end;) {
      const middle = (start + end) >>> 1
      if (words[middle]!.word < word) start = middle + 1
      else end = middle
    }
    if (words[start]?.word === word) start++
    let end = start
    while (words[end]?.word.startsWith(word)) end++
    return words.slice(start, end).sort(byOrder)
  }

  #score(postings: ReadonlyArray<Posting> | undefined, factor: number, scores: Map<number, number>): void {
    if (postings === undefined) return
    const rarity = Math.log(1 + (this.#names.length - postings.length + 0.5) / (postings.length + 0.5))
    for (const { count, tool } of postings) {
      const length = 1 - b + b * this.#lengths[tool]! / this.#meanLength
      const score = factor * rarity * (count * (k1 + 1)) / (count + k1 * length)
      scores.set(tool, (scores.get(tool) ?? 0) + score)
    }
  }
}
