import * as McpServer from "@skein/server/McpServer"
import * as Polling from "@skein/server/Polling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

// #region polling
const report = Tool.layer(Tool.make("report"), () =>
  Effect.gen(function*() {
    // The client may hang up, and comes back for the rest after 10 ms. The handler goes on.
    yield* Polling.disconnect("10 millis")
    yield* Effect.sleep("50 millis")
    return "The report"
  }))
// #endregion

export const Reports = McpServer.layer({ name: "reports", version: "1.0.0" }, report)
