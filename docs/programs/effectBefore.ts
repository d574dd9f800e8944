// #region before
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import { ApiLive, OrdersInMemory } from "./effectOrders.ts"

HttpRouter.serve(ApiLive).pipe(
  Layer.provide([OrdersInMemory, NodeHttpServer.layer(createServer, { port: 3000, host: "127.0.0.1" })]),
  Layer.launch,
  NodeRuntime.runMain
)
// #endregion
