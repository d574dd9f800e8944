/** How many of something there are of each key. What belongs to nobody is not counted, and a key that has none is not kept. */
export class Tally {
  readonly #counts = new Map<string, number>()

  of(key: string | undefined): number {
    return key === undefined ? 0 : this.#counts.get(key) ?? 0
  }

  add(key: string | undefined, more: number): void {
    if (key === undefined) return
    const count = this.of(key) + more
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }
}
