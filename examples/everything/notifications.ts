/**
 * Tools that send notifications before their result: progress and log messages.
 */
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const pause = Effect.sleep("50 millis")

const progress = Tool.layer(
  Tool.make("test_tool_with_progress", { description: "Reports progress three times." }),
  () =>
    Effect.gen(function*() {
      yield* Progress.report({ progress: 0, total: 100 })
      yield* pause
      yield* Progress.report({ progress: 50, total: 100 })
      yield* pause
      yield* Progress.report({ progress: 100, total: 100 })
      return "The tool has finished."
    })
)

const work = Effect.gen(function*() {
  yield* Effect.log("Tool execution started")
  yield* pause
  yield* Effect.log("Tool processing data")
  yield* pause
  yield* Effect.log("Tool execution completed")
  return "The tool has finished."
})

const logging = Tool.layer(
  Tool.make("test_tool_with_logging", { description: "Logs three messages while it works." }),
  () => work
)

const quiet = Tool.layer(
  Tool.make("test_logging_tool", {
    description: "Logs three messages, which reach clients that have set a log level."
  }),
  () => work
)

export const notifications = Layer.mergeAll(progress, logging, quiet)
