/** The tools of the processes in `Processes.test.ts`, and their exporter. */
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import { existsSync } from "node:fs"

/** Blocks the event loop until the file exists, from four seconds to three minutes. Does nothing if it exists already. */
const blockUntil = (file: string): void => {
  if (existsSync(file)) return
  const start = performance.now()
  const elapsed = () => performance.now() - start
  while (elapsed() < 4000 || (elapsed() < 180_000 && !existsSync(file)));
}

/** `stir` blocks its process until the file exists. */
export const tools = (file: string) =>
  Layer.mergeAll(
    Task.layer(Task.make("brew"), () => Step.run("boil", {}, () => Effect.withSpan(Effect.void, "stove"))),
    Task.layer(Task.make("stir"), () => Step.run("stir", {}, () => Effect.sync(() => blockUntil(file))))
  )

/** Sends everything to a collector, at once. */
export const otlp = (baseUrl: string, serviceName: string) =>
  Otlp.layerJson({
    baseUrl,
    resource: { serviceName },
    metricsExportInterval: 200,
    tracerExportInterval: 200
  }).pipe(Layer.provide(FetchHttpClient.layer))
