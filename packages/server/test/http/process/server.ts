/** The server of the tests that observe a process from outside. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const echo = Tool.layer(
  Tool.make("echo", { description: "Says it again.", input: { text: Schema.String } }),
  ({ text }) => Effect.succeed(text)
)
const slow = Tool.layer(
  Tool.make("slow", { description: "Takes its time." }),
  () => Effect.as(Effect.delay(Effect.logWarning("half way"), "300 millis"), "slowly")
)
const never = Tool.layer(
  Tool.make("never", { description: "Never ends." }),
  () =>
    Effect.andThen(Effect.logWarning("it began"), Effect.never).pipe(
      Effect.onInterrupt(() => Effect.logWarning("it was interrupted"))
    )
)
const rejecting = Tool.layer(
  Tool.make("reject", { description: "Leaves a rejection behind." }),
  () => Effect.promise(() => Promise.reject(new Error("rejected")))
)

NodeHttp.runMain(
  McpServer.layer({ name: "process", version: "1.0.0" }, echo, slow, never, rejecting),
  JSON.parse(process.argv[2] ?? "{}")
)
