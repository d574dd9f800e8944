/**
 * A compiled schema: the rules that its keywords became.
 */
import type { Work } from "./Work.ts"

/** The dialects that are understood. */
export type Dialect = "2020-12" | "draft-07"

/** A schema that cannot be used; its message says why. */
export class Unusable extends Error {}

/** Where in the schema something is, for messages. */
export type Place = ReadonlyArray<string>

/** What the schemas that were applied to a value have looked at; only where an `unevaluated…` keyword asks. */
export class Seen {
  readonly keys = new Set<string>()
  readonly indices = new Set<number>()
  /** How many items from the first on. */
  items = 0

  merge(other: Seen, work: Work): void {
    work.spend(other.keys.size + other.indices.size)
    for (const key of other.keys) this.keys.add(key)
    for (const index of other.indices) this.indices.add(index)
    this.items = Math.max(this.items, other.items)
  }
}

/** Applies one keyword, or a few that belong together. Tells what is wrong. */
export type Rule = (value: unknown, work: Work, seen: Seen | undefined) => boolean

/** A schema, compiled. */
export class Node {
  /** What it applies to the value; set once all is compiled. */
  rules: ReadonlyArray<Rule>
  /** Whether it has to know what its parts have looked at. */
  tracks = false
  /** The schemas that it applies to the very same value. */
  readonly same: Array<Node> = []

  constructor(rules: ReadonlyArray<Rule> = []) {
    this.rules = rules
  }

  check(value: unknown, work: Work, seen?: Seen): boolean {
    work.enter()
    const own = this.tracks || seen !== undefined ? new Seen() : undefined
    let ok = true
    for (const rule of this.rules) {
      if (rule(value, work, own)) continue
      ok = false
      if (work.brief) break
    }
    if (ok && seen !== undefined) seen.merge(own!, work)
    work.leave()
    return ok
  }

  /** Checks what is inside of the value. */
  checkAt(key: string | number, value: unknown, work: Work): boolean {
    work.path.push(key)
    const ok = this.check(value, work)
    work.path.pop()
    return ok
  }
}

/** The document that a schema is in, while it is compiled. */
export interface Document {
  readonly dialect: Dialect
  /** Whether patterns that take time without end are run all the same. */
  readonly nativePatterns: boolean
  /** How many properties of Unicode (`\p{…}`) its patterns have named so far. */
  properties: number
  /** The schema at a place. */
  readonly node: (schema: unknown, place: Place) => Node
  /** What a reference leads to; known when all is compiled. */
  readonly reference: (reference: unknown, from: Node, place: Place) => Rule
  /** The schema cannot be used: throws. */
  readonly refuse: (problem: string, place: Place) => never
}
