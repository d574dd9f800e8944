/**
 * One server of a pool. A fiber in a scope of its own opens it, waits for its end, and opens it again.
 */
import type { Transport } from "@skein/runtime/Connection"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Semaphore } from "effect/Semaphore"
import * as Client from "../../Client.ts"
import { ClientError, Closed, ConnectionFailed } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import { clientError, delayAfter, within } from "../base/errors.ts"
import type { Middleware } from "../../Middleware.ts"
import type { Telemetry } from "../../Telemetry.ts"
import { endText } from "../base/failure.ts"
import type { Ready } from "../toolkit/source.ts"
import { CallClock, CurrentCallClock } from "../base/callClock.ts"
import type { Aspect } from "./poolChanges.ts"
import { type Items, type Kind, request, ServerLists } from "./serverLists.ts"

/** The server is being opened, or waits for `concurrency`. */
export interface Opening {
  readonly _tag: "Opening"
  /** The number of the attempt, from 1. */
  readonly attempt: number
}

/** The server is open. */
export interface Open {
  readonly _tag: "Open"
  readonly client: Client.Client
}

/** The server could not be opened, or its client has ended. */
export interface Broken {
  readonly _tag: "Broken"
  readonly error: ClientError
  /** How many attempts in a row have failed. */
  readonly attempt: number
  /** When it is opened again, in milliseconds since 1970. `undefined` if it waits for `restart`. */
  readonly retryAt: number | undefined
}

/** The state of a server. */
export type State = Opening | Open | Broken

/** A server of a pool: its transport, and the options of its client. */
export interface Server {
  readonly transport: Transport
  readonly options?: Client.Options | undefined
  /** How long one attempt to open it may take: the pool's `timeout` by default. */
  readonly timeout?: Duration.Input | undefined
}

/** The state that all entries of a pool share. */
export interface Shared {
  /** One permit for each server that may be opened at the same time. */
  readonly openPermits: Semaphore
  readonly timeout: Duration.Input
  readonly policy: Reconnect.Resolved
  /** Runs after each change of the state of a server, or of one of its lists. */
  readonly onChange: (name: string, aspect: Aspect) => void
  /** Whether all servers are asked for their tools as soon as they are open. */
  isWatched: boolean
  /** Whether lists are stored until they change. */
  readonly cacheLists: boolean
  /** The middleware of all clients, outside of their own. */
  readonly middleware: ReadonlyArray<Middleware>
  /** The telemetry of the clients that have none of their own. */
  readonly telemetry: Telemetry | undefined
}

// How long a server that is being opened counts for `concurrency`. Servers that hang must not hold up the others.
const maxPermitTime = "5 seconds"

/** An entry of a pool. */
export class PoolEntry {
  readonly name: string
  state: State = { _tag: "Opening", attempt: 1 }
  #server: Server
  readonly #shared: Shared
  readonly #scope: Scope.Closeable
  #fiber: Fiber.Fiber<void> | undefined
  #result = Deferred.makeUnsafe<Client.Client, ClientError>()
  #attempt = 1
  #lists: ServerLists | undefined
  // Whether a toolkit has asked for the tools, so that they are listed as soon as the server is open.
  #isWatched = false
  // When the first attempt to open it began, in milliseconds since 1970.
  #since = 0
  #restarts = 0
  #isClosed = false

  constructor(name: string, server: Server, shared: Shared, scope: Scope.Closeable) {
    this.name = name
    this.#server = server
    this.#shared = shared
    this.#scope = scope
  }

