import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as HttpApiTools from "@skein/openapi/HttpApiTools"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as McpServer from "@skein/server/McpServer"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import { Api, ApiLive, OrdersInMemory } from "./effectOrders.ts"

// #region after
const Tools = McpServer.layer({ name: "tea", version: "1.0.0" }, HttpApiTools.layer(Api))
const Mcp = HttpRoutes.layer().pipe(Layer.provide(Tools))

HttpRoutes.serve(Layer.merge(ApiLive, Mcp)).pipe(
  Layer.provide([OrdersInMemory, NodeHttpServer.layer(createServer, { port: 3000, host: "127.0.0.1" })]),
  Layer.launch,
  NodeRuntime.runMain
)
// #endregion
