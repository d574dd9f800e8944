/**
 * The steps that a worker runs for longer than a second, as operators see them. They are stored with the lease of the
 * worker when it is renewed, so that a step costs no statement.
 */
import { cut } from "@skein/protocol/Text"
import type { RunningStep } from "@skein/runtime/RequestContext"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Clock from "effect/Clock"

/** Milliseconds that a step takes before it is reported. */
const minStepMs = 1000

/** Tasks of a worker, and steps of a task, that a report has at most. */
const maxTasks = 1000
const maxSteps = 5

/** Characters of the name of a step. A longer one is cut. */
const maxNameChars = 200

/** A task with the steps that it runs. */
interface StepsOfTask {
  readonly id: string
  readonly steps: Iterable<RunningStep>
}

/** Writes the reports of a worker. */
export class StepReport {
  #stored = "{}"
  /** When the steps began, in milliseconds of Unix time. */
  readonly #startedAt = new WeakMap<RunningStep, number>()

  /**
   * The steps as JSON: by the id of the task their names, attempts, and when they began. `undefined` if they have not
   * changed since the report that was stored last. `now` is the time of the store.
   */
  next(tasks: Iterable<StepsOfTask>, now: number): string | undefined {
    const report: Record<string, ReadonlyArray<readonly [name: string, attempt: number, startedAt: number]>> = {}
    let count = 0
    for (const { id, steps } of tasks) {
      if (count === maxTasks) break
      const long = []
      for (const step of steps) {
        const age = monotonicMillis(step.fiber.getRef(Clock.Clock)) - step.startedAt
        if (age < minStepMs || long.length === maxSteps) continue
        const startedAt = this.#startedAt.get(step) ?? Math.round(now - age)
        this.#startedAt.set(step, startedAt)
        long.push([cut(step.name, maxNameChars), step.attempt, startedAt] as const)
      }
      if (long.length === 0) continue
      report[id] = long
      count++
    }
    const text = JSON.stringify(report)
    return text === this.#stored ? undefined : text
  }

  /** Notes that a report was stored. */
  noteStored(report: string): void {
    this.#stored = report
  }
}
