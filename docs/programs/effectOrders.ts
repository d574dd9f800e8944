import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

// #region api
export class Order extends Schema.Class<Order>("Order")({
  id: Schema.Int,
  tea: Schema.String,
  grams: Schema.Int
}) {}

export class NoSuchOrder extends Schema.TaggedError<NoSuchOrder>()("NoSuchOrder", { id: Schema.Int }, {
  httpApiStatus: 404
}) {}

export const Api = HttpApi.make("tea").add(
  HttpApiGroup.make("orders").add(
    HttpApiEndpoint.get("find", "/orders/:id", {
      params: { id: Schema.Int.annotate({ description: "The number of the order" }) },
      success: Order,
      error: NoSuchOrder
    }).annotate(OpenApi.Description, "Returns an order"),
    HttpApiEndpoint.post("place", "/orders", {
      payload: Schema.Struct({ tea: Schema.String, grams: Schema.Int }),
      success: Order
    }).annotate(OpenApi.Description, "Orders tea")
  )
)
// #endregion

export class Orders extends Context.Service<Orders, {
  readonly find: (id: number) => Effect.Effect<Order, NoSuchOrder>
  readonly place: (tea: string, grams: number) => Effect.Effect<Order>
}>()("tea/Orders") {}

export const ApiLive = HttpApiBuilder.layer(Api).pipe(
  Layer.provide(HttpApiBuilder.group(Api, "orders", (handlers) =>
    handlers
      .handle("find", ({ params }) => Effect.flatMap(Orders, ({ find }) => find(params.id)))
      .handle("place", ({ payload }) => Effect.flatMap(Orders, ({ place }) => place(payload.tea, payload.grams)))))
)

export const OrdersInMemory = Layer.sync(Orders, () => {
  const all = new Map<number, Order>()
  return {
    find: (id) => {
      const order = all.get(id)
      return order === undefined ? Effect.fail(new NoSuchOrder({ id })) : Effect.succeed(order)
    },
    place: (tea, grams) =>
      Effect.sync(() => {
        const order = new Order({ id: all.size + 1, tea, grams })
        all.set(order.id, order)
        return order
      })
  }
})
