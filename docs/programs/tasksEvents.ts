/** A checkout that waits for the webhook of a payment service. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Webhook from "@skein/server/Webhook"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** Asks the payment service for a payment. Its webhook reports it with the number of the order. */
const requestPayment = (order: string, key: string) =>
  Effect.logInfo("a payment is requested").pipe(Effect.annotateLogs({ order, key }))

// #region checkout
export const checkout = Task.make("checkout", { input: { order: Schema.String }, ttl: "7 days" })

const checkingOut = Task.layer(
  checkout,
  ({ order }) =>
    Effect.gen(function*() {
      yield* Step.run("request payment", {}, (key) => requestPayment(order, key))
      const { receipt } = yield* Task.awaitEvent("paid", {
        topic: `order/${order}`,
        schema: Schema.Struct({ receipt: Schema.String }),
        timeout: "2 days"
      })
      return `${order} is paid: ${receipt}`
    }).pipe(Effect.catchReason("EventError", "Timeout", () => Effect.succeed(`${order} was not paid in time`)))
)
// #endregion

// #region webhook
const Payment = Schema.fromJsonString(Schema.Struct({ order: Schema.String, receipt: Schema.String }))

export const payments = (secrets: Webhook.Options["secrets"]) =>
  NodeRoutes.make(Webhook.layer("/webhooks/payments", { secrets }, ({ body, id }) =>
    Effect.gen(function*() {
      const { order, receipt } = yield* Schema.decodeEffect(Payment)(body)
      const engine = yield* TaskEngine
      // The service may repeat a webhook, with the same id. The task receives it once.
      yield* engine.sendAll("paid", `order/${order}`, { receipt }, { key: id })
    })))
// #endregion

export const Shop = McpServer.layer({ name: "shop", version: "1.0.0" }, checkingOut, Tasks.layer())
