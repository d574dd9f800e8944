/**
 * Compares the catalogs of the nodes of a fleet, and logs a warning when they differ for longer than a minute. Clients may
 * use any node, so a tool that exists at one of them only works by chance: after `Tool.add` in a handler, for example.
 *
 * Each node sends a digest of its catalog to all others, and not to a node that has just started: an answer of each node
 * to each new one would be too many messages in a deploy of many nodes, and the node with the lowest number, which
 * compares, has received the digests of all later ones. The digests of the single definitions are sent on request, when
 * the node with the lowest number is about to log the difference. During a rolling deploy the catalogs differ, too: the
 * minute is the time that a deploy may take without a warning.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Catalog, Kind } from "../../../Catalog.ts"
import type { Message, Receiver, Service as Fleet } from "../../../Fleet.ts"

// How often a node compares, and how often it sends a digest that has not changed, in milliseconds.
const interval = 10_000
const resendInterval = 60_000

// How long catalogs may differ without a warning, in milliseconds.
const maxDifference = 60_000

// A node that has sent no digest for so long, in milliseconds, has gone.
const forgetAfter = 3 * resendInterval

// How long a node waits for the names of the others before it logs the difference without them, in milliseconds.
const maxAnswerTime = 3 * interval

// How many definitions of a node are compared by name, how many names a warning has for each node, and how many nodes.
const maxDefinitions = 2_000
const maxNames = 10
const maxNodes = 5

/** The digests of the definitions, by kind and name. */
type Definitions = { readonly [name: string]: string }

interface Own {
  readonly version: string
  readonly digest: string
  readonly definitions: Definitions
}

interface Other {
  readonly digest: string
  readonly at: number
  readonly definitions: Definitions | undefined
}

/** FNV-1a, 32 bits: the nodes do not deceive each other, and it is computed at once. */
const hash = (text: string): string => {
  let sum = 0x811c9dc5
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193)
  return (sum >>> 0).toString(36)
}

interface Registry {
  readonly version: number
  readonly sorted: ReadonlyArray<readonly [string, { readonly definition: unknown }]>
}

const registriesOf = (
  { prompts, resources, templates, tools }: Catalog["Service"]
): ReadonlyArray<readonly [Kind, Registry]> => [
  ["tool", tools],
  ["resource", resources],
  ["resource template", templates],
  ["prompt", prompts]
]

const textOf = (definition: unknown): string => {
  try {
    return CanonicalJson.stringify(definition)
  } catch {
    // It cannot be sent to a client either.
    return ""
  }
}

/** The digests of a catalog. `known` are those of the version before: they are returned if nothing has changed. */
const digestsOf = (catalog: Catalog["Service"], known: Own | undefined): Own => {
  const all = registriesOf(catalog)
  const version = all.map(([, { version }]) => version).join(" ")
  if (version === known?.version) return known
  const digests = all.flatMap(([kind, { sorted }]) =>
    sorted.map(([name, { definition }]) => [`${kind} ${name}`, hash(textOf(definition))] as const)
  ).toSorted(([a], [b]) => a < b ? -1 : 1)
  return {
    version,
    digest: hash(digests.flat().join("\n")),
    definitions: Object.fromEntries(digests.slice(0, maxDefinitions))
  }
}

/** The largest name up to which the definitions are complete. */
const endOf = (names: ReadonlyArray<string>): string => names.length < maxDefinitions ? "\uffff" : names.at(-1)!

const list = (names: ReadonlyArray<string>): string => {
  const more = names.length - maxNames
  return names.slice(0, maxNames).join(", ") + (more > 0 ? ` and ${more} more` : "")
}

/** The differences between this node and another one, in words. */
const differencesOf = (node: number, own: Definitions, other: number, others: Definitions | undefined): string => {
  if (others === undefined) return `node ${other} has not sent the names of its definitions`
  const names = [Object.keys(own), Object.keys(others)].map((keys) => keys.toSorted()) as [Array<string>, Array<string>]
  const end = names.map(endOf).toSorted()[0]!
  const [here, there] = names.map((keys) => keys.filter((name) => name <= end)) as typeof names
  const groups = [
    [`node ${other} lacks`, here.filter((name) => !(name in others))],
    [`node ${node} lacks`, there.filter((name) => !(name in own))],
    [`node ${other} has other definitions of`, here.filter((name) => name in others && others[name] !== own[name])]
  ] as const
  const parts = groups.flatMap(([what, found]) => found.length === 0 ? [] : [`${what} ${list(found)}`])
  return parts.length === 0 ? `node ${other} has other definitions` : parts.join(", ")
}

