import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import { Hello } from "./hello.ts"

// #region router
const whoIs = Effect.map(
  HttpServerRequest,
  ({ headers }) => headers["authorization"] === "Bearer ada" ? { id: "ada" } : undefined
)
const Authenticated = HttpRouter.middleware(
  Effect.succeed((route) => Effect.provideServiceEffect(route, HttpRoutes.CurrentPrincipal, whoIs))
)

const Mcp = HttpRoutes.layer({ path: "/mcp" }).pipe(Layer.provide([Authenticated.layer, Hello]))
const Health = HttpRouter.add("GET", "/health", HttpServerResponse.text("ok"))

// `HttpRoutes.serve` ends open streams before the HTTP server stops, which would wait for them.
HttpRoutes.serve(Layer.merge(Mcp, Health)).pipe(
  Layer.provide(NodeHttpServer.layer(createServer, { port: 3000, host: "127.0.0.1" })),
  Layer.launch,
  NodeRuntime.runMain
)
// #endregion
