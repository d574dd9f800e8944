/**
 * Measures the CPU time of compiling a schema and of a validation, in total and for the longest part without a pause.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Effect from "effect/Effect"
import * as Scheduler from "effect/Scheduler"
import type { Case } from "./generate.ts"

const cpuTime = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

/** CPU times in milliseconds of the turns of the event loop. */
export type Turns = Array<number>

/** Runs an effect with a scheduler that measures its turns. */
export const run = <A>(effect: Effect.Effect<A>): { readonly value: A; readonly turns: Turns } => {
  const turns: Turns = []
  let tasks: Array<() => void> = []
  const outcome: { value?: A } = {}
  const scheduler = new Scheduler.MixedScheduler("async", (task) => {
    tasks.push(task)
    return () => {}
  })
  const timed = (task: () => void): void => {
    const before = cpuTime()
    task()
    turns.push(cpuTime() - before)
  }
  const whole = Effect.map(effect, (value) => {
    outcome.value = value
  })
  timed(() => Effect.runFork(whole, { scheduler }))
  while (tasks.length > 0) {
    const due = tasks
    tasks = []
    for (const task of due) timed(task)
  }
  if (!("value" in outcome)) throw new Error("the effect has not ended")
  return { value: outcome.value as A, turns }
}

/** The outcome of a case: the first problem, if there is one, or why the schema cannot be used. */
export interface Measured {
  readonly outcome: string
  readonly compiling: Turns
  readonly validating: Turns
  /**
   * The longest time of the work that no JavaScript code can interrupt: reading and writing the schema as JSON, and
   * listing the keys of one object of the value.
   */
  readonly atOnce: number
  /** The steps that the validation may take, by the formula of the documentation. */
  readonly steps: number
}

const timeOf = (work: () => unknown): number => {
  const before = cpuTime()
  work()
  return cpuTime() - before
}

/** Returns the object with the most members in a value. */
const widestOf = (root: unknown): object => {
  let widest = {}
  let most = 0
  const open = [root]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue
    const parts: ReadonlyArray<unknown> = Array.isArray(value) ? value : Object.values(value)
    for (const part of parts) if (typeof part === "object" && part !== null) open.push(part)
    if (Array.isArray(value) || parts.length <= most) continue
    widest = value
    most = parts.length
  }
  return widest
}

/** Measures one case. */
export const measure = ({ schema, value }: Case): Measured => {
  const text = JSON.stringify(value)
  const schemaText = JSON.stringify(schema)
  // As they arrive: a string that was put together from parts behaves differently.
  const given = JSON.parse(text) as unknown
  const givenSchema = JSON.parse(schemaText) as unknown
  const widest = widestOf(JSON.parse(text))
  const atOnce = Math.max(
    timeOf(() => JSON.parse(schemaText)),
    timeOf(() => JSON.stringify(givenSchema)),
    timeOf(() => Object.keys(widest))
  )
  const steps = 1_000_000 + 10 * (schemaText.length + text.length)
  const compiled = run(Effect.result(SchemaValidation.compileEffect(givenSchema)))
  if (compiled.value._tag === "Failure") {
    return { outcome: compiled.value.failure.message, compiling: compiled.turns, validating: [], atOnce, steps }
  }
  const validation = compiled.value.success
  const validated = run(Effect.suspend(() => {
    const found = validation.start(given)
    return Effect.isEffect(found) ? found : Effect.succeed(found)
  }))
  const [problem] = validated.value
  return {
    outcome: problem?.message ?? "valid",
    compiling: compiled.turns,
    validating: validated.turns,
    atOnce,
    steps
  }
}

/** The longest turn, and all turns, in milliseconds. */
export interface Cost {
  readonly longest: number
  readonly total: number
}

/**
 * The costs of a case that is measured several times. Each run has the same turns, and each turn counts with its
 * shortest time: garbage collection and the compilers of JavaScript engines make others longer.
 */
export class Costs {
  readonly #turns: Turns = []
  #atOnce = Infinity

  add({ atOnce, compiling, validating }: Measured): void {
    this.#atOnce = Math.min(this.#atOnce, atOnce)
    for (const [at, time] of [...compiling, ...validating].entries()) {
      this.#turns[at] = Math.min(this.#turns[at] ?? Infinity, time)
    }
  }

  get cost(): Cost {
    const longest = this.#turns.reduce((most, time) => Math.max(most, time), 0)
    return { longest, total: this.#turns.reduce((sum, time) => sum + time, 0) }
  }

  /** The longest time of a turn in addition to the work that no code can interrupt. */
  get beyond(): number {
    return this.cost.longest - 2 * this.#atOnce
  }
}

/**
 * The bounds, in CPU time. A turn takes less than 5 ms and a step less than 120 ns on the machine of the documentation.
 * The bounds allow for slower and busy machines, and for clocks that count time in ticks of some milliseconds.
 */
const maxTurn = 25
const nanosecondsPerStep = 300
const maxAttempts = 6

// A flag that is set while a process runs adds the function to new contexts.
setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc") as () => void

/** Returns why a case takes too long, or `undefined`. */
export const violation = (made: Case): string | undefined => {
  const costs = new Costs()
  let found: string | undefined
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    // Each attempt creates the same objects, so that garbage could be collected in the same turn of each.
    if (attempt > 0) collectGarbage()
    const measured = measure(made)
    costs.add(measured)
    const { longest, total } = costs.cost
    const isLong = costs.beyond > maxTurn
    if (!isLong && total < 100 + (measured.steps * nanosecondsPerStep) / 1e6) return undefined
    // No garbage collection takes as long.
    if (costs.beyond > 40 * maxTurn) attempt = maxAttempts
    found = `${made.name}: ${isLong ? `${longest} ms without a pause` : `${total} ms`}; ${
      measured.outcome.slice(0, 80)
    }`
  }
  return found
}
