/**
 * The events that a run waits for: answers, events from outside, the ends of sleeps, and all events of earlier runs that
 * are not at their turn. The handler observes one event at a time, in the order of the log; a new event is stored before the handler
 * observes it.
 *
 * Once every fiber of a run waits for an event that may take long, the run is suspended and takes no memory until an
 * event arrives.
 */
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import type { LogEntry } from "../store/store.ts"
import type { MissingEvent } from "./codeChanges.ts"
import { type EventKey, type TaskLog, textOf } from "./taskLog.ts"

/** The part of `Run` that this module needs. */
export interface ObservingRun {
  readonly log: TaskLog
  /** Whether fibers run beside the root fiber, which the run may not know yet. */
  readonly hasBranches: boolean
  /** Whether the run continues although all of its known parts wait. */
  readonly runsToEnd: boolean
  /** Whether an interruption comes from outside of the handler, as opposed to a race that was lost. */
  readonly isEnding: boolean
  /** How many steps and short sleeps execute now. */
  readonly executing: number
  /** The current time, in milliseconds of Unix time. */
  readonly now: Effect.Effect<number>
  /** Stores the next event. */
  readonly append: (event: NewEvent) => Effect.Effect<void>
  /** Milliseconds that code between two steps may take while another branch waits. */
  readonly gapMs: number
  /**
   * Whether the run ends: its code does not reach a recorded event, and a parallel part of the earlier run would
   * continue without that event.
   */
  readonly stopWithout: (missing: MissingEvent) => boolean
  /** Whether earlier runs have asked questions that are open, and that this run has not asked. */
  readonly hasUnaskedQuestions: boolean
  /** Suspends the run until a time in milliseconds. Returns whether it did. */
  readonly suspend: (wakeAt: number) => Effect.Effect<boolean>
  /** Interrupts the root fiber and the calling fiber. */
  readonly interruptSelf: Effect.Effect<never>
  /** Starts a fiber that ends with the run. */
  readonly fork: (effect: Effect.Effect<void>) => Effect.Effect<unknown>
}

/** A new event, with its value, if it has one, and the place of one from outside. */
export type NewEvent = EventKey & Partial<Pick<LogEntry, "value" | "place">>

/** The wait of a fiber for events. */
export interface Wait<A, E> {
  /** The events that end the wait. */
  readonly events: ReadonlyArray<EventKey>
  /** The event of the part of the task that starts after the wait. */
  readonly starts?: EventKey | undefined
  /** When a new event has arrived or will arrive, in milliseconds; `Infinity` if that is not known. */
  readonly dueAt: () => number
  /**
   * The new event, when it is due. `undefined`: it has not happened after all. An event of an earlier run is not passed
   * to this.
   */
  readonly arrive: Effect.Effect<NewEvent | undefined>
  /** The effect to continue with. */
  readonly next: (event: EventKey) => Effect.Effect<A, E>
}

/**
 * Milliseconds that code between two steps may take while another branch waits. Slower code is suspended together with
 * that branch, and starts again in the next run.
 */
export const maxGapMs = 2000

/** How many times longer a run waits for the code that may ask an open question again, before it is withdrawn. */
const unaskedFactor = 5

/** Milliseconds of the longest timer of the runtime. */
const longestSleepMs = 86_400_000

/**
 * Lets the fiber that was resumed before continue, and win a race or interrupt others if that takes no further turns.
 */
const yieldToResumed = Effect.repeat(Effect.yieldNow, { times: 3 })

const yieldTwice = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

interface Waiter extends Wait<unknown, unknown> {
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly end: Deferred.Deferred<unknown, unknown>
}

/** The waiting fibers of a run, and the turn to store an event. */
export class Observations extends Data.Class<{ readonly run: ObservingRun }> {
  readonly #waiters = new Set<Waiter>()
  /** One event at a time is stored and observed. */
  readonly #turn = Semaphore.makeUnsafe(1)
  readonly #activity = Latch.makeUnsafe()
  /** Closed while it is decided whether the run is suspended: nothing may start meanwhile. */
  readonly #thawed = Latch.makeUnsafe(true)
  #busy = 0
  /** The fiber that was resumed last. */
  lastResumed: Fiber.Fiber<unknown, unknown> | undefined = undefined
  #isPumping = false

  /** Whether a fiber waits. */
  get isWaiting(): boolean {
    return this.#waiters.size > 0
  }

  /** Whether something executes, so that the run cannot be suspended. */
  get isBusy(): boolean {
    return this.#busy > 0
  }

