/**
 * A registry: the entries of one kind, by name, and their changes while the server runs.
 *
 * Each change is undone when its scope closes, regardless of later changes. A name may have several entries in a stack.
 * The registry offers the last one. When the last one is removed, the registry offers the one below it. It offers
 * nothing under a name that is disabled or has no entry.
 */
import type { McpError } from "@skein/protocol/McpError"
import { quote } from "@skein/protocol/Text"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { DefinitionError, DuplicateName, InvalidValue, NotFound } from "./DefinitionError.ts"
import { definitionProblem } from "./internal/definitions/validateDefinition.ts"

/**
 * Decides whether a caller may see an entry. For other callers the entry does not exist, neither in lists nor by name.
 * It runs for each request and must return fast, without suspending. An exception is a defect of the request.
 */
export type Visible = (caller: Caller) => boolean

/**
 * Returns the error that refuses a caller's request for an entry that the caller may see, or `undefined`. It runs for each
 * request, before its arguments are decoded, and must return fast. An exception is a defect of the request.
 */
export type Guard = (caller: Caller) => McpError | undefined

/** The members that all entries have. */
export interface Entry<out Definition> {
  readonly definition: Definition
  /** Decides which callers see the entry. Everybody by default. */
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
interface Slot<A> {
  readonly entry: A
  /** The number of removals that hide it. */
  hidden: number
}

/** The state of a name. */
interface Name<A> {
  /** The entries, the last one on top. */
  readonly slots: Array<Slot<A>>
  /** The calls of `enable` and `setEnabled` that apply. The last one decides. */
  readonly switches: Array<{ readonly on: boolean }>
  /** The switch that no scope undoes. It is removed with the last entry. */
  persistentSwitch: { readonly on: boolean } | undefined
}

const top = <A>({ slots }: Name<A>): Slot<A> | undefined => slots.findLast(({ hidden }) => hidden === 0)

const drop = <T>(array: Array<T>, item: T): void => {
  const index = array.indexOf(item)
  if (index >= 0) array.splice(index, 1)
}

/** The state that all views of one registry share. */
class Store<A extends Entry<unknown>> {
  readonly kind: DefinitionError["kind"]
  readonly names = new Map<string, Name<A>>()
  readonly offered = new Map<string, A>()
  sorted: ReadonlyArray<readonly [string, A]> | undefined = []
  version = 0
  used = false
  onChange: (() => void) | undefined = undefined

  constructor(kind: DefinitionError["kind"]) {
    this.kind = kind
  }

  name(name: string): Name<A> {
    let state = this.names.get(name)
    if (state === undefined) this.names.set(name, state = { slots: [], switches: [], persistentSwitch: undefined })
    return state
  }

  /** Updates the offered entry of a name after a change of its state. */
  settle(name: string): void {
    const state = this.name(name)
    if (state.slots.length === 0) setPersistentSwitch(state, undefined)
    const entry = state.switches.at(-1)?.on === false ? undefined : top(state)?.entry
    if (state.slots.length === 0 && state.switches.length === 0) this.names.delete(name)
    if (entry === this.offered.get(name)) return
    if (entry === undefined) this.offered.delete(name)
    else this.offered.set(name, entry)
    this.sorted = undefined
    this.version++
    this.onChange?.()
  }

  fail(reason: DefinitionError["reason"], definition: string): Effect.Effect<never, DefinitionError> {
    return Effect.fail(new DefinitionError({ reason, kind: this.kind, definition }))
  }

  notFound(name: string): Effect.Effect<never, DefinitionError> {
    return this.fail(new NotFound({ message: `No ${this.kind} has the name ${quote(name)}` }), name)
  }
}

/** The entries of one kind by name. The name of a resource is its URI here, and the name of a template is its text. */
export class Registry<A extends Entry<unknown>> {
  readonly #store: Store<A>
  readonly #terms: Terms

  constructor(kind: DefinitionError["kind"], store?: Store<A>, terms: Terms = {}) {
    this.#store = store ?? new Store(kind)
    this.#terms = terms
  }

  /** Returns a view of the same registry. The terms apply to all entries that are added through the view. */
  withTerms({ enabled, guard, visible }: Terms): Registry<A> {
    const own = this.#terms
    return new Registry(this.#store.kind, this.#store, {
      visible: both(own.visible, visible),
      guard: first(guard, own.guard),
      enabled: own.enabled === false ? false : enabled
    })
  }

  /** Sets the function that is called after each change. A registry has one such function. */
  set onChange(onChange: () => void) {
    this.#store.onChange = onChange
  }

  /** Grows with every change of the offered entries. */
  get version(): number {
    return this.#store.version
  }

  /** Whether the registry ever had an entry, even one that was never offered. */
  get used(): boolean {
    return this.#store.used
  }

  /** The number of offered entries. */
  get size(): number {
    return this.#store.offered.size
  }

