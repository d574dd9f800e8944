/**
 * What the server tells of the tasks that a client follows, in the request era: one `subscriptions/listen` for all of
 * them.
 *
 * When tasks come the next one is opened, with all that are followed then; it takes the place of the one before when
 * the server has agreed to it, so that nothing is lost between the two. What is told twice is known already. Tasks that
 * go are left in it until then: most are over, and nothing is told of those. When the last one goes it is ended.
 */
import type { DetailedTask } from "@skein/protocol/Task"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { Signal } from "./signal.ts"

/** Who follows a task. */
export interface Listener {
  readonly id: string
  /** From now on its changes are told. */
  readonly subscribed: () => void
  /** They are not, or some may have been missed. */
  readonly subscriptionLost: () => void
  readonly push: (task: DetailedTask) => void
}

/** What it takes to be told. */
export interface Subscriber {
  readonly supervisor: { readonly last: NegotiatedConnection }
  /** What the server tells of some tasks. */
  readonly watchTasks: (taskIds: ReadonlyArray<string>) => Stream.Stream<Change, ClientError>
  readonly scope: Scope.Scope
}

/**
 * How many milliseconds are waited between one and the next, of so many tasks: those that come meanwhile are subscribed
 * to together. No option: a server is not asked for more than a thousand tasks a second so, and a task that is over at
 * once is heard of soon.
 */
const spacing = (tasks: number): number => Math.max(20, tasks)

/** See the module's text. */
export class Listening {
  readonly #client: Subscriber
  readonly #most: number
  /** By task, oldest first. */
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #come = new Signal()
  #opening: Fiber.Fiber<void> | undefined = undefined
  #standing: Fiber.Fiber<void> | undefined = undefined
  /** The line on which the server would not be subscribed to. */
  #deaf: NegotiatedConnection | undefined = undefined

  /** `most` tasks at the same time. */
  constructor(client: Subscriber, most: number) {
    this.#client = client
    this.#most = most
  }

  /** Tells a listener, until the scope closes; where the server does not, or not of so many, nothing is told. */
  join(listener: Listener): Effect.Effect<void, never, Scope.Scope> {
    return Effect.suspend(() => {
      const { last } = this.#client.supervisor
      if (!last.isRequestEra || this.#deaf === last || this.#most <= 0) return Effect.void
      return Effect.acquireRelease(this.#enter(listener), () => Effect.sync(() => this.#leave(listener)))
    })
  }

  #enter(listener: Listener): Effect.Effect<void> {
    return Effect.suspend(() => {
      const listeners = this.#listeners.get(listener.id) ?? new Set()
      this.#listeners.set(listener.id, listeners.add(listener))
      if (this.#listeners.size <= this.#most) this.#come.tell()
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
    // There is room for one that was not told of.
    if (this.#listeners.size >= this.#most) this.#come.tell()
    if (this.#listeners.size > 0) return
    this.#opening?.interruptUnsafe()
    this.#opening = undefined
    this.#standing = undefined
  }

  /** Opens one after the other, as tasks come. */
  get #open(): Effect.Effect<void> {
    return Effect.scoped(Effect.gen({ self: this }, function*() {
      while (true) {
        yield* this.#come.wait
        const taskIds = [...this.#listeners.keys()].slice(0, this.#most)
        const begun = yield* Deferred.make<void>()
        yield* Effect.forkScoped(this.#subscription(taskIds, begun))
        yield* Deferred.await(begun)
        yield* Effect.sleep(spacing(taskIds.length))
      }
    }))
  }

  /** One of them; the deferred is done when the server has agreed to it, or will not. */
  #subscription(taskIds: ReadonlyArray<string>, begun: Deferred.Deferred<void>): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      const subscription = fiber as Fiber.Fiber<void>
      const changes = Stream.runForEach(this.#client.watchTasks(taskIds), (change) =>
        Effect.sync(() => {
          if (change._tag === "Subscribed" && this.#standing !== subscription) {
            this.#standing?.interruptUnsafe()
            this.#standing = subscription
          }
          this.#heard(change)
          Deferred.doneUnsafe(begun, Effect.void)
        }))
      return Effect.catch(changes, (error) =>
        Effect.sync(() => {
          if (error.reason._tag === "Unsupported") this.#deaf = this.#client.supervisor.last
          Deferred.doneUnsafe(begun, Effect.void)
        }))
    })
  }

  #heard(change: Change): void {
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

  #each(tell: (listener: Listener) => void): void {
    for (const listeners of [...this.#listeners.values()]) {
      for (const listener of [...listeners]) tell(listener)
    }
  }
}
