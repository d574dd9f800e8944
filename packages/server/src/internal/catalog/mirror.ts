/**
 * Keeps the entries of a part of a server in the registry around the part: those of a mounted server, or tools that a
 * transform changes.
 */
import * as Result from "effect/Result"
import type { DefinitionError } from "../../DefinitionError.ts"
import { type Entry, push, type Slot, type Store, type Terms, withTerms } from "./entryStore.ts"
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
export const makeMirror = <A extends Entry<unknown>>(
  source: Store<A>,
  target: Store<A>,
  terms: Terms,
  projection: Projection<A>,
  around: Place
) => {
  const all = new Map<string, Mirrored<A>>()

  const problem = (name: string, entry: A, _exists: boolean, isShared: boolean): DefinitionError | undefined => {
    const outside = projection.name(name)
    const projected = projection.entry(entry, name, outside)
    if (Result.isFailure(projected)) return projected.failure
    if (projected.success === undefined) return undefined
    const present = target.top(outside)
    const own = all.get(name)?.slot
    if (present !== undefined && present !== own && !(isShared && present.isShared)) return target.duplicate(outside)
    return target.problemOutside(outside, projected.success, present !== undefined, isShared)
  }

  const isContested = (name: string): boolean => target.isContested(projection.name(name))

  const settle = (name: string): void => {
    const slot = source.top(name)
    const mirrored = all.get(name)
    if (slot === undefined) {
      if (mirrored !== undefined) remove(name, mirrored)
      return
    }
    const isOff = !source.offered.has(name)
    if (mirrored === undefined || mirrored.source !== slot.entry || mirrored.slot.place !== slot.place) {
      put(name, slot, isOff)
    } else if (mirrored.slot.off !== isOff) {
      mirrored.slot.off = isOff
      target.settle(mirrored.name)
    }
  }

  const put = (name: string, { entry, isShared, place }: Slot<A>, isOff: boolean): void => {
    const known = all.get(name)
    const outside = projection.name(name)
    const projected = projection.entry(entry, name, outside)
    if (Result.isFailure(projected) || projected.success === undefined) {
      if (known !== undefined) remove(name, known)
      return
    }
    const added = withTerms(projected.success, terms)
    if (known !== undefined) {
      known.slot.entry = added
      known.slot.off = isOff
      known.source = entry
      return target.settle(outside)
    }
    const state = target.name(outside)
    const whole = around.length === 0 ? place : [...around, ...place]
    const { slot, undo } = push(target, state, added, whole, terms, isShared)
    slot.off = isOff
    all.set(name, { name: outside, slot, undo, source: entry })
    target.settle(outside)
  }

  const remove = (name: string, mirrored: Mirrored<A>): void => {
    all.delete(name)
    mirrored.undo()
    target.settle(mirrored.name)
  }

  /** Adds all entries of the part, or none if one of them is not possible. */
  const open = (): DefinitionError | undefined => {
    for (const name of [...source.names.keys()]) {
      const slot = source.top(name)
      const found = slot && problem(name, slot.entry, false, slot.isShared)
      if (found !== undefined) {
        close()
        return found
      }
      settle(name)
    }
    return undefined
  }

  /** Removes all entries of the part. */
  const close = (): void => {
    for (const [name, mirrored] of [...all]) remove(name, mirrored)
  }

  return { problem, settle, isContested, open, close }
}
