import * as ErrorMapping from "@skein/server/ErrorMapping"
import * as McpServer from "@skein/server/McpServer"
import * as ResultCache from "@skein/server/ResultCache"
import * as Retry from "@skein/server/Retry"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

export class Unreachable extends Data.TaggedError("Unreachable")<{ readonly message: string }> {}

/** How the exchange answers, one entry for each request. */
export const answers: Array<"down" | number> = []

const exchange = Effect.suspend(() => {
  const answer = answers.shift() ?? "down"
  return answer === "down"
    ? Effect.fail(new Unreachable({ message: "connect ECONNREFUSED 10.0.0.7:5432" }))
    : Effect.succeed(answer)
})

const rate = Tool.layer(
  Tool.make("rate", {
    description: "The exchange rate of a currency.",
    input: { currency: Schema.String },
    annotations: { readOnlyHint: true }
  }),
  ({ currency }) => Effect.map(exchange, (value) => `${currency} ${value}`)
)

// #region steady
export const Rates = McpServer.layer(
  { name: "rates", version: "1.0.0" },
  // The model does not see addresses of the internal network.
  ErrorMapping.layer({
    map: ({ error, reference }) =>
      error instanceof Unreachable
        ? ErrorMapping.message(`The exchange is closed. Try again in a minute (reference ${reference})`)
        : ErrorMapping.unchanged
  }),
  // Rates are the same for all callers.
  ResultCache.layer({ tools: ["rate"], lifetime: "10 seconds", share: true }),
  Retry.layer({
    when: ({ error }) => error instanceof Unreachable,
    maxAttempts: 3,
    schedule: Schedule.spaced("1 second")
  }),
  rate
)
// #endregion
