/** The tools of the processes in `Processes.test.ts`, and their exporter. */
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Blocks the event loop for eight times the lease, once for each file. */
const blockOnce = (file: string): void => {
  if (existsSync(file)) return
  writeFileSync(file, "")
  const end = performance.now() + 8000
  while (performance.now() < end);
}

/** `stir` blocks its process when it runs for the first time. `folder` has a file for each task that has. */
export const tools = (folder: string) =>
  Layer.mergeAll(
    Task.layer(Task.make("brew"), () => Step.run("boil", {}, () => Effect.withSpan(Effect.void, "stove"))),
    Task.layer(Task.make("stir"), () =>
      Effect.flatMap(Task.id, (id) =>
        // The other worker sees that this one lives, before it is blocked.
        Step.run("stir", {}, () => Effect.andThen(Effect.sleep(50), Effect.sync(() => blockOnce(join(folder, id)))))))
  )

/** Sends everything to a collector, at once. */
export const otlp = (baseUrl: string, serviceName: string) =>
  Otlp.layerJson({
    baseUrl,
    resource: { serviceName },
    metricsExportInterval: 200,
    tracerExportInterval: 200
  }).pipe(Layer.provide(FetchHttpClient.layer))
