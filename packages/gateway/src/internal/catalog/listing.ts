/**
 * The entries that a proxy has in the catalog of its server: brought up to date with the lists of the remote server. Only
 * entries that differ are changed.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import * as Nesting from "@skein/protocol/Nesting"
import { quote } from "@skein/protocol/Text"
import type { Tool } from "@skein/protocol/Tool"
import type { Catalog } from "@skein/server/Catalog"
import type { Entry, Registry } from "@skein/server/Registry"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { type EntryContext, promptEntry, resourceEntry, templateEntry, toolEntry } from "./entries.ts"
import { named, type RemoteName } from "../connection/remoteError.ts"

/** The lists of a remote server. */
export interface Lists {
  readonly tools: ReadonlyArray<Tool>
  readonly resources: ReadonlyArray<Resource>
  readonly resourceTemplates: ReadonlyArray<ResourceTemplate>
  readonly prompts: ReadonlyArray<Prompt>
}

export type Kind = keyof Lists

/** Which entries are taken over: all, none, or those that a predicate selects. */
export type Selection<A> = boolean | ((definition: A) => boolean)

export interface ListingSettings {
  readonly select: { readonly [K in Kind]: Selection<Lists[K][number]> }
  /** How many entries of each kind are taken over. */
  readonly maxEntries: number
  readonly name: RemoteName
}

interface Held {
  /** The canonical JSON of the definition. */
  readonly text: string
  readonly scope: Scope.Closeable
}

/** A definition with its entry, or the reason why it cannot be taken over. */
interface Wanted {
  readonly text: string
  readonly entry: Result.Result<Entry<unknown>, string>
}

/** The entries of a kind: their word in messages, their names, their place in a catalog, and how they are made. */
interface Terms<A> {
  readonly word: string
  readonly name: (definition: A) => string
  readonly registry: (catalog: Catalog["Service"]) => Registry<Entry<unknown>>
  readonly entry: (definition: A, completes: boolean, context: EntryContext) => Result.Result<Entry<unknown>, string>
}

const termsOf: { readonly [K in Kind]: Terms<Lists[K][number]> } = {
  tools: {
    word: "tool",
    name: ({ name }) => name,
    registry: ({ tools }) => tools,
    entry: (tool, _, context) => Result.succeed(toolEntry(tool, context))
  },
  resources: {
    word: "resource",
    name: ({ uri }) => uri,
    registry: ({ resources }) => resources,
    entry: (resource, _, context) => Result.succeed(resourceEntry(resource, context))
  },
  resourceTemplates: {
    word: "resource template",
    name: ({ uriTemplate }) => uriTemplate,
    registry: ({ templates }) => templates,
    entry: templateEntry
  },
  prompts: {
    word: "prompt",
    name: ({ name }) => name,
    registry: ({ prompts }) => prompts,
    entry: (prompt, completes, context) => Result.succeed(promptEntry(prompt, completes, context))
  }
}

/** The kinds of entries. */
export const kinds = Object.keys(termsOf) as ReadonlyArray<Kind>

// How many characters of JSON a definition has. A longer one would be handed to clients, models and searches again and
// again.
const maxDefinitionChars = 1024 * 1024

// After how many characters of definitions other fibers run. A remote server can list a thousand long definitions.
const charsPerTurn = 262_144

const sharesName = "has the name of one of another server: the first of them in the order of the servers is offered"

// How many names of entries that were left out are remembered, so that each is logged once.
const maxWarned = 1_000

/** The entries of a proxy in the catalog of its server. */
export type Listing = ReturnType<typeof makeListing>

