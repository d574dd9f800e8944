/**
 * The handlers of this process, the runs that use them, and the tasks that wait for a handler.
 */
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Handlers } from "../../TaskEngine.ts"
import { Recent } from "./codeChanges.ts"

/** A handler for a tool, and the handlers that it is one of. */
export interface FoundHandler {
  readonly handler: NonNullable<ReturnType<Handlers>>
  readonly handlers: Handlers
}

/** A run that uses handlers of this process. */
export interface ActiveRun {
  readonly task: { readonly id: string }
  /** Whether it only replays. */
  readonly isCollecting: boolean
  /** The functions that answer queries, by name. */
  readonly queries: ReadonlyMap<string, (args: JsonObject) => unknown>
  readonly handlers: Handlers
  /** Starts nothing new, and ends when the executing steps have ended. */
  readonly release: Effect.Effect<void>
  /** Ends now. */
  readonly evict: Effect.Effect<void>
}

/** How many waiting tasks are woken when handlers are added. The others check by their own timers, every 15 seconds. */
const maxWaiting = 10_000

/** Milliseconds that interrupted runs may take to end. */
const evictionMs = 500

/** The options of the handlers of a process. */
interface RegistryOptions {
  /** Called with the waiting tasks when handlers are added. */
  readonly onAdded: (waiting: ReadonlyArray<string>) => Effect.Effect<void>
  /** How long runs may take to end when handlers are removed. */
  readonly shutdownTimeout: Duration.Input
}

/** The handlers of this process. */
export class HandlerRegistry extends Data.Class<RegistryOptions> {
  /** The tasks that wait for a handler, with their number of checks. The one that has not checked longest is first. */
  readonly #waiting = new Recent<number>(maxWaiting)
  readonly activeRuns = new Set<ActiveRun>()
  #all: ReadonlyArray<Handlers> = []
  /** How often handlers were added. */
  additions = 0
  readonly #added = Latch.makeUnsafe()

  readonly #unpinned = new Set<string>()

  /** Records that tasks of a tool cannot be pinned. Returns whether that is new. */
  noteUnpinned(tool: string): boolean {
    return this.#unpinned.size < this.#unpinned.add(tool).size
  }

  /** Whether the process has no handlers: its program is starting or ending. */
  get isEmpty(): boolean {
    return this.#all.length === 0
  }

  /** The handler for a tool; `undefined` if no handlers have it. */
  find(tool: string): FoundHandler | undefined {
    for (const handlers of this.#all) {
      const handler = handlers(tool)
      if (handler !== undefined) return { handler, handlers }
    }
    return undefined
  }

  /** Records that a task has found no handler. Returns the number of its earlier checks. */
  noteMissingHandler(task: string): number {
    const checks = this.#waiting.get(task) ?? 0
    // The oldest entry may be a task that another process has continued, or that is deleted.
    this.#waiting.set(task, checks + 1)
    return checks
  }

  /** Records that a task no longer waits. Returns whether it waited. */
  stopWaiting(task: string): boolean {
    return this.#waiting.delete(task)
  }

  /** The number of waiting tasks. */
  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Adds handlers until the scope closes. Then their runs end, and wait for other handlers. */
  add(handlers: Handlers): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.suspend(() => {
        this.#all = [...this.#all, handlers]
        this.additions++
        return Effect.andThen(this.#added.release, this.onAdded([...this.#waiting.keys()]))
      }),
      () =>
        Effect.suspend(() => {
          this.#all = this.#all.filter((other) => other !== handlers)
          const runs = [...this.activeRuns].filter((run) => run.handlers === handlers)
          const parallel = { concurrency: "unbounded", discard: true } as const
          const evicted = Effect.forEach(runs, ({ evict }) => evict, parallel)
          return Effect.timeoutOrElse(Effect.interruptible(Effect.forEach(runs, ({ release }) => release, parallel)), {
            duration: this.shutdownTimeout,
            // A step that ignores its interruption is not waited for.
            orElse: () => Effect.ignoreCause(Effect.timeout(Effect.interruptible(evicted), evictionMs))
          })
        })
    )
  }

  /** Ends when handlers are added. */
  readonly changed: Effect.Effect<void> = this.#added.await
}
