/**
 * The metrics of tasks, in the metric registry of their context.
 */
import { otherMethod } from "@skein/protocol/Conventions"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import type { Statistics } from "../../TaskAdmin.ts"
import type { Bounds } from "../base/bounds.ts"

/** The properties of a task by which it is counted. */
export interface ObservedTask {
  readonly tool: string
  readonly pool: string
}

/**
 * How a task has ended: `completed`; `declined`, a result with `isError` after a person declined a question; `tool_error`,
 * another result with `isError`; `failed`, a JSON-RPC error; `cancelled`, also at the end of its `ttl`; `given_up`, after
 * `maxAttempts`.
 */
export type EndOutcome = typeof endOutcomes[number]
const endOutcomes = ["completed", "declined", "tool_error", "failed", "cancelled", "given_up"] as const

/** The tasks of one tool and pool in one state of the queue. */
export type QueueCount = Statistics["queue"][number] & {
  /** The number of open questions of these tasks. */
  readonly openQuestions: number
}

/**
 * How an attempt of a step has ended: `defect`, it died; `interrupted`, it lost a race, its task was cancelled, or its
 * worker stopped.
 */
export type AttemptOutcome = typeof attemptOutcomes[number]
const attemptOutcomes = ["ok", "error", "defect", "interrupted"] as const

/** Milliseconds for which the queue is read after a read of the metrics: as long as Prometheus shows a value. */
const readMs = 300_000

// Exporters read the unit of a metric from the attribute `unit`.
const seconds = { unit: "s" }
// Tasks wait for people, and for days.
const longBoundaries = [0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 21_600, 86_400, 604_800]
const shortBoundaries = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300]

/** All metrics are named `mcp.server.task.…`. */
const full = (name: string): string => `mcp.server.task.${name}`

const count = (name: string, unit: string, description: string): Metric.Counter<number> =>
  Metric.counter(full(name), { description, incremental: true, attributes: { unit } })
const duration = (name: string, description: string, boundaries: ReadonlyArray<number>): Metric.Histogram<number> =>
  Metric.histogram(full(name), { description, boundaries, attributes: seconds })
const gauge = (name: string, unit: string, description: string): Metric.Gauge<number> =>
  Metric.gauge(full(name), { description, attributes: { unit } })

const submissions = count("submissions", "{task}", "Created tasks")
const ends = count("ends", "{task}", "Ended tasks, by outcome")
const taskDuration = duration("duration", "The time from the creation of a task to its end", longBoundaries)
const startDelay = duration("start.delay", "The time from the creation of a task to its first run", longBoundaries)
const attempts = count("step.attempts", "{attempt}", "Executed attempts of steps, by outcome")
const stepDuration = duration("step.duration", "The time of an executed attempt of a step", shortBoundaries)
const takeovers = count("takeovers", "{task}", "Tasks of lost workers that were put back into the queue")
const stalls = duration(
  "worker.stall.duration",
  "The times for which the event loop of a worker was blocked, above one second",
  shortBoundaries
)
const lostLeases = count("worker.lost_leases", "{lease}", "Leases that a worker did not renew in time")
const outages = count("store.outages", "{outage}", "Times that the task store could not be reached")
const running = gauge("running", "{task}", "Tasks that this process runs now")
const queueSize = gauge("queue.size", "{task}", "Tasks that have not ended, by their state in the queue")
const queueAge = gauge("queue.age", "s", "The age of the oldest task that is ready to run")
const openQuestions = gauge("questions", "{question}", "Open questions of tasks")

type Update = Metric.Metric<number, unknown>

/** Series that are made at their first use, up to a number of groups. */
const makeGroups = <Group>(most: number, make: (first: string, second: string) => Group) => {
  const known = new Map<string, Group>()
  let rest: Group | undefined
  return (first: string, second: string): Group => {
    const key = JSON.stringify([first, second])
    const found = known.get(key)
    if (found !== undefined) return found
    if (known.size >= most) return rest ??= make(otherMethod, otherMethod)
    const group = make(first, second)
    known.set(key, group)
    return group
  }
}

/**
 * Lets counters exist with 0: for Prometheus, the increase of a series that begins with 1 is 0. Not for histograms, whose
 * smallest and largest values would be exported as the limits of numbers.
 */
const exist = (series: ReadonlyArray<Update>, context: Context.Context<never>): void => {
  for (const one of series) one.valueUnsafe(context)
}

/** The parts of a group of series. */
interface Group {
  readonly attributes: Metric.Metric.Attributes
  readonly context: Context.Context<never>
}

/** The series of a tool and a pool. */
class ToolSeries extends Data.Class<Group> {
  readonly submissions: Update = Metric.withAttributes(submissions, this.attributes)
  readonly startDelay: Update = Metric.withAttributes(startDelay, this.attributes)
  readonly takeovers: Update = Metric.withAttributes(takeovers, this.attributes)
  readonly ends = Object.fromEntries(endOutcomes.map((outcome) => {
    const attributes = { ...this.attributes, outcome }
    return [outcome, {
      count: Metric.withAttributes(ends, attributes) as Update,
      duration: Metric.withAttributes(taskDuration, attributes) as Update
    }]
  })) as Readonly<Record<EndOutcome, { readonly count: Update; readonly duration: Update }>>

  constructor(group: Group) {
    super(group)
    exist([this.submissions, this.takeovers, ...Object.values(this.ends).map(({ count }) => count)], this.context)
  }
}

