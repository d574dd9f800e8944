/**
 * The entries of one kind, by name, and how they change while the server runs.
 *
 * Each change is undone when its scope closes, whatever was changed after it. A name may have several entries, one upon the
 * other: the last one is offered, and when it goes the one below is back. A name that is disabled, or has no entry, is offered
 * to nobody.
 */
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { DefinitionError } from "./DefinitionError.ts"
import { quoted } from "./internal/text.ts"
import * as details from "./internal/definitions/validateDefinition.ts"

/** Whether a caller may see an entry: in lists and, alike, by its name. What one may not see does not exist. */
export type Visible = (caller: Caller) => boolean

/** What all entries have in common. */
export interface Entry<out Definition> {
  readonly definition: Definition
  /** Everybody, where it is absent. Asked at each request; it must not suspend, and should not throw. */
  readonly visible?: Visible | undefined
}

/** What holds for all that is added through one view of a registry. */
export interface Terms {
  /** Who may see it, beside those whom the entry itself lets. */
  readonly visible?: Visible | undefined
  /** `false`: it is there, but disabled until it is enabled. */
  readonly enabled?: boolean | undefined
}

/** One entry of a name. */
interface Slot<A> {
  readonly entry: A
  /** How many removals hide it. */
  hidden: number
}

/** All that is known of a name: its entries, the last one on top, and what was said of whether it is enabled, the last holds. */
interface Name<A> {
  readonly slots: Array<Slot<A>>
  readonly switches: Array<{ readonly on: boolean }>
  /** The one of them that no scope undoes. It goes with the last entry. */
  lasting: { readonly on: boolean } | undefined
}

const top = <A>({ slots }: Name<A>): Slot<A> | undefined => slots.findLast(({ hidden }) => hidden === 0)

const drop = <T>(array: Array<T>, item: T): void => {
  const index = array.indexOf(item)
  if (index >= 0) array.splice(index, 1)
}

/** What the views of one registry share. */
class Store<A extends Entry<unknown>> {
  readonly kind: DefinitionError["kind"]
  readonly names = new Map<string, Name<A>>()
  readonly offered = new Map<string, A>()
  sorted: ReadonlyArray<readonly [string, A]> | undefined = []
  version = 0
  used = false
  changed: (() => void) | undefined = undefined

  constructor(kind: DefinitionError["kind"]) {
    this.kind = kind
  }

  name(name: string): Name<A> {
    let found = this.names.get(name)
    if (found === undefined) this.names.set(name, found = { slots: [], switches: [], lasting: undefined })
    return found
  }

  /** What is offered under a name may be another now. */
  settle(name: string): void {
    const known = this.name(name)
    if (known.slots.length === 0) say(known, undefined)
    const entry = known.switches.at(-1)?.on === false ? undefined : top(known)?.entry
    if (known.slots.length === 0 && known.switches.length === 0) this.names.delete(name)
    if (entry === this.offered.get(name)) return
    if (entry === undefined) this.offered.delete(name)
    else this.offered.set(name, entry)
    this.sorted = undefined
    this.version++
    this.changed?.()
  }

  fail(reason: "Duplicate" | "Unknown", definition: string): Effect.Effect<never, DefinitionError> {
    const { kind } = this
    const named = `${kind} with the name ${quoted(definition)}`
    const message = reason === "Duplicate" ? `A ${named} is offered already` : `There is no ${named}`
    return Effect.fail(new DefinitionError({ reason, kind, definition, message }))
  }
}

/** The entries of one kind, by name; a resource's name here is its URI, a template's its text. */
export class Registry<A extends Entry<unknown>> {
  readonly #store: Store<A>
  readonly #terms: Terms

  constructor(kind: DefinitionError["kind"], store?: Store<A>, terms: Terms = {}) {
    this.#store = store ?? new Store(kind)
    this.#terms = terms
  }

