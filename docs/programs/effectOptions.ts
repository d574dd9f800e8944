import * as HttpApiTools from "@skein/openapi/HttpApiTools"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Api, ApiLive, OrdersInMemory } from "./effectOrders.ts"

// #region selected
export const Selected = HttpApiTools.layer(Api, {
  include: { groups: ["orders"] },
  exclude: { endpoints: ["orders.place"] },
  name: ({ endpoint }) => `${endpoint}_order`
})
// #endregion

export class CurrentUser extends Context.Service<CurrentUser, string>()("tea/CurrentUser") {}

// #region secured
export class SignedIn extends HttpApiMiddleware.Service<SignedIn, { provides: CurrentUser }>()("tea/SignedIn", {
  error: HttpApiError.Unauthorized,
  security: { bearer: HttpApiSecurity.bearer }
}) {}

/** Accepts a token of the API, and a caller whom the MCP endpoint has authenticated. */
export const SignedInLive = Layer.succeed(SignedIn, {
  bearer: (endpoint, { credential }) =>
    Effect.gen(function*() {
      const principal = yield* HttpRoutes.CurrentPrincipal
      const user = principal?.id ?? (Redacted.value(credential) === "the token of ada" ? "ada" : undefined)
      if (user === undefined) return yield* new HttpApiError.Unauthorized({})
      return yield* Effect.provideService(endpoint, CurrentUser, user)
    })
})
// #endregion

export const Account = HttpApi.make("account").add(
  HttpApiGroup.make("account").add(
    HttpApiEndpoint.get("name", "/account/name", { success: Schema.String }),
    // #region hints
    HttpApiEndpoint.post("search", "/account/search", { payload: Schema.Struct({ text: Schema.String }) })
      .annotate(HttpApiTools.Hints, { readOnlyHint: true })
    // #endregion
  ).middleware(SignedIn)
)

export const AccountLive = HttpApiBuilder.layer(Account).pipe(
  Layer.provide(HttpApiBuilder.group(Account, "account", (handlers) =>
    handlers
      .handle("name", () => CurrentUser)
      .handle("search", () => Effect.void))),
  Layer.provide(SignedInLive)
)

export const Forwarded = HttpApiTools.layer(Account, { forwardHeaders: ["authorization"] })

export const Made = HttpApiTools.layer(Account, {
  credentials: () =>
    Effect.map(McpRequest, ({ caller }) => ({
      authorization: caller.principal?.id === "ada" ? "Bearer the token of ada" : ""
    }))
})

/** The same tools for a process on stdio, which has a router and no HTTP server. */
export const WithoutHttp = McpServer.layer({ name: "tea", version: "1.0.0" }, HttpApiTools.layer(Api)).pipe(
  Layer.provide(ApiLive.pipe(HttpRouter.provideRequest(OrdersInMemory))),
  Layer.provide([HttpRouter.layer, HttpServer.layerServices])
)
