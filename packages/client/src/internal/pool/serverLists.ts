/**
 * The lists of one open server of a pool. A list is requested once, and again when the server reports that it has
 * changed.
 */
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import type { Client } from "../../Client.ts"
import { type ClientError, Closed } from "../../ClientError.ts"
import { clientError } from "../base/errors.ts"

/** The items of each list. */
export interface Items {
  readonly tools: Tool
  readonly prompts: Prompt
  readonly resources: Resource
  readonly resourceTemplates: ResourceTemplate
}

/** The name of a list. */
export type Kind = keyof Items

type List<K extends Kind> = Effect.Effect<ReadonlyArray<Items[K]>, ClientError>

/** A request that is under way. */
type Pending<A> = Deferred.Deferred<ReadonlyArray<A>, ClientError>

/** Requests a list. A server without the capability has an empty one. */
export const request = <K extends Kind>(client: Client, kind: K): List<K> => {
  const methods: { readonly [K in Kind]: () => List<K> } = {
    tools: () => client.listTools(),
    prompts: () => client.listPrompts(),
    resources: () => client.listResources(),
    resourceTemplates: () => client.listResourceTemplates()
  }
  const list: List<K> = methods[kind]()
  return Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed<ReadonlyArray<Items[K]>>([]))
}

// How often a list is requested because the server reports a change. A server that reports changes without end must not
// keep the client busy.
const minRelistInterval = "1 second"
const minRelistMillis = /* @__PURE__ */ Duration.toMillis(minRelistInterval)

class Slot<A> {
  items: ReadonlyArray<A> | undefined
  /** Whether no change was reported since the last request began. */
  isFresh = false
  /** The request that is under way. */
  pending: Pending<A> | undefined
  /** When that request began, in milliseconds since 1970. */
  since = 0
  /** Whether a request because of a change is scheduled. */
  isScheduled = false
  /** When the last request because of a change began. */
  relistedAt = -Infinity
}

const kinds: ReadonlyArray<Kind> = ["tools", "prompts", "resources", "resourceTemplates"]

/** The lists that a change concerns. Templates have no notification of their own. */
const concerns = (change: Change): ReadonlyArray<Kind> => {
  switch (change._tag) {
    case "ToolListChanged":
      return ["tools"]
    case "PromptListChanged":
      return ["prompts"]
    case "ResourceListChanged":
      return ["resources", "resourceTemplates"]
    // Earlier changes may have been missed. After other gaps, `Subscribed` follows.
    case "Subscribed":
      return kinds
    case "Gap":
      return change.reason === "Overflow" ? kinds : []
    default:
      return []
  }
}

/** The lists that the server reports changes of. */
const reportedBy = (change: Change): ReadonlyArray<Kind> | undefined => {
  if (change._tag === "Gap") return change.reason === "Overflow" ? undefined : []
  if (change._tag !== "Subscribed") return undefined
  const { prompts, resources, tools } = change.honoured
  return kinds.filter((kind) => kind === "tools" ? tools : kind === "prompts" ? prompts : resources)
}

const isEqual = (a: unknown, b: unknown): boolean => {
  try {
    return JSON.stringify(a) === JSON.stringify(b)
  } catch {
    return false
  }
}

