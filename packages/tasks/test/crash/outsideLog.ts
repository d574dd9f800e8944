/**
 * The world outside of the database, where steps act: a file.
 */
import * as Effect from "effect/Effect"
import { appendFileSync, existsSync, readFileSync } from "node:fs"

/** What was done outside. */
export interface Call {
  readonly task: string
  readonly order: number
  readonly step: string
  readonly key: string
}

/** What steps act on. */
export interface Outside {
  readonly act: (call: Call) => Effect.Effect<void>
  /** Whether somebody acted with this key. */
  readonly known: (key: string) => Effect.Effect<boolean>
}

/** What was done in a file. */
export const calls = (file: string): ReadonlyArray<Call> =>
  existsSync(file)
    ? readFileSync(file, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Call)
    : []

/** A line in a file for each call: it is there when `appendFileSync` returns, whatever happens to the process then. */
export const inFile = (file: string): Outside => ({
  act: (call) => Effect.sync(() => appendFileSync(file, `${JSON.stringify(call)}\n`)),
  known: (key) => Effect.sync(() => calls(file).some((call) => call.key === key))
})
