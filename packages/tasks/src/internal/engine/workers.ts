/**
 * The handlers of this process, the runs that use them, and the executions that wait for a handler.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Handlers } from "../../TaskEngine.ts"

/** A handler for a tool, and the handlers that it is one of. */
export interface FoundHandler {
  readonly handler: NonNullable<ReturnType<Handlers>>
  readonly handlers: Handlers
}

/** A run that uses handlers of this process. */
export interface ActiveRun {
  readonly handlers: Handlers
  /** Starts nothing new, and ends when the executing steps have ended. */
  readonly release: Effect.Effect<void>
  /** Ends now. */
  readonly evict: Effect.Effect<void>
  /** If another process must continue the run: ends it as soon as none of its steps executes. */
  readonly move: () => void
}

/**
 * How many waiting executions are resumed when handlers are added. The others check by their own timers, every 15
 * seconds.
 */
const maxWaiting = 10_000

/** The handlers of this process. */
export class Workers {
  /**
   * The executions that wait, suspended, for a handler, with their number of checks. The one that has not checked
   * longest is first.
   */
  readonly #waiting = new Map<string, number>()
  readonly activeRuns = new Set<ActiveRun>()
  #all: ReadonlyArray<Handlers> = []
  readonly #listeners = new Set<() => void>()
  readonly #resume: (executionId: string) => Effect.Effect<void>
  readonly #interruptTimeout: Duration.Input

  /**
   * `resume` lets a waiting execution check again; `interruptTimeout` is how long runs may take to end when handlers
   * are removed.
   */
  constructor(resume: (executionId: string) => Effect.Effect<void>, interruptTimeout: Duration.Input) {
    this.#resume = resume
    this.#interruptTimeout = interruptTimeout
  }

  /** Whether the process has no handlers: its program is starting or ending. */
  get hasNoHandlers(): boolean {
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

  /** Records that an execution has found no handler. Returns the number of its earlier checks. */
  noteMissingHandler(executionId: string): number {
    const checks = this.#waiting.get(executionId) ?? 0
    this.#waiting.delete(executionId)
    this.#waiting.set(executionId, checks + 1)
    // The oldest entry may be of an execution that another process has taken over, or of a deleted task.
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size > maxWaiting) this.#waiting.delete(oldest!)
    return checks
  }

  /** Records that an execution no longer waits. Returns whether it waited. */
  stopWaiting(executionId: string): boolean {
    return this.#waiting.delete(executionId)
  }

  /** The number of waiting executions. */
  get waitingCount(): number {
    return this.#waiting.size
  }

  /** Adds handlers until the scope closes. Then their runs end, and wait for other handlers. */
  add(handlers: Handlers): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.suspend(() => {
        this.#all = [...this.#all, handlers]
        for (const listener of [...this.#listeners]) listener()
        return Effect.forEach([...this.#waiting.keys()], this.#resume, { discard: true })
      }),
      () =>
        Effect.suspend(() => {
          this.#all = this.#all.filter((other) => other !== handlers)
          const runs = [...this.activeRuns].filter((run) => run.handlers === handlers)
          const parallel = { concurrency: "unbounded", discard: true } as const
          return Effect.timeoutOrElse(Effect.forEach(runs, ({ release }) => release, parallel), {
            duration: this.#interruptTimeout,
            orElse: () => Effect.forEach(runs, ({ evict }) => evict, parallel)
          })
        })
    )
  }

  /** Ends when handlers are added. */
  readonly changed: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const listener = () => resume(Effect.void)
    this.#listeners.add(listener)
    return Effect.sync(() => void this.#listeners.delete(listener))
  })
}
