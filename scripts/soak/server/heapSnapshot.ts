/**
 * Reads V8 heap snapshots, and compares two of them by class.
 */
import { readFileSync } from "node:fs"

/** The objects of one class. */
export interface ClassTotal {
  readonly count: number
  /** The sum of their shallow sizes in bytes. */
  readonly size: number
}

/** Totals by class. */
export type Histogram = ReadonlyMap<string, ClassTotal>

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

// Nodes of these types are counted by name, all others by type: the name of a string, for example, is its text.
const named = new Set(["object", "closure", "native"])

// V8's internal nodes depend on which code is hot, not on the data of the program. A heap number is part of another
// object.
const ignored = new Set(["hidden", "code", "synthetic", "object shape", "number"])

/** Reads the snapshot in a file. */
export const readHeapSnapshot = (path: string): Histogram => {
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
    let total = histogram.get(key)
    if (total === undefined) histogram.set(key, total = { count: 0, size: 0 })
    total.count++
    total.size += nodes[at + size]!
  }
  return histogram
}

/** The classes that have grown between two snapshots, and by how much; the largest growth in bytes first. */
export const growth = (before: Histogram, after: Histogram): ReadonlyArray<readonly [string, ClassTotal]> =>
  Array.from(after, ([name, total]): [string, ClassTotal] => {
    const previous = before.get(name)
    return [name, { count: total.count - (previous?.count ?? 0), size: total.size - (previous?.size ?? 0) }]
  }).filter(([, { count, size }]) => count > 0 || size > 0).sort(([, a], [, b]) => b.size - a.size)
