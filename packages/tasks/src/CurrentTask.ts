/**
 * The task that a handler runs in: the service that `Step` uses.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"

/** How a step runs and is recorded. */
export interface StepOptions<A, E> {
  /**
   * The schema of the recorded value, which is stored as JSON. Default: no value is recorded. It must stay able to
   * decode the values of tasks that exist.
   */
  readonly success?: Schema.ConstraintCodec<A, unknown> | undefined
  /** The schema of the recorded failure. A step without it must not fail. */
  readonly error?: Schema.ConstraintCodec<E, unknown> | undefined
  /**
   * The schedule of retries after a failure. Default: no retry. Each attempt is recorded with its time, so that the
   * schedule continues where it was when the task moves to another process. A pause of more than 5 seconds is durable
   * and takes no memory; a shorter one starts again after a restart. A defect is not retried.
   */
  readonly retry?: Schedule.Schedule<unknown, E> | undefined
  /**
   * Whether the step's writes with the engine's `SqlClient` are committed together with its record: the step then runs
   * exactly once. A failure rolls the writes back. Such a step must be short and do nothing but SQL; on SQLite all
   * other statements wait for it. Default `false`: the step runs *at least* once.
   */
  readonly transactional?: boolean | undefined
}

/** Why a task runs its compensations. */
export type UndoReason = "failed" | "cancelled"

/** The task of a durable handler (`Task.layer`). `Step` documents its methods. */
export class CurrentTask extends Context.Service<CurrentTask, {
  /** The task id. Keep it secret: it may be enough to read the task. */
  readonly id: string
  /** Sets the status message of the task, for people and models. */
  readonly setStatusMessage: (message: string) => Effect.Effect<void>
  /** `undo` is the compensation of the step. It also runs if the effect has happened and its value cannot be recorded. */
  readonly step: <A, E, R, E2 = never, R2 = never>(
    name: string,
    options: StepOptions<A, E>,
    execute: (key: string) => Effect.Effect<A, E, R>,
    undo?: (value: A, reason: UndoReason) => Effect.Effect<unknown, E2, R2>
  ) => Effect.Effect<A, E, R | R2>
  readonly sleep: (name: string, duration: Duration.Input) => Effect.Effect<void>
  readonly compensate: <E, R>(
    undo: (reason: UndoReason) => Effect.Effect<unknown, E, R>
  ) => Effect.Effect<void, never, R>
  readonly continueWith: (args: JsonObject) => Effect.Effect<never>
}>()("@skein/tasks/CurrentTask") {}
