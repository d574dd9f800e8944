/**
 * A part of Skein that is fuzzed, and the fault of one run.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"
import { isUnprintable } from "./samples.ts"

/** Reports a fault of the run. */
export type Report = (fault: string) => void

/** A part of Skein that reads messages of a peer. */
export interface Target {
  readonly name: string
  /** Sends hostile messages. Reports defects, and logs with the level `Error`. */
  readonly run: (random: Random.Random, report: Report) => Effect.Effect<void>
  /** Ends what all runs share. */
  readonly close?: Effect.Effect<unknown> | undefined
}

const shorten = (text: string): string => text.length > 3_000 ? `${text.slice(0, 3_000)}…` : text

/** Makes a logger that reports errors as faults. */
export const errorLogger = (report: Report): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, logLevel, message }) => {
    if (logLevel === "Error" || logLevel === "Fatal") {
      report(shorten(`logged: ${String(message)} ${Cause.pretty(cause)}`))
    }
  })

const texts = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Error ? "" : JSON.stringify(value) ?? ""

/**
 * Makes a logger that reports errors as faults, and also messages and annotations with characters that could control a
 * terminal. Lines with the annotation `mcp.level` are messages of the server: they have the level that it chose.
 */
export const printableLogger = (report: Report): Logger.Logger<unknown, void> =>
  Logger.make((entry) => {
    const annotations = entry.fiber.getRef(References.CurrentLogAnnotations)
    if (annotations["mcp.level"] === undefined) errorLogger(report).log(entry)
    for (const text of [entry.message, ...Object.values(annotations)].flat().map(texts)) {
      if (isUnprintable(text)) report(shorten(`unprintable characters in a log line: ${JSON.stringify(text)}`))
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
