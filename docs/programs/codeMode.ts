import * as CodeMode from "@skein/code-mode/CodeMode"
import { type CallError, ProgramError, Thrown } from "@skein/code-mode/ProgramError"
import * as Sandbox from "@skein/code-mode/Sandbox"
import { AsyncServer } from "@skein/server/AsyncServer"
import { VisibleError } from "@skein/server/HandlerError"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const all = [
  { id: "o-1", customer: "ada", total: 12.5 },
  { id: "o-2", customer: "bob", total: 80 },
  { id: "o-3", customer: "ada", total: 30 }
]

// #region server
const orders = Tool.make("list_orders", {
  description: "Lists all orders",
  output: { orders: Schema.Array(Schema.Struct({ id: Schema.String, customer: Schema.String, total: Schema.Finite })) },
  annotations: { readOnlyHint: true }
})
const refund = Tool.make("refund_order", { description: "Refunds an order", input: { id: Schema.String } })

export const definitions = [
  Tool.layer(orders, () => Effect.succeed({ orders: all })),
  Tool.layer(refund, ({ id }) =>
    all.some((order) => order.id === id)
      ? Effect.succeed(`Refunded ${id}`)
      : Effect.fail(new VisibleError(`There is no order ${id}`)))
] as const

export const Shop = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  CodeMode.layer({ limits: { timeout: "10 seconds" } }, ...definitions)
)
// #endregion

// #region program
export const code = `
const { orders } = await tools.list_orders()
const sums = {}
for (const { customer, total } of orders) sums[customer] = (sums[customer] ?? 0) + total
console.log("orders:", orders.length)
return sums`
// #endregion

export const shop = new AsyncServer({ name: "shop", version: "1.0.0" })
  .use(CodeMode.layer(
    { limits: { timeout: "10 seconds" } },
    Tool.async(Tool.make("today"), () => "A rainy day")
  ))

/** Programs are lists of names of tools, which are called one after the other. */
const lists: Sandbox.Sandbox = {
  run: ({ code }, host) =>
    Effect.forEach(code.split("\n"), (name) => host.call(name, {})).pipe(
      Effect.map((values) => JSON.stringify(values)),
      Effect.mapError(({ message }: CallError) => new ProgramError(new Thrown({ message, position: undefined })))
    )
}

export const ShopOfLists = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  Layer.provide(CodeMode.layer({}, ...definitions), Layer.succeed(Sandbox.Sandbox, lists))
)
