/**
 * Counts by key, for a bound that clients share and a bound for each client. `ClientKey` has the keys.
 *
 * @example
 * const counter = new KeyedCounter()
 * const bound = counter.acquire(key, maxCalls, maxCallsPerClient)
 * if (bound !== undefined) return refuse(bound === "max" ? "maxCalls" : "maxCallsPerClient")
 */

/** Counts by key. The key `undefined` is counted in `total` only, and a key whose count is 0 is not stored. */
export class KeyedCounter {
  readonly #counts = new Map<string, number>()
  #total = 0

  /** The sum of all counts, also of the key `undefined`. */
  get total(): number {
    return this.#total
  }

  /** The counts of the keys. */
  get entries(): Iterable<readonly [string, number]> {
    return this.#counts
  }

  /** The key with the largest count, if there is one. */
  get largest(): string | undefined {
    let found: string | undefined
    let most = 0
    for (const [key, count] of this.#counts) {
      if (count <= most) continue
      most = count
      found = key
    }
    return found
  }

  /** The count of a key: 0 for `undefined`. */
  of(key: string | undefined): number {
    return key === undefined ? 0 : this.#counts.get(key) ?? 0
  }

  /** Adds to the count of a key. `more` may be negative; the count of a key does not fall below 0. */
  add(key: string | undefined, more: number): void {
    if (key === undefined) {
      this.#total += more
      return
    }
    const before = this.of(key)
    const count = Math.max(0, before + more)
    this.#total += count - before
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }

  /**
   * Adds 1, unless a bound is reached: then it returns which one. The bound of the key is checked first, so that a client
   * that has used its part is told so. Call `release` with the same key afterwards.
   */
  acquire(key: string | undefined, max: number, maxPerKey: number): "max" | "maxPerKey" | undefined {
    if (this.of(key) >= maxPerKey) return "maxPerKey"
    if (this.#total >= max) return "max"
    this.add(key, 1)
    return undefined
  }

  /** Subtracts what `acquire` added. */
  release(key: string | undefined): void {
    this.add(key, -1)
  }
}
