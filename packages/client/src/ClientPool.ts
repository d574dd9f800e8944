/**
 * Many servers, held open and supervised one by one: a broken one is a broken entry, never an empty list.
 *
 * `make` opens all of them in parallel and does not wait. Each has a scope of its own: what happens to one is of no concern to the
 * others. One that cannot be opened, or that ends for good, is tried again under a policy. The services that answer servers are
 * those of `make`'s context, for all entries, the ones that are added later as well. But not `Credentials`: each server has its own, of
 * its transport, and a service around the pool would tell them to all.
 *
 * **Gotchas.** A client reconnects by itself as far as it can; only when it has given up is its entry broken, and a new client is
 * made. So ask for `client(name)` each time, and keep it no longer than a task lasts. A server over HTTP that has no stream of its own,
 * as in the request era, and is gone stays `Open` while nobody calls it, unless its client has a `heartbeat`.
 *
 * ```ts
 * const pool = yield* ClientPool.make({
 *   files: { transport: Stdio.transport({ command: "files-server" }) },
 *   search: { transport: Http.transport({ url: "https://example.com/mcp" }) }
 * })
 * for (const { result, server } of yield* pool.tools) {
 *   if (Result.isSuccess(result)) console.log(server, result.success.length)
 *   else console.log(server, result.failure.message)
 * }
 * ```
 */
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Client } from "./Client.ts"
import { ClientError, Timeout } from "./ClientError.ts"
import { DuplicateName, LimitExceeded, PoolError, ServerNotFound } from "./PoolError.ts"
import { Credentials } from "./Credentials.ts"
import { type Broken, Member, type Open, type Opening, type Server, type State } from "./internal/pool/member.ts"
import * as Reconnect from "./Reconnect.ts"

export type { Broken, Open, Opening, Server, State }

/** How a pool is made. Every member is optional; the defaults stand beside it. */
export interface Options {
  /**
   * How many servers are opened at the same time: 8 by default. The others wait for their turn, and a server that hangs has one
   * no longer than `timeout`.
   */
  readonly concurrency?: number | undefined
  /** How long one attempt to open a server may take: 30 seconds by default. Then the attempt has failed with `Timeout`. */
  readonly timeout?: Duration.Input | undefined
  /**
   * How long `tools` and its like wait for each server, for its opening too: 30 seconds by default. Who takes longer is listed
   * with `Timeout`.
   */
  readonly listTimeout?: Duration.Input | undefined
  /** How many servers a pool holds: 100 by default. `make` and `add` fail with `LimitExceeded` when there are more. */
  readonly maxServers?: number | undefined
  /**
   * When a broken server is tried again. Here `maxDelay` is a minute, and there is no end to the attempts, unless it says otherwise;
   * one that has given up waits for `restart`. How a client opens a lost connection anew is in its own options.
   */
  readonly reconnect?: Reconnect.Policy | undefined
}

/** A server of the pool, by its name. */
export interface Entry {
  readonly name: string
  readonly state: State
}

/** What one server lists, or why it does not. */
export interface Listing<A> {
  readonly server: string
  readonly result: Result.Result<ReadonlyArray<A>, ClientError>
}

/** Lists for every server, in the order of `entries` and in parallel. Those that declare no such thing list nothing. */
export type Listings<A> = Effect.Effect<ReadonlyArray<Listing<A>>>

/** Many servers. See the module's text. */
export interface ClientPool {
  /**
   * The client of a server. Waits while it is opened. One that is broken fails with what broke it, at once; one that the pool
   * does not have fails with the `PoolError` `ServerNotFound`.
   */
  readonly client: (name: string) => Effect.Effect<Client, ClientError | PoolError>
  /** How each server does at this moment, in the order in which they were added. */
  readonly entries: ReadonlyArray<Entry>
  /** The entries, now and after each change. Whoever is slow gets the latest, not each one. Ends with the pool. */
  readonly states: Stream.Stream<ReadonlyArray<Entry>>
  /** Adds a server and begins to open it; does not wait. Fails with `DuplicateName` or `LimitExceeded`. */
  readonly add: (name: string, server: Server) => Effect.Effect<void, PoolError>
  /**
   * Closes a server and forgets it: true if there was one. Its name is free at once; the effect succeeds when its process or
   * its connections have ended, within the graces of the transport.
   */
  readonly remove: (name: string) => Effect.Effect<boolean>
  /** Closes a server and opens it anew, also one that was given up. Fails with `ServerNotFound`. Does not wait for the opening. */
  readonly restart: (name: string) => Effect.Effect<void, PoolError>
  readonly tools: Listings<Tool>
  readonly resources: Listings<Resource>
  readonly resourceTemplates: Listings<ResourceTemplate>
  readonly prompts: Listings<Prompt>
}

/** The pool, for programs that have one. */
export const ClientPool: Context.Service<ClientPool, ClientPool> = Context.Service<ClientPool>(
  "@skein/client/ClientPool"
)

/** Hands the entries to whoever watches, the latest only. */
class Watchers {
  readonly #watchers = new Set<Queue.Queue<ReadonlyArray<Entry>, Cause.Done>>()
  #over = false

