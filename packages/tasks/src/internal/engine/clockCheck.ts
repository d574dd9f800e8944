/**
 * Compares the clock of the machine with that of the database. Tasks use the time of the database, so that a wrong clock
 * of one machine harms no task. If both differ by more than a minute, either may be wrong: the process starts nothing.
 */
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { TaskStore } from "../store/store.ts"

/** Milliseconds between the two clocks that are reported, once. */
const reportedDifferenceMs = 1000

/** Milliseconds between the two clocks up to which a process claims tasks, lets them expire, and follows schedules. */
const maxDifferenceMs = 60_000

/** Describes a difference of clocks. */
const describe = (milliseconds: number): string => {
  const rounded = Math.round(Math.abs(milliseconds) / 100) * 100
  return `${Duration.format(Duration.millis(rounded))} ${milliseconds < 0 ? "behind" : "ahead of"}`
}

/** The check of a process. */
export class ClockCheck extends Data.Class<{ readonly store: Pick<TaskStore["Service"], "clock"> }> {
  #isReported = false
  #isStopped = false

  /** Whether the clocks agree to a minute. */
  get isRight(): boolean {
    return Math.abs(this.store.clock.difference) <= maxDifferenceMs
  }

  /** Returns whether the clocks agree to a minute, and logs what has changed. */
  // A process without a lease reads the time of the database only with its use.
  readonly check: Effect.Effect<boolean> = Effect.flatMap(this.store.clock.now, () => {
    const { difference } = this.store.clock
    if (!this.isRight) {
      if (this.#isStopped) return Effect.succeed(false)
      this.#isStopped = true
      return Effect.as(
        Effect.logError(
          `the clock of this machine is ${
            describe(difference)
          } that of the database: until they agree to a minute, this ` +
            "process claims no tasks, ends no expired ones, and starts none for schedules"
        ),
        false
      )
    }
    const wasStopped = this.#isStopped
    this.#isStopped = false
    if (wasStopped) {
      return Effect.as(
        Effect.logInfo("the clock of this machine agrees with that of the database again: this process continues"),
        true
      )
    }
    if (this.#isReported || Math.abs(difference) <= reportedDifferenceMs) return Effect.succeed(true)
    this.#isReported = true
    return Effect.as(
      Effect.logWarning(`the clock of this machine is ${describe(difference)} that of the database`),
      true
    )
  })
}
