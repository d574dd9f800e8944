/**
 * Random bodies of tasks, and what happens to them. All of it is plain data, and shrinks: to fewer parts, and to the first of what is
 * listed for each.
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

/** A part of a body. Where it stands in the body is its name. */
export type Part =
  | Step
  | { readonly _tag: "Sleep"; readonly seconds: number }
  | Ask
  /** A question against a sleep, or the other way around. */
  | { readonly _tag: "Race"; readonly ask: Ask; readonly seconds: number; readonly first: "ask" | "sleep" }
  /** Says where it stands, and reports progress. */
  | { readonly _tag: "Say" }
  | { readonly _tag: "All"; readonly concurrency: number; readonly parts: ReadonlyArray<ReadonlyArray<Part>> }
  | { readonly _tag: "Catch"; readonly parts: ReadonlyArray<Part> }
  | { readonly _tag: "Fail" }

/** A step, and what undoes it. */
export interface Step {
  readonly _tag: "Step"
  /** How it ends: well, well in the end, never well, with a defect. */
  readonly ends: "well" | "late" | "never" | "dies"
  /** How often it is tried again. */
  readonly tries: number
  /** Seconds between two tries. */
  readonly pause: number
  /** Seconds, and turns of the scheduler, that it takes before it acts. */
  readonly seconds: number
  readonly turns: number
  readonly transactional: boolean
  /** Whether it says how it is undone when it has ended, or before; and how that goes. */
  readonly undo: "not" | "after" | "before"
  readonly undoing: "quick" | "slow" | "fails"
}

/** A question by a form. */
export interface Ask {
  readonly _tag: "Ask"
  readonly key: boolean
  readonly timeout: number | undefined
}

/** A body, and how it is kept. */
export interface Program {
  readonly parts: ReadonlyArray<Part>
  readonly end: "value" | "error" | "defect"
  /** Seconds. */
  readonly ttl: number | undefined
  readonly memory: boolean
}

/** What happens. */
export type Event =
  | { readonly _tag: "Pass"; readonly seconds: number }
  | { readonly _tag: "Turns"; readonly turns: number }
  /** The question of this number is answered, well or not; or the one that was answered last, again. */
  | { readonly _tag: "Answer"; readonly which: number; readonly accept: boolean }
  | { readonly _tag: "Again" }
  /** The process is stopped, or killed, and another one begins after so many seconds. */
  | { readonly _tag: "Stop"; readonly seconds: number }
  | { readonly _tag: "Kill"; readonly seconds: number }
  | { readonly _tag: "Cancel" }

const int = (maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum })))

const pick = <const A>(...values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(int(values.length - 1), (index) => values[index]!)

const ask: Arbitrary.Arbitrary<Ask> = Arbitrary.map(
  Arbitrary.all({ key: pick(false, true), timeout: pick(undefined, undefined, 3, 1200) }),
  (ask) => ({ _tag: "Ask", ...ask })
)

const step: Arbitrary.Arbitrary<Step> = Arbitrary.map(
  Arbitrary.all({
    ends: pick("well", "well", "well", "well", "well", "late", "late", "never", "dies"),
    tries: int(3),
    pause: pick(1, 30),
    seconds: pick(0, 0, 1, 3, 40),
    turns: int(4),
    transactional: pick(false, false, true),
    undo: pick("not", "after", "after", "before"),
    undoing: pick("quick", "quick", "slow", "fails")
  }),
  // While it runs, everybody else waits for its transaction.
  (step) => ({ _tag: "Step", ...step, seconds: step.transactional ? 0 : step.seconds })
)

/** So often, in parts. */
const leaves = ["Step", "Step", "Step", "Step", "Step", "Sleep", "Sleep", "Ask", "Ask", "Race", "Say", "Fail"] as const
const nodes = [...leaves, "All", "All", "All", "Catch", "Catch"] as const

const part = (depth: number): Arbitrary.Arbitrary<Part> => {
  const parts = depth === 0 ? Arbitrary.Constant<ReadonlyArray<Part>>([]) : list(depth - 1, 4)
  return Arbitrary.map(
    Arbitrary.all({
      _tag: pick(...(depth === 0 ? leaves : nodes)),
      ask,
      step,
      parts,
      branches: Arbitrary.array(parts, { minLength: 1, maxLength: 3 }),
      seconds: pick(1, 4, 60, 900, 7200, 100_000),
      concurrency: pick(2, Infinity),
      first: pick("ask", "sleep")
    }),
    ({ _tag, ask, branches, concurrency, first, parts, seconds, step }): Part => {
      switch (_tag) {
        case "Step":
          return step
        case "Ask":
          return ask
        case "Sleep":
          return { _tag, seconds }
        case "Race":
          return { _tag, ask, seconds, first }
        case "All":
          return { _tag, concurrency, parts: branches }
        case "Catch":
          return { _tag, parts }
        case "Say":
        case "Fail":
          return { _tag }
      }
    }
  )
}

const list = (depth: number, maxLength: number): Arbitrary.Arbitrary<ReadonlyArray<Part>> =>
  Arbitrary.array(part(depth), { maxLength })

/** A body and how it is kept. */
export const program: Arbitrary.Arbitrary<Program> = Arbitrary.all({
  parts: list(2, 6),
  end: pick("value", "value", "value", "error", "defect"),
  ttl: pick(undefined, undefined, undefined, 50, 2000),
  memory: pick(false, false, false, true)
})

const event: Arbitrary.Arbitrary<Event> = Arbitrary.map(
  Arbitrary.all({
    _tag: pick("Pass", "Pass", "Pass", "Turns", "Turns", "Answer", "Answer", "Again", "Stop", "Stop", "Kill", "Cancel"),
    seconds: pick(0, 1, 2, 5, 31, 1000, 8000),
    turns: int(60),
    which: int(2),
    accept: pick(true, true, false)
  }),
  ({ _tag, accept, seconds, turns, which }): Event => {
    switch (_tag) {
      case "Pass":
      case "Stop":
      case "Kill":
        return { _tag, seconds }
      case "Turns":
        return { _tag, turns }
      case "Answer":
        return { _tag, which, accept }
      case "Again":
      case "Cancel":
        return { _tag }
    }
  }
)

/** What happens, one after the other. */
export const history: Arbitrary.Arbitrary<ReadonlyArray<Event>> = Arbitrary.array(event, { maxLength: 14 })
