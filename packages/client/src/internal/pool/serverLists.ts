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

type List<A> = Effect.Effect<ReadonlyArray<A>, ClientError>

/** A request that is under way. */
type Pending<A> = Deferred.Deferred<ReadonlyArray<A>, ClientError>

/** Requests a list. A server without the capability has an empty one. */
export const request = <K extends Kind>(client: Client, kind: K): List<Items[K]> => {
  const methods: { readonly [K in Kind]: () => List<Items[K]> } = {
    tools: () => client.listTools(),
    prompts: () => client.listPrompts(),
    resources: () => client.listResources(),
    resourceTemplates: () => client.listResourceTemplates()
  }
  const list: List<Items[K]> = methods[kind]()
  return Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed<ReadonlyArray<Items[K]>>([]))
}

// How often a list is requested because the server reports a change. A server that reports changes without end must not
// keep the client busy.
const minRelistInterval = "1 second"
const minRelistMillis = /* @__PURE__ */ Duration.toMillis(minRelistInterval)

const isEqual = (a: unknown, b: unknown): boolean => {
  try {
    return JSON.stringify(a) === JSON.stringify(b)
  } catch {
    return false
  }
}

/** One list of a client. */
class ServerList<A> {
  readonly #request: List<A>
  readonly #scope: Scope.Scope
  readonly #isStored: boolean
  readonly #onChange: () => void
  /** The list that was received last. */
  items: ReadonlyArray<A> | undefined
  /** When the last request began, in milliseconds since 1970. */
  since = 0
  /** Whether the server reports changes of the list. */
  isReported = false
  /** Whether no change was reported since the last request began. */
  #isFresh = false
  /** The request that is under way. */
  #pending: Pending<A> | undefined
  /** Whether a request because of a change is scheduled. */
  #isScheduled = false
  /** When the last request because of a change began. */
  #relistedAt = -Infinity

  constructor(request: List<A>, scope: Scope.Scope, isStored: boolean, onChange: () => void) {
    this.#request = request
    this.#scope = scope
    this.#isStored = isStored
    this.#onChange = onChange
  }

  /** The list, from memory if it is known not to have changed. */
  readonly latest: List<A> = Effect.suspend(() => {
    const { current } = this
    if (current !== undefined) return Effect.succeed(current)
    // A request that is under way may have been answered before the change.
    const isUsable = this.#pending === undefined || this.#isFresh || !this.isReported
    return Effect.flatMap(
      Effect.flatMap(this.begin, Deferred.await),
      (items) => isUsable ? Effect.succeed(items) : this.latest
    )
  })

  /** The list in memory, if it is known not to have changed. */
  get current(): ReadonlyArray<A> | undefined {
    return this.#isStored && this.#isFresh && this.#pending === undefined && this.isReported ? this.items : undefined
  }

  /** Requests the list, unless a request is under way. */
  readonly begin: Effect.Effect<Pending<A>> = Effect.suspend(() => {
    if (this.#pending !== undefined) return Effect.succeed(this.#pending)
    const pending = this.#pending = Deferred.makeUnsafe<ReadonlyArray<A>, ClientError>()
    this.#isFresh = true
    return Effect.gen({ self: this }, function*() {
      this.since = yield* Clock.currentTimeMillis
      const received = Effect.onExit(this.#request, (exit) => this.#received(pending, exit))
      yield* Effect.forkIn(received, this.#scope, { startImmediately: true })
      return pending
    })
  })

  /** The server has reported a change. A list that was never requested is not needed. */
  readonly changed: Effect.Effect<void> = Effect.suspend(() => {
    this.#isFresh = false
    return this.items === undefined || this.#pending !== undefined ? Effect.void : this.#relist
  })

  /** Requests the list after a change: at once, or after `minRelistInterval` since the last time. */
  readonly #relist: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isScheduled) return Effect.void
    this.#isScheduled = true
    const relisting = Effect.gen({ self: this }, function*() {
      const wait = this.#relistedAt + minRelistMillis - (yield* Clock.currentTimeMillis)
      if (wait > 0) yield* Effect.sleep(wait)
      this.#isScheduled = false
      // A caller may have requested it in the meantime.
      if (this.#isFresh || this.#pending !== undefined) return
      this.#relistedAt = yield* Clock.currentTimeMillis
      yield* this.begin
    })
    return Effect.asVoid(Effect.forkIn(relisting, this.#scope, { startImmediately: true }))
  })

  /** Requests the list once more if it changed in the meantime. */
  #received(pending: Pending<A>, exit: Exit.Exit<ReadonlyArray<A>, ClientError>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#pending = undefined
      const isStale = !this.#isFresh && this.isReported
      if (Exit.isFailure(exit)) this.#isFresh = false
      else if (!isEqual(this.items, exit.value)) {
        this.items = exit.value
        this.#onChange()
      }
      // The end of the connection interrupts the request, and must not interrupt the callers that wait for it.
      const isInterrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
      Deferred.doneUnsafe(pending, isInterrupted ? Exit.fail(clientError(Closed, "The connection has ended")) : exit)
      return isStale && Exit.isSuccess(exit) ? this.#relist : Effect.void
    })
  }
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

/** The lists of one client. */
export class ServerLists {
  readonly #client: Client
  readonly #scope: Scope.Scope
  /** Each list by its name. */
  readonly of: { readonly [K in Kind]: ServerList<Items[K]> }
  #isFollowed = false

  /**
   * Requests run in the scope, which closes before the client. `isStored`: whether a list is stored until it changes.
   * `onChange` runs after a list has changed.
   */
  constructor(client: Client, scope: Scope.Scope, isStored: boolean, onChange: (kind: Kind) => void) {
    this.#client = client
    this.#scope = scope
    const list = <K extends Kind>(kind: K): ServerList<Items[K]> =>
      new ServerList(Effect.suspend(() => request(client, kind)), scope, isStored, () => onChange(kind))
    this.of = {
      tools: list("tools"),
      prompts: list("prompts"),
      resources: list("resources"),
      resourceTemplates: list("resourceTemplates")
    }
  }

  /** Subscribes to the changes of the lists, once. A server that reports none is asked for each list each time. */
  readonly follow: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isFollowed) return Effect.void
    this.#isFollowed = true
    const changes = Stream.runForEach(
      this.#client.changes({ tools: true, prompts: true, resources: true }),
      (change) => this.#notice(change)
    )
    const following = Effect.ensuring(Effect.ignore(changes), Effect.sync(() => this.#setReported([])))
    return Effect.asVoid(Effect.forkIn(following, this.#scope, { startImmediately: true }))
  })

  #setReported(reported: ReadonlyArray<Kind>): void {
    for (const kind of kinds) this.of[kind].isReported = reported.includes(kind)
  }

  #notice(change: Change): Effect.Effect<void> {
    const reported = reportedBy(change)
    if (reported !== undefined) this.#setReported(reported)
    return Effect.forEach(concerns(change), (kind) => this.of[kind].changed, { discard: true })
  }
}