  /** Returns the offered entry of a name. */
  get(name: string): A | undefined {
    return this.#store.offered.get(name)
  }

  /** Returns the offered entry of a name if the caller may see it. */
  seen(name: string, caller: Caller): A | undefined {
    const entry = this.#store.offered.get(name)
    return entry?.visible?.(caller) === false ? undefined : entry
  }

  /** All offered entries, sorted by the UTF-16 code units of their names. */
  get sorted(): ReadonlyArray<readonly [string, A]> {
    return this.#store.sorted ??= [...this.#store.offered].sort(([a], [b]) => a < b ? -1 : 1)
  }

  /**
   * Adds an entry until the scope closes. Fails with `DuplicateName` if the name has an entry, even a disabled one, and
   * with `InvalidValue` if a value of the definition is not allowed.
   */
  add(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#offer(name, entry, false)
  }

  /**
   * Replaces the entry of a name until the scope closes. Fails with `NotFound` if the name has no entry, and with
   * `InvalidValue` as `add` does.
   */
  replace(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#offer(name, entry, true)
  }

  /**
   * Removes the entry of a name until the scope closes, so that the name is free for another one. Fails with `NotFound`
   * if the name has no entry. An entry that is added meanwhile stays on top.
   */
  remove(name: string): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#change(name, true, ({ slots }) => {
      const removed = slots.slice()
      for (const slot of removed) slot.hidden++
      return () => {
        for (const slot of removed) slot.hidden--
      }
    })
  }

  /**
   * Enables or disables a name until the scope closes. The last call applies, to whichever entry has the name. Fails
   * with `NotFound` if the name has no entry.
   */
  enable(name: string, on: boolean): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#change(name, true, (state) => toggle(state, on))
  }

  /**
   * Enables or disables a name without a scope: until the next call, or until the last entry of the name is removed.
   * Nothing is retained per call.
   */
  setEnabled(name: string, on: boolean): Effect.Effect<void, DefinitionError> {
    return Effect.suspend(() => {
      const store = this.#store
      const state = store.names.get(name)
      if (state === undefined || top(state) === undefined) return store.notFound(name)
      setPersistentSwitch(state, { on })
      store.settle(name)
      return Effect.void
    })
  }

  #offer(name: string, entry: A, exists: boolean): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    const problem = definitionProblem(entry.definition)
    if (problem === undefined) return this.#change(name, exists, (state) => this.#push(state, entry))
    return store.fail(new InvalidValue({ message: `The ${store.kind} ${quote(name)} is invalid: ${problem}` }), name)
  }

  #push(state: Name<A>, entry: A): () => void {
    const visible = both(entry.visible, this.#terms.visible)
    const guard = first(entry.guard, this.#terms.guard)
    const isSame = visible === entry.visible && guard === entry.guard
    const slot: Slot<A> = { entry: isSame ? entry : { ...entry, visible, guard }, hidden: 0 }
    state.slots.push(slot)
    this.#store.used = true
    const undoSwitch = this.#terms.enabled === false ? toggle(state, false) : undefined
    return () => {
      drop(state.slots, slot)
      undoSwitch?.()
    }
  }

  /**
   * Changes the state of a name, and undoes the change when the scope closes. `exists` is whether the name must have an
   * entry.
   */
  #change(
    name: string,
    exists: boolean,
    change: (state: Name<A>) => () => void
  ): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    return Effect.asVoid(Effect.acquireRelease(
      Effect.suspend(() => {
        const state = store.names.get(name)
        if ((state !== undefined && top(state) !== undefined) !== exists) {
          return exists
            ? store.notFound(name)
            : store.fail(
              new DuplicateName({ message: `A ${store.kind} with the name ${quote(name)} exists already` }),
              name
            )
        }
        const undo = change(state ?? store.name(name))
        store.settle(name)
        return Effect.succeed(undo)
      }),
      (undo) =>
        Effect.sync(() => {
          undo()
          store.settle(name)
        })
    ))
  }
}

const toggle = ({ switches }: Pick<Name<never>, "switches">, on: boolean): () => void => {
  const added = { on }
  switches.push(added)
  return () => drop(switches, added)
}

/** Replaces the switch that no scope undoes, and moves it to the end, where it decides. */
const setPersistentSwitch = <A>(state: Name<A>, next: Name<A>["persistentSwitch"]): void => {
  if (state.persistentSwitch !== undefined) drop(state.switches, state.persistentSwitch)
  if (next !== undefined) state.switches.push(next)
  state.persistentSwitch = next
}

const both = (one: Visible | undefined, other: Visible | undefined): Visible | undefined =>
  one === undefined || other === undefined ? one ?? other : (caller) => one(caller) && other(caller)

const first = (one: Guard | undefined, other: Guard | undefined): Guard | undefined =>
  one === undefined || other === undefined ? one ?? other : (caller) => one(caller) ?? other(caller)