  /** A view of the same registry: what is added through it has these terms besides its own. */
  under({ enabled, visible }: Terms): Registry<A> {
    const own = this.#terms
    return new Registry(this.#store.kind, this.#store, {
      visible: both(own.visible, visible),
      enabled: own.enabled === false ? false : enabled
    })
  }

  /** Is called after each change. There is one who listens. */
  set onChange(changed: () => void) {
    this.#store.changed = changed
  }

  /** Grows with every change of what is offered. */
  get version(): number {
    return this.#store.version
  }

  /** Whether it ever had an entry, be it one that was offered to nobody. */
  get used(): boolean {
    return this.#store.used
  }

  /** How many are offered. */
  get size(): number {
    return this.#store.offered.size
  }

  /** An entry that is offered. */
  get(name: string): A | undefined {
    return this.#store.offered.get(name)
  }

  /** An entry, if the caller may see it. */
  seen(name: string, caller: Caller): A | undefined {
    const entry = this.#store.offered.get(name)
    return entry?.visible?.(caller) === false ? undefined : entry
  }

  /** All that is offered in the order of the names, by code unit. */
  get sorted(): ReadonlyArray<readonly [string, A]> {
    return this.#store.sorted ??= [...this.#store.offered].sort(([a], [b]) => a < b ? -1 : 1)
  }

  /**
   * Adds an entry until the scope closes. Fails with `Duplicate` when the name is taken, be it by one that is disabled, and with
   * `Value` when its definition says what none may say.
   */
  add(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#offer(name, entry, false)
  }

  /**
   * Offers an entry in the stead of the one that has the name, until the scope closes. Fails with `Unknown` when there is none.
   */
  replace(name: string, entry: A): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#offer(name, entry, true)
  }

  /**
   * Takes an entry away until the scope closes, so that its name is free for another. Fails with `Unknown` when there is none.
   * Where another one was added meanwhile, that one stays on top.
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
   * Says that what has a name is offered (`true`), or is not, until the scope closes. The last that was said holds, for whatever
   * entry has the name. Fails with `Unknown` when there is none.
   */
  enable(name: string, on: boolean): Effect.Effect<void, DefinitionError, Scope.Scope> {
    return this.#change(name, true, (known) => toggle(known, on))
  }

  /**
   * The same without a scope: until something else is said, or the last entry of the name goes. It keeps nothing for each call.
   */
  setEnabled(name: string, on: boolean): Effect.Effect<void, DefinitionError> {
    return Effect.suspend(() => {
      const store = this.#store
      const known = store.names.get(name)
      if (known === undefined || top(known) === undefined) return store.fail("Unknown", name)
      say(known, { on })
      store.settle(name)
      return Effect.void
    })
  }

  #offer(name: string, entry: A, there: boolean): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const { kind } = this.#store
    const problem = details.definitionProblem(entry.definition)
    if (problem === undefined) return this.#change(name, there, (known) => this.#push(known, entry))
    const message = `The ${kind} ${quoted(name)} cannot be offered: ${problem}`
    return Effect.fail(new DefinitionError({ reason: "Value", kind, definition: name, message }))
  }

  #push(known: Name<A>, entry: A): () => void {
    const visible = both(entry.visible, this.#terms.visible)
    const slot: Slot<A> = { entry: visible === entry.visible ? entry : { ...entry, visible }, hidden: 0 }
    known.slots.push(slot)
    this.#store.used = true
    const enabled = this.#terms.enabled === false ? toggle(known, false) : undefined
    return () => {
      drop(known.slots, slot)
      enabled?.()
    }
  }

  /** Changes what is known of a name, which must have an entry or must not, and undoes it when the scope closes. */
  #change(
    name: string,
    there: boolean,
    change: (known: Name<A>) => () => void
  ): Effect.Effect<void, DefinitionError, Scope.Scope> {
    const store = this.#store
    return Effect.asVoid(Effect.acquireRelease(
      Effect.suspend(() => {
        const known = store.names.get(name)
        if ((known !== undefined && top(known) !== undefined) !== there) {
          return store.fail(there ? "Unknown" : "Duplicate", name)
        }
        const undo = change(known ?? store.name(name))
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
  const said = { on }
  switches.push(said)
  return () => drop(switches, said)
}

/** Says what holds from now on, in place of what was said so before. */
const say = <A>(known: Name<A>, said: Name<A>["lasting"]): void => {
  if (known.lasting !== undefined) drop(known.switches, known.lasting)
  if (said !== undefined) known.switches.push(said)
  known.lasting = said
}

const both = (one: Visible | undefined, other: Visible | undefined): Visible | undefined =>
  one === undefined || other === undefined ? one ?? other : (caller) => one(caller) && other(caller)