export const makeListing = (
  catalog: Catalog["Service"],
  context: EntryContext,
  { maxEntries, name: remote, select: selections }: ListingSettings
) => {
  const heldOf = new Map(kinds.map((kind) => [kind, new Map<string, Held>()]))
  const warned = new Set<string>()

  /** Whether entries of a kind are taken over. */
  const includes = (kind: Kind): boolean => selections[kind] !== false

  /**
   * Makes the catalog have these entries of a kind, and no others of this proxy. Entries whose definition is the same stay
   * as they are. `completes`: whether the remote server completes arguments.
   */
  const update = <K extends Kind>(kind: K, definitions: Lists[K], completes: boolean): Effect.Effect<void> =>
    Effect.uninterruptible(Effect.gen(function*() {
      const wanted = yield* wantedOf(kind, definitions, completes)
      const held = heldOf.get(kind)!
      const registry = termsOf[kind].registry(catalog)
      for (const [name, { scope }] of [...held]) {
        if (wanted.has(name)) continue
        held.delete(name)
        yield* Scope.close(scope, Exit.void)
      }
      for (const [name, { entry, text }] of wanted) {
        const before = held.get(name)
        if (before?.text === text) continue
        const scope = Scope.makeUnsafe()
        const failure = Result.isFailure(entry) ? entry.failure : Result.getOrUndefined(Result.flip(
          yield* Effect.result(Scope.provide(registry.share(name, entry.success), scope))
        ))?.message
        if (before !== undefined) yield* Scope.close(before.scope, Exit.void)
        if (failure === undefined) held.set(name, { text, scope })
        else held.delete(name)
        if (failure !== undefined) yield* warnOnce(kind, name, `was left out: ${failure}`)
        else if (registry.isContested(name)) yield* warnOnce(kind, name, sharesName)
      }
    }))

  /** Removes all entries. */
  const clear = Effect.forEach(kinds, (kind) => update(kind, [], false), { discard: true })

  const wantedOf = Effect.fnUntraced(function*<K extends Kind>(
    kind: K,
    definitions: Lists[K],
    completes: boolean
  ): Effect.fn.Return<ReadonlyMap<string, Wanted>> {
    const terms = termsOf[kind] as Terms<unknown>
    const select = selections[kind] as Selection<unknown>
    const wanted = new Map<string, Wanted>()
    let more = 0
    let chars = 0
    for (const definition of definitions) {
      const name = terms.name(definition)
      if (select === false || (typeof select === "function" && !select(definition))) continue
      // The first one of a name counts, as for clients of the remote server.
      if (wanted.has(name)) continue
      if (wanted.size >= maxEntries) {
        more++
        continue
      }
      const size = Nesting.sizeUpTo(definition, maxDefinitionChars)
      const text = size > maxDefinitionChars
        ? Result.fail(`its definition has more than ${maxDefinitionChars} characters`)
        : Result.try({
          try: () => CanonicalJson.stringify([completes, definition]),
          catch: () => "its definition nests too deep"
        })
      wanted.set(
        name,
        Result.isSuccess(text)
          ? { text: text.success, entry: terms.entry(definition, completes, context) }
          : { text: "", entry: Result.fail(text.failure) }
      )
      chars += size
      if (chars > charsPerTurn) {
        chars = 0
        yield* Effect.yieldNow
      }
    }
    if (more > 0) {
      const message = `${more} more entries of ${kind} of ${named(remote)} were left out (maxEntries: ${maxEntries})`
      yield* warnOnce(kind, "", message)
    }
    return wanted
  })

  const warnOnce = (kind: Kind, name: string, why: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const key = `${kind} ${name} ${why}`
      if (warned.has(key) || warned.size >= maxWarned) return Effect.void
      warned.add(key)
      return Effect.logWarning(
        name === "" ? why : `The ${termsOf[kind].word} ${quote(name)} of ${named(remote)} ${why}`
      )
    })

  /** The number of entries of each kind. */
  const counts = (): Readonly<Record<Kind, number>> =>
    Object.fromEntries(kinds.map((kind) => [kind, heldOf.get(kind)!.size])) as Record<Kind, number>

  return { includes, update, clear, counts }
}
