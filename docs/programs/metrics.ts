// #region metrics
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"

const brew = Tool.layer(Tool.make("brew"), () => Effect.succeed("A pot of tea"))

NodeHttp.runMain(McpServer.layer({ name: "tea", version: "1.0.0" }, Telemetry.layer(), brew), {
  port: 3000,
  routes: NodeRoutes.make(PrometheusMetrics.layerHttp()) // GET /metrics
})
// #endregion
