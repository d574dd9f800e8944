/**
 * The clock of the tasks. On PostgreSQL it is that of the database, which all processes share: a machine whose clock is
 * wrong neither stores wrong times nor ends tasks early. SQLite has no other clock than that of its process.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"

/**
 * Milliseconds for which the monotonic clock of the process continues the time of the database. A worker reads it with
 * each renewal of its lease.
 */
const maxAgeMs = 10_000

/** Whether a clock is that of the machine. A program with another one, such as `TestClock`, sets the time of its tasks. */
export const IsMachineClock = /* @__PURE__ */ Context.Reference<(clock: Clock.Clock) => boolean>(
  "@skein/tasks/IsMachineClock",
  { defaultValue: () => (clock) => clock === Context.get(Context.empty(), Clock.Clock) }
)

/** The clock of a database. Times are in milliseconds of Unix time. */
export class DatabaseClock {
  /** The difference between the time of the database and the monotonic clock. */
  #offset: number | undefined
  #readAt = -Infinity
  #difference = 0

  readonly #select: Effect.Effect<number, TaskError> | undefined

  /** `select` reads the time of the database; `undefined`: its clock is that of this process. */
  constructor(select: Effect.Effect<number, TaskError> | undefined) {
    this.#select = select
  }

  /**
   * The milliseconds by which the clock of the machine was ahead of that of the database when this was read last. They
   * are negative if it was behind.
   */
  get difference(): number {
    return this.#difference
  }

  /** The current time. */
  readonly now: Effect.Effect<number> = Effect.withFiber((fiber) => {
    const clock = fiber.getRef(Clock.Clock)
    if (this.#select === undefined || !fiber.getRef(IsMachineClock)(clock)) {
      return Effect.succeed(clock.currentTimeMillisUnsafe())
    }
    const time = Effect.sync(() => Math.floor((this.#offset ?? 0) + performance.now()))
    if (performance.now() - this.#readAt < maxAgeMs) return time
    // While the database cannot be reached, and while another fiber reads it, the time continues.
    this.#readAt = performance.now()
    return Effect.andThen(Effect.ignore(this.read), time)
  })

  /** Reads the time of the database. Must succeed once before the time is used. */
  readonly read: Effect.Effect<void, TaskError> = Effect.suspend(() => {
    const begin = performance.now()
    return this.#select === undefined
      ? Effect.void
      : Effect.flatMap(this.#select, (time) => this.note(time, begin))
  })

  /** Notes a time that the database has returned to a statement, which began at a time of `performance.now`. */
  note(time: number, begin: number): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const end = performance.now()
      // The database has read its clock between the two. Within these bounds the time continues evenly.
      this.#offset = Math.min(Math.max(this.#offset ?? -Infinity, time - end), time - begin)
      this.#readAt = end
      if (fiber.getRef(IsMachineClock)(clock)) {
        const ahead = clock.currentTimeMillisUnsafe() - time
        this.#difference = Math.max(ahead - (end - begin), Math.min(ahead, 0))
      }
      return Effect.void
    })
  }
}
