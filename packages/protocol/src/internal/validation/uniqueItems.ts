/**
 * The test of `uniqueItems`, in about linear time.
 */
import { hashable, hashOf, isSame, mix } from "./values.ts"
import type { ValidationState } from "./validationState.ts"

/** The longest text for a set. JavaScript engines hash longer texts by their length only. */
export const maxSetText = 16_000

// When a set or a map grows, it is copied at once. Several of them for many items keep the copies small.
const maxItemsOfOneSet = 10_000
const sets = 64

// The last characters of a text choose its set.
const maxChoosingChars = 8

/** The scalars among the items so far. */
class Scalars {
  readonly #sets: Array<Set<unknown> | undefined> = []
  readonly #isLarge: boolean

  constructor(size: number) {
    this.#isLarge = size > maxItemsOfOneSet
  }

  /** Adds a value. Returns false if it was there. */
  add(value: unknown): boolean {
    const key = hashable(value)
    const set = this.#sets[this.#isLarge ? choose(key) : 0] ??= new Set()
    const { size } = set
    set.add(key)
    return set.size > size
  }
}

const choose = (key: unknown): number => {
  if (typeof key === "number") return key & (sets - 1)
  if (typeof key !== "string") return 0
  let hash = key.length
  for (let at = Math.max(0, key.length - maxChoosingChars); at < key.length; at++) hash = mix(hash, key.charCodeAt(at))
  return hash & (sets - 1)
}

/** The other items so far, by their hashes. */
class Others {
  readonly #maps: Array<Map<number, Array<unknown>> | undefined> = []
  readonly #isLarge: boolean

  constructor(size: number) {
    this.#isLarge = size > maxItemsOfOneSet
  }

  /** Returns the items with a hash. */
  withHash(hash: number): Array<unknown> {
    const map = this.#maps[this.#isLarge ? hash & (sets - 1) : 0] ??= new Map()
    let items = map.get(hash)
    if (items === undefined) map.set(hash, items = [])
    return items
  }
}

/** Where the test continues after a pause. */
interface Position {
  readonly index: number
  readonly scalars: Scalars
  readonly others: Others
  /** The hash of the item, and how many items with the same hash it was compared with. */
  readonly hash: number | undefined
  readonly compared: number
}

const isScalar = (value: unknown): boolean =>
  typeof value === "string" ? value.length <= maxSetText : typeof value !== "object" || value === null

/** Whether all items are different. */
export const areUnique = (items: ReadonlyArray<unknown>, state: ValidationState): boolean => {
  const start: Position = {
    index: 0,
    scalars: new Scalars(items.length),
    others: new Others(items.length),
    hash: undefined,
    compared: 0
  }
  const position = state.isResuming ? state.resume<Position>() : start
  const { scalars } = position
  let { compared, hash, index } = position
  try {
    for (; index < items.length; index++) {
      state.spend(4)
      const item = items[index]
      if (isScalar(item)) {
        state.count(typeof item === "number" && !Number.isInteger(item) ? 32 : 8)
        if (!scalars.add(item)) return false
        continue
      }
      hash ??= hashOf(item, state)
      const others = position.others.withHash(hash)
      for (; compared < others.length; compared++) {
        state.spend(1)
        if (isSame(others[compared], item, state)) return false
      }
      others.push(item)
      hash = undefined
      compared = 0
    }
  } catch (error) {
    throw state.save(error, { ...position, index, hash, compared } satisfies Position)
  }
  return true
}
