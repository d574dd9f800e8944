/**
 * A registry: the entries of one kind, by name, and their changes while the server runs.
 *
 * The entries are in the order in which the author wrote the definitions, however long their layers take to build.
 * Entries that are added while the server runs follow, by name.
 *
 * Each change is undone when its scope closes, regardless of later changes. A name may have several entries in a stack.
 * The registry offers the last one. When the last one is removed, the registry offers the one below it. It offers
 * nothing under a name that is disabled or has no entry.
 */
import { quote } from "@skein/protocol/Text"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { type DefinitionError, InvalidValue } from "./DefinitionError.ts"
import {
  both,
  type Entry,
  first,
  isVisible,
  type Name,
  push,
  setPersistentSwitch,
  Store,
  type Terms,
  toggle,
  top,
  withTerms
} from "./internal/catalog/entryStore.ts"
import { makeMirror, type Projection } from "./internal/catalog/mirror.ts"
import { afterAll, type Place, placeOf } from "./internal/catalog/placement.ts"
import { definitionProblem } from "./internal/catalog/validateDefinition.ts"

export type { Entry, Guard, Terms, Visible } from "./internal/catalog/entryStore.ts"

/** The entries of one kind by name. The name of a resource is its URI here, and the name of a template is its text. */
export class Registry<A extends Entry<unknown>> {
  readonly #store: Store<A>
  readonly #terms: Terms
  readonly #part: Place

  constructor(kind: DefinitionError["kind"], store?: Store<A>, terms: Terms = {}, part: Place = []) {
    this.#store = store ?? new Store(kind)
    this.#terms = terms
    this.#part = part
  }

  /** Returns a view of the same registry. The terms apply to all entries that are added through the view. */
  withTerms({ enabled, guard, visible }: Terms): Registry<A> {
    const own = this.#terms
    return new Registry(this.#store.kind, this.#store, {
      visible: both(own.visible, visible),
      guard: first(guard, own.guard),
      enabled: own.enabled === false ? false : enabled
    }, this.#part)
  }

