/**
 * The task that a handler runs in: the service that `Step` uses.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import type { Retry } from "./internal/base/retry.ts"
import type { TaskEnd } from "./internal/base/taskEnd.ts"
import type { EventError, StepTimeout, TaskError } from "./TaskError.ts"
import type { NewTask } from "./TaskState.ts"

/** How a step runs and is recorded. `Failure` is what a retry may meet: `E`, and `StepTimeout` with a limit. */
export interface StepOptions<A, E, Failure = E> {
  /**
   * The schema of the recorded value, which is stored as JSON. Default: no value is recorded. It must stay able to
   * decode the values of tasks that exist.
   */
  readonly success?: Schema.ConstraintCodec<A, unknown> | undefined
  /** The schema of the recorded failure. A step without it must not fail. */
  readonly error?: Schema.ConstraintCodec<E, unknown> | undefined
  /**
   * The retries after a failure: growing pauses (`Retry`), which may be for some failures only, or a schedule. Default: no
   * retry. Each attempt is recorded with its time, so that the retries continue where they were when the task moves to
   * another process. A pause of more than 5 seconds is durable and takes no memory; a shorter one starts again after a
   * restart. A defect is not retried.
   */
  readonly retry?: Schedule.Schedule<unknown, Failure> | Retry<Failure> | undefined
  /**
   * How long an attempt may take: without a limit by default. The attempt is interrupted then, after its uninterruptible
   * parts, and fails with `StepTimeout`, which is retried like any failure and needs no `error` schema. It may have had its
   * effect. After a restart it begins again, with all of its time. `Infinity`, and anything that is not more than 0, is a
   * defect, `InvalidOption`.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * How long an attempt may go on without `Step.heartbeat`: without a limit by default. It fails as with `timeout`, and the
   * next attempt reads the last details. A worker that dies is noticed by its lease; this option is for a step that hangs.
   */
  readonly heartbeatTimeout?: Duration.Input | undefined
  /**
   * Whether the step's writes with the engine's `SqlClient` are committed together with its record: the step then runs
   * exactly once. A failure rolls the writes back. Such a step must be short and do nothing but SQL; on SQLite all
   * other statements wait for it. Default `false`: the step runs *at least* once.
   */
  readonly transactional?: boolean | undefined
}

/** How a task awaits an event. */
export interface EventOptions<A> {
  /**
   * The schema of the value, which the sender sends as JSON: of Effect, or of a library with Standard Schema. Default: any
   * JSON value. It must stay able to decode the values that existing tasks have received.
   */
  readonly schema?: Schema.ConstraintCodec<A, unknown> | StandardSchemaV1<unknown, A> | undefined
  /**
   * Awaits an event for all tasks of a topic (`TaskEngine.sendAll`), such as `order/4711`. The first such wait subscribes the
   * task: from then on it has each event of this name and topic, and those of the day before, up to 100. Default: an event for
   * this task alone (`TaskEngine.send`).
   */
  readonly topic?: string | undefined
  /**
   * How long the task waits, across restarts: as long as it lives by default. An event that is sent later stays for the next
   * `awaitEvent` of its name.
   */
  readonly timeout?: Duration.Input | undefined
}

/** Children of a task, one for each item. */
export interface ChildGroup {
  /** The number of items. */
  readonly count: number
  /** How many children may not have ended at the same time. */
  readonly concurrency: number
  /** Whether the first failure ends the wait. */
  readonly failsFast: boolean
  /** Fails for items whose task cannot be made. It runs before the first child starts. */
  readonly check: Effect.Effect<void, TaskError>
  /** Makes the task of an item. */
  readonly make: (item: number) => Effect.Effect<NewTask, TaskError>
}

/** Why a task runs its compensations. */
export type UndoReason = "failed" | "cancelled"

/** Undoes what a handler has done. */
export type Compensation = (reason: UndoReason) => Effect.Effect<unknown, unknown>

/** A branch of a task: what it does, for the caller to run, and its cancellation. */
export interface TaskBranch<A, E, R> {
  /** Fails with `Cancelled` when the branch is cancelled. */
  readonly body: Effect.Effect<A, E | TaskError, R>
  /** Interrupts the branch and runs its compensations, once. */
  readonly cancel: Effect.Effect<void>
}

/** The task of a durable handler (`Task.layer`). `Step` documents its methods. */
export class CurrentTask extends Context.Service<CurrentTask, {
  /** The task id. Keep it secret: it may be enough to read the task. */
  readonly id: string
  /** Sets the status message of the task, for people and models. */
  readonly setStatusMessage: (message: string) => Effect.Effect<void>
  /** Sets a label: see `Task.label`. */
  readonly label: (name: string, value: string) => Effect.Effect<void, TaskError>
  /** Adds an item to the output: see `Task.emit`. */
  readonly emit: (value: unknown) => Effect.Effect<void, TaskError>
  /** `undo` is the compensation of the step. It also runs if the effect has happened and its value cannot be recorded. */
  readonly step: <A, E, R, E2 = never, R2 = never>(
    name: string,
    options: StepOptions<A, E, E | StepTimeout>,
    execute: (key: string) => Effect.Effect<A, E, R>,
    undo?: (value: A, reason: UndoReason) => Effect.Effect<unknown, E2, R2>
  ) => Effect.Effect<A, E | StepTimeout, R | R2>
  /** `Step.heartbeat` documents it. */
  readonly heartbeat: (details?: unknown) => Effect.Effect<void>
  /** `Step.lastHeartbeat`. */
  readonly lastHeartbeat: Effect.Effect<unknown>
  readonly sleep: (name: string, duration: Duration.Input) => Effect.Effect<void>
  /** `Task.awaitEvent` documents it. */
  readonly awaitEvent: <A = unknown>(name: string, options?: EventOptions<A>) => Effect.Effect<A, EventError>
  readonly compensate: <E, R>(
    undo: (reason: UndoReason) => Effect.Effect<unknown, E, R>
  ) => Effect.Effect<void, never, R>
  /** `Task.patched`. */
  readonly patched: (name: string) => Effect.Effect<boolean>
  readonly continueWith: (args: JsonObject) => Effect.Effect<never>
  /** Runs an effect that a cancellation of the task waits for. `Task.nonCancellable` documents it. */
  readonly nonCancellable: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Makes a branch that can be cancelled alone: `Task.branch`. */
  readonly branch: <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<TaskBranch<A, E, R>>
  /** Lets a function answer the queries with a name: `Task.query`. */
  readonly query: (name: string, answer: (args: JsonObject) => unknown) => Effect.Effect<void>
  /** Starts the child that `make` makes, once, and returns its id. `Task.start` documents it. */
  readonly start: (
    name: string,
    make: Effect.Effect<NewTask, TaskError>,
    isDetached: boolean
  ) => Effect.Effect<string, TaskError>
  /** Waits for the end of a child: `Task.join`. */
  readonly join: (name: string) => Effect.Effect<TaskEnd>
  /** Starts children and waits for them: `Task.forEach`. With `failsFast`, its last end is that of the first failure. */
  readonly forEach: (name: string, group: ChildGroup) => Effect.Effect<ReadonlyArray<TaskEnd>, TaskError>
}>()("@skein/tasks/CurrentTask") {}
