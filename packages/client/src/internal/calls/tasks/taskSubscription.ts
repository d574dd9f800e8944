/**
 * Subscribes to status notifications of the tasks that a client follows, in the stateless revision, with one
 * `subscriptions/listen` for all of them.
 *
 * When tasks are added, another subscription is opened, with all tasks that are followed then. It replaces the previous
 * one once the server has accepted it, so that no notification is lost between the two. A status that is received twice
 * has no effect. Tasks that are no longer followed remain in the subscription until the next one is opened: most of
 * them have ended, and have no further notifications. The subscription ends with the last task.
 */
import type { DetailedTask } from "@skein/protocol/Task"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change } from "../../../Changes.ts"
import type { ClientContext } from "../context.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"

/** The follower of a task. */
export interface Listener {
  readonly id: string
  /** The server sends status notifications of the task from now on. */
  readonly subscribed: () => void
  /** The server no longer sends them, or some may have been missed. */
  readonly subscriptionLost: () => void
  readonly push: (task: DetailedTask) => void
}

/**
 * The delay in milliseconds between two subscriptions, given the number of tasks. Tasks that are added meanwhile are
 * subscribed to together. Not an option: it bounds the subscriptions to a thousand tasks a second, and is short enough
 * to receive the end of a task that ends at once.
 */
const spacing = (tasks: number): number => Math.max(20, tasks)

/** The subscription to status notifications of all followed tasks. */
export class Listening {
  readonly #client: ClientContext
  readonly #most: number
  /** By task, oldest first. */
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #added = Latch.makeUnsafe()
  #opening: Fiber.Fiber<void> | undefined = undefined
  #current: Fiber.Fiber<void> | undefined = undefined
  /** The connection whose server refused the subscription. */
  #refusedBy: NegotiatedConnection | undefined = undefined

  static readonly #ofClients = new WeakMap<ClientContext, Listening>()

  /** The subscription of a client. It includes at most `most` tasks. */
  static of(client: ClientContext, most: number): Listening {
    const known = Listening.#ofClients.get(client) ?? new Listening(client, most)
    Listening.#ofClients.set(client, known)
    return known
  }

  constructor(client: ClientContext, most: number) {
    this.#client = client
    this.#most = most
  }

  /**
   * Adds a listener until the scope closes. It is not called if the server does not support subscriptions, or not for
   * so many tasks.
   */
  join(listener: Listener): Effect.Effect<void, never, Scope.Scope> {
    return Effect.suspend(() => {
      const { last } = this.#client.supervisor
      if (!last.isStateless || this.#refusedBy === last || this.#most <= 0) return Effect.void
      return Effect.acquireRelease(this.#enter(listener), () => Effect.sync(() => this.#leave(listener)))
    })
  }

  #enter(listener: Listener): Effect.Effect<void> {
    return Effect.suspend(() => {
      const listeners = this.#listeners.get(listener.id) ?? new Set()
      this.#listeners.set(listener.id, listeners.add(listener))
      if (this.#listeners.size <= this.#most) this.#added.openUnsafe()
      if (this.#opening !== undefined) return Effect.void
      return Effect.map(Effect.forkIn(this.#open, this.#client.scope), (fiber) => {
        this.#opening = fiber
      })
    })
  }

  #leave(listener: Listener): void {
    const listeners = this.#listeners.get(listener.id)
    listeners?.delete(listener)
    if (listeners?.size === 0) this.#listeners.delete(listener.id)
    // A task that was not subscribed to can be included now.
    if (this.#listeners.size >= this.#most) this.#added.openUnsafe()
    if (this.#listeners.size > 0) return
    this.#opening?.interruptUnsafe()
    this.#opening = undefined
    this.#current = undefined
  }

  /** Opens one subscription after the other, as tasks are added. */
  readonly #open: Effect.Effect<void> = Effect.scoped(Effect.gen({ self: this }, function*() {
    while (true) {
      yield* this.#added.await
      this.#added.closeUnsafe()
      const taskIds = [...this.#listeners.keys()].slice(0, this.#most)
      const begun = yield* Deferred.make<void>()
      yield* Effect.forkScoped(this.#subscription(taskIds, begun))
      yield* Deferred.await(begun)
      yield* Effect.sleep(spacing(taskIds.length))
    }
  }))

  /** Runs one subscription. The deferred is completed when the server has accepted or refused it. */
  #subscription(taskIds: ReadonlyArray<string>, begun: Deferred.Deferred<void>): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      const subscription = fiber as Fiber.Fiber<void>
      const changes = Stream.runForEach(this.#client.watchTasks(taskIds), (change) =>
        Effect.sync(() => {
          if (change._tag === "Subscribed" && this.#current !== subscription) {
            this.#current?.interruptUnsafe()
            this.#current = subscription
          }
          this.#onChange(change)
          Deferred.doneUnsafe(begun, Effect.void)
        }))
      return Effect.catch(changes, (error) =>
        Effect.sync(() => {
          if (error.reason._tag === "Unsupported") this.#refusedBy = this.#client.supervisor.last
          Deferred.doneUnsafe(begun, Effect.void)
        }))
    })
  }

  #onChange(change: Change): void {
    switch (change._tag) {
      case "TaskChanged":
        for (const listener of this.#listeners.get(change.task.taskId) ?? []) listener.push(change.task)
        return
      case "Subscribed": {
        const agreed = new Set(change.honoured.taskIds)
        this.#each((listener) => agreed.has(listener.id) ? listener.subscribed() : listener.subscriptionLost())
        return
      }
      case "Gap":
        this.#each((listener) => listener.subscriptionLost())
    }
  }

  #each(notify: (listener: Listener) => void): void {
    for (const listeners of [...this.#listeners.values()]) {
      for (const listener of [...listeners]) notify(listener)
    }
  }
}
