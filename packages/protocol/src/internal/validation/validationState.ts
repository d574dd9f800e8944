/**
 * The state of one validation: its position in the value, the problems found, and the steps left.
 *
 * Every rule counts its work in steps before it does it, so that the steps bound the time of a validation for any
 * schema and value: "Implementations SHOULD apply reasonable bounds" (2026-07-28, composition-keyword resource use). A
 * validation gets its steps in slices. When a slice is used up, `spend` throws. Each function with a loop then saves
 * its position and throws again, and with the next slice the same functions run again and continue at the saved
 * positions. A generator could pause as well, but is several times slower where nothing pauses.
 */
import type { JsonObject } from "../../JsonRpc.ts"

/** The validation takes too many steps, or nests too many subschemas within each other. */
export class BudgetExceeded extends Error {}

/** The slice is used up. */
export class Paused extends Error {}

// One instance, because an error records its stack when it is made.
const paused = new Paused()

/** A problem of a value: a message, and the path to the part of the value that is wrong. */
export interface Problem {
  readonly message: string
  readonly path: ReadonlyArray<string | number>
}

/** The most problems that are reported. */
const maxProblems = 10

/** The most subschemas that apply within each other. Each takes stack frames; realistic values need far fewer. */
const maxDepth = 500

/** The keys of larger objects are listed once per validation. Smaller ones are faster to list than to look up. */
const maxKeysToRepeat = 32

/** The most steps between a saved position and the pause, which are counted again when the validation continues there. */
const repeatedSteps = 8

/** One validation. */
export class ValidationState {
  /** The position in the value. */
  readonly path: Array<string | number> = []
  problems: Array<Problem> = []
  /** Whether only the outcome counts, so that the first problem ends the validation. */
  stopAtFirst = true
  /** Whether functions continue at the positions that they saved. */
  isResuming = false
  #collects = false
  /** The steps of the slice, those left in it, and those left for later slices. */
  #granted: number
  #slice: number
  #left: number
  /** The steps that the last slice lacked. */
  #lacking = 0
  #depth = 0
  /** The saved positions, of the outermost function last. */
  #saved: Array<unknown> | undefined = undefined
  #keys: Map<object, ReadonlyArray<string>> | undefined = undefined

  /** Starts the first slice. */
  constructor(steps: number, sliceSteps: number) {
    this.#granted = Math.min(steps, sliceSteps)
    this.#slice = this.#granted
    this.#left = steps - this.#granted
  }

  /** Counts steps of the work that follows. Throws {@link Paused} where the slice has fewer. */
  spend(steps: number): void {
    if ((this.#slice -= steps) < 0) this.#pause(steps)
  }

  /** Counts steps as {@link spend} does, but of work that no later validation repeats. They do not use up the budget. */
  spendOnce(steps: number): void {
    this.#left += steps
    this.spend(steps)
  }

  /** Counts steps of work that is done. It never throws: the next call of {@link spend} does. */
  count(steps: number): void {
    this.#slice -= steps
  }

  /** Starts the next slice. Returns false if the validation has no steps left for it. */
  startSlice(steps: number): boolean {
    if (this.#left < this.#lacking) return false
    this.#granted = Math.min(this.#left, Math.max(steps, this.#lacking + repeatedSteps))
    this.#slice = this.#granted
    this.#left -= this.#granted
    this.#lacking = 0
    this.#depth = 0
    this.path.length = 0
    this.isResuming = this.#saved !== undefined && this.#saved.length > 0
    this.stopAtFirst = !this.#collects || this.problems.length >= maxProblems
    return true
  }

  /** Adds steps for later slices. */
  grant(steps: number): void {
    this.#left += steps
  }

  /** From now on all problems are collected, up to the most. */
  collect(): void {
    this.#collects = true
    this.stopAtFirst = false
    this.#depth = 0
    this.path.length = 0
  }

  #pause(steps: number): void {
    if (this.isResuming) return
    this.#slice += steps
    this.#left += this.#slice
    this.#slice = 0
    this.#lacking = steps
    throw paused
  }

  /** Saves the position of a function, if an error pauses the validation. Returns the error, to throw it again. */
  save(error: unknown, position: unknown): unknown {
    if (error === paused) (this.#saved ??= []).push(position)
    return error
  }

  /** Returns the position that the calling function saved. */
  resume<A>(): A {
    const position = this.#saved!.pop() as A
    if (this.#saved!.length === 0) {
      this.isResuming = false
      // The steps up to here were counted before. Without them even a small slice gets further.
      this.#slice = this.#granted
    }
    return position
  }

  enter(): void {
    if (++this.#depth > maxDepth) {
      throw new BudgetExceeded(`The value is nested too deep: more than ${maxDepth} subschemas apply within each other`)
    }
    this.spend(1)
  }

  /** Enters again where a validation resumes. */
  reenter(): void {
    this.#depth++
  }

  leave(): void {
    this.#depth--
  }

  /** Returns the keys of an object. Listing many keys takes long, so each large object is listed once. */
  keysOf(value: JsonObject): ReadonlyArray<string> {
    const known = this.#keys?.get(value)
    if (known !== undefined) return known
    const keys = Object.keys(value)
    if (keys.length > maxKeysToRepeat) (this.#keys ??= new Map()).set(value, keys)
    this.count(keys.length >> 1)
    return keys
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
  every<A>(items: ReadonlyArray<A>, check: (item: A, index: number) => boolean): boolean {
    let index = 0
    let ok = true
    if (this.isResuming) ({ index, ok } = this.resume<{ readonly index: number; readonly ok: boolean }>())
    try {
      for (; index < items.length; index++) {
        if (!check(items[index]!, index)) ok = false
        if (!ok && this.stopAtFirst) return false
      }
    } catch (error) {
      throw this.save(error, { index, ok })
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