  /** The client. Waits while the server is opened. Fails with the error of a broken server. */
  readonly client: Effect.Effect<Client.Client, ClientError> = Effect.suspend(() => {
    switch (this.state._tag) {
      case "Opening":
        return Deferred.await(this.#result)
      case "Open":
        return Effect.succeed(this.state.client)
      case "Broken":
        return Effect.fail(this.state.error)
    }
  })

  /** Starts to open it. */
  readonly start: Effect.Effect<void> = Effect.suspend(() =>
    Effect.andThen(Scope.addFinalizer(this.#scope, Effect.sync(() => this.#setClosed())), this.#begin)
  )

  /**
   * Closes it, waits for that, and opens it again, with another definition if one is given. Of several restarts at the
   * same time only the last one opens it.
   */
  restart(server?: Server): Effect.Effect<void> {
    return Effect.uninterruptible(Effect.gen({ self: this }, function*() {
      const turn = ++this.#restarts
      if (server !== undefined) this.#server = server
      this.#since = yield* Clock.currentTimeMillis
      this.#setState({ _tag: "Opening", attempt: 1 })
      if (this.#fiber !== undefined) yield* Fiber.interrupt(this.#fiber)
      if (turn === this.#restarts) yield* this.#begin
    }))
  }

  /** One of its lists. Waits while the server is opened. */
  list<K extends Kind>(kind: K): Effect.Effect<ReadonlyArray<Items[K]>, ClientError> {
    return Effect.flatMap(this.client, (client) => {
      const lists = this.#lists
      return lists === undefined ? request(client, kind) : Effect.andThen(this.#follow(lists), lists.of[kind].latest)
    })
  }

  /** Asks for the tools, so that they are known when a toolkit needs them. */
  readonly watch: Effect.Effect<void> = Effect.suspend(() => {
    const lists = this.#lists
    return lists === undefined ? Effect.void : Effect.andThen(this.#follow(lists), Effect.asVoid(lists.of.tools.begin))
  })

  /** Subscribes to changes, if lists are stored or a stream reports their changes. */
  #follow(lists: ServerLists): Effect.Effect<void> {
    return this.#shared.cacheLists || this.#shared.isWatched ? lists.follow : Effect.void
  }

  /**
   * The tools that are known now. Waits for a server that is opened for the first time, and for a list that is under
   * way, until `timeout` milliseconds after their beginning.
   */
  ready(timeout: number): Effect.Effect<Ready> {
    return Effect.gen({ self: this }, function*() {
      this.#isWatched = true
      const server = this.name
      const left = (since: number) => Effect.map(Clock.currentTimeMillis, (now) => Math.max(0, since + timeout - now))
      if (this.state._tag === "Opening" && this.state.attempt === 1) {
        yield* Effect.timeoutOption(Effect.exit(Deferred.await(this.#result)), yield* left(this.#since))
      }
      const { state } = this
      if (state._tag === "Opening") return { server, tools: undefined, instructions: undefined }
      if (state._tag === "Broken") return { server, tools: Result.fail(state.error), instructions: undefined }
      const { instructions } = state.client
      const lists = this.#lists
      if (lists === undefined) return { server, tools: undefined, instructions }
      const { current } = lists.of.tools
      if (current !== undefined) return { server, tools: Result.succeed(current), instructions }
      yield* this.#follow(lists)
      // The request continues when it is not waited for any longer.
      const pending = yield* lists.of.tools.begin
      const { since } = lists.of.tools
      const listing = Effect.result(Deferred.await(pending))
      const wait = yield* left(since)
      const listed = yield* Deferred.isDoneUnsafe(pending)
        ? Effect.map(listing, Option.some)
        : wait > 0
        ? Effect.timeoutOption(listing, wait)
        : Effect.succeedNone
      const before = lists.of.tools.items
      const tools = Option.getOrElse(listed, () => before === undefined ? undefined : Result.succeed(before))
      return { server, tools, instructions }
    })
  }

  /** Closes it permanently and uninterruptibly. Waiting callers fail at once. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#setClosed()
    return Scope.close(this.#scope, Exit.void)
  })

  readonly #begin: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    if (this.#isClosed) return
    this.#attempt = 1
    this.#setState({ _tag: "Opening", attempt: 1 })
    this.#since = yield* Clock.currentTimeMillis
    this.#fiber = yield* Effect.forkIn(this.#run, this.#scope)
  })

  #setClosed(): void {
    if (this.#isClosed) return
    const error = clientError(Closed, `${this.name} was removed from the pool`)
    this.#setState({ _tag: "Broken", error, attempt: this.#attempt, retryAt: undefined })
    this.#isClosed = true
  }

  #setState(state: State): void {
    if (this.#isClosed) return
    const before = this.state._tag
    this.state = state
    if (state._tag === "Open") Deferred.doneUnsafe(this.#result, Exit.succeed(state.client))
    else if (state._tag === "Broken") Deferred.doneUnsafe(this.#result, Exit.fail(state.error))
    else if (before !== "Opening") this.#result = Deferred.makeUnsafe()
    this.#shared.onChange(this.name, "servers")
  }

  get #opening(): Effect.Effect<Client.Client, ClientError, Scope.Scope> {
    const { name } = this
    const { options, timeout = this.#shared.timeout, transport } = this.#server
    const middleware = [...this.#shared.middleware, ...options?.middleware ?? []]
    // The clock of the client, which stands still while a person signs in.
    const callClock = new CallClock()
    const opening = Effect.catchDefect(
      Effect.provideService(
        Client.make(transport, { label: name, telemetry: this.#shared.telemetry, ...options, middleware }),
        CurrentCallClock,
        callClock
      ),
      (cause) => Effect.fail(clientError(ConnectionFailed, `The transport of ${name} failed`, undefined, cause))
    )
    return this.#withPermit(within(callClock, opening, timeout, `${name} did not open within timeout`))
  }

  /** Holds one of the permits until the server is open, and for `maxPermitTime` at most. */
  #withPermit<A, R>(opening: Effect.Effect<A, ClientError, R>): Effect.Effect<A, ClientError, R> {
    const { openPermits } = this.#shared
    let isHeld = true
    const release = Effect.suspend(() => {
      if (!isHeld) return Effect.void
      isHeld = false
      return Effect.asVoid(openPermits.release(1))
    })
    const tooSlow = Effect.andThen(Effect.andThen(Effect.sleep(maxPermitTime), release), Effect.never)
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(
        restore(openPermits.take(1)),
        Effect.ensuring(restore(Effect.raceFirst(opening, tooSlow)), release)
      )
    )
  }

  /**
   * Opens the server once, waits for its end, and returns when to open it again. The state changes before the scope is
   * closed, which may take a while.
   */
  get #runOnce(): Effect.Effect<number | undefined> {
    const { policy } = this.#shared
    return Effect.scoped(Effect.gen({ self: this }, function*() {
      const opened = yield* Effect.result(this.#opening)
      let error: ClientError
      if (Result.isSuccess(opened)) {
        const since = yield* Clock.currentTimeMillis
        const lists = new ServerLists(
          opened.success,
          yield* Effect.scope,
          this.#shared.cacheLists,
          (kind) => this.#shared.onChange(this.name, kind === "resourceTemplates" ? "resources" : kind)
        )
        this.#lists = lists
        this.#setState({ _tag: "Open", client: opened.success })
        if (this.#isWatched || this.#shared.isWatched) yield* this.watch
        const end = yield* opened.success.ended
        const message = `The connection to ${this.name} has ended${endText(end)}`
        error = new ClientError({ reason: new Closed({ message, end }) })
        if (this.#lists === lists) this.#lists = undefined
        if ((yield* Clock.currentTimeMillis) - since >= Reconnect.stableAfter) this.#attempt = 1
      } else error = opened.failure
      const wait = yield* delayAfter(error, policy, this.#attempt)
      const retryAt = this.#attempt > policy.maxAttempts ? undefined : (yield* Clock.currentTimeMillis) + wait
      this.#setState({ _tag: "Broken", error, attempt: this.#attempt, retryAt })
      return retryAt
    }))
  }

  readonly #run: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    for (let retryAt = yield* this.#runOnce; retryAt !== undefined; retryAt = yield* this.#runOnce) {
      yield* Effect.sleep(Math.max(0, retryAt - (yield* Clock.currentTimeMillis)))
      this.#setState({ _tag: "Opening", attempt: ++this.#attempt })
    }
  })
}
