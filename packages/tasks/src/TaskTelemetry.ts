/**
 * Metrics and spans of tasks, for an engine that it is provided to. Without it nothing is measured or traced.
 *
 * Effect's `Metric` and `Tracer` decide where metrics and spans go: provide `effect/observability/Otlp` to the engine,
 * or serve the metrics with `effect/observability/PrometheusMetrics`. The names follow OpenTelemetry's conventions;
 * Prometheus has `_` in place of `.`.
 *
 * **Metrics**, by `gen_ai.tool.name` and `pool`. 200 pairs of a tool and a pool, and 500 pairs of a tool and a step, have
 * series of their own; further ones are counted together, as `_OTHER`:
 *
 * - `mcp.server.task.submissions` counts created tasks, in the process that has created them; `mcp.server.task.ends`
 *   counts ended tasks by `outcome`, in the process that has ended them: `completed`, `declined` (a result with
 *   `isError` after a person declined), `tool_error` (another one), `failed` (a JSON-RPC error), `cancelled`, `given_up` (`maxAttempts`).
 * - `mcp.server.task.start.delay` and `mcp.server.task.duration`: histograms in seconds, from the creation of a task to
 *   its first run and to its end.
 * - `mcp.server.task.step.attempts` by `step`, `outcome` (`ok`, `error`, `defect`, `interrupted`) and `retry`, and
 *   `mcp.server.task.step.duration` in seconds by `step`, both without `pool`. Replays are not counted.
 * - `mcp.server.task.takeovers`: tasks that a lost worker had, after a crash or an expired lease.
 *
 * Of the process, without attributes:
 *
 * - `mcp.server.task.running`: the tasks that it runs now.
 * - `mcp.server.task.worker.stall.duration`: how long its event loop was blocked, above one second (`PostgresTasks`);
 *   `mcp.server.task.worker.lost_leases`; `mcp.server.task.store.outages`.
 *
 * Of the whole store (`queueMetrics`), read every 15 seconds, and only if the metrics were read in the last five minutes:
 *
 * - `mcp.server.task.queue.size` by `state` (`ready`, `waiting`, `running`), `mcp.server.task.queue.age` of the oldest
 *   task that is ready, in seconds, and `mcp.server.task.questions`, open questions. Each process reports the same
 *   numbers: take their maximum over processes, and the sum of all other metrics.
 *
 * **Spans**: a run of a handler is the span `task {tool}` of kind `consumer`, in a trace of its own, with a link to the
 * span of the call that has created the task. A task has several runs if it waits or if its worker ends. An executed
 * attempt of a step is a child, named as the step up to its first `/`; spans inside a step are children of that. A run
 * has events for questions, timers and compensations, and the attribute `mcp.server.task.run.end`. Logs are annotated
 * with `trace_id` and `span_id`. `mcp.server.task.id` has the first eight characters of the id, as logs have: the whole
 * id may be enough to use the task.
 *
 * @example
 * const Engine = SqliteTasks.layer({ filename: "tasks.db" }).pipe(
 *   Layer.provide(TaskTelemetry.layer()),
 *   Layer.provide(Otlp.layerJson({ baseUrl: "http://localhost:4318" })),
 *   Layer.provide(FetchHttpClient.layer))
 */
import { otherMethod } from "@skein/protocol/Conventions"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { TaskBounds } from "./internal/base/bounds.ts"
import { CurrentTaskObserver, type TaskObserver } from "./internal/telemetry/taskObserver.ts"
import { type AttemptOutcome, TaskMetrics } from "./internal/telemetry/taskMetrics.ts"
import { traceAttempt, traceRun } from "./internal/telemetry/taskSpans.ts"

/** Options of the metrics and spans. */
export interface Options {
  /** Whether spans are recorded. True by default. */
  readonly spans?: boolean | undefined
  /** Whether metrics are recorded. True by default. */
  readonly metrics?: boolean | undefined
  /**
   * Whether the metrics of the queue are recorded. True by default. Every 15 seconds one query reads the tasks that have
   * not ended. Set `false` in all processes but one or two: the numbers are equal.
   */
  readonly queueMetrics?: boolean | undefined
  /**
   * The name of a step in metrics and of its span: by default the part before its first `/`, so that the iterations of a
   * loop (`charge/${order}`) are counted together. The span also has the whole name as an attribute.
   */
  readonly stepLabel?: ((step: string) => string) | undefined
}

/**
 * Records the tasks of the engines that it is provided to.
 *
 * @example
 * const Engine = MemoryTasks.layer().pipe(Layer.provide(TaskTelemetry.layer({ spans: false })))
 */
export const layer = (options: Options = {}): Layer.Layer<never> =>
  Layer.effect(
    CurrentTaskObserver,
    Effect.map(Effect.context<never>(), (context) => makeObserver(context, options))
  )

/** The label of a step. A function that throws does not fail the step. */
const labelOf = (stepLabel: (step: string) => string, step: string): string => {
  try {
    return stepLabel(step)
  } catch {
    return otherMethod
  }
}

const makeObserver = (context: Context.Context<never>, options: Options): TaskObserver => {
  const { stepLabel = (step: string) => step.split("/", 1)[0]! } = options
  const metrics = options.metrics === false
    ? undefined
    : new TaskMetrics({ context, bounds: Context.get(context, TaskBounds) })
  const hasSpans = options.spans !== false
  const clock = Context.get(context, Clock.Clock)
  return {
    metrics,
    readsQueue: options.queueMetrics !== false,
    run: (run, body) =>
      Effect.suspend(() => {
        if (run.isFirst) metrics?.started(run, run.ageMs)
        return hasSpans ? traceRun(run, body) : body(undefined)
      }),
    attempt: (attempt, effect) =>
      Effect.suspend(() => {
        const label = labelOf(stepLabel, attempt.step)
        const traced = hasSpans ? traceAttempt(attempt, label, effect) : effect
        if (metrics === undefined) return traced
        const begin = clock.monotonicTimeNanosUnsafe()
        return Effect.onExit(traced, (exit) =>
          Effect.sync(() => {
            const nanos = clock.monotonicTimeNanosUnsafe() - begin
            metrics.attemptEnded(attempt.tool, label, outcomeOf(exit), attempt.attempt > 1, nanos)
          }))
      })
  }
}

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): AttemptOutcome =>
  exit._tag === "Success"
    ? "ok"
    : Cause.hasInterruptsOnly(exit.cause)
    ? "interrupted"
    : Cause.hasDies(exit.cause)
    ? "defect"
    : "error"
