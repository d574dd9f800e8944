/**
 * The reports of the engine and its store to telemetry. Without `TaskTelemetry` there is no observer, and each report costs
 * one comparison.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Tracer from "effect/Tracer"
import type { State } from "../../TaskState.ts"
import type { TaskMetrics } from "./taskMetrics.ts"

/** A run of a task. */
export interface ObservedRun extends Pick<State, "id" | "tool" | "pool"> {
  /** Milliseconds since its creation. */
  readonly ageMs: number
  /** The id of the worker. */
  readonly worker: string
  /** The number of the claim's lost workers. */
  readonly lostWorkers: number
  /** Whether the handler begins for the first time. */
  readonly isFirst: boolean
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
  /** The metrics, if they are recorded. */
  readonly metrics: TaskMetrics | undefined
  /** Whether the queue of the store is read for its gauges. */
  readonly readsQueue: boolean
  /** Observes a run of a handler. */
  readonly run: <A, R>(
    run: ObservedRun,
    body: (trace: RunTrace | undefined) => Effect.Effect<A, never, R>
  ) => Effect.Effect<A, never, R>
  /** Observes an attempt of a step. */
  readonly attempt: <A, E, R>(attempt: ObservedAttempt, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** The observer of the engines that are built with it. */
export const CurrentTaskObserver = /* @__PURE__ */ Context.Reference<TaskObserver | undefined>(
  "@skein/tasks/TaskTelemetry",
  { defaultValue: () => undefined }
)
