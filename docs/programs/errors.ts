import * as McpError from "@skein/server/McpError"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region errors
class SoldOut extends Data.TaggedError("SoldOut")<{ readonly message: string }> {}

const order = Tool.layer(
  Tool.make("order", { input: { tea: Schema.String } }),
  ({ tea }) =>
    Effect.gen(function*() {
      // The model reads this, and can try another tea: a result with `isError`.
      if (tea === "oolong") return yield* new SoldOut({ message: "There is no oolong left today" })
      // The calling program reads this: a JSON-RPC error.
      if (tea === "") return yield* McpError.invalidParams("A tea has a name")
      // Only you read this, in the log. The model gets a result with `isError` and the reference of that line.
      if (tea === "coffee") return yield* Effect.die(new Error("the database password is hunter2"))
      return `One ${tea}`
    })
)
// #endregion

export const Orders = McpServer.layer({ name: "orders", version: "1.0.0" }, order)
