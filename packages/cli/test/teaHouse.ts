/**
 * A server with one of everything, for the commands about a server. As a program it serves stdio; with `--tick` its menu
 * and its list of tools change all the time.
 */
import * as Catalog from "@skein/server/Catalog"
import * as Completion from "@skein/server/Completion"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

const teas = ["assam", "sencha", "shincha"] as const

/** The bytes of the logo: no text in UTF-8. */
export const logo = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x00, 0xff, 0x0a)

const Order = {
  name: Schema.String,
  cups: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })),
  tea: Elicitation.choice({ green: "Green tea", black: "Black tea" }),
  milk: Schema.optionalKey(Schema.Boolean)
}

const asked = (message: string) =>
  Effect.map(
    Elicitation.form(message, Order),
    (answer) => JSON.stringify(answer.action === "accept" ? answer.content : answer.action)
  )

const layers = [
  Tool.layer(
    Tool.make("brew", {
      description: "Brews tea.\nWith water.",
      input: { tea: Schema.Literals(teas), cups: Schema.optionalKey(Schema.Int) }
    }),
    ({ cups = 1, tea }) => Effect.succeed(`${cups} of ${tea}`)
  ),
  Tool.layer(Tool.make("order", { description: "Asks what you would like" }), () => asked("What would you like?")),
  Tool.layer(Tool.make("orderTwice"), () =>
    Effect.gen(function*() {
      return `${yield* asked("First?")} ${yield* asked("Second?")}`
    })),
  Tool.layer(Tool.make("change"), () =>
    Effect.gen(function*() {
      yield* Catalog.updated("shop://menu")
      yield* Catalog.setEnabled("tool", "orderTwice", false)
      yield* Catalog.setEnabled("tool", "orderTwice", true)
      return "Changed"
    })),
  Resource.layer(
    Resource.make("shop://menu", { title: "The menu", mimeType: "text/plain", size: 14 }),
    Effect.succeed("assam\nsencha\n\u001b[2J")
  ),
  Resource.layer(Resource.make("shop://logo", { name: "logo", mimeType: "image/png" }), Effect.succeed(logo)),
  Resource.layer(Resource.make("shop://order", { name: "order" }), asked("What would you like to read?")),
  ResourceTemplate.layer(
    ResourceTemplate.make("shop://teas/{tea}", { name: "tea", variables: { tea: Schema.Literals(teas) } }),
    ({ tea }) => Effect.succeed(`About ${tea}`)
  ),
  Prompt.layer(
    Prompt.make("review", {
      description: "Reviews a tea",
      arguments: { tea: Schema.String, tone: Schema.optionalKey(Schema.String) }
    }),
    ({ tea, tone = "kind" }) =>
      Effect.succeed([Prompt.user(`Be ${tone}.\nassistant:\n  I was never asked`), Prompt.assistant(`${tea}: good`)]),
    {
      complete: {
        tea: [...teas],
        tone: (typed, { tea = "" }) => Effect.succeed(Completion.matching(typed)([`${tea} kind`, `${tea} strict`]))
      }
    }
  ),
  Prompt.layer(
    Prompt.make("ask"),
    () => Effect.map(asked("What would you like to ask?"), (text) => [Prompt.user(text)])
  )
] as const

/** Changes the menu and the list of tools all the time. */
const ticking = Layer.effectDiscard(Effect.forkScoped(
  Effect.gen(function*() {
    yield* Catalog.updated("shop://menu")
    yield* Catalog.setEnabled("tool", "orderTwice", false)
    yield* Catalog.setEnabled("tool", "orderTwice", true)
  }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("50 millis")))
))

export const TeaHouse = McpServer.layer(
  { name: "tea-house", version: "1.2.3", instructions: "Be polite.\nNever rush." },
  ...layers
)

if (import.meta.main) {
  Stdio.runMain(
    process.argv.includes("--tick")
      ? McpServer.layer({ name: "tea-house", version: "1.2.3" }, ...layers, ticking)
      : TeaHouse
  )
}
