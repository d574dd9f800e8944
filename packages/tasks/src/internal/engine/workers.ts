/**
 * Who runs what in this process, and what waits for somebody to run it.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Handlers } from "../../TaskEngine.ts"

/** What runs a tool, and whose it is. */
export interface Found {
  readonly handler: NonNullable<ReturnType<Handlers>>
  readonly owner: Handlers
}

/** A run that can be told to let go of its handler. */
export interface Tenant {
  readonly owner: Handlers
  /** Begins nothing any more, and ends when what runs has ended. */
  readonly release: Effect.Effect<void>
  /** Ends now. */
  readonly evict: Effect.Effect<void>
  /** Ends as soon as no step of it runs, if another process is to go on with it. */
  readonly move: () => void
}

/** How many executions are woken when handlers come: others look by their clocks, within 15 seconds. */
const maxWaiting = 10_000

/** See the module's text. */
export class Workers {
  /** Executions that wait, durably, for a handler: how often they have looked. The longest silent first. */
  readonly #waiting = new Map<string, number>()
  readonly tenants = new Set<Tenant>()
  #all: ReadonlyArray<Handlers> = []
  #listeners = new Set<() => void>()
  readonly #wake: (executionId: string) => Effect.Effect<void>
  readonly #grace: Duration.Input

  /** `wake` looks again at an execution that waits; `grace` is how long what runs may take to end. */
  constructor(wake: (executionId: string) => Effect.Effect<void>, grace: Duration.Input) {
    this.#wake = wake
    this.#grace = grace
  }

  /** Whether nobody runs anything here: the program starts, or ends. */
  get idle(): boolean {
    return this.#all.length === 0
  }

  find(tool: string): Found | undefined {
    for (const owner of this.#all) {
      const handler = owner(tool)
      if (handler !== undefined) return { handler, owner }
    }
    return undefined
  }

  /** An execution has looked for a handler in vain: how often it has before. One that is not known any more looks by its clock. */
  inVain(executionId: string): number {
    const looks = this.#waiting.get(executionId) ?? 0
    this.#waiting.delete(executionId)
    this.#waiting.set(executionId, looks + 1)
    // Those that others have taken over, or that are forgotten, are not told of here.
    const [silent] = this.#waiting.keys()
    if (this.#waiting.size > maxWaiting) this.#waiting.delete(silent!)
    return looks
  }

  /** It waits no longer. Gives whether it did. */
  leave(executionId: string): boolean {
    return this.#waiting.delete(executionId)
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Adds handlers until the scope closes; then what they run is ended, and waits for others. */
  add(handlers: Handlers): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.suspend(() => {
        this.#all = [...this.#all, handlers]
        for (const listener of [...this.#listeners]) listener()
        return Effect.forEach([...this.#waiting.keys()], this.#wake, { discard: true })
      }),
      () =>
        Effect.suspend(() => {
          this.#all = this.#all.filter((other) => other !== handlers)
          const mine = [...this.tenants].filter(({ owner }) => owner === handlers)
          const parallel = { concurrency: "unbounded", discard: true } as const
          return Effect.timeoutOrElse(Effect.forEach(mine, ({ release }) => release, parallel), {
            duration: this.#grace,
            orElse: () => Effect.forEach(mine, ({ evict }) => evict, parallel)
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
