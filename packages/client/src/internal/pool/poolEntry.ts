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
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Semaphore } from "effect/Semaphore"
import * as Client from "../../Client.ts"
import { ClientError, Closed, ConnectionFailed } from "../../ClientError.ts"
import type * as Reconnect from "../../Reconnect.ts"
import { delayAfter } from "../backoff.ts"
import { clientError, within } from "../errors.ts"

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
  /** Runs after each change of a state. */
  readonly onChange: () => void
}

const ended = (name: string, client: Client.Client): Effect.Effect<ClientError> =>
  Effect.map(client.ended, (end) => {
    const why = end._tag === "Lost" ? `: ${end.cause.message}` : end._tag === "Refused" ? `: ${end.message}` : ""
    return new ClientError({ reason: new Closed({ message: `The connection to ${name} has ended${why}`, end }) })
  })

/** An entry of a pool. */
export class PoolEntry {
  readonly name: string
  state: State = { _tag: "Opening", attempt: 1 }
  readonly #server: Server
  readonly #shared: Shared
  readonly #scope: Scope.Closeable
  #fiber: Fiber.Fiber<void> | undefined
  #result = Deferred.makeUnsafe<Client.Client, ClientError>()
  #attempt = 1
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

  /** Closes it, waits for that, and opens it again. Of several restarts at the same time only the last one opens it. */
  readonly restart: Effect.Effect<void> = Effect.uninterruptible(Effect.gen({ self: this }, function*() {
    const turn = ++this.#restarts
    this.#setState({ _tag: "Opening", attempt: 1 })
    if (this.#fiber !== undefined) yield* Fiber.interrupt(this.#fiber)
    if (turn === this.#restarts) yield* this.#begin
  }))

  /** Closes it permanently and uninterruptibly. Waiting callers fail at once. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#setClosed()
    return Scope.close(this.#scope, Exit.void)
  })

  get #begin(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#isClosed) return Effect.void
      this.#attempt = 1
      this.#setState({ _tag: "Opening", attempt: 1 })
      return Effect.map(Effect.forkIn(this.#run, this.#scope), (fiber) => {
        this.#fiber = fiber
      })
    })
  }

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
    this.#shared.onChange()
  }

  get #opening(): Effect.Effect<Client.Client, ClientError, Scope.Scope> {
    const { name } = this
    const { options, timeout = this.#shared.timeout, transport } = this.#server
    const opening = Effect.catchDefect(
      Client.make(transport, { label: name, ...options }),
      (cause) => Effect.fail(clientError(ConnectionFailed, `The transport of ${name} failed`, undefined, cause))
    )
    return this.#shared.openPermits.withPermit(within(opening, timeout, `${name} did not open within timeout`))
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
        this.#setState({ _tag: "Open", client: opened.success })
        error = yield* ended(this.name, opened.success)
        if ((yield* Clock.currentTimeMillis) - since >= policy.stableAfter) this.#attempt = 1
      } else error = opened.failure
      const wait = yield* delayAfter(error, policy, this.#attempt)
      const retryAt = this.#attempt > policy.maxAttempts ? undefined : (yield* Clock.currentTimeMillis) + wait
      this.#setState({ _tag: "Broken", error, attempt: this.#attempt, retryAt })
      return retryAt
    }))
  }

  get #run(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      for (let retryAt = yield* this.#runOnce; retryAt !== undefined; retryAt = yield* this.#runOnce) {
        yield* Effect.sleep(Math.max(0, retryAt - (yield* Clock.currentTimeMillis)))
        this.#setState({ _tag: "Opening", attempt: ++this.#attempt })
      }
    })
  }
}