class CatalogComparison implements Receiver {
  readonly #fleet: Fleet
  readonly #catalog: Catalog["Service"]
  readonly #clock: Clock.Clock
  readonly #others = new Map<number, Other>()
  #own: Own
  #sentAt = -Infinity
  // Since when they differ, when this node first asked for names, and whether the difference was logged.
  #since: number | undefined
  #askedAt: number | undefined
  #isLogged = false

  constructor(fleet: Fleet, catalog: Catalog["Service"], clock: Clock.Clock) {
    this.#fleet = fleet
    this.#catalog = catalog
    this.#clock = clock
    this.#own = digestsOf(catalog, undefined)
  }

  get #now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }

  message(message: Message): void {
    if (message._tag === "CatalogRequest") return this.#fleet.send(message.from, this.#ownMessage(true))
    if (message._tag !== "Catalog") return
    const { definitions, digest, from } = message
    const known = this.#others.get(from)
    const isSame = known?.digest === digest
    this.#others.set(from, {
      digest,
      at: this.#now,
      definitions: definitions ?? (isSame ? known.definitions : undefined)
    })
  }

  gap(): void {
    this.#sentAt = -Infinity
  }

  #ownMessage(hasDefinitions: boolean): Message {
    const { definitions, digest } = this.#own
    return { _tag: "Catalog", from: this.#fleet.node, digest, ...hasDefinitions ? { definitions } : undefined }
  }

  /** The nodes that are running, without this one. */
  #running(): ReadonlyArray<readonly [number, Other]> {
    for (const [node, { at }] of this.#others) {
      if (!this.#fleet.isServing(node) || this.#now - at >= forgetAfter) this.#others.delete(node)
    }
    return Array.from(this.#others).toSorted(([a], [b]) => a - b)
  }

  /** Sends the digest of this node if it is due, and compares it with the others. */
  readonly step: Effect.Effect<void> = Effect.suspend(() => {
    const before = this.#own
    this.#own = digestsOf(this.#catalog, before)
    if (this.#own !== before || this.#now - this.#sentAt >= resendInterval) {
      this.#sentAt = this.#now
      this.#fleet.broadcast(this.#ownMessage(false))
    }
    const { node } = this.#fleet
    const running = this.#running()
    const differing = running.filter(([, { digest }]) => digest !== this.#own.digest)
    if (differing.length === 0) return this.#agree()
    this.#since ??= this.#now
    // One node is enough to log it.
    if (this.#isLogged || running[0]![0] < node) return Effect.void
    // One node of each catalog.
    const shown = [...new Map(differing.toReversed().map((one) => [one[1].digest, one])).values()].toReversed()
      .slice(0, maxNodes)
    if (this.#now - this.#since < maxDifference) return Effect.void
    this.#askedAt ??= this.#now
    const unknown = shown.filter(([, { definitions }]) => definitions === undefined)
    if (unknown.length > 0 && this.#now - this.#askedAt < maxAnswerTime) {
      for (const [other] of unknown) this.#fleet.send(other, { _tag: "CatalogRequest", from: node })
      return Effect.void
    }
    this.#isLogged = true
    const texts = shown.map(([other, { definitions }]) =>
      differencesOf(node, this.#own.definitions, other, definitions)
    )
    return Effect.logWarning(
      `the nodes of the fleet have different catalogs for more than a minute: ${texts.join("; ")}. ` +
        "Make a change of the catalog at each node, or finish the deploy"
    )
  })

  #agree(): Effect.Effect<void> {
    const wasLogged = this.#isLogged
    this.#since = undefined
    this.#askedAt = undefined
    this.#isLogged = false
    return wasLogged ? Effect.logInfo("the nodes of the fleet have the same catalog again") : Effect.void
  }
}

/** Compares the catalog with those of the other nodes until the scope closes. */
export const compareCatalogs = (
  fleet: Fleet,
  catalog: Catalog["Service"]
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function*() {
    const comparison = new CatalogComparison(fleet, catalog, yield* Clock.Clock)
    yield* fleet.receive(comparison)
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(comparison.step, Effect.sleep(interval))))
  })
