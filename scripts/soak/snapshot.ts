/**
 * What a heap snapshot holds, by class.
 */
import { readFileSync } from "node:fs"

/** How many there are, and their own size in bytes. */
export interface Held {
  readonly count: number
  readonly size: number
}

export type Histogram = ReadonlyMap<string, Held>

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: ReadonlyArray<string>
      readonly node_types: readonly [ReadonlyArray<string>, ...ReadonlyArray<unknown>]
    }
  }
  readonly nodes: ReadonlyArray<number>
  readonly strings: ReadonlyArray<string>
}

// By their names they tell something; all else is told by its kind: a string's name is its text.
const named = new Set(["object", "closure", "native"])

// V8's own things follow the heat of the program, not its data; and a number on the heap is part of something else.
const ignored = new Set(["hidden", "code", "synthetic", "object shape", "number"])

/** Reads a snapshot. */
export const read = (path: string): Histogram => {
  const { nodes, snapshot, strings } = JSON.parse(readFileSync(path, "utf8")) as Snapshot
  const { node_fields: fields, node_types: [types] } = snapshot.meta
  const [type, name, size] = ["type", "name", "self_size"].map((field) => fields.indexOf(field)) as [
    number,
    number,
    number
  ]
  const histogram = new Map<string, { count: number; size: number }>()
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = types[nodes[at + type]!]!
    if (ignored.has(kind)) continue
    const key = named.has(kind) ? `${kind} ${strings[nodes[at + name]!]!.slice(0, 60)}` : kind
    let held = histogram.get(key)
    if (held === undefined) histogram.set(key, held = { count: 0, size: 0 })
    held.count++
    held.size += nodes[at + size]!
  }
  return histogram
}

/** How much more there is than before, the largest growth first. */
export const growth = (before: Histogram, after: Histogram): ReadonlyArray<readonly [string, Held]> =>
  Array.from(after, ([name, held]): [string, Held] => {
    const was = before.get(name)
    return [name, { count: held.count - (was?.count ?? 0), size: held.size - (was?.size ?? 0) }]
  }).filter(([, { count, size }]) => count > 0 || size > 0).sort(([, a], [, b]) => b.size - a.size)