  /**
   * @internal Makes the registry of a part of the server. It has names of its own. Its entries appear in this registry as
   * the projection returns them, with the terms of this view.
   */
  part(projection: Projection<A>, place: Place): Registry<A> {
    const store = new Store<A>(this.#store.kind)
    store.outlets.add(makeMirror(store, this.#store, this.#terms, projection, []))
    return new Registry(store.kind, store, {}, place)
  }

  /**
   * @internal Makes the registry of another server a part of this one until the scope closes. Fails as `add` does if an
   * entry is not possible here; then nothing is added.
   */
  mirror(
    source: Registry<A>,
    projection: Projection<A>,
    place: Place
  ): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const { outlets } = source.#store
    return Effect.asVoid(Effect.acquireRelease(
      Effect.suspend(() => {
        const mirror = makeMirror(source.#store, this.#store, this.#terms, projection, place)
        const problem = mirror.open()
        if (problem !== undefined) return Effect.fail(problem)
        outlets.add(mirror)
        return Effect.succeed(mirror)
      }),
      (mirror) =>
        Effect.sync(() => {
          outlets.delete(mirror)
          mirror.close()
        })
    ))
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
    return this.#store.offered.get(name)?.entry
  }

  /** Returns the offered entry of a name if the caller may see it. */
  seen(name: string, caller: Caller): A | undefined {
    const entry = this.#store.offered.get(name)?.entry
    return entry === undefined || isVisible(entry, caller) ? entry : undefined
  }

  /**
   * All offered entries, in the order in which the author wrote the definitions. Entries that were added while the server
   * runs follow those of their part, sorted by the UTF-16 code units of their names.
   */
  get sorted(): ReadonlyArray<readonly [string, A]> {
    return this.#store.sorted
  }

  /** @internal The names that are disabled: they have an entry, which is not offered. */
  get disabled(): ReadonlyArray<string> {
    const { names, offered } = this.#store
    return Array.from(names).flatMap(([name, state]) => top(state) === undefined || offered.has(name) ? [] : [name])
  }

  /** @internal The place of a name in `sorted`. A name that has no entry comes after all others. */
  placeOf(name: string): Place {
    return this.#store.offered.get(name)?.place ?? afterAll([])
  }

  /**
   * Adds an entry until the scope closes. Fails with `DuplicateName` if the name has an entry, even a disabled one, and
   * with `InvalidValue` if a value of the definition is not allowed.
   */
  add(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#offer(name, entry, false)
  }

  /**
   * Replaces the entry of a name until the scope closes. The new entry has the place of the old one in lists. Fails with
   * `NotFound` if the name has no entry, and with `InvalidValue` as `add` does.
   */
  replace(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#offer(name, entry, true)
  }

  /**
   * Adds an entry until the scope closes, also if others that were added with `share` have the name: the registry offers the
   * first of them in the order of the definitions, whichever was added first, and the next one when that is removed. Fails
   * as `add` does if the name has an entry that is not shared.
   */
  share(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    const problem = this.#invalid(name, entry)
    if (problem !== undefined) return Effect.fail(problem)
    return this.#change(
      name,
      () => store.sharedProblem(name, entry),
      (state, fiber) =>
        push(store, state, withTerms(entry, this.#terms), placeOf(fiber, this.#part), this.#terms, true).undo
    )
  }

  /** Whether several entries share a name, here or in a server that this one is a part of. */
  isContested(name: string): boolean {
    return this.#store.isContested(name)
  }

  /**
   * Removes the entry of a name until the scope closes, so that the name is free for another one. Fails with `NotFound`
   * if the name has no entry. An entry that is added meanwhile stays on top.
   */
  remove(name: string): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#changeExisting(name, ({ slots }) => {
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
    return this.#changeExisting(name, (state) => toggle(state, on))
  }

  /**
   * Enables or disables a name without a scope: until the next call, or until the last entry of the name is removed.
   * Nothing is retained per call.
   */
  setEnabled(name: string, on: boolean): Effect.Effect<void, DefinitionError> {
    return Effect.suspend(() => {
      const store = this.#store
      const state = store.names.get(name)
      if (state === undefined || top(state) === undefined) return Effect.fail(store.notFound(name))
      setPersistentSwitch(state, { on })
      store.settle(name)
      return Effect.void
    })
  }

  #invalid(name: string, entry: A): DefinitionError | undefined {
    const problem = definitionProblem(entry.definition)
    if (problem === undefined) return undefined
    const { kind } = this.#store
    const reason = new InvalidValue({ message: `The ${kind} ${quote(name)} is invalid: ${problem}` })
    return this.#store.error(reason, name)
  }

  #offer(name: string, entry: A, exists: boolean): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    const problem = this.#invalid(name, entry)
    if (problem !== undefined) return Effect.fail(problem)
    return this.#change(name, () => store.problem(name, entry, exists), (state, fiber) => {
      const place = (exists ? top(state)?.place : undefined) ?? placeOf(fiber, this.#part)
      return push(store, state, withTerms(entry, this.#terms), place, this.#terms).undo
    })
  }

  #changeExisting(
    name: string,
    change: (state: Name<A>) => () => void
  ): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    return this.#change(name, () => store.top(name) === undefined ? store.notFound(name) : undefined, change)
  }

  /** Changes the state of a name unless there is a problem, and undoes the change when the scope closes. */
  #change(
    name: string,
    problem: () => DefinitionError | undefined,
    change: (state: Name<A>, fiber: Fiber.Fiber<unknown, unknown>) => () => void
  ): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    return Effect.asVoid(Effect.acquireRelease(
      Effect.withFiber((fiber) => {
        const error = problem()
        if (error !== undefined) return Effect.fail(error)
        const undo = change(store.name(name), fiber)
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
