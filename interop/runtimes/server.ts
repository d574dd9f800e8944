/** The server that runs on each runtime: progress, a form, cancellation, a large answer, and a resource that changes. */
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

let cancelled = 0

/** The number of calls of `wait` that were cancelled. */
export const cancellations = (): number => cancelled

/** The server. */
export const Server = McpServer.layer(
  { name: "runtime", version: "1.0.0" },
  Tool.layer(Tool.make("count", { input: { to: Schema.Int } }), ({ to }) =>
    Effect.gen(function*() {
      for (let progress = 1; progress <= to; progress++) yield* Progress.report({ progress, total: to })
      return `Counted to ${to}`
    })),
  Tool.layer(Tool.make("ask"), () =>
    Effect.map(
      Elicitation.accepted(Elicitation.form("Who are you?", { name: Schema.String })),
      ({ name }) => `Hello, ${name}!`
    )),
  Tool.layer(Tool.make("wait"), () =>
    Effect.onInterrupt(
      Effect.andThen(Progress.report({ progress: 1 }), Effect.never),
      () => Effect.sync(() => void cancelled++)
    )),
  Tool.layer(Tool.make("large", { input: { chars: Schema.Int } }), ({ chars }) => Effect.succeed("é".repeat(chars))),
  Tool.layer(Tool.make("change"), () => Effect.as(Catalog.updated("runtime://state"), "Changed")),
  Resource.layer(Resource.make("runtime://state", { mimeType: "text/plain" }), Effect.succeed("fine"))
).pipe(Layer.orDie)
