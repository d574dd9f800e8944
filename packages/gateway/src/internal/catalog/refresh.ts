/**
 * Reads the lists of a remote server again when they have changed.
 */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type * as Scope from "effect/Scope"
import { type Kind, kinds, type Listing, type Lists } from "./listing.ts"
import { named, type RemoteName } from "../connection/remoteError.ts"

/** The pause between two times that changed lists of a kind are read. Tests set another one. */
export const RefreshInterval = Context.Reference<Duration.Input>("@skein/gateway/RefreshInterval", {
  defaultValue: () => "200 millis"
})

// The pause before a list is read again that could not be read.
const retryDelay = "5 seconds"

/** The lists that one notification names, which are read together. */
interface Group {
  /** Those to read. */
  readonly stale: Set<Kind>
  readonly wake: Latch.Latch
}

const makeGroup = (): Group => ({ stale: new Set(), wake: Latch.makeUnsafe(false) })

/** Keeps a listing up to date with one client at a time. */
export class Refresh {
  readonly #listing: Listing
  readonly #name: RemoteName
  readonly #interval: Duration.Input
  readonly #onListing: ((lists: Lists) => Effect.Effect<void>) | undefined
  #lists: Lists
  readonly #groups: readonly [tools: Group, resources: Group, prompts: Group] = [makeGroup(), makeGroup(), makeGroup()]
  /** The lists that could not be read the last time. */
  readonly #failing = new Set<Kind>()
  /** One group at a time is read, so that `onListing` is not run twice at once. */
  readonly #turn = Semaphore.makeUnsafe(1)

  constructor(
    listing: Listing,
    name: RemoteName,
    interval: Duration.Input,
    initial: Lists,
    onListing: ((lists: Lists) => Effect.Effect<void>) | undefined
  ) {
    this.#listing = listing
    this.#name = name
    this.#interval = interval
    this.#lists = initial
    this.#onListing = onListing
  }

  /** Offers the lists that were read last. */
  get restore(): Effect.Effect<void> {
    return Effect.forEach(kinds, (kind) => this.#listing.update(kind, this.#lists[kind], false), { discard: true })
  }

  /** Reads some lists again soon. */
  mark(...stale: ReadonlyArray<Kind>): void {
    for (const kind of stale) {
      const group = this.#groupOf(kind)
      group.stale.add(kind)
      group.wake.openUnsafe()
    }
  }

  #groupOf(kind: Kind): Group {
    const [tools, resources, prompts] = this.#groups
    return { tools, resources, resourceTemplates: resources, prompts }[kind]
  }

  /** Reads all lists again soon. */
  readonly markAll: Effect.Effect<void> = Effect.sync(() => this.mark(...kinds))

