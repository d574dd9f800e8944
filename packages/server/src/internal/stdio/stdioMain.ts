/**
 * The life of a stdio server's process.
 */
import type * as Effect from "effect/Effect"
import * as main from "./nodeMain.ts"
import * as stdout from "./stdout.ts"

/** The bounds of the process. */
export interface MainOptions extends main.MainOptions {}

/**
 * Runs an effect as the whole life of this process, and exits when it is over; it succeeds when its input has ended and its calls
 * in flight are done. From the call on nothing but protocol reaches stdout: see `stdout.ts`.
 */
export const runMain = <E>(effect: Effect.Effect<unknown, E>, options?: MainOptions): void => {
  stdout.guard()
  main.runMain(effect, options)
}
