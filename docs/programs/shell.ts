import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Tea = Schema.Literals(["assam", "sencha", "shincha"])
const menu = ["assam", "sencha"]

const brew = Tool.layer(
  Tool.make("brew", {
    description: "Brews a pot of tea.",
    input: { tea: Tea, cups: Schema.optionalKey(Schema.Int) }
  }),
  ({ cups = 1, tea }) => Effect.succeed(`${cups} of ${tea}`)
)

const order = Tool.layer(
  Tool.make("order", { description: "Asks what you would like." }),
  () =>
    Effect.gen(function*() {
      const { cups, size } = yield* Elicitation.accepted(Elicitation.form("What would you like?", {
        size: Elicitation.choice({ s: "Small", l: "Large" }),
        cups: Schema.Int
      }))
      return `${cups} of size ${size}`
    })
)

const add = Tool.layer(
  Tool.make("add", { description: "Adds a tea to the menu.", input: { tea: Schema.String } }),
  ({ tea }) => Effect.as(Effect.andThen(Effect.sync(() => menu.push(tea)), Catalog.updated("shop://menu")), "Added")
)

const resources = [
  Resource.layer(
    Resource.make("shop://menu", { title: "The menu", mimeType: "text/plain" }),
    Effect.sync(() => menu.join("\n"))
  ),
  Resource.layer(
    Resource.make("shop://logo", { name: "logo", mimeType: "image/png" }),
    Effect.succeed(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a))
  ),
  ResourceTemplate.layer(
    ResourceTemplate.make("shop://teas/{tea}", { name: "tea", variables: { tea: Tea } }),
    ({ tea }) => Effect.succeed(`All about ${tea}`)
  )
] as const

const review = Prompt.layer(
  Prompt.make("review", { description: "Reviews a tea.", arguments: { tea: Tea } }),
  ({ tea }) => Effect.succeed([Prompt.user(`Please review ${tea}.`)])
)

export const TeaHouse = McpServer.layer(
  { name: "tea-house", version: "1.0.0", instructions: "Ask for the size of a cup before you order." },
  brew,
  order,
  add,
  ...resources,
  review
)

if (process.argv[1] === import.meta.filename) NodeHttp.runMain(TeaHouse)
