/**
 * Random handlers of tasks, and the events of a history. All of it is plain data, and shrinks: to fewer parts, and to
 * the first of the listed alternatives.
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"

/** A part of a handler. Its position in the handler is its name. */
export type Part =
  | Step
  | { readonly _tag: "Sleep"; readonly seconds: number }
  | Ask
  /** A question against a sleep, or the other way around. */
  | { readonly _tag: "Race"; readonly ask: Ask; readonly seconds: number; readonly first: "ask" | "sleep" }
  /** Two steps that race, and take these times: often the same. A sleep follows, in which the run is suspended. */
  | { readonly _tag: "Tie"; readonly seconds: readonly [number, number]; readonly turns: readonly [number, number] }
  /** Sets the status message, and reports progress. */
  | { readonly _tag: "Say" }
  | { readonly _tag: "All"; readonly concurrency: number; readonly parts: ReadonlyArray<ReadonlyArray<Part>> }
  | { readonly _tag: "Catch"; readonly parts: ReadonlyArray<Part> }
  /** A section that a cancellation waits for: steps, sleeps and ties. */
  | { readonly _tag: "Section"; readonly parts: ReadonlyArray<Part> }
  | { readonly _tag: "Fail" }

/** A step, and its compensation. */
export interface Step {
  readonly _tag: "Step"
  /** How it ends: with success, with success after retries, always with a failure, with a defect. */
  readonly ends: "well" | "late" | "never" | "dies"
  /** How often it is retried. */
  readonly tries: number
  /** Seconds between two attempts. */
  readonly pause: number
  /** Seconds, and turns of the scheduler, before it acts. */
  readonly seconds: number
  readonly turns: number
  readonly transactional: boolean
  /** Whether it adds its compensation after it has ended, or before; and how the compensation ends. */
  readonly undo: "not" | "after" | "before"
  readonly undoing: "quick" | "slow" | "fails"
}

/** A question by a form. */
export interface Ask {
  readonly _tag: "Ask"
  readonly key: boolean
  readonly timeout: number | undefined
}

/** A handler, and how its task is stored. */
export interface Program {
  readonly parts: ReadonlyArray<Part>
  readonly end: "value" | "error" | "defect"
  /** Seconds. */
  readonly ttl: number | undefined
  readonly memory: boolean
}

/** An event. */
export type Event =
  | { readonly _tag: "Pass"; readonly seconds: number }
  | { readonly _tag: "Turns"; readonly turns: number }
  /** Answers the question with this number, validly or not; or the one that was answered last, again. */
  | { readonly _tag: "Answer"; readonly which: number; readonly accept: boolean }
  | { readonly _tag: "Again" }
  /** Stops or kills the process, and starts another one after so many seconds. */
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
  // While it runs, all others wait for its transaction.
  (step) => ({ _tag: "Step", ...step, seconds: step.transactional ? 0 : step.seconds })
)

/** This often, in parts. */
const steps = ["Step", "Step", "Step", "Step", "Step"] as const
const leaves = [...steps, "Sleep", "Sleep", "Ask", "Ask", "Race", "Tie", "Tie", "Say", "Fail"] as const
const nodes = [...leaves, "All", "All", "All", "Catch", "Catch", "Section", "Section"] as const

/** The longest sleep of a section, in seconds: the end of a history waits for it. */
const longestInSection = 900

/** Whether a section may have a part: it must come to its end without others. */
const isInSection = (part: Part): boolean =>
  part._tag === "Step" || part._tag === "Tie" || part._tag === "Say" ||
  (part._tag === "Sleep" && part.seconds <= longestInSection)

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
      first: pick("ask", "sleep"),
      ties: Arbitrary.all([pick(0, 1, 3), pick(0, 1, 3)]),
      turns: Arbitrary.all([int(3), int(3)])
    }),
    ({ _tag, ask, branches, concurrency, first, parts, seconds, step, ties, turns }): Part => {
      switch (_tag) {
        case "Step":
          return step
        case "Ask":
          return ask
        case "Sleep":
          return { _tag, seconds }
        case "Race":
          return { _tag, ask, seconds, first }
        case "Tie":
          return { _tag, seconds: ties, turns }
        case "All":
          return { _tag, concurrency, parts: branches }
        case "Catch":
          return { _tag, parts }
        case "Section":
          return { _tag, parts: parts.filter(isInSection) }
        case "Say":
        case "Fail":
          return { _tag }
      }
    }
  )
}

const list = (depth: number, maxLength: number): Arbitrary.Arbitrary<ReadonlyArray<Part>> =>
  Arbitrary.array(part(depth), { maxLength })

/** A handler and how its task is stored. */
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

/** The events, one after the other. */
export const history: Arbitrary.Arbitrary<ReadonlyArray<Event>> = Arbitrary.array(event, { maxLength: 14 })
