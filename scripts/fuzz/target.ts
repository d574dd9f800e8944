/**
 * A part of Skein that is fuzzed, and the fault of one run.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"

/** Reports a fault of the run. */
export type Report = (fault: string) => void

/** A part of Skein that reads messages of a peer. */
export interface Target {
  readonly name: string
  /** Sends hostile messages. Reports defects, and logs with the level `Error`. */
  readonly run: (random: Random.Random, report: Report) => Effect.Effect<void>
}

const shorten = (text: string): string => text.length > 3_000 ? `${text.slice(0, 3_000)}…` : text

/** Makes a logger that reports errors as faults. */
export const errorLogger = (report: Report): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, logLevel, message }) => {
    if (logLevel === "Error" || logLevel === "Fatal") {
      report(shorten(`logged: ${String(message)} ${Cause.pretty(cause)}`))
    }
  })

/** Runs a part of a target. Its defects, and the errors that it logs, are faults. */
export const observed = <A, E>(effect: Effect.Effect<A, E>, report: Report): Effect.Effect<void> =>
  Effect.asVoid(Effect.provide(
    Effect.tap(Effect.exit(effect), (exit) =>
      Effect.sync(() => {
        if (exit._tag === "Failure" && Cause.hasDies(exit.cause)) report(shorten(`died: ${Cause.pretty(exit.cause)}`))
      })),
    Logger.layer([errorLogger(report)])
  ))

/** Runs everything that can run now: microtasks, immediates and the fibers behind them. */
export const settle: Effect.Effect<void> = Effect.promise(async () => {
  for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
})
