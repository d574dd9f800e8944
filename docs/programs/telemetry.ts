import * as McpServer from "@skein/server/McpServer"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Otlp from "effect/observability/Otlp"

const greet = Tool.layer(Tool.make("greet"), () => Effect.succeed("Hello"))

// #region telemetry
export const tracedTo = (baseUrl: string) =>
  McpServer.layer({ name: "traced", version: "1.0.0" }, Telemetry.layer(), greet).pipe(
    Layer.provide(Otlp.layerJson({ baseUrl, resource: { serviceName: "traced" } })),
    Layer.provide(FetchHttpClient.layer)
  )
// #endregion