  tell(entries: () => ReadonlyArray<Entry>): void {
    if (this.#watchers.size === 0) return
    const now = entries()
    for (const watcher of this.#watchers) Queue.offerUnsafe(watcher, now)
  }

  end(): void {
    this.#over = true
    for (const watcher of this.#watchers) Queue.endUnsafe(watcher)
    this.#watchers.clear()
  }

  stream(entries: () => ReadonlyArray<Entry>): Stream.Stream<ReadonlyArray<Entry>> {
    return Stream.callback<ReadonlyArray<Entry>>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          Queue.offerUnsafe(queue, entries())
          if (this.#over) Queue.endUnsafe(queue)
          else this.#watchers.add(queue)
        }),
        () => Effect.sync(() => this.#watchers.delete(queue))
      ), { bufferSize: 1, strategy: "sliding" })
  }
}

const listing = <A>(
  members: () => Iterable<Member>,
  timeout: Duration.Input,
  list: (client: Client) => Effect.Effect<ReadonlyArray<A>, ClientError>
): Listings<A> =>
  Effect.suspend(() =>
    Effect.forEach(members(), ({ client, name }) =>
      Effect.flatMap(client, list).pipe(
        Effect.catchReason("ClientError", "Unsupported", () => Effect.succeed<ReadonlyArray<A>>([])),
        Effect.timeoutOrElse({
          duration: timeout,
          orElse: () =>
            Effect.fail(
              new ClientError({ reason: new Timeout({ message: `${name} did not list in time (listTimeout)` }) })
            )
        }),
        Effect.result,
        Effect.map((result): Listing<A> => ({ server: name, result }))
      ), { concurrency: "unbounded" })
  )

/**
 * Holds servers for as long as the scope, which ends them all in parallel. Waits for none of them: how each one does is in its
 * entry. Fails only with `LimitExceeded`, when there are more than `maxServers`.
 */
export const make = (
  servers: Readonly<Record<string, Server>>,
  options: Options = {}
): Effect.Effect<ClientPool, PoolError, Scope.Scope> =>
  Effect.gen(function*() {
    const { listTimeout = "30 seconds", maxServers = 100 } = options
    const context = yield* Effect.context<never>()
    const inside = (effect: Effect.Effect<void>): Effect.Effect<void> =>
      Effect.updateContext(effect, (outside: Context.Context<never>): Context.Context<never> =>
        Context.omit(Credentials)(Context.merge(outside, context)))
    const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
    const members = new Map<string, Member>()
    const watchers = new Watchers()
    const entries = () =>
      Array.from(members.values(), ({ name, state }) => ({ name, state }))
    const policy = Reconnect.resolve({ maxDelay: "1 minute", maxAttempts: Infinity, ...options.reconnect })
    const shared = {
      doors: yield* Semaphore.make(options.concurrency ?? 8),
      timeout: options.timeout ?? "30 seconds",
      policy,
      changed: () =>
        watchers.tell(entries)
    }
    yield* Scope.addFinalizer(scope, Effect.sync(() => watchers.end()))

    const find = (name: string): Effect.Effect<Member, PoolError> =>
      Effect.suspend(() => {
        const member = members.get(name)
        if (member !== undefined) return Effect.succeed(member)
        const message = `There is no server called ${name} in the pool`
        return Effect.fail(new PoolError({ reason: new ServerNotFound({ message, server: name }) }))
      })
    const add: ClientPool["add"] = (name, server) =>
      Effect.suspend(() => {
        if (members.has(name)) {
          return Effect.fail(
            new PoolError({
              reason: new DuplicateName({ message: `The pool has a server called ${name}`, server: name })
            })
          )
        }
        if (members.size >= maxServers) {
          const message = `The pool holds ${maxServers} servers already (maxServers)`
          return Effect.fail(new PoolError({ reason: new LimitExceeded({ message, maxServers }) }))
        }
        const member = new Member(name, server, shared, Scope.forkUnsafe(scope, "parallel"))
        members.set(name, member)
        return inside(member.start)
      })
    for (const [name, server] of Object.entries(servers)) yield* add(name, server)

    const list = <A>(each: (client: Client) => Effect.Effect<ReadonlyArray<A>, ClientError>) =>
      listing(() => [...members.values()], listTimeout, each)
    return {
      client: (name) => Effect.flatMap(find(name), ({ client }) => client),
      get entries() {
        return entries()
      },
      states: watchers.stream(entries),
      add,
      remove: (name) =>
        Effect.suspend(() => {
          const member = members.get(name)
          if (member === undefined) return Effect.succeed(false)
          members.delete(name)
          return Effect.as(member.close, true)
        }),
      restart: (name) => Effect.flatMap(find(name), ({ restart }) => inside(restart)),
      tools: list(({ listTools }) => listTools()),
      resources: list(({ listResources }) => listResources()),
      resourceTemplates: list(({ listResourceTemplates }) => listResourceTemplates()),
      prompts: list(({ listPrompts }) => listPrompts())
    }
  })

/** A layer that holds servers. See {@link make}. */
export const layer = (
  servers: Readonly<Record<string, Server>>,
  options: Options = {}
): Layer.Layer<ClientPool, PoolError> => Layer.effect(ClientPool, make(servers, options))
