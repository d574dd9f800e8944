/**
 * The entries of one kind by name, and their state: the part of a registry that all of its views share.
 */
import type { McpError } from "@skein/protocol/McpError"
import { quote } from "@skein/protocol/Text"
import type { Caller } from "@skein/runtime/RequestContext"
import { DefinitionError, DuplicateName, NotFound } from "../../DefinitionError.ts"
import { comparePlaces, type Place } from "./placement.ts"

/**
 * Decides whether a caller may see an entry. For other callers the entry does not exist, neither in lists nor by name.
 * It runs for each request and must return fast, without suspending: only `true` shows the entry, and a promise does not.
 * An exception is a defect of the request.
 */
export type Visible = (caller: Caller) => boolean

/** Whether a caller sees an entry. */
export const isVisible = ({ visible }: Pick<Entry<unknown>, "visible">, caller: Caller): boolean =>
  visible === undefined || visible(caller) === true

/**
 * Returns the error that refuses a caller's request for an entry that the caller may see, or `undefined`. It runs for each
 * request, before its arguments are decoded, and must return fast. An exception is a defect of the request.
 */
export type Guard = (caller: Caller) => McpError | undefined

/** The members that all entries have. */
export interface Entry<out Definition> {
  readonly definition: Definition
  /** Decides which callers see the entry. All callers by default. */
  readonly visible?: Visible | undefined
  /** Refuses the requests of some callers. None by default. */
  readonly guard?: Guard | undefined
  /** Makes the definition that a caller's list contains. All callers receive the same by default. */
  listedAs?(definition: Definition, caller: Caller): Definition
}

/** Conditions for all entries that are added through one view of a registry. */
export interface Terms {
  /** Decides which callers see the entries. It applies in addition to the `visible` of each entry. */
  readonly visible?: Visible | undefined
  /** Refuses the requests of some callers. It applies in addition to the `guard` of each entry, which comes first. */
  readonly guard?: Guard | undefined
  /** `false` adds the entries in the disabled state. */
  readonly enabled?: boolean | undefined
}

/** One entry of a name. */
export interface Slot<A> {
  /** Replaced when the entry of a part changes. */
  entry: A
  readonly place: Place
  /** Whether it is disabled in the part that it belongs to. */
  off: boolean
  /** The number of removals that hide it. */
  hidden: number
  /** Whether it shares its name: of several entries, the first in the order of places is on top. */
  readonly isShared: boolean
}

/** The state of a name. */
export interface Name<A> {
  /** The entries, the last one on top. */
  readonly slots: Array<Slot<A>>
  /** The calls of `enable` and `setEnabled` that apply. The last one decides. */
  readonly switches: Array<{ readonly on: boolean }>
  /** The switch that no scope undoes. It is removed with the last entry. */
  persistentSwitch: { readonly on: boolean } | undefined
}

export const top = <A>({ slots }: Name<A>): Slot<A> | undefined => slots.findLast(({ hidden }) => hidden === 0)

const drop = <T>(array: Array<T>, item: T): void => {
  const index = array.indexOf(item)
  if (index >= 0) array.splice(index, 1)
}

/** The connection from the registry of a part to the registry around it. */
export interface Outlet<A> {
  /** Why an entry cannot be added to, or replaced in, the part. */
  problem(name: string, entry: A, exists: boolean, isShared: boolean): DefinitionError | undefined
  /** Passes the state of a name on. */
  settle(name: string): void
  /** Whether the entry of a name shares its name with others, in the registry around the part or further out. */
  isContested(name: string): boolean
}

/** An offered entry with its name and its place in lists. */
interface Offered<A> {
  readonly name: string
  readonly entry: A
  readonly place: Place
}

/** The state that all views of one registry share. */
export class Store<A extends Entry<unknown>> {
  readonly kind: DefinitionError["kind"]
  readonly names = new Map<string, Name<A>>()
  readonly offered = new Map<string, Offered<A>>()
  /** The registries that this one is a part of. */
  readonly outlets = new Set<Outlet<A>>()
  #sorted: ReadonlyArray<readonly [string, A]> | undefined = undefined
  version = 0
  used = false
  onChange: (() => void) | undefined = undefined

  constructor(kind: DefinitionError["kind"]) {
    this.kind = kind
  }

  /** The offered entries in the order of their places, and of their names where the places are equal. */
  get sorted(): ReadonlyArray<readonly [string, A]> {
    return this.#sorted ??= [...this.offered.values()]
      .sort((a, b) => comparePlaces(a.place, b.place) || (a.name < b.name ? -1 : 1))
      .map(({ entry, name }) => [name, entry] as const)
  }

  name(name: string): Name<A> {
    let state = this.names.get(name)
    if (state === undefined) this.names.set(name, state = { slots: [], switches: [], persistentSwitch: undefined })
    return state
  }

