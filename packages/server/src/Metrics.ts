/**
 * A route with the metrics of a server in the format of Prometheus. With the option `workers` of `NodeHttp.runMain`, a
 * scrape at any worker returns the metrics of all.
 *
 * @example
 * NodeHttp.runMain(Server, { workers: "auto", routes: NodeRoutes.make(Metrics.layerHttp()) })
 */
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { primaryNumber } from "./internal/http/workers/messages.ts"
import { merge, type MetricText } from "./internal/http/workers/metricTexts.ts"
import { Workers } from "@skein/runtime/Workers"

/** The media type of the text format of Prometheus. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8"

const noAnswer = "the workers do not answer"

// The primary process waits for 1 second for a worker, in milliseconds.
const answerTimeout = 2_000

/**
 * The metrics of all workers, made of those of this process, `own`, in the text format of Prometheus: for a route of yours.
 * `name` is that of the route. The result is `undefined` if the workers do not answer. In a process without workers it is
 * `own`.
 *
 * @example
 * const read = yield* Metrics.joined("/metrics", Effect.promise(() => register.metrics()))
 */
export const joined = Effect.fnUntraced(function*(
  name: string,
  own: Effect.Effect<string>
): Effect.fn.Return<Effect.Effect<string | undefined>, never, Scope.Scope> {
  const workers = Option.getOrUndefined(yield* Effect.serviceOption(Workers))
  if (workers === undefined) return own
  const { answer, ask } = workers
  const topic = `metrics ${name}`
  yield* answer(topic, () => own)
  // The last counts of a worker that stops.
  yield* Effect.addFinalizer(() => Effect.flatMap(own, (text) => ask(primaryNumber, topic, text)))
  return Effect.map(
    ask(primaryNumber, topic, undefined, answerTimeout),
    (texts) => texts === undefined ? undefined : merge(texts as ReadonlyArray<MetricText>)
  )
})

/**
 * Serves GET `/metrics`, or another path, as `PrometheusMetrics.layerHttp` of Effect does in one process.
 *
 * With workers, counters and histograms are the sums of all workers, those that have exited included. A gauge or a summary
 * has a sample for each worker, with the label `worker`. A worker that does not answer within 1 second is counted as it
 * was at the last scrape. The response is 503 if the primary process does not answer. Counts of a worker that was killed
 * are lost as far as they are newer than the last scrape.
 *
 * @example
 * NodeRoutes.make(Metrics.layerHttp({ path: "/metrics", prefix: "tea" }))
 */
export const layerHttp = (
  { path = "/metrics", ...options }: PrometheusMetrics.HttpOptions = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const read = yield* joined(path, PrometheusMetrics.format(options))
    yield* router.add(
      "GET",
      path,
      Effect.map(read, (text) =>
        text === undefined
          ? HttpServerResponse.text(noAnswer, { status: 503 })
          : HttpServerResponse.text(text, { contentType }))
    )
  }))
