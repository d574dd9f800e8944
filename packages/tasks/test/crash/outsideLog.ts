/**
 * The outside world in which steps act: a file.
 */
import * as Effect from "effect/Effect"
import { appendFileSync, existsSync, readFileSync } from "node:fs"

/** An effect of a step. */
export interface Call {
  readonly task: string
  readonly order: number
  readonly step: string
  readonly key: string
}

/** The outside world of the steps. */
export interface Outside {
  readonly act: (call: Call) => Effect.Effect<void>
  /** Whether there was an effect with this key. */
  readonly known: (key: string) => Effect.Effect<boolean>
}

/** The effects in a file. */
export const calls = (file: string): ReadonlyArray<Call> =>
  existsSync(file)
    ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Call)
    : []

/**
 * Writes a line for each effect. It is in the file when `appendFileSync` returns, even if the process is killed then.
 */
export const inFile = (file: string): Outside => ({
  act: (call) => Effect.sync(() => appendFileSync(file, `${JSON.stringify(call)}\n`)),
  known: (key) => Effect.sync(() => calls(file).some((call) => call.key === key))
})
