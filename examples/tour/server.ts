/**
 * The tea house, a server with one of everything: tools with and without structured results, a tool that reports
 * progress, a tool that asks the user, a durable task, resources, a resource template and a prompt.
 *
 * `npm start` serves it.
 */
import * as Content from "@skein/server/Content"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Tasks from "@skein/tasks/Tasks"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { cater } from "./cater.ts"
import { TeaName, teas } from "./teas.ts"

class SoldOut extends Data.TaggedError("SoldOut")<{ readonly cake: string }> {
  override readonly message = `${this.cake} is sold out today`
}

const greet = Tool.layer(
  Tool.make("greet", { description: "Welcomes a guest.", input: { name: Schema.String } }),
  ({ name }) => Effect.succeed(`Welcome to the tea house, ${name}!`)
)

const bill = Tool.layer(
  Tool.make("bill", {
    title: "Calculate the bill",
    description: "Calculates the price of some cups of tea.",
    input: { tea: TeaName, cups: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 })) },
    output: { total: Schema.Finite, currency: Schema.String },
    annotations: { readOnlyHint: true }
  }),
  ({ tea, cups }) => Effect.succeed({ total: teas[tea].price * cups, currency: "EUR" })
)

const brew = Tool.layer(
  Tool.make("brew", { description: "Brews a pot and reports progress.", input: { tea: TeaName } }),
  ({ tea }) =>
    Effect.gen(function*() {
      const steps = ["heating the water", `the water is at ${teas[tea].celsius} °C`, "steeping the leaves"]
      for (const [index, message] of steps.entries()) {
        yield* Progress.report({ progress: index + 1, total: steps.length, message })
        yield* Effect.sleep("80 millis")
      }
      return [
        Content.text(`A pot of ${tea}, steeped for ${teas[tea].seconds} seconds.`),
        Content.resourceLink({ name: tea, uri: `tea://${tea}`, mimeType: "application/json" })
      ]
    })
)

const order = Tool.layer(
  Tool.make("order", { description: "Orders a cake.", input: { cake: Schema.String } }),
  ({ cake }) => Effect.fail(new SoldOut({ cake }))
)

const book = Tool.layer(
  Tool.make("book", {
    description: "Books a table and asks for the number of people.",
    input: { name: Schema.String }
  }),
  ({ name }) =>
    Effect.gen(function*() {
      const people = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8 }))
      const answer = yield* Elicitation.accepted(Elicitation.form("For how many people?", { people }))
      return `Booked a table for ${answer.people} in the name of ${name}.`
    })
)

const menu = Resource.layer(
  Resource.make("menu://today", { name: "menu", title: "Today's menu", mimeType: "text/markdown" }),
  Effect.succeed(Object.entries(teas).map(([name, { price }]) => `- ${name}: ${price} EUR`).join("\n"))
)

const tea = ResourceTemplate.layer(
  ResourceTemplate.make("tea://{name}", { name: "tea", mimeType: "application/json", variables: { name: TeaName } }),
  ({ name }) => Effect.succeed(JSON.stringify({ name, ...teas[name] }))
)

const recommend = Prompt.layer(
  Prompt.make("recommend", {
    description: "Asks for a tea that suits a mood.",
    arguments: { mood: Schema.String.annotate({ description: "Sleepy, curious, in a hurry, …" }) }
  }),
  ({ mood }) => Effect.succeed([Prompt.user(`I feel ${mood}. Which of your teas should I have, and why?`)])
)

/** The server. It requires a `TaskEngine`, see `taskStorage.ts`. */
export const TeaHouse = McpServer.layer(
  {
    name: "tea-house",
    version: "1.0.0",
    title: "The tea house",
    instructions: "Greet the guest before you call another tool."
  },
  Layer.mergeAll(greet, bill, brew, order, book, cater, menu, tea, recommend),
  Tasks.layer()
)
