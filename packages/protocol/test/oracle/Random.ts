/** A seeded generator of random numbers (mulberry32). The same seed gives the same values on every machine. */
export interface Random {
  /** Returns a number of at least 0 and below 1. */
  readonly next: () => number
  /** Returns an integer of at least 0 and below `bound`. */
  readonly below: (bound: number) => number
  /** Returns `true` with this probability. */
  readonly chance: (probability: number) => boolean
  /** Returns one of the items. */
  readonly pick: <A>(items: ReadonlyArray<A>) => A
}

/** Converts a text to a seed. */
export const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  return value >>> 0
}

/** Makes a generator. */
export const make = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 0x100000000
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (items) => {
      if (items.length === 0) throw new Error("nothing to pick from")
      return items[below(items.length)]!
    }
  }
}
