/** Each export of the HTTP modules of `@skein/server` with its counterpart in `skein` or `skein/http`. */
const adapters = "for authors of adapters to HTTP servers"

export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/server/Cors.make", "CorsOptions"],
  ["@skein/server/Http.Refusal", "Refusal"],
  ["@skein/server/Http.paths", "httpPaths"],
  ["@skein/server/Http.InvalidPrincipal", { missing: "it is logged, and the response is 500" }],
  ["@skein/server/Http.networkOf", { missing: adapters }],
  ["@skein/server/Http.withParts", { missing: adapters }],
  ["@skein/server/Http.adapterContext", { missing: adapters }],
  ["@skein/server/Http.make", { missing: adapters }],
  ["@skein/server/HttpRoutes", { missing: "its routes are those of Effect's HttpRouter: AsyncServer.route" }],
  ["@skein/server/LegacySse.make", "LegacySseOptions"],
  ["@skein/server/NodeBridge.serve", "bridge"],
  ["@skein/server/NodeHttp.mount", "nodeHandler"],
  ["@skein/server/NodeHttp.handler", "nodeHandler"],
  ["@skein/server/NodeHttp.runMain", "AsyncServer.runHttp"],
  ["@skein/server/NodeHttp.serve", "AsyncServer.listen"],
  ["@skein/server/NodeHttp.layer", "AsyncServer.listen"],
  ["@skein/server/NodeHttp.Server", "Listening"],
  ["@skein/server/NodePages", { missing: "for the console, which needs Effect" }],
  ["@skein/server/Metrics.joined", "AsyncServer.metrics"],
  ["@skein/server/Metrics.layerHttp", {
    missing: "it has the metrics of Effect: AsyncServer.metrics takes those of others"
  }],
  ["@skein/server/Metrics.contentType", { missing: "AsyncServer.metrics sets it" }],
  ["@skein/server/NodeRoutes.handlers", "AsyncServer.route"],
  ["@skein/server/NodeRoutes.make", { missing: "its routes are those of Effect's HttpRouter: AsyncServer.route" }],
  ["@skein/server/ServerCard.make", "ServerCardOptions"],
  ["@skein/server/ServerCard.paths", "httpPaths"],
  ["@skein/server/Webhook.handler", "webhook"],
  ["@skein/server/Webhook.layer", { missing: "its route is one of Effect's HttpRouter: webhook" }],
  ["@skein/server/WebHttp.mount", "webHandler"],
  ["@skein/server/WebHttp.handler", "webHandler"]
]
