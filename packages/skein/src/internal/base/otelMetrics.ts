/**
 * A registry of Effect's metrics that updates the instruments of OpenTelemetry.
 */
import * as Context from "effect/Context"
import type * as Metric from "effect/Metric"
import type { OtelAttributes, OtelCallback, OtelMeter, OtelMetricOptions } from "./openTelemetry.ts"

type Metadata = Metric.Metric.Metadata<unknown, unknown>
type Update = (value: number) => void

/** Each series of a metric is added once, and updated through its hooks: both go to the instrument with its name. */
export class OtelRegistry extends Map<string, Metadata> {
  readonly #meter: OtelMeter
  readonly #instruments = new Map<string, (attributes: OtelAttributes) => Update>()
  readonly #gauges = new Map<string, { readonly remove: () => void }>()

  constructor(meter: OtelMeter) {
    super()
    this.#meter = meter
  }

  override set(key: string, metadata: Metadata): this {
    const { attributes: { unit, ...attributes } = {}, description, hooks, id, type } = metadata
    const options: OtelMetricOptions = {
      ...(description === undefined ? undefined : { description }),
      ...(unit === undefined ? undefined : { unit })
    }
    if (type === "Gauge") this.#observe(key, metadata, options, attributes)
    else if (type === "Counter" || type === "Histogram") {
      const update = this.#instrument(id, metadata, options)(attributes)
      const both = (value: number, context: Context.Context<never>) => {
        hooks.update(value, context)
        update(value)
      }
      // So that a counter of 0 exists there too.
      if (type === "Counter") update(0)
      // The metric updates its series through these hooks from now on.
      Object.assign(metadata, { hooks: { get: hooks.get, update: both, modify: both } })
    }
    return super.set(key, metadata)
  }

  override delete(key: string): boolean {
    this.#gauges.get(key)?.remove()
    this.#gauges.delete(key)
    return super.delete(key)
  }

  /** Ends the observation of gauges. */
  close(): void {
    for (const { remove } of this.#gauges.values()) remove()
    this.#gauges.clear()
  }

  #instrument(
    name: string,
    { hooks, type }: Metadata,
    options: OtelMetricOptions
  ): (attributes: OtelAttributes) => Update {
    const known = this.#instruments.get(name)
    if (known !== undefined) return known
    const state = hooks.get(Context.empty())
    const made = type === "Histogram"
      ? this.#histogram(name, state as Metric.HistogramState, options)
      : this.#counter(name, state as Metric.CounterState<number>, options)
    this.#instruments.set(name, made)
    return made
  }

  #histogram(name: string, { buckets }: Metric.HistogramState, options: OtelMetricOptions) {
    // The last bucket of Effect's histograms has no boundary.
    const boundaries = buckets.map(([boundary]) => boundary).filter(Number.isFinite)
    const advice = { explicitBucketBoundaries: boundaries }
    const histogram = this.#meter.createHistogram(name, { ...options, advice })
    return (attributes: OtelAttributes): Update => (value) => histogram.record(value, attributes)
  }

  #counter(name: string, { incremental }: Metric.CounterState<number>, options: OtelMetricOptions) {
    const counter = incremental
      ? this.#meter.createCounter(name, options)
      : this.#meter.createUpDownCounter(name, options)
    return (attributes: OtelAttributes): Update => (value) => counter.add(value, attributes)
  }

  #observe(key: string, { hooks, id }: Metadata, options: OtelMetricOptions, attributes: OtelAttributes): void {
    this.#gauges.get(key)?.remove()
    const gauge = this.#meter.createObservableGauge(id, options)
    const read: OtelCallback = (result) => {
      const { value } = hooks.get(Context.empty()) as Metric.GaugeState<number>
      result.observe(value, attributes)
    }
    gauge.addCallback(read)
    this.#gauges.set(key, { remove: () => gauge.removeCallback(read) })
  }
}
