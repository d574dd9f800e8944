/**
 * The reports of the engine and its store to telemetry. Without `TaskTelemetry` there is no observer, and each report costs
 * one comparison.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Tracer from "effect/Tracer"

/** The properties of a task by which it is counted. */
export interface ObservedTask {
  readonly tool: string
  readonly pool: string
}

/**
 * How a task has ended: `completed`; `tool_error`, a result with `isError`; `failed`, a JSON-RPC error; `cancelled`, also
 * at the end of its `ttl`; `given_up`, after `maxAttempts`.
 */
export type EndOutcome = "completed" | "tool_error" | "failed" | "cancelled" | "given_up"

/** The tasks of one tool and pool in one state of the queue. */
export interface QueueCount extends ObservedTask {
  readonly state: "ready" | "waiting" | "running"
  readonly count: number
  /** The age of the oldest `ready` task, in milliseconds; `undefined` for the other states. */
  readonly oldestMs: number | undefined
  /** The number of open questions of these tasks. */
  readonly openQuestions: number
}

/** A run of a task. */
export interface ObservedRun extends ObservedTask {
  readonly id: string
  /** The id of the worker. */
  readonly worker: string
  /** The number of the claim's lost workers. */
  readonly lostWorkers: number
  /** Whether the handler begins for the first time. */
  readonly isFirst: boolean
  /** When the task was created, in milliseconds of Unix time. */
  readonly createdAt: number
  /** The span of the call that created the task, as W3C `traceparent`. */
  readonly traceparent: string | undefined
}

/** The span of a run. */
export interface RunTrace {
  /** Adds an event to the span. */
  readonly event: (name: string, attributes?: Readonly<Record<string, unknown>>) => void
  /** Sets why the run has ended. The first reason counts. */
  readonly conclude: (reason: string) => void
}

/** An executed attempt of a step. */
export interface ObservedAttempt {
  readonly tool: string
  readonly step: string
  /** From 1. */
  readonly attempt: number
  /** The span around the step: a transaction may be between the two. */
  readonly parent: Tracer.AnySpan | undefined
}

/** Receives the reports. Its functions must not throw. */
export interface TaskObserver {
  readonly submitted: (task: ObservedTask) => void
  readonly ended: (task: ObservedTask, outcome: EndOutcome, durationMs: number) => void
  /** A task of a lost worker is in the queue again. */
  readonly takenOver: (task: ObservedTask) => void
  /** The event loop of a worker was blocked. */
  readonly stalled: (milliseconds: number) => void
  readonly leaseLost: () => void
  readonly outageBegan: () => void
  /** Observes a run of a handler. */
  readonly run: <A, R>(
    run: ObservedRun,
    body: (trace: RunTrace | undefined) => Effect.Effect<A, never, R>
  ) => Effect.Effect<A, never, R>
  /** Observes an attempt of a step. */
  readonly attempt: <A, E, R>(attempt: ObservedAttempt, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Reports the number of tasks that this process runs, until the scope closes. */
  readonly reportRunning: (count: () => number) => Effect.Effect<void, never, Scope.Scope>
  /** Whether the metrics were read lately. */
  readonly isRead: () => boolean
  /** The queue of the store, after each read. */
  readonly queue: (counts: ReadonlyArray<QueueCount>) => void
}

/** The observer of the engines that are built with it. */
export const CurrentTaskObserver = /* @__PURE__ */ Context.Reference<TaskObserver | undefined>(
  "@skein/tasks/TaskTelemetry",
  { defaultValue: () => undefined }
)
