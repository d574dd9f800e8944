import * as HttpApiTools from "@skein/openapi/HttpApiTools"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as McpServer from "@skein/server/McpServer"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Account, AccountLive } from "./effectOptions.ts"
import { Api, ApiLive, Order, Orders } from "./effectOrders.ts"

class NotReordered extends Data.TaggedError("NotReordered")<{ readonly message: string }> {}

const reorder = Tool.make("reorder", {
  description: "Places an earlier order once more",
  input: { id: Schema.Int },
  output: Order
})

export const Reorder = Tool.layer(reorder, ({ id }) =>
  Effect.gen(function*() {
    const orders = yield* Orders
    const { grams, tea } = yield* Effect.mapError(
      orders.find(id),
      () => new NotReordered({ message: `There is no order ${id}. Place one with orders_place` })
    )
    return yield* orders.place(tea, grams)
  }))

export const Tea = McpServer.layer({ name: "tea", version: "1.0.0" }, HttpApiTools.layer(Api), Reorder)

class NotSignedIn extends Data.TaggedError("NotSignedIn")<{ readonly message: string }> {}

const Whoami = Tool.layer(
  Tool.make("whoami", { description: "Returns the name of the caller" }),
  () =>
    Effect.gen(function*() {
      const caller = yield* Principal.current
      if (Option.isSome(caller)) return caller.value.id
      return yield* new NotSignedIn({ message: "Ask the user to set a bearer token in the MCP client" })
    })
)

const Tools = McpServer.layer(
  { name: "tea", version: "1.0.0" },
  HttpApiTools.layer(Api),
  HttpApiTools.layer(Account, { exclude: { endpoints: ["account.search"] } }),
  Reorder,
  Whoami
)

const whoIs = Effect.map(
  HttpServerRequest,
  ({ headers }) => headers["authorization"] === "Bearer the token of ada" ? { id: "ada" } : undefined
)
const Authenticated = HttpRouter.middleware(
  Effect.succeed((route) => Effect.provideServiceEffect(route, HttpRoutes.CurrentPrincipal, whoIs))
)

const Mcp = HttpRoutes.layer().pipe(Layer.provide([Authenticated.layer, Tools]))

export const Routes = Layer.mergeAll(ApiLive, AccountLive, Mcp)
