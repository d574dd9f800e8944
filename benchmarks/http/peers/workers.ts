/** Skein with the number of workers in `--workers=`. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import { Workers } from "@skein/runtime/Workers"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const workers = Number(process.argv.find((arg) => arg.startsWith("--workers="))?.slice("--workers=".length) ?? 1)

const echo = Tool.layer(
  Tool.make("echo", {
    description: "Repeats a message",
    input: { message: Schema.String, times: Schema.Int }
  }),
  ({ message, times }) => Effect.succeed(message.repeat(times))
)

/** Waits until all workers handle requests. */
const allStarted = Effect.gen(function*() {
  const found = Option.getOrUndefined(yield* Effect.serviceOption(Workers))
  while (found !== undefined && found.phase() !== "serving") yield* Effect.sleep("20 millis")
})

NodeHttp.runMain(McpServer.layer({ name: "skein", version: "1.0.0" }, echo), {
  port: 0,
  workers,
  onListening: ({ port }) => Effect.andThen(allStarted, Effect.sync(() => console.log(port)))
})
