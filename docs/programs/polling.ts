import * as McpServer from "@skein/server/McpServer"
import * as Polling from "@skein/server/Polling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

const report = Tool.layer(Tool.make("report"), () =>
  Effect.gen(function*() {
    // The connection is closed, and the client resumes the stream after 10 ms. The handler continues.
    yield* Polling.disconnect("10 millis")
    yield* Effect.sleep("50 millis")
    return "The report"
  }))

export const Reports = McpServer.layer({ name: "reports", version: "1.0.0" }, report)
