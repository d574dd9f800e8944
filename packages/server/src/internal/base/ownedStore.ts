/**
 * A table in memory whose bounds several owners share: no owner can take the room of others. When the table is full, the
 * owner with the most gives up its least recently used entries.
 */

interface Entry<A> {
  readonly value: A
  readonly bytes: number
  /** In milliseconds of the clock that the callers use. `Infinity` if it never expires. */
  readonly expires: number
}

/** The entries of one owner, the least recently used first. */
interface Owned<A> {
  readonly entries: Map<string, Entry<A>>
  bytes: number
}

/** The bounds of a table. */
export interface Bounds {
  readonly maxEntries: number
  readonly maxBytes: number
}

/** How often expired entries are removed at most, while the table is full. */
const sweepMs = 1_000

export class OwnedStore<A> {
  readonly #bounds: Bounds
  readonly #owners = new Map<string, Owned<A>>()
  #size = 0
  #bytes = 0
  #sweptAt = -Infinity

  constructor(bounds: Bounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The bytes of one owner. */
  bytesOf(owner: string): number {
    return this.#owners.get(owner)?.bytes ?? 0
  }

  /** Returns the value under a key, and makes it the most recently used of its owner. */
  get(owner: string, key: string, now: number): A | undefined {
    const owned = this.#owners.get(owner)
    const entry = owned?.entries.get(key)
    if (entry === undefined) return undefined
    this.#drop(owner, owned!, key, entry)
    if (entry.expires <= now) return undefined
    this.#put(owner, key, entry)
    return entry.value
  }

  /**
   * Stores a value in the place of an earlier one. Returns `false`, and changes nothing, if there is no room: the value
   * is larger than the table, or `isPolite` and its owner is the one with the most.
   */
  set(owner: string, key: string, entry: Entry<A>, now: number, isPolite = false): boolean {
    if (entry.bytes > this.#bounds.maxBytes || this.#bounds.maxEntries < 1) return false
    const before = this.#owners.get(owner)?.entries.get(key)
    if (before !== undefined) this.#drop(owner, this.#owners.get(owner)!, key, before)
    if (!this.#hasRoom(entry.bytes)) this.#sweep(now)
    const victims = this.#victims(owner, entry.bytes, isPolite)
    if (victims === undefined) {
      if (before !== undefined) this.#put(owner, key, before)
      return false
    }
    for (const [victim, key] of victims) this.remove(victim, key)
    this.#put(owner, key, entry)
    return true
  }

  remove(owner: string, key: string): void {
    const owned = this.#owners.get(owner)
    const entry = owned?.entries.get(key)
    if (entry !== undefined) this.#drop(owner, owned!, key, entry)
  }

  removeOwner(owner: string): void {
    const owned = this.#owners.get(owner)
    if (owned === undefined) return
    this.#owners.delete(owner)
    this.#size -= owned.entries.size
    this.#bytes -= owned.bytes
  }

  /** Removes the entries that a predicate chooses. */
  removeWhere(isRemoved: (value: A) => boolean): void {
    for (const [owner, owned] of [...this.#owners]) {
      for (const [key, entry] of [...owned.entries]) if (isRemoved(entry.value)) this.#drop(owner, owned, key, entry)
    }
  }

  #hasRoom(bytes: number): boolean {
    return this.#size < this.#bounds.maxEntries && this.#bytes + bytes <= this.#bounds.maxBytes
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < sweepMs) return
    this.#sweptAt = now
    for (const [owner, owned] of [...this.#owners]) {
      for (const [key, entry] of [...owned.entries]) if (entry.expires <= now) this.#drop(owner, owned, key, entry)
    }
  }

  /**
   * The entries that make room for another one, or `undefined` if there is none to make. They are chosen before any is
   * removed, because a polite write that is refused must not cost others their entries.
   */
  #victims(owner: string, bytes: number, isPolite: boolean): ReadonlyArray<readonly [string, string]> | undefined {
    const victims: Array<readonly [string, string]> = []
    /** The sizes that the owners would have afterwards, and their next entries. */
    const rest = new Map<string, { size: number; bytes: number; readonly next: Iterator<[string, Entry<A>]> }>()
    const leftOf = (each: string, { bytes, entries }: Owned<A>) => rest.get(each) ?? { bytes, size: entries.size }
    const { maxBytes, maxEntries } = this.#bounds
    for (let size = this.#size, total = this.#bytes; size >= maxEntries || total + bytes > maxBytes; size--) {
      let largest: string | undefined
      let most = -1
      for (const [each, owned] of this.#owners) {
        const left = leftOf(each, owned)
        const amount = size >= maxEntries ? left.size : left.bytes
        if (amount > most && left.size > 0) [largest, most] = [each, amount]
      }
      if (largest === undefined || (isPolite && largest === owner)) return undefined
      const owned = this.#owners.get(largest)!
      const left = rest.get(largest) ?? { ...leftOf(largest, owned), next: owned.entries.entries() }
      rest.set(largest, left)
      const [oldest, dropped]: [string, Entry<A>] = left.next.next().value
      left.size--
      left.bytes -= dropped.bytes
      total -= dropped.bytes
      victims.push([largest, oldest])
    }
    return victims
  }

  #put(owner: string, key: string, entry: Entry<A>): void {
    let owned = this.#owners.get(owner)
    if (owned === undefined) this.#owners.set(owner, owned = { entries: new Map(), bytes: 0 })
    owned.entries.set(key, entry)
    owned.bytes += entry.bytes
    this.#size++
    this.#bytes += entry.bytes
  }

  #drop(owner: string, owned: Owned<A>, key: string, entry: Entry<A>): void {
    owned.entries.delete(key)
    owned.bytes -= entry.bytes
    this.#size--
    this.#bytes -= entry.bytes
    if (owned.entries.size === 0) this.#owners.delete(owner)
  }
}