  /** Reads all lists, and then those that change, until the scope closes. Returns after the first time. */
  follow(client: Client): Effect.Effect<void, never, Scope.Scope> {
    return Effect.gen({ self: this }, function*() {
      yield* Effect.forkScoped(this.#watch(client), { startImmediately: true })
      yield* this.markAll
      yield* this.#read(this.#groups, client)
      for (const group of this.#groups) yield* Effect.forkScoped(this.#readAgain(group, client))
    })
  }

  #watch(client: Client): Effect.Effect<void> {
    const { prompts, resources, tools } = client.capabilities
    const filter = {
      tools: tools?.listChanged === true && this.#listing.includes("tools"),
      prompts: prompts?.listChanged === true && this.#listing.includes("prompts"),
      resources: resources?.listChanged === true &&
        (this.#listing.includes("resources") || this.#listing.includes("resourceTemplates"))
    }
    if (!filter.tools && !filter.prompts && !filter.resources) return Effect.void
    let isFirst = true
    const changed = Stream.runForEach(client.changes(filter), ({ _tag }) =>
      Effect.sync(() => {
        switch (_tag) {
          case "ToolListChanged":
            return this.mark("tools")
          case "PromptListChanged":
            return this.mark("prompts")
          case "ResourceListChanged":
            return this.mark("resources", "resourceTemplates")
          case "Subscribed":
            // Changes before the subscription may have been missed. The first time, the lists are being read anyway.
            if (!isFirst) this.mark(...kinds)
            isFirst = false
            return
          case "Gap":
            return this.mark(...kinds)
        }
      }))
    return Effect.catch(
      changed,
      (error) => Effect.logDebug(`The changes of the lists of ${named(this.#name)} are not known`, error)
    )
  }

  #readAgain(group: Group, client: Client): Effect.Effect<never> {
    return Effect.gen({ self: this }, function*() {
      while (true) {
        // A remote server that reports changes all the time is not listed all the time.
        yield* Effect.sleep(this.#interval)
        const changed = group.wake.await
        yield* group.stale.size === 0 ? changed : Effect.raceFirst(changed, Effect.sleep(retryDelay))
        yield* this.#read([group], client)
      }
    })
  }

  #read(groups: ReadonlyArray<Group>, client: Client): Effect.Effect<void> {
    return Semaphore.withPermit(
      this.#turn,
      Effect.gen({ self: this }, function*() {
        const before = this.#lists
        for (const { stale, wake } of groups) {
          wake.closeUnsafe()
          const kinds = [...stale]
          stale.clear()
          yield* Effect.forEach(kinds, (kind) => this.#readKind(kind, client), { discard: true })
        }
        if (this.#lists !== before && this.#onListing !== undefined) {
          yield* Effect.catchDefect(
            this.#onListing(this.#lists),
            (defect) => Effect.logError(`onListing failed for ${named(this.#name)}`, defect)
          )
        }
      })
    )
  }

  #readKind<K extends Kind>(kind: K, client: Client): Effect.Effect<void> {
    if (!this.#listing.includes(kind)) return Effect.void
    return Effect.matchEffect(listOf(kind, client), {
      onSuccess: (list) => {
        this.#failing.delete(kind)
        this.#lists = { ...this.#lists, [kind]: list }
        // 2024-11-05 has completion without a capability for it.
        const completes = client.capabilities.completions !== undefined || client.revision === "2024-11-05"
        return this.#listing.update(kind, list, completes)
      },
      onFailure: (error) => {
        // The end of the connection is logged once, and not for each list.
        const isKnown = this.#failing.has(kind) || error.reason._tag === "Closed"
        const log = isKnown ? Effect.logDebug : Effect.logWarning
        this.#failing.add(kind)
        this.#groupOf(kind).stale.add(kind)
        return log(`The ${kind} of ${named(this.#name)} could not be listed`, error)
      }
    }).pipe(
      // A predicate of the application has thrown.
      Effect.catchDefect((defect) =>
        Effect.logError(`The ${kind} of ${named(this.#name)} could not be taken over`, defect)
      )
    )
  }
}

/** Reads a list, past the cache. A remote server without the capability has none. */
const listOf = <K extends Kind>(kind: K, client: Client): Effect.Effect<Lists[K], ClientError> => {
  const { capabilities } = client
  const options = { cache: "refresh" } as const
  const lists: { readonly [K in Kind]: Effect.Effect<Lists[K], ClientError> } = {
    tools: capabilities.tools === undefined ? Effect.succeed([]) : client.listTools(options),
    resources: capabilities.resources === undefined ? Effect.succeed([]) : client.listResources(options),
    // Many servers have resources without templates, and do not have the method.
    resourceTemplates: capabilities.resources === undefined
      ? Effect.succeed([])
      : Effect.catchIf(
        client.listResourceTemplates(options),
        ({ reason }) => reason._tag === "ProtocolError" && reason.error.reason === "MethodNotFound",
        () => Effect.succeed([])
      ),
    prompts: capabilities.prompts === undefined ? Effect.succeed([]) : client.listPrompts(options)
  }
  return lists[kind]
}
