/** Five tasks of a travel office: a nightly report, approvals, a trip that is undone, and a payment. */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as TaskSchedule from "@skein/tasks/TaskSchedule"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { archive, book, figuresOf, mail, pay, remind, Unavailable, undo } from "./travelServices.ts"

const figures = Task.make("figures", { input: { customer: Schema.Int }, output: { sum: Schema.Int }, concurrency: 20 })
const figuring = Task.layer(figures, ({ customer }) =>
  Effect.map(
    Step.run("read", { success: Schema.Int, error: Unavailable, retry: { times: 1 } }, () => figuresOf(customer)),
    (sum) => ({ sum })
  ))
export const report = Task.make("report", { input: { customers: Schema.Int, at: Schema.String }, ttl: "2 days" })
const reporting = Task.layer(report, ({ at, customers }) =>
  Effect.gen(function*() {
    const items = Array.from({ length: customers }, (_, customer) => ({ customer }))
    const rows = yield* Task.forEach(figures, items, { onFailure: "collect" })
    const found = rows.filter(Result.isSuccess).length
    yield* Step.run("mail", {}, (key) => mail(key, at))
    yield* Step.sleep("let the mail server rest", "1 hour")
    yield* Step.run("archive", {}, () => archive)
    return `${found} rows, ${rows.length - found} failed`
  }))
const time = { cron: "30 2 * * *", timeZone: "Europe/Berlin", timeArgument: "at", overlap: "skip" } as const
const nightly = TaskSchedule.layer("nightly", report, { ...time, args: { customers: 1000 } })

const ask = (who: string) =>
  Elicitation.accepted(
    Elicitation.form("Approve it?", { yes: Schema.Boolean }, { key: who, to: who, timeout: "7 days" })
  )
const remindDaily = Effect.fnUntraced(function*(who: string) {
  for (let day = 1; true; day++) {
    yield* Step.sleep(`${who} ${day}`, "1 day")
    yield* Step.run(`remind ${who} ${day}`, {}, () => remind(who))
  }
})
export const order = Task.make("order", { input: { amount: Schema.Int }, ttl: "30 days", inputFrom: "anyone" })
const ordering = Task.layer(order, ({ amount }) =>
  Effect.gen(function*() {
    for (const who of amount > 1000 ? ["team lead", "finance", "board"] : ["team lead"]) {
      if (!(yield* Effect.raceFirst(ask(who), remindDaily(who))).yes) return `refused by ${who}`
    }
    yield* Step.run("pay", {}, () => pay)
    return "approved"
  }).pipe(Effect.catchReason("InputError", "Timeout", () => Effect.succeed("no answer in a week"))))

const booked = (what: string) =>
  Step.run(`book ${what}`, { success: Schema.String, error: Unavailable }, (key) => book(what, key)).pipe(
    Step.withCompensation((id) =>
      Step.run(`cancel ${what}`, { error: Unavailable, retry: { times: 3 } }, () => undo(what, id))
    )
  )
export const trip = Task.make("trip")
const travelling = Task.layer(
  trip,
  () => Effect.as(Effect.forEach(["hotel", "flight", "car"], booked, { discard: true }), "booked")
)

export const payment = Task.make("payment", { input: { order: Schema.String }, ttl: "3 days" })
const paying = Task.layer(
  payment,
  ({ order }) =>
    Task.awaitEvent("paid", { schema: Schema.Struct({ reference: Schema.String }), timeout: "2 days" }).pipe(
      Effect.map(({ reference }) => `${order} is paid: ${reference}`),
      Effect.catchReason("EventError", "Timeout", () => Effect.succeed(`${order} is not paid`))
    )
)

export const Reports = McpServer.layer(
  { name: "reports", version: "1.0.0" },
  ...[figuring, reporting, nightly],
  Tasks.layer({ limits: { perTool: { live: 2_000, retained: 10_000 } } })
)
export const Travel = McpServer.layer(
  { name: "travel", version: "1.0.0" },
  ...[ordering, travelling, paying],
  Tasks.layer()
)
