/**
 * What a run waits for that may take long: answers, and times. When nothing else is left to do, the run is suspended, and costs no
 * memory until something of it comes.
 *
 * The engine lets the arrival of what a run awaits interrupt the run, steps and all. So what is waited for is only named to the
 * engine when the run is about to be suspended; while steps still run beside it, it is looked at from time to time.
 */
import * as Effect from "effect/Effect"
import * as Workflow from "effect/workflow/Workflow"
import type { Run, Within } from "./run.ts"

/** What one fiber waits for. */
export interface Parked {
  /** The deferreds that tell when there is something to look at. */
  readonly names: ReadonlyArray<string>
  /** Looks: how the wait ends, if it does. */
  readonly look: Effect.Effect<Effect.Effect<unknown, unknown> | undefined>
  readonly resume: (effect: Effect.Effect<unknown, unknown>) => void
}

/** See the module's text. */
export class Parking {
  readonly #run: Run
  readonly #parked = new Set<Parked>()
  #attended = false

  constructor(run: Run) {
    this.#run = run
  }

  /** Waits until a look gives how the wait ends. */
  wait<A, E>(
    names: ReadonlyArray<string>,
    look: Effect.Effect<Effect.Effect<A, E> | undefined>
  ): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      let parked: Parked
      const wait = Effect.callback<A, E>((resume) => {
        parked = { names, look, resume: resume as Parked["resume"] }
        this.#parked.add(parked)
        return Effect.sync(() => void this.#parked.delete(parked))
      })
      return Effect.andThen(this.#attend, wait)
    })
  }

  readonly #attend: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#attended) return Effect.void
    this.#attended = true
    const { context, scope } = this.#run
    return Effect.asVoid(Effect.forkIn(Effect.setContext(this.#watch, context), scope))
  })

  readonly #watch: Effect.Effect<void, never, Within> = Effect.gen({ self: this }, function*() {
    const { host } = this.#run
    while (true) {
      const quiet = yield* Effect.raceFirst(
        Effect.as(idle, true),
        Effect.as(Effect.sleep(host.pollInterval), false)
      )
      if (this.#parked.size === 0) break
      if (!quiet) {
        yield* this.#look
        continue
      }
      const names = this.#name()
      if (!(yield* this.#look)) return yield* this.#suspend
      this.#unname(names)
    }
    this.#attended = false
  })

  /** Whether something has come. */
  readonly #look: Effect.Effect<boolean> = Effect.gen({ self: this }, function*() {
    let come = false
    for (const parked of [...this.#parked]) {
      const end = yield* parked.look
      if (end === undefined) continue
      come = true
      this.#parked.delete(parked)
      parked.resume(end)
    }
    return come
  })

  readonly #suspend: Effect.Effect<void> = Effect.suspend(() => {
    const parked = [...this.#parked]
    const { suspend } = this.#run
    // The fibers are children of the root, but for those that nobody waits for.
    for (const { resume } of parked) resume(suspend)
    return suspend
  })

  #name(): ReadonlyArray<string> {
    const { awaitedDeferreds } = this.#run.instance
    const names = [...this.#parked].flatMap(({ names }) => names)
    for (const name of names) awaitedDeferreds.set(name, (awaitedDeferreds.get(name) ?? 0) + 1)
    return names
  }

  #unname(names: ReadonlyArray<string>): void {
    const { awaitedDeferreds } = this.#run.instance
    for (const name of names) {
      const count = awaitedDeferreds.get(name) ?? 0
      if (count > 1) awaitedDeferreds.set(name, count - 1)
      else awaitedDeferreds.delete(name)
    }
  }
}

/**
 * Nothing is held any more: two hops of the scheduler after who waits began to wait, so that what was ready to run has run, and
 * has begun to hold, or to wait as well.
 */
const idle: Effect.Effect<void, never, Within> = Effect.yieldNow.pipe(
  Effect.andThen(Effect.yieldNow),
  Effect.andThen(Workflow.wrapActivityResult(Effect.void, () => true))
)
