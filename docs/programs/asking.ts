import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import { once } from "@skein/server/Once"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region form
const Party = {
  people: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 })).annotate({ title: "How many are you?" }),
  where: Elicitation.choice({ in: "Inside", out: "In the garden" }).pipe(Elicitation.withDefault("in")),
  email: Schema.optionalKey(Elicitation.Email)
}

const book = Tool.layer(Tool.make("book"), () =>
  Effect.gen(function*() {
    const { people, where } = yield* Elicitation.accepted(Elicitation.form("A table for whom?", Party))
    return `A table for ${people}, ${where === "in" ? "inside" : "in the garden"}`
  }))
// #endregion

// #region answers
const cancel = Tool.layer(Tool.make("cancel"), () =>
  Effect.gen(function*() {
    const answer = yield* Elicitation.form("Really cancel the table?", { sure: Schema.Boolean })
    switch (answer.action) {
      case "accept":
        return answer.content.sure ? "Cancelled" : "Kept"
      case "decline":
        return "Kept: the user declined"
      case "cancel":
        return "Kept: the user closed the question"
    }
  }).pipe(
    // A client that cannot ask its user. Without this line the call fails with the missing capability.
    Effect.catchReason("InputError", "MissingCapability", () => Effect.succeed("Call us to cancel"))
  ))
// #endregion

// #region once
export const reserved: Array<string> = []
const reserve = Effect.sync(() => `table ${reserved.push("a table")}`)

const order = Tool.layer(Tool.make("order"), () =>
  Effect.gen(function*() {
    const table = yield* once("reserve", Schema.String, reserve)
    const { sure } = yield* Elicitation.accepted(Elicitation.form(`Take ${table}?`, { sure: Schema.Boolean }))
    return sure ? `Yours: ${table}` : "Left alone"
  }))
// #endregion

const trip = Tool.layer(Tool.make("trip"), () =>
  Effect.gen(function*() {
    const [from, to] = yield* Effect.all([
      Elicitation.accepted(Elicitation.form("From where?", { city: Schema.String })),
      Elicitation.accepted(Elicitation.form("Where to?", { city: Schema.String }))
    ], { concurrency: "unbounded" })
    return `${from.city} to ${to.city}`
  }))

const rate = Effect.map(Effect.clockWith((clock) => clock.currentTimeMillis), (now) => now % 100)

const exchange = Tool.layer(Tool.make("exchange"), () =>
  Effect.gen(function*() {
    const offered = yield* once("rate", Schema.Finite, rate) // Without `once` the rate differs when the answer arrives.
    const { sure } = yield* Elicitation.accepted(
      Elicitation.form(`Change at ${offered}?`, { sure: Schema.Boolean }, { key: "offer", timeout: "2 minutes" })
    )
    return sure ? `Changed at ${offered}` : "Not changed"
  }))

// #region url
const pay = Tool.layer(Tool.make("pay"), () =>
  Effect.gen(function*() {
    const id = yield* once("payment", Schema.String, Effect.sync(() => crypto.randomUUID()))
    const visit = yield* Elicitation.accepted(Elicitation.url("Please pay", `https://pay.example.com/${id}`))
    // The user agreed to visit the page. Ask your payment service whether they paid.
    yield* visit.complete
    return "Thank you"
  }))
// #endregion

// #region sampling
const summarize = Tool.layer(
  Tool.make("summarize", { input: { text: Schema.String } }),
  ({ text }) =>
    Effect.map(
      Sampling.createMessage({ messages: `Summarize: ${text}`, maxTokens: 200 }),
      (answer) => Sampling.text(answer)
    )
)

const places = Tool.layer(
  Tool.make("places"),
  () => Effect.map(Roots.list(), (roots) => roots.map(({ uri }) => uri).join("\n"))
)
// #endregion

export const Asking = McpServer.layer(
  { name: "asking", version: "1.0.0" },
  book,
  cancel,
  order,
  trip,
  exchange,
  pay,
  summarize,
  places
)