/** The lists of one client. */
export class ServerLists {
  readonly #client: Client
  readonly #scope: Scope.Scope
  readonly #isStored: boolean
  readonly #onChange: (kind: Kind) => void
  readonly #slots: { readonly [K in Kind]: Slot<Items[K]> } = {
    tools: new Slot(),
    prompts: new Slot(),
    resources: new Slot(),
    resourceTemplates: new Slot()
  }
  #reported: ReadonlySet<Kind> = new Set()
  #isFollowed = false

  /**
   * Requests run in the scope, which closes before the client. `isStored`: whether a list is stored until it changes.
   * `onChange` runs after a list has changed.
   */
  constructor(client: Client, scope: Scope.Scope, isStored: boolean, onChange: (kind: Kind) => void) {
    this.#client = client
    this.#scope = scope
    this.#isStored = isStored
    this.#onChange = onChange
  }

  /** Subscribes to the changes of the lists, once. A server that reports none is asked for each list each time. */
  readonly follow: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isFollowed) return Effect.void
    this.#isFollowed = true
    const changes = Stream.runForEach(
      this.#client.changes({ tools: true, prompts: true, resources: true }),
      (change) => this.#notice(change)
    )
    const following = Effect.ensuring(Effect.ignore(changes), Effect.sync(() => this.#reported = new Set()))
    return Effect.asVoid(Effect.forkIn(following, this.#scope, { startImmediately: true }))
  })

  /** A list, from memory if it is known not to have changed. */
  list<K extends Kind>(kind: K): List<K> {
    return Effect.suspend(() => {
      const current = this.current(kind)
      if (current !== undefined) return Effect.succeed(current)
      const slot: Slot<Items[K]> = this.#slots[kind]
      if (slot.pending === undefined) return Effect.flatMap(this.#request(kind), Deferred.await)
      // The request that is under way may have been answered before the change.
      const isUsable = slot.isFresh || !this.#reported.has(kind)
      return Effect.flatMap(Deferred.await(slot.pending), (items) => isUsable ? Effect.succeed(items) : this.list(kind))
    })
  }

  /** The list in memory, if it is known not to have changed. */
  current<K extends Kind>(kind: K): ReadonlyArray<Items[K]> | undefined {
    const { isFresh, items, pending } = this.#slots[kind]
    return this.#isStored && isFresh && pending === undefined && this.#reported.has(kind) ? items : undefined
  }

  /** Requests a list, unless a request is under way. */
  begin<K extends Kind>(kind: K): Effect.Effect<Pending<Items[K]>> {
    return Effect.suspend(() => {
      const { pending }: Slot<Items[K]> = this.#slots[kind]
      return pending === undefined ? this.#request(kind) : Effect.succeed(pending)
    })
  }

  /** The list that was received last, and when the last request began. */
  known<K extends Kind>(kind: K): { readonly items: ReadonlyArray<Items[K]> | undefined; readonly since: number } {
    return this.#slots[kind]
  }

  #notice(change: Change): Effect.Effect<void> {
    const reported = reportedBy(change)
    if (reported !== undefined) this.#reported = new Set(reported)
    return Effect.forEach(concerns(change), (kind) => {
      const slot = this.#slots[kind]
      slot.isFresh = false
      // A list that was never requested is not needed.
      return slot.items === undefined || slot.pending !== undefined ? Effect.void : this.#relist(kind)
    }, { discard: true })
  }

  /** Requests a list that has changed: at once, or after `minRelistInterval` since the last time. */
  #relist(kind: Kind): Effect.Effect<void> {
    return Effect.suspend(() => {
      const slot = this.#slots[kind]
      if (slot.isScheduled) return Effect.void
      slot.isScheduled = true
      const relisting = Effect.gen({ self: this }, function*() {
        const wait = slot.relistedAt + minRelistMillis - (yield* Clock.currentTimeMillis)
        if (wait > 0) yield* Effect.sleep(wait)
        slot.isScheduled = false
        // A caller may have requested it in the meantime.
        if (slot.isFresh || slot.pending !== undefined) return
        slot.relistedAt = yield* Clock.currentTimeMillis
        yield* this.#request(kind)
      })
      return Effect.asVoid(Effect.forkIn(relisting, this.#scope, { startImmediately: true }))
    })
  }

  /** Requests a list, and once more if it changed in the meantime. */
  #request<K extends Kind>(
    kind: K
  ): Effect.Effect<Pending<Items[K]>> {
    const slot: Slot<Items[K]> = this.#slots[kind]
    return Effect.gen({ self: this }, function*() {
      const pending = Deferred.makeUnsafe<ReadonlyArray<Items[K]>, ClientError>()
      slot.pending = pending
      slot.isFresh = true
      slot.since = yield* Clock.currentTimeMillis
      yield* Effect.forkIn(
        Effect.onExit(request(this.#client, kind), (exit) => this.#received(kind, pending, exit)),
        this.#scope,
        { startImmediately: true }
      )
      return pending
    })
  }

  #received<K extends Kind>(
    kind: K,
    pending: Pending<Items[K]>,
    exit: Exit.Exit<ReadonlyArray<Items[K]>, ClientError>
  ): Effect.Effect<void> {
    return Effect.suspend(() => {
      const slot: Slot<Items[K]> = this.#slots[kind]
      slot.pending = undefined
      const isStale = !slot.isFresh && this.#reported.has(kind)
      if (Exit.isFailure(exit)) slot.isFresh = false
      else if (!isEqual(slot.items, exit.value)) {
        slot.items = exit.value
        this.#onChange(kind)
      }
      // The end of the connection interrupts the request, and must not interrupt the callers that wait for it.
      const isInterrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
      Deferred.doneUnsafe(pending, isInterrupted ? Exit.fail(clientError(Closed, "The connection has ended")) : exit)
      return isStale && Exit.isSuccess(exit) ? this.#relist(kind) : Effect.void
    })
  }
}