/** The series of a step. */
class StepSeries extends Data.Class<Group> {
  readonly duration: Update = Metric.withAttributes(stepDuration, this.attributes)
  readonly first = this.#attempts(false)
  readonly retries = this.#attempts(true)

  #attempts(isRetry: boolean): Readonly<Record<AttemptOutcome, Update>> {
    const series = attemptOutcomes.map((outcome) =>
      [
        outcome,
        Metric.withAttributes(attempts, { ...this.attributes, outcome, retry: String(isRetry) }) as Update
      ] as const
    )
    exist(series.map(([, one]) => one), this.context)
    return Object.fromEntries(series) as Record<AttemptOutcome, Update>
  }
}

/** Updates the metrics of tasks. */
export class TaskMetrics extends Data.Class<{ readonly context: Context.Context<never>; readonly bounds: Bounds }> {
  readonly #clock = Context.get(this.context, Clock.Clock)
  readonly #toolSeries = makeGroups(
    this.bounds.maxMeasuredTools,
    (tool, pool) => new ToolSeries({ attributes: { "gen_ai.tool.name": tool, pool }, context: this.context })
  )
  readonly #stepSeries = makeGroups(
    this.bounds.maxMeasuredSteps,
    (tool, step) => new StepSeries({ attributes: { "gen_ai.tool.name": tool, step }, context: this.context })
  )
  /** The series of the queue, by their attributes. */
  readonly #queue = new Map<string, Update>()
  #readAt = -Infinity

  /** Creates the series of a process, and those of the tools that it has. */
  begin(tools: ReadonlyArray<ObservedTask> = []): void {
    exist([lostLeases, outages], this.context)
    for (const { pool, tool } of tools) this.#toolSeries(tool, pool)
  }

  submitted({ pool, tool }: ObservedTask): void {
    this.#toolSeries(tool, pool).submissions.updateUnsafe(1, this.context)
  }

  /** `delayMs` may be negative: two processes know the time of the database to a few milliseconds. */
  started({ pool, tool }: ObservedTask, delayMs: number): void {
    this.#toolSeries(tool, pool).startDelay.updateUnsafe(Math.max(delayMs, 0) / 1000, this.context)
  }

  ended({ pool, tool }: ObservedTask, outcome: EndOutcome, durationMs: number): void {
    const { count, duration } = this.#toolSeries(tool, pool).ends[outcome]
    count.updateUnsafe(1, this.context)
    duration.updateUnsafe(Math.max(durationMs, 0) / 1000, this.context)
  }

  attemptEnded(tool: string, step: string, outcome: AttemptOutcome, isRetry: boolean, nanos: bigint): void {
    const series = this.#stepSeries(tool, step)
    const attempts = isRetry ? series.retries : series.first
    attempts[outcome].updateUnsafe(1, this.context)
    series.duration.updateUnsafe(Number(nanos) / 1e9, this.context)
  }

  /** A task of a lost worker is in the queue again. */
  takenOver({ pool, tool }: ObservedTask): void {
    this.#toolSeries(tool, pool).takeovers.updateUnsafe(1, this.context)
  }

  /** The event loop of a worker was blocked. */
  stalled(milliseconds: number): void {
    stalls.updateUnsafe(milliseconds / 1000, this.context)
  }

  leaseLost(): void {
    lostLeases.updateUnsafe(1, this.context)
  }

  outageBegan(): void {
    outages.updateUnsafe(1, this.context)
  }

  /** Reports the tasks that run, at each read of the metrics, until the scope closes. */
  reportRunning(count: () => number): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() =>
        Metric.registerUnsafe(running, this.context, {
          get: () => {
            this.#readAt = this.#clock.currentTimeMillisUnsafe()
            return { value: count() }
          },
          update: () => {},
          modify: () => {}
        })
      ),
      (registration) =>
        Effect.sync(() => {
          registration.remove()
          for (const series of this.#queue.values()) Metric.removeUnsafe(series, this.context)
          this.#queue.clear()
        })
    ))
  }

  /** Whether the metrics were read in the last five minutes. */
  isRead(): boolean {
    return this.#clock.currentTimeMillisUnsafe() - this.#readAt <= readMs
  }

  /** Sets the gauges of the queue. Those of tools without tasks become 0. */
  queue(counts: ReadonlyArray<QueueCount>): void {
    // Tools beyond the bound have the same series.
    const values = new Map<string, { readonly series: Update; value: number }>()
    const add = (metric: Update, attributes: Metric.Metric.Attributes, value: number, merge: "sum" | "max") => {
      const key = JSON.stringify([metric.id, attributes])
      const found = values.get(key)
      if (found === undefined) {
        values.set(key, { series: this.#queue.get(key) ?? Metric.withAttributes(metric, attributes), value })
      } else found.value = merge === "sum" ? found.value + value : Math.max(found.value, value)
    }
    for (const { count, oldestMs, openQuestions: questions, pool, state, tool } of counts) {
      const { attributes } = this.#toolSeries(tool, pool)
      add(queueSize, { ...attributes, state }, count, "sum")
      add(queueAge, attributes, (oldestMs ?? 0) / 1000, "max")
      add(openQuestions, attributes, questions, "sum")
    }
    for (const [key, series] of this.#queue) if (!values.has(key)) series.updateUnsafe(0, this.context)
    for (const [key, { series, value }] of values) {
      this.#queue.set(key, series)
      series.updateUnsafe(value, this.context)
    }
  }
}
