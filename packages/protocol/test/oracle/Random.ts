/** A small seeded source of random numbers (mulberry32): the same seed gives the same values on every machine. */
export interface Random {
  /** The next number, at least 0 and below 1. */
  readonly next: () => number
  /** An integer, at least 0 and below `bound`. */
  readonly below: (bound: number) => number
  /** Whether something of this probability happens. */
  readonly chance: (probability: number) => boolean
  /** One of the items. */
  readonly pick: <A>(items: ReadonlyArray<A>) => A
}

/** A number that stands for a text, to seed with. */
export const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  return value >>> 0
}

/** Starts a sequence. */
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
