/**
 * The state of one validation: its position in the value, the problems found and the steps left. The steps bound the
 * time of a validation for any schema and value: "Implementations SHOULD apply reasonable bounds" (2026-07-28,
 * composition-keyword resource use).
 */

/** The validation takes too many steps, or nests too many subschemas within each other. */
export class BudgetExceeded extends Error {}

/** A problem of a value: a message, and the path to the part of the value that is wrong. */
export interface Problem {
  readonly message: string
  readonly path: ReadonlyArray<string | number>
}

/** The most problems that are reported. */
const maxProblems = 10

/** The most subschemas that apply within each other. Each takes stack frames; realistic values need far fewer. */
const maxDepth = 500

/** One validation. */
export class ValidationState {
  /** The position in the value. */
  readonly path: Array<string | number> = []
  readonly problems: Array<Problem> = []
  /** Whether only the outcome counts, so that the first problem ends the validation. */
  stopAtFirst: boolean
  readonly #maxSteps: number
  #left: number
  #depth = 0

  constructor(maxSteps: number, stopAtFirst: boolean) {
    this.#maxSteps = maxSteps
    this.#left = maxSteps
    this.stopAtFirst = stopAtFirst
  }

  /** Counts steps. Throws where the validation has taken too many. */
  spend(steps: number): void {
    if ((this.#left -= steps) < 0) {
      throw new BudgetExceeded(`The validation takes more than ${this.#maxSteps} steps (maxSteps)`)
    }
  }

  enter(): void {
    this.spend(1)
    if (++this.#depth > maxDepth) {
      throw new BudgetExceeded(`The value is nested too deep: more than ${maxDepth} subschemas apply within each other`)
    }
  }

  leave(): void {
    this.#depth--
  }

  /** Adds a problem. Returns `false`, for a rule to return. */
  report(message: string): false {
    if (!this.stopAtFirst) {
      this.problems.push({ message, path: this.path.slice() })
      if (this.problems.length >= maxProblems) this.stopAtFirst = true
    }
    return false
  }

  /** Whether a check accepts every item. Without {@link stopAtFirst} it continues after a problem, to report others. */
  every<A>(items: Iterable<A>, check: (item: A) => boolean): boolean {
    let ok = true
    for (const item of items) {
      if (!check(item)) ok = false
      if (!ok && this.stopAtFirst) return false
    }
    return ok
  }

  /** Runs a check without reporting its problems. */
  withoutProblems(attempt: () => boolean): boolean {
    const { stopAtFirst } = this
    this.stopAtFirst = true
    const outcome = attempt()
    this.stopAtFirst = stopAtFirst
    return outcome
  }
}
