/**
 * The expected result of a program without incidents. Chance is an input: how questions were answered, and which
 * races were lost.
 */
import type { Part, Program } from "./generate.ts"

/** The expected end. */
export interface Expected {
  readonly end: "value" | "error" | "defect"
  readonly text: string
  /** The steps that run, and how often; `good`: whether they succeed. */
  readonly steps: ReadonlyMap<
    string,
    { readonly times: number; readonly good: boolean; readonly transactional: boolean }
  >
  /** The compensations, in the order in which they are added. */
  readonly undos: ReadonlyArray<string>
  readonly asked: ReadonlyArray<string>
  /** The name of the last status message, and the number of messages. */
  readonly statusMessage: string | undefined
  readonly reported: number
  /** Whether all parts are sequential. */
  readonly sequential: boolean
  /** The part that has failed in one of the branches: the progress of the others is then up to chance. */
  readonly torn: ReadonlyArray<string>
}

class Failure extends Error {}

const defect = Symbol("A defect")

/** Runs the program. `gave`: the answer of a question to the handler. */
export const model = ({ end, parts }: Program, gave: (name: string) => string | undefined): Expected => {
  const steps = new Map<string, { times: number; good: boolean; transactional: boolean }>()
  const undos: Array<string> = []
  const asked: Array<string> = []
  let statusMessage: string | undefined
  let reported = 0
  let sequential = true
  const torn: Array<string> = []

  const one = (name: string, part: Part): string => {
    switch (part._tag) {
      case "Step": {
        const { ends, transactional, tries } = part
        const good = ends === "well" || ends === "late"
        const times = ends === "late" || ends === "never" ? tries + 1 : 1
        if (part.undo === "before") undos.push(name)
        steps.set(name, { times, good, transactional })
        if (ends === "dies") throw defect
        if (!good) throw new Failure(name)
        if (part.undo === "after") undos.push(name)
        return "done"
      }
      case "Sleep":
        return "slept"
      case "Tie":
        return gave(name) ?? "?"
      case "Ask":
      case "Race":
        asked.push(name)
        return gave(name) ?? "?"
      case "All": {
        if (part.parts.length > 1) sequential = false
        const ends = part.parts.map((parts, index) => {
          try {
            return sequence(`${name}/${index}`, parts)
          } catch (failure) {
            if (part.parts.length > 1) torn.push(name)
            return failure
          }
        })
        for (const end of ends) if (typeof end !== "string") throw end
        return `[${ends.join(" | ")}]`
      }
      case "Catch":
        try {
          return sequence(name, part.parts)
        } catch (failure) {
          if (failure instanceof Failure) return `caught ${failure.message}`
          throw failure
        }
      case "Section":
        return sequence(name, part.parts)
      case "Say":
        statusMessage = name
        reported++
        return "reported"
      case "Fail":
        throw new Failure(name)
    }
  }

  const sequence = (name: string, parts: ReadonlyArray<Part>): string =>
    parts.map((part, index) => one(`${name}.${index}`, part)).join(", ")

  const ended = (): { readonly end: Expected["end"]; readonly text: string } => {
    try {
      const text = sequence("p", parts)
      return { end, text: end === "value" ? text : "The end" }
    } catch (failure) {
      return failure instanceof Failure ? { end: "error", text: failure.message } : { end: "defect", text: "" }
    }
  }
  const { end: ends, text } = ended()
  return { end: ends, text, steps, undos, asked, statusMessage, reported, sequential, torn }
}
