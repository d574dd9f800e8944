/**
 * Keeps the entries of a part of a server in the registry around the part: those of a mounted server, or tools that a
 * transform changes.
 */
import * as Result from "effect/Result"
import type { DefinitionError } from "../../DefinitionError.ts"
import { type Entry, type Outlet, push, type Slot, type Store, type Terms, withTerms } from "./entryStore.ts"
import type { Place } from "./placement.ts"

/** How the entries of a part of a server appear in the registry around the part. */
export interface Projection<A> {
  /** Returns the name in the registry around the part. */
  readonly name: (own: string) => string
  /**
   * Returns the entry in the registry around the part, under the name `outside`, or `undefined` for an entry that is left
   * out there. Fails if the entry is not possible there.
   */
  entry(entry: A, own: string, outside: string): Result.Result<A | undefined, DefinitionError>
}

/** An entry of a part, as it appears in the registry around the part. */
interface Mirrored<A> {
  readonly name: string
  readonly slot: Slot<A>
  readonly undo: () => void
  /** The entry of the part that it was made of. */
  source: A
}

/** Keeps the entries of a part in the registry around it. */
export class Mirror<A extends Entry<unknown>> implements Outlet<A> {
  readonly #source: Store<A>
  readonly #target: Store<A>
  readonly #terms: Terms
  readonly #projection: Projection<A>
  readonly #place: Place
  readonly #mirrored = new Map<string, Mirrored<A>>()

  constructor(source: Store<A>, target: Store<A>, terms: Terms, projection: Projection<A>, place: Place) {
    this.#source = source
    this.#target = target
    this.#terms = terms
    this.#projection = projection
    this.#place = place
  }

  problem(name: string, entry: A): DefinitionError | undefined {
    const outside = this.#projection.name(name)
    const projected = this.#projection.entry(entry, name, outside)
    if (Result.isFailure(projected)) return projected.failure
    if (projected.success === undefined) return undefined
    const present = this.#target.top(outside)
    const own = this.#mirrored.get(name)?.slot
    if (present !== undefined && present !== own) return this.#target.duplicate(outside)
    return this.#target.problemOutside(outside, projected.success, present !== undefined)
  }

  settle(name: string): void {
    const slot = this.#source.top(name)
    const mirrored = this.#mirrored.get(name)
    if (slot === undefined) {
      if (mirrored !== undefined) this.#remove(name, mirrored)
      return
    }
    const isOff = !this.#source.offered.has(name)
    if (mirrored === undefined || mirrored.source !== slot.entry || mirrored.slot.place !== slot.place) {
      this.#put(name, slot, isOff)
    } else if (mirrored.slot.off !== isOff) {
      mirrored.slot.off = isOff
      this.#target.settle(mirrored.name)
    }
  }

  #put(name: string, { entry, place }: Slot<A>, isOff: boolean): void {
    const before = this.#mirrored.get(name)
    const outside = this.#projection.name(name)
    const projected = this.#projection.entry(entry, name, outside)
    if (Result.isFailure(projected) || projected.success === undefined) {
      if (before !== undefined) this.#remove(name, before)
      return
    }
    const added = withTerms(projected.success, this.#terms)
    if (before !== undefined) {
      before.slot.entry = added
      before.slot.off = isOff
      before.source = entry
      return this.#target.settle(outside)
    }
    const state = this.#target.name(outside)
    const whole = this.#place.length === 0 ? place : [...this.#place, ...place]
    const undo = push(this.#target, state, added, whole, this.#terms)
    const slot = state.slots.at(-1)!
    slot.off = isOff
    this.#mirrored.set(name, { name: outside, slot, undo, source: entry })
    this.#target.settle(outside)
  }

  #remove(name: string, mirrored: Mirrored<A>): void {
    this.#mirrored.delete(name)
    mirrored.undo()
    this.#target.settle(mirrored.name)
  }

  /** Adds all entries of the part, or none if one of them is not possible. */
  open(): DefinitionError | undefined {
    for (const name of [...this.#source.names.keys()]) {
      const slot = this.#source.top(name)
      const problem = slot && this.problem(name, slot.entry)
      if (problem !== undefined) {
        this.close()
        return problem
      }
      this.settle(name)
    }
    return undefined
  }

  /** Removes all entries of the part. */
  close(): void {
    for (const [name, mirrored] of [...this.#mirrored]) this.#remove(name, mirrored)
  }
}
