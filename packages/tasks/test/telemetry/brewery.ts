/** The tools of the processes in `Processes.test.ts`, and their exporter. */
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"

/** Blocks the event loop. */
const block = (milliseconds: number): void => {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

export const tools = Layer.mergeAll(
  Task.layer(Task.make("brew"), () => Step.run("boil", {}, () => Effect.withSpan(Effect.void, "stove"))),
  Task.layer(Task.make("stir"), () =>
    // The other worker sees that this one lives, before it is blocked.
    Step.run("stir", {}, () => Effect.andThen(Effect.sleep(50), Effect.sync(() => block(4000)))))
)

/** Sends everything to a collector, at once. */
export const otlp = (baseUrl: string, serviceName: string) =>
  Otlp.layerJson({
    baseUrl,
    resource: { serviceName },
    metricsExportInterval: 200,
    tracerExportInterval: 200
  }).pipe(Layer.provide(FetchHttpClient.layer))
