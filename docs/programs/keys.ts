import * as McpServer from "@skein/server/McpServer"
import * as RequestState from "@skein/server/RequestState"
import * as Tool from "@skein/server/Tool"
import * as Elicitation from "@skein/server/Elicitation"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const orders = Tool.layer(Tool.make("order"), () =>
  Effect.map(
    Elicitation.accepted(Elicitation.form("Really?", { sure: Schema.Boolean })),
    ({ sure }) => sure ? "Ordered" : "Left alone"
  ))

// STATE_KEY is the same for all instances: `openssl rand -base64 32`.
const State = Layer.unwrap(
  Effect.map(Config.Redacted("STATE_KEY"), (key) => RequestState.layer({ keys: [key], lifetime: "5 minutes" }))
)

export const Shop = McpServer.layer({ name: "shop", version: "1.0.0" }, orders).pipe(Layer.provide(State))
