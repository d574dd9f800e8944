/** Compares what two clients read, member by member. */

/** An accepted difference: the place in the reading, and the reason. */
export interface Difference {
  /** The places, as paths such as `tools/0/annotations/category`. */
  readonly at: RegExp
  /** The client of the official SDK that differs from Skein's. Default: both versions. */
  readonly from?: "sdk-v1" | "sdk-v2"
  readonly reason: string
}

type Leaves = ReadonlyMap<string, unknown>

const addLeaves = (leaves: Map<string, unknown>, value: unknown, at: string): void => {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : []
  if (entries.length === 0) leaves.set(at, value)
  for (const [name, member] of entries) addLeaves(leaves, member, at === "" ? name : `${at}/${name}`)
}

const leavesOf = (value: unknown): Leaves => {
  const leaves = new Map<string, unknown>()
  addLeaves(leaves, value, "")
  return leaves
}

const shown = (leaves: Leaves, at: string): string =>
  leaves.has(at) ? (JSON.stringify(leaves.get(at)) ?? "undefined").slice(0, 200) : "absent"

/** A place where two readings differ, and both values. */
export interface Found {
  readonly at: string
  readonly text: string
}

/** Every place where two readings differ. An empty object or list is a value. */
export const compare = (skein: unknown, other: unknown): ReadonlyArray<Found> => {
  const [a, b] = [leavesOf(skein), leavesOf(other)]
  const places = new Set([...a.keys(), ...b.keys()])
  return [...places]
    .filter((at) => shown(a, at) !== shown(b, at) || JSON.stringify(a.get(at)) !== JSON.stringify(b.get(at)))
    .map((at) => ({ at, text: `${at}: Skein ${shown(a, at)}, SDK ${shown(b, at)}` }))
}
