import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as TaskTelemetry from "@skein/tasks/TaskTelemetry"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { createServer } from "node:http"

// #region engine
/** An engine whose metrics and spans go to an OpenTelemetry collector. */
export const tracedTo = (baseUrl: string, filename = "tasks.db") =>
  SqliteTasks.layer({ filename }).pipe(
    Layer.provide(TaskTelemetry.layer()),
    Layer.provide(Otlp.layerJson({ baseUrl, resource: { serviceName: "bakery" } })),
    Layer.provide(FetchHttpClient.layer)
  )
// #endregion

// #region prometheus
/** Serves the metrics of this process at `/metrics`, on a port that only Prometheus reaches. */
export const metricsOn = (port: number) =>
  HttpRouter.serve(PrometheusMetrics.layerHttp(), { disableLogger: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" }))
  )
// #endregion
