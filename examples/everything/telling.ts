/**
 * Tools that say something before their result: progress and log messages.
 */
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const moment = Effect.sleep("50 millis")

const progress = Tool.layer(
  Tool.make("test_tool_with_progress", { description: "Reports its progress, three times." }),
  () =>
    Effect.gen(function*() {
      yield* Progress.report({ progress: 0, total: 100 })
      yield* moment
      yield* Progress.report({ progress: 50, total: 100 })
      yield* moment
      yield* Progress.report({ progress: 100, total: 100 })
      return "The tool has finished."
    })
)

const work = Effect.gen(function*() {
  yield* Effect.log("Tool execution started")
  yield* moment
  yield* Effect.log("Tool processing data")
  yield* moment
  yield* Effect.log("Tool execution completed")
  return "The tool has finished."
})

const logging = Tool.layer(
  Tool.make("test_tool_with_logging", { description: "Logs three messages while it works." }),
  () => work
)

const quiet = Tool.layer(
  Tool.make("test_logging_tool", { description: "Logs, for those who have asked for it." }),
  () => work
)

export const telling = Layer.mergeAll(progress, logging, quiet)
