/**
 * The limits of an attempt of a step: the time that it may take, and that may pass between two of its heartbeats.
 */
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type { StepOptions } from "../../CurrentTask.ts"
import { StepTimeout, type TaskError } from "../../TaskError.ts"
import { toLimitMillis } from "../base/bounds.ts"
import { invalidOption } from "../store/database.ts"
import { CurrentRun } from "./engineContext.ts"
import type { Heartbeats } from "./heartbeats.ts"
import type { Restore } from "./run.ts"

/** The limits of a step, in milliseconds. */
export interface Limits {
  readonly timeout: number | undefined
  readonly heartbeatTimeout: number | undefined
}

/** The failure of an attempt that has exceeded a limit. */
export const timeoutOf = (step: string, option: StepTimeout["option"], limitMs: number): StepTimeout =>
  new StepTimeout({
    message: option === "timeout"
      ? `step "${step}" did not end within its timeout of ${limitMs} ms`
      : `step "${step}" had no heartbeat for its heartbeatTimeout of ${limitMs} ms`,
    step,
    option,
    limitMs
  })

/** The milliseconds of a limit. */
const millisOf = (
  step: string,
  option: keyof Limits,
  input: Duration.Input | undefined
): Result.Result<number | undefined, TaskError> =>
  input === undefined
    ? Result.succeed(undefined)
    : Result.mapBoth(toLimitMillis(input), {
      onFailure: (problem) => invalidOption(`${option} of step "${step}" ${problem}`),
      onSuccess: Math.ceil
    })

/** The limits of a step; `undefined` without any. Fails with `InvalidOption`. */
export const limitsOf = (
  step: string,
  { heartbeatTimeout, timeout }: Pick<StepOptions<unknown, unknown>, "timeout" | "heartbeatTimeout">
): Result.Result<Limits | undefined, TaskError> =>
  timeout === undefined && heartbeatTimeout === undefined
    ? Result.succeed(undefined)
    : Result.all({
      timeout: millisOf(step, "timeout", timeout),
      heartbeatTimeout: millisOf(step, "heartbeatTimeout", heartbeatTimeout)
    })

/**
 * The exit of a fiber. An interruption from outside, or the failure of `limit`, interrupts it, unless it comes to its end
 * nevertheless.
 */
export const awaitEnd = <A, E, E2 = never>(
  fiber: Fiber.Fiber<A, E>,
  restore: Restore,
  limit?: Effect.Effect<never, E2>
): Effect.Effect<Exit.Exit<A, E>, E2> =>
  Effect.catchCause(
    restore(limit === undefined ? Fiber.await(fiber) : Effect.raceFirst(Fiber.await(fiber), limit)),
    (cause) =>
      Effect.flatMap(
        Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber)),
        (exit) =>
          Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? Effect.failCause(cause) : Effect.succeed(exit)
      )
  )

/** The name of the run in whose name limits sleep: a test must not skip to the end of a step that waits for something else. */
const ofLimits = "limits"

/** Interrupts an attempt that exceeds a limit, and fails with `StepTimeout`. */
export const withLimits = <A, E, R>(
  step: string,
  { heartbeatTimeout, timeout }: Limits,
  heartbeats: Heartbeats,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | StepTimeout, R> => {
  const pause = (milliseconds: number) => Effect.provideService(Effect.sleep(milliseconds), CurrentRun, ofLimits)
  const ofAttempt = timeout === undefined
    ? Effect.never
    : Effect.andThen(pause(timeout), Effect.fail(timeoutOf(step, "timeout", timeout)))
  const ofHeartbeats = (limit: number): Effect.Effect<never, StepTimeout> =>
    Effect.flatMap(Clock.Clock, (clock) => {
      const remaining = heartbeats.lastReport(step) + limit - monotonicMillis(clock)
      return remaining > 0
        ? Effect.andThen(pause(Math.ceil(remaining)), ofHeartbeats(limit))
        : Effect.fail(timeoutOf(step, "heartbeatTimeout", limit))
    })
  const exceeded = heartbeatTimeout === undefined
    ? ofAttempt
    : Effect.andThen(heartbeats.noteReport(step), Effect.raceFirst(ofAttempt, ofHeartbeats(heartbeatTimeout)))
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.forkChild(restore(effect), { startImmediately: true }),
      (fiber) => Effect.flatten(awaitEnd(fiber, restore, exceeded))
    )
  )
}
