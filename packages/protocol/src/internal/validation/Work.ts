/**
 * What one validation may cost, and what it has found. Nothing here takes longer than its steps allow, whatever the schema and
 * the value: "Implementations SHOULD apply reasonable bounds" (2026-07-28, composition-keyword resource use).
 */

/** The validation was given up: it would have taken too many steps, or the value is nested too deeply. */
export class GivenUp extends Error {}

/** Something that is wrong with a value, and where. */
export interface Problem {
  readonly message: string
  readonly path: ReadonlyArray<string | number>
}

/** How many problems are told. */
const maxProblems = 10

/** How deep schemas may be applied within each other to one value: more than this many frames is no honest value. */
const maxDepth = 500

/** One validation. */
export class Work {
  /** Where in the value it is. */
  readonly path: Array<string | number> = []
  readonly problems: Array<Problem> = []
  /** Whether only the outcome counts: the first problem ends it. */
  brief: boolean
  #left: number
  #depth = 0

  constructor(steps: number, brief: boolean) {
    this.#left = steps
    this.brief = brief
  }

  /** Counts steps; throws when too many were taken. */
  spend(steps: number): void {
    if ((this.#left -= steps) < 0) throw new GivenUp("This takes too many steps to validate")
  }

  enter(): void {
    this.spend(1)
    if (++this.#depth > maxDepth) throw new GivenUp("This is nested too deeply to validate")
  }

  leave(): void {
    this.#depth--
  }

  /** Notes a problem; always `false`. */
  refuse(message: string): false {
    if (!this.brief) {
      this.problems.push({ message, path: this.path.slice() })
      if (this.problems.length >= maxProblems) this.brief = true
    }
    return false
  }

  /** Tries something whose problems are not told. */
  quietly(attempt: () => boolean): boolean {
    const { brief } = this
    this.brief = true
    const outcome = attempt()
    this.brief = brief
    return outcome
  }
}
