/**
 * Runs validations in slices, so that the event loop handles other events between them.
 */
import * as Effect from "effect/Effect"
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import type { SchemaNode } from "./schemaNode.ts"
import { BudgetExceeded, Paused, type Problem, ValidationState } from "./validationState.ts"

/** The steps that validations may take. */
export interface Budget {
  /** For any value. */
  readonly steps: number
  /** In addition for each character of the value. */
  readonly stepsPerChar: number
}

/**
 * The most steps of one slice, which take less than 5 ms. Validations that run at the same time share them, because one
 * turn of the event loop may run a slice of each.
 */
const maxSliceSteps = 40_000
const minSliceSteps = 1_000

// The number of validations that run in slices, and of those that ever did.
const running = { count: 0, started: 0 }

const sliceSteps = (): number => Math.max(minSliceSteps, Math.floor(maxSliceSteps / (1 + running.count)))

/** The number of turns of the event loop in which each of the running validations gets a slice. */
const turnsPerSlice = (): number => Math.ceil((running.count * minSliceSteps) / maxSliceSteps)

/** A validation that needs further slices, or whose value is invalid. */
export class ValidationRun {
  readonly #node: SchemaNode
  readonly #value: unknown
  readonly #budget: Budget
  readonly #state: ValidationState
  #isInvalid: boolean
  #size: SizeOfValue | undefined = undefined
  #steps: number

  constructor(node: SchemaNode, value: unknown, budget: Budget, state: ValidationState, isInvalid: boolean) {
    this.#node = node
    this.#value = value
    this.#budget = budget
    this.#state = state
    this.#isInvalid = isInvalid
    this.#steps = budget.steps
  }

  /** Runs the next slice. Returns the problems, or `undefined` if further slices are needed. */
  next(steps: number): ReadonlyArray<Problem> | undefined {
    const state = this.#state
    if (this.#size?.isDone === false) {
      this.#measure(this.#size, steps)
      return undefined
    }
    if (!state.startSlice(steps)) {
      if (this.#size !== undefined) {
        return this.exceeded(`The validation takes more than ${this.#steps} steps (maxSteps)`)
      }
      // Most values need fewer steps than any value may take, so others are measured only now.
      this.#size = new SizeOfValue(this.#value, (value) => state.keysOf(value))
      this.#measure(this.#size, steps)
      return undefined
    }
    try {
      if (!this.#isInvalid) {
        if (this.#node.check(this.#value, state)) return none
        this.#isInvalid = true
        state.collect()
      }
      this.#node.check(this.#value, state)
      return state.problems
    } catch (error) {
      if (error instanceof Paused) return undefined
      if (error instanceof BudgetExceeded) return this.exceeded(error.message)
      throw error
    }
  }

  #measure(size: SizeOfValue, steps: number): void {
    size.next(steps)
    if (!size.isDone) return
    const granted = this.#budget.stepsPerChar * size.chars
    this.#steps += granted
    this.#state.grant(granted)
  }

  exceeded(message: string): ReadonlyArray<Problem> {
    const { problems } = this.#state
    return problems.length > 0 ? problems : [{ message, path: [] }]
  }
}

// A value of this process may contain itself, and would never be measured.
const maxMeasured = 1 << 28

/** An array or an object whose parts are measured. */
interface Level {
  readonly value: object
  readonly keys: ReadonlyArray<string> | undefined
  index: number
}

/**
 * Counts the characters of a value as JSON text, in slices. Escapes and long numbers count as shorter than they are.
 */
class SizeOfValue {
  chars = 0
  readonly #levels: Array<Level> = []
  readonly #keysOf: (value: JsonObject) => ReadonlyArray<string>

  constructor(value: unknown, keysOf: (value: JsonObject) => ReadonlyArray<string>) {
    this.#keysOf = keysOf
    this.#add(value)
  }

  get isDone(): boolean {
    return this.#levels.length === 0 || this.chars > maxMeasured
  }

  next(steps: number): void {
    const levels = this.#levels
    for (let left = steps; left > 0 && !this.isDone; left--) {
      const level = levels.at(-1)!
      const { keys, value } = level
      if (level.index >= (keys ?? value as ReadonlyArray<unknown>).length) {
        levels.pop()
        continue
      }
      const index = level.index++
      if (keys === undefined) this.#add((value as ReadonlyArray<unknown>)[index])
      else {
        const key = keys[index]!
        this.chars += key.length + 3
        this.#add((value as JsonObject)[key])
      }
    }
  }

  #add(value: unknown): void {
    this.chars += typeof value === "string" ? value.length + 3 : 2
    if (Array.isArray(value)) this.#levels.push({ value, keys: undefined, index: 0 })
    else if (isObject(value)) this.#levels.push({ value, keys: this.#keysOf(value), index: 0 })
  }
}

const none: ReadonlyArray<Problem> = []

/** Runs the first slice. Returns the problems, or the run if it needs further slices. */
export const begin = (
  node: SchemaNode,
  value: unknown,
  budget: Budget,
  steps: number
): ReadonlyArray<Problem> | ValidationRun => {
  const state = new ValidationState(budget.steps, steps)
  let isInvalid = false
  try {
    if (node.check(value, state)) return none
    // The second run collects the problems. The first one only decides, and needs no messages.
    isInvalid = true
    state.collect()
    node.check(value, state)
    return state.problems
  } catch (error) {
    if (!(error instanceof Paused) && !(error instanceof BudgetExceeded)) throw error
    const run = new ValidationRun(node, value, budget, state, isInvalid)
    return error instanceof Paused ? run : run.exceeded(error.message)
  }
}

/** Validates a value without a pause. */
export const runAll = (node: SchemaNode, value: unknown, budget: Budget): ReadonlyArray<Problem> => {
  const run = begin(node, value, budget, maxSliceSteps)
  if (!(run instanceof ValidationRun)) return run
  for (;;) {
    const problems = run.next(maxSliceSteps)
    if (problems !== undefined) return problems
  }
}

// Whether a validation has had a complete first slice in this turn of the event loop.
const turn = { isTaken: false }

/** Runs the first slice. Returns the problems, or the effect of the other slices if it is not enough. */
export const start = (
  node: SchemaNode,
  value: unknown,
  budget: Budget
): ReadonlyArray<Problem> | Effect.Effect<ReadonlyArray<Problem>> => {
  const run = begin(node, value, budget, minSliceSteps)
  if (!(run instanceof ValidationRun)) return run
  // One turn may begin many validations. Only the first of them continues at once.
  if (turn.isTaken) return inSlices(run)
  turn.isTaken = true
  setTimeout(() => {
    turn.isTaken = false
  }, 0)
  return run.next(sliceSteps()) ?? inSlices(run)
}

const inSlices = (run: ValidationRun): Effect.Effect<ReadonlyArray<Problem>> => {
  // Validations that start in the same turn get their slices in different ones.
  let turns = running.started++
  const next: Effect.Effect<ReadonlyArray<Problem>> = Effect.flatMap(Effect.yieldNow, () => {
    if (++turns % turnsPerSlice() !== 0) return next
    const problems = run.next(sliceSteps())
    return problems === undefined ? next : Effect.succeed(problems)
  })
  return Effect.suspend(() => {
    running.count++
    return Effect.ensuring(next, Effect.sync(() => running.count--))
  })
}
