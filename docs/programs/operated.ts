/** A server with health, metrics and a webhook. Its port, its names and its logs are set by the environment. */
import * as McpServer from "@skein/server/McpServer"
import * as Metrics from "@skein/server/Metrics"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"

/** The prices of a shop, and whether its database responds. */
class Prices extends Context.Service<Prices, { readonly tea: { price: number }; readonly ping: Effect.Effect<void> }>()(
  "Prices"
) {}
const Database = Layer.succeed(Prices, { tea: { price: 3 }, ping: Effect.void })

const price = Tool.layer(
  Tool.make("price", { description: "Returns the price of tea." }),
  () => Effect.map(Prices, ({ tea }) => `${tea.price} €`)
)

// #region operated
// The layers of the server provide `Prices`: the prices of a shop, and whether its database responds.
const secret = process.env["WEBHOOK_SECRET"]

// POST /prices/tea with the new price as its body.
const Webhook = HttpRouter.add(
  "POST",
  "/prices/tea",
  Effect.gen(function*() {
    const { tea } = yield* Prices
    const request = yield* HttpServerRequest
    if (secret === undefined || request.headers["x-secret"] !== secret) return HttpServerResponse.empty({ status: 401 })
    tea.price = Number(yield* request.text)
    yield* Effect.logInfo("the price of tea has changed").pipe(Effect.annotateLogs("price", tea.price))
    return HttpServerResponse.empty({ status: 204 })
  })
)

const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, Telemetry.layer(), price)

NodeHttp.runMain(Layer.provideMerge(Server, Database), {
  health: { check: Effect.flatMap(Prices, ({ ping }) => ping) },
  routes: NodeRoutes.make(Layer.merge(Metrics.layerHttp(), Webhook)) // GET /metrics, and the webhook
})
// #endregion
