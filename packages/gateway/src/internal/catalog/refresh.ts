/**
 * Reads the lists of a remote server again when they have changed.
 */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Clock from "effect/Clock"
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

// How many times as long as a reading took, nothing is read again. A remote server that has long lists, and reports changes of
// them all the time, then takes a tenth of the time of this process.
const restFactor = 9
// Readings of two seconds in all need no such pause: a single change of short lists is read at once, also on a machine that is
// busy. In milliseconds of pauses.
const unrestedTime = 2_000 * restFactor
// The longest such pause, in milliseconds: a slow remote server is not a large one.
const maxRest = 60_000

/** The lists that one notification names, which are read together. */
interface Group {
  /** Those to read. */
  readonly stale: Set<Kind>
  readonly wake: Latch.Latch
}

const makeGroup = (): Group => ({ stale: new Set(), wake: Latch.makeUnsafe(false) })

/** Keeps a listing up to date with one client at a time. */
export const makeRefresh = (
  listing: Listing,
  name: RemoteName,
  interval: Duration.Input,
  initial: Lists,
  onListing: ((lists: Lists) => Effect.Effect<void>) | undefined
) => {
  let lists = initial
  const groups: readonly [tools: Group, resources: Group, prompts: Group] = [makeGroup(), makeGroup(), makeGroup()]
  /** The lists that could not be read the last time. */
  const failing = new Set<Kind>()
  /** One group at a time is read, so that `onListing` is not run twice at once. */
  const turn = Semaphore.makeUnsafe(1)
  /** When the pauses after all readings are over, in milliseconds. They are those of all kinds together. */
  let restedAt = 0

  /** Offers the lists that were read last. */
  const restore = Effect.forEach(kinds, (kind) => listing.update(kind, lists[kind], false), { discard: true })

  /** Reads some lists again soon. */
  const mark = (...stale: ReadonlyArray<Kind>): void => {
    for (const kind of stale) {
      const group = groupOf(kind)
      group.stale.add(kind)
      group.wake.openUnsafe()
    }
  }

  const groupOf = (kind: Kind): Group => {
    const [tools, resources, prompts] = groups
    return { tools, resources, resourceTemplates: resources, prompts }[kind]
  }

  /** Reads all lists again soon. */
  const markAll = Effect.sync(() => mark(...kinds))

  /** Reads all lists, and then those that change, until the scope closes. Returns after the first time. */
  const follow = Effect.fnUntraced(function*(client: Client): Effect.fn.Return<void, never, Scope.Scope> {
    yield* Effect.forkScoped(watch(client), { startImmediately: true })
    yield* markAll
    yield* read(groups, client)
    for (const group of groups) yield* Effect.forkScoped(readAgain(group, client))
  })

  const watch = (client: Client): Effect.Effect<void> => {
    const { prompts, resources, tools } = client.capabilities
    const filter = {
      tools: tools?.listChanged === true && listing.includes("tools"),
      prompts: prompts?.listChanged === true && listing.includes("prompts"),
      resources: resources?.listChanged === true &&
        (listing.includes("resources") || listing.includes("resourceTemplates"))
    }
    if (!filter.tools && !filter.prompts && !filter.resources) return Effect.void
    let isFirst = true
    const changed = Stream.runForEach(client.changes(filter), ({ _tag }) =>
      Effect.sync(() => {
        switch (_tag) {
          case "ToolListChanged":
            return mark("tools")
          case "PromptListChanged":
            return mark("prompts")
          case "ResourceListChanged":
            return mark("resources", "resourceTemplates")
          case "Subscribed":
            // Changes before the subscription may have been missed. The first time, the lists are being read anyway.
            if (!isFirst) mark(...kinds)
            isFirst = false
            return
          case "Gap":
            return mark(...kinds)
        }
      }))
    return Effect.catch(
      changed,
      (error) => Effect.logDebug(`The changes of the lists of ${named(name)} are not known`, error)
    )
  }

  const readAgain = Effect.fnUntraced(function*(group: Group, client: Client): Effect.fn.Return<never> {
    while (true) {
      // A remote server that reports changes all the time is not listed all the time.
      yield* Effect.sleep(interval)
      const changed = group.wake.await
      yield* group.stale.size === 0 ? changed : Effect.raceFirst(changed, Effect.sleep(retryDelay))
      yield* Semaphore.withPermit(turn, Effect.andThen(rest, readNow([group], client)))
    }
  })

  const rest = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => Effect.sleep(Math.max(0, restedAt - unrestedTime - now))
  )

  const read = (groups: ReadonlyArray<Group>, client: Client): Effect.Effect<void> =>
    Semaphore.withPermit(turn, readNow(groups, client))

  const readNow = Effect.fnUntraced(function*(groups: ReadonlyArray<Group>, client: Client): Effect.fn.Return<void> {
    const startedAt = yield* Clock.currentTimeMillis
    const before = lists
    for (const { stale, wake } of groups) {
      wake.closeUnsafe()
      const kinds = [...stale]
      stale.clear()
      yield* Effect.forEach(kinds, (kind) => readKind(kind, client), { discard: true })
    }
    if (lists !== before && onListing !== undefined) {
      yield* Effect.catchDefect(
        onListing(lists),
        (defect) => Effect.logError(`onListing failed for ${named(name)}`, defect)
      )
    }
    const now = yield* Clock.currentTimeMillis
    const pauses = Math.max(restedAt, now) + restFactor * (now - startedAt)
    restedAt = Math.min(pauses, now + unrestedTime + maxRest)
  })

  const readKind = <K extends Kind>(kind: K, client: Client): Effect.Effect<void> => {
    if (!listing.includes(kind)) return Effect.void
    return Effect.matchEffect(listOf(kind, client), {
      onSuccess: (list) => {
        failing.delete(kind)
        lists = { ...lists, [kind]: list }
        // 2024-11-05 has completion without a capability for it.
        const completes = client.capabilities.completions !== undefined || client.revision === "2024-11-05"
        return listing.update(kind, list, completes)
      },
      onFailure: (error) => {
        // The end of the connection is logged once, and not for each list.
        const isKnown = failing.has(kind) || error.reason._tag === "Closed"
        const log = isKnown ? Effect.logDebug : Effect.logWarning
        failing.add(kind)
        groupOf(kind).stale.add(kind)
        return log(`The ${kind} of ${named(name)} could not be listed`, error)
      }
    }).pipe(
      // A predicate of the application has thrown.
      Effect.catchDefect((defect) => Effect.logError(`The ${kind} of ${named(name)} could not be taken over`, defect))
    )
  }

  return { restore, markAll, follow }
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
