// #region metrics
import * as McpServer from "@skein/server/McpServer"
import * as Metrics from "@skein/server/Metrics"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

const brew = Tool.layer(Tool.make("brew"), () => Effect.succeed("A pot of tea"))

NodeHttp.runMain(McpServer.layer({ name: "tea", version: "1.0.0" }, Telemetry.layer(), brew), {
  port: 3000,
  routes: NodeRoutes.make(Metrics.layerHttp()) // GET /metrics
})
// #endregion