  /** Returns the entry of a name that is not removed, even if it is disabled. */
  top(name: string): Slot<A> | undefined {
    const state = this.names.get(name)
    return state && top(state)
  }

  /** Updates the offered entry of a name after a change of its state. */
  settle(name: string): void {
    const state = this.name(name)
    if (state.slots.length === 0) setPersistentSwitch(state, undefined)
    const slot = top(state)
    const isOff = slot === undefined || slot.off || state.switches.at(-1)?.on === false
    if (state.slots.length === 0 && state.switches.length === 0) this.names.delete(name)
    const before = this.offered.get(name)
    if (isOff ? before !== undefined : before?.entry !== slot.entry || before.place !== slot.place) {
      if (isOff) this.offered.delete(name)
      else this.offered.set(name, { name, entry: slot.entry, place: slot.place })
      this.#sorted = undefined
      this.version++
      this.onChange?.()
    }
    for (const outlet of this.outlets) outlet.settle(name)
  }

  /** Whether several entries share a name, here or in a registry that this one is a part of. */
  isContested(name: string): boolean {
    const slots = this.names.get(name)?.slots ?? []
    return slots.length > 1 || [...this.outlets].some((outlet) => outlet.isContested(name))
  }

  /** Why an entry cannot be added to those that share a name. */
  sharedProblem(name: string, entry: A): DefinitionError | undefined {
    const present = this.top(name)
    return present !== undefined && !present.isShared
      ? this.duplicate(name)
      : this.problemOutside(name, entry, present !== undefined, true)
  }

  /** Why an entry cannot be added, or cannot replace the present one. */
  problem(name: string, entry: A, exists: boolean): DefinitionError | undefined {
    if ((this.top(name) !== undefined) !== exists) return exists ? this.notFound(name) : this.duplicate(name)
    return this.problemOutside(name, entry, exists)
  }

  problemOutside(name: string, entry: A, exists: boolean, isShared = false): DefinitionError | undefined {
    for (const outlet of this.outlets) {
      const problem = outlet.problem(name, entry, exists, isShared)
      if (problem !== undefined) return problem
    }
    return undefined
  }

  error(reason: DefinitionError["reason"], definition: string): DefinitionError {
    return new DefinitionError({ reason, kind: this.kind, definition })
  }

  notFound(name: string): DefinitionError {
    return this.error(new NotFound({ message: `No ${this.kind} has the name ${quote(name)}` }), name)
  }

  duplicate(name: string): DefinitionError {
    return this.error(
      new DuplicateName({ message: `A ${this.kind} with the name ${quote(name)} exists already` }),
      name
    )
  }
}

export const withTerms = <A extends Entry<unknown>>(entry: A, terms: Terms): A => {
  const visible = both(entry.visible, terms.visible)
  const guard = first(entry.guard, terms.guard)
  return visible === entry.visible && guard === entry.guard ? entry : { ...entry, visible, guard }
}

/** Adds an entry to a name, and returns it with the function that removes it. */
export const push = <A extends Entry<unknown>>(
  store: Store<A>,
  state: Name<A>,
  entry: A,
  place: Place,
  terms: Terms,
  isShared = false
): { readonly slot: Slot<A>; readonly undo: () => void } => {
  const slot: Slot<A> = { entry, place, off: false, hidden: 0, isShared }
  const earlier = isShared ? state.slots.findIndex((other) => comparePlaces(other.place, place) < 0) : -1
  state.slots.splice(earlier < 0 ? state.slots.length : earlier, 0, slot)
  store.used = true
  const undoSwitch = terms.enabled === false ? toggle(state, false) : undefined
  const undo = () => {
    drop(state.slots, slot)
    undoSwitch?.()
  }
  return { slot, undo }
}

export const toggle = ({ switches }: Pick<Name<never>, "switches">, on: boolean): () => void => {
  const added = { on }
  switches.push(added)
  return () => drop(switches, added)
}

/** Replaces the switch that no scope undoes, and moves it to the end, where it decides. */
export const setPersistentSwitch = <A>(state: Name<A>, next: Name<A>["persistentSwitch"]): void => {
  if (state.persistentSwitch !== undefined) drop(state.switches, state.persistentSwitch)
  if (next !== undefined) state.switches.push(next)
  state.persistentSwitch = next
}

export const both = (one: Visible | undefined, other: Visible | undefined): Visible | undefined =>
  one === undefined || other === undefined ? one ?? other : (caller) => one(caller) === true && other(caller)

export const first = (one: Guard | undefined, other: Guard | undefined): Guard | undefined =>
  one === undefined || other === undefined ? one ?? other : (caller) => one(caller) ?? other(caller)
