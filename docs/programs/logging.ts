import * as Logging from "@skein/server/Logging"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

// #region logging
const brew = Tool.layer(Tool.make("brew"), () =>
  Effect.gen(function*() {
    yield* Progress.report({ progress: 1, total: 2, message: "the water is warm" })
    yield* Effect.logInfo("The kettle is old").pipe(Logging.as("notice"), Logging.named("kettle"))
    yield* Logging.withheld(Effect.logInfo("the account of this customer is overdrawn"))
    yield* Progress.report({ progress: 2, total: 2, message: "the leaves are in" })
    return "A pot of tea"
  }))
// #endregion

export const Kettle = McpServer.layer({ name: "kettle", version: "1.0.0" }, brew)
