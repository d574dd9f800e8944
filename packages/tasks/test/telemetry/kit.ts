/** Engines whose metrics and spans a test reads. */
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import type { Options as EngineOptions } from "@skein/tasks/TaskEngine"
import * as TaskTelemetry from "@skein/tasks/TaskTelemetry"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Tracer from "effect/Tracer"
import { type Bounds, defaults, TaskBounds } from "../../src/internal/base/bounds.ts"

/** A metric registry, and the values in it. */
export const makeRegistry = () => {
  const registry: Metric.MetricRegistry = new Map()
  const context = Effect.runSync(Effect.provideService(Effect.context<never>(), Metric.MetricRegistry, registry))
  const read = () => Metric.snapshotUnsafe(context)
  /** The values of a metric by its attributes: the value of a counter or gauge, the count of a histogram. */
  const all = (name: string): Record<string, number> =>
    Object.fromEntries(
      read().filter(({ id }) => id === `mcp.server.task.${name}`).map(({ attributes, state }) => [
        Object.entries(attributes ?? {}).filter(([key]) => key !== "unit").map(([, value]) => value).join(" "),
        Number("value" in state ? state.value : (state as { readonly count: number | bigint }).count)
      ])
    )
  /** Those without counters that are 0. */
  const values = (name: string): Record<string, number> => {
    const isCounter = read().some(({ id, type }) => id === `mcp.server.task.${name}` && type === "Counter")
    return Object.fromEntries(Object.entries(all(name)).filter(([, value]) => !isCounter || value > 0))
  }
  return { layer: Layer.succeed(Metric.MetricRegistry, registry), all, read, values }
}

/** A tracer that stores its spans. */
export const makeTracer = () => {
  const spans: Array<Tracer.Span> = []
  const tracer = Tracer.make({
    span(options) {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return {
    layer: Layer.succeed(Tracer.Tracer, tracer),
    spans,
    named: (name: string) => spans.filter((span) => span.name === name)
  }
}

/** An engine in memory with telemetry. */
export const observed = (
  { bounds, engine, telemetry, to }: {
    readonly bounds?: Partial<Bounds>
    readonly engine?: EngineOptions
    readonly telemetry?: TaskTelemetry.Options
    readonly to: Layer.Layer<never>
  }
) =>
  MemoryTasks.layer(engine).pipe(
    Layer.provide(TaskTelemetry.layer(telemetry)),
    Layer.provide(to),
    Layer.provide(Layer.succeed(TaskBounds, { ...defaults, ...bounds }))
  )