  /** Whether something other than a step takes time, such as reading the recorded result of a step. */
  get #isLookingUp(): boolean {
    return this.#busy > this.run.executing
  }

  /** Looks for events again. */
  noteActivity(): void {
    this.#activity.openUnsafe()
  }

  /** Runs an effect during which the run is not suspended. */
  busy<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const counted = Effect.suspend(() => {
      this.#busy++
      this.noteActivity()
      return Effect.ensuring(
        effect,
        Effect.sync(() => {
          this.#busy--
          this.noteActivity()
        })
      )
    })
    const afterThaw = Effect.andThen(
      this.#thawed.await,
      Effect.suspend(() => this.run.isEnding ? this.run.interruptSelf : counted)
    )
    return Effect.suspend(() => this.#thawed.isOpen() ? counted : afterThaw)
  }

  /**
   * Stores an event of the calling fiber and continues. In a run with branches the fiber that was resumed before
   * continues first: it may interrupt this one, which has lost a race then, and whose event is not stored. An
   * interruption from outside does not lose the event. Must be called in an uninterruptible region.
   */
  inTurn<A, E, R>(
    restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>,
    store: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    const { hasBranches } = this.run
    const turn = this.#turn
    const take = Effect.suspend(() => turn.take(1))
    const taken = hasBranches
      ? Effect.andThen(restore(take), Effect.onInterrupt(restore(yieldToResumed), () => turn.release(1)))
      : restore(take)
    const acquired = Effect.catchCause(
      taken,
      (cause) => this.run.isEnding ? take : Effect.failCause(cause)
    )
    return Effect.andThen(acquired, Effect.ensuring(store, turn.release(1)))
  }

  /** Waits for one of the events, and continues with it. */
  wait<A, E>(wait: Wait<A, E>): Effect.Effect<A, E> {
    return Effect.withFiber((fiber) => {
      const end = Deferred.makeUnsafe<A, E>()
      const waiter = { ...wait, fiber, end } as unknown as Waiter
      this.#waiters.add(waiter)
      this.noteActivity()
      return Effect.ensuring(
        Effect.andThen(this.#startPump, Deferred.await(end)),
        Effect.sync(() => {
          this.#waiters.delete(waiter)
          for (const event of wait.events) this.run.log.markReached(event)
          this.noteActivity()
        })
      )
    })
  }

  /** Ends all waits with an interruption. */
  interruptWaiters(): void {
    for (const { end } of this.#waiters) Deferred.doneUnsafe(end, this.run.interruptSelf)
  }

  readonly #startPump: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isPumping) return Effect.void
    this.#isPumping = true
    return Effect.asVoid(this.run.fork(this.#pump))
  })

  /** Lets a waiting fiber continue with an event. */
  #resume(waiter: Waiter, event: EventKey): void {
    if (!this.#waiters.delete(waiter)) return
    this.lastResumed = waiter.fiber
    for (const each of waiter.events) this.run.log.markReached(each)
    Deferred.doneUnsafe(waiter.end, waiter.next(event))
  }

  /** The waiter for the first pending event that a fiber waits for. */
  #findReplayed(): { readonly waiter: Waiter; readonly event: EventKey; readonly seq: number } | undefined {
    let first: { waiter: Waiter; event: EventKey; seq: number } | undefined
    for (const waiter of this.#waiters) {
      for (const event of waiter.events) {
        const seq = this.run.log.pendingSeq(event)
        if (seq < (first?.seq ?? Infinity)) first = { waiter, event, seq }
      }
    }
    return first
  }

  /** The part that waits and would go on without an event, among those before a position, that it ran beside. */
  #findMissing(before: number): MissingEvent | undefined {
    const { log } = this.run
    for (const { events, starts } of this.#waiters) {
      for (const part of starts === undefined ? events : [starts]) {
        const event = log.find(part) === undefined ? log.findBeside(part, before) : undefined
        if (event !== undefined) return { event, part }
      }
    }
    return undefined
  }

  /** The events that fibers wait for and that have not happened, as texts. */
  *waitingFor(): Iterable<string> {
    for (const { events } of this.#waiters) {
      if (events[0] !== undefined && !events.some((event) => this.run.log.find(event) !== undefined)) {
        yield textOf(events[0])
      }
    }
  }

  /** How many questions fibers wait for that have no answer in `answers`. */
  countOpenQuestions(answers: ReadonlyMap<string, unknown>): number {
    let count = 0
    for (const { events: [event] } of this.#waiters) {
      if (event?.kind === "answer" && this.run.log.find(event) === undefined && !answers.has(event.name)) count++
    }
    return count
  }

  /** The names of the events from outside that fibers wait for. */
  get awaitedEvents(): ReadonlyArray<string> {
    const names = new Set<string>()
    for (const { events: [event] } of this.#waiters) {
      if (event?.kind === "received" && this.run.log.find(event) === undefined) names.add(event.name)
    }
    return [...names]
  }

  /** The waiter whose new event is due longest, and when the next one is due. */
  #findDue(now: number): { readonly waiter: Waiter | undefined; readonly nextAt: number } {
    let waiter: Waiter | undefined
    let first = Infinity
    let nextAt = Infinity
    for (const each of this.#waiters) {
      const at = each.dueAt()
      if (at > now) nextAt = Math.min(nextAt, at)
      else if (at < first) {
        first = at
        waiter = each
      }
    }
    return { waiter, nextAt }
  }

  /** Stores the new event of a fiber, and lets it continue. A defect, such as a value that is too large, is that of the fiber. */
  #deliver(waiter: Waiter): Effect.Effect<void> {
    const delivered = Effect.flatMap(waiter.arrive, (event) => {
      if (event === undefined || !this.#waiters.has(waiter)) return Effect.void
      if (waiter.events.length === 0) return Effect.sync(() => this.#resume(waiter, event))
      return Effect.map(this.run.append(event), () => this.#resume(waiter, event))
    })
    return Effect.catchCause(delivered, (cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
      if (this.#waiters.delete(waiter)) Deferred.doneUnsafe(waiter.end, Effect.failCause(cause))
      return Effect.void
    })
  }

  /** Waits for activity. Returns whether there was some within these milliseconds. */
  #awaitActivity(milliseconds: number): Effect.Effect<boolean> {
    return milliseconds === Infinity
      ? Effect.as(this.#activity.await, true)
      : Effect.raceFirst(
        Effect.as(this.#activity.await, true),
        Effect.as(Effect.sleep(Math.min(milliseconds, longestSleepMs)), false)
      )
  }

  readonly #pump: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    const { log } = this.run
    while (this.#waiters.size > 0) {
      // Fibers that are runnable may start something or begin to wait.
      yield* yieldTwice
      this.#activity.closeUnsafe()
      // The fiber that was resumed before has not received its event yet.
      if (this.#isLookingUp) {
        yield* this.#activity.await
        yield* yieldToResumed
        continue
      }
      const replayed = log.hasPending ? this.#findReplayed() : undefined
      if (replayed !== undefined && replayed.seq === log.firstPending) {
        yield* this.#turn.withPermits(1)(Effect.sync(() => this.#resume(replayed.waiter, replayed.event)))
        yield* yieldToResumed
        continue
      }
      if (log.hasPending) {
        // The fiber of an earlier event is still on its way to it, or does not reach it any more.
        const before = replayed?.seq ?? Infinity
        const mayCome = this.run.hasBranches || this.#findMissing(before) !== undefined
        if (mayCome && (yield* this.#awaitActivity(this.run.gapMs))) continue
        const missing = this.#findMissing(before)
        if (missing !== undefined && this.run.stopWithout(missing)) return yield* this.run.interruptSelf
        log.skipBefore(before)
        continue
      }
      const now = yield* this.run.now
      const { nextAt, waiter } = this.#findDue(now)
      if (waiter !== undefined) {
        yield* this.#turn.withPermits(1)(this.busy(this.#deliver(waiter)))
        yield* yieldToResumed
        continue
      }
      if (this.isBusy) {
        yield* this.#awaitActivity(nextAt - now)
        continue
      }
      const gapMs = this.run.hasUnaskedQuestions ? this.run.gapMs * unaskedFactor : this.run.gapMs
      if (this.run.hasBranches && (yield* this.#awaitActivity(Math.min(gapMs, nextAt - now)))) continue
      if (this.#waiters.size === 0) break
      if (this.run.runsToEnd) {
        yield* this.#awaitActivity(nextAt - now)
        continue
      }
      if (nextAt <= (yield* this.run.now)) continue
      if (yield* this.#freeze(this.run.suspend(nextAt))) {
        this.interruptWaiters()
        return yield* this.run.interruptSelf
      }
    }
    this.#isPumping = false
  })

  /** Runs an effect while nothing starts. */
  #freeze(effect: Effect.Effect<boolean>): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      this.#thawed.closeUnsafe()
      return Effect.ensuring(effect, this.#thawed.open)
    })
  }
}
