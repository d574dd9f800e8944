import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

const hello = Tool.layer(Tool.make("hello"), () => Effect.succeed("Hello"))
const wait = Tool.layer(Tool.make("wait"), () => Effect.andThen(Progress.report({ progress: 1 }), Effect.never))
const bye = Tool.layer(Tool.make("bye"), () => Effect.succeed("Bye"))

const Small = McpServer.layer(
  {
    name: "small",
    version: "1.0.0",
    pageSize: 2,
    limits: { maxInFlightRequests: 8, maxQueuedRequests: 8, timeout: "10 seconds" }
  },
  hello,
  wait,
  bye
)

export const Listening = NodeHttp.layer({
  port: 0,
  limits: {
    maxMessageBytes: 16_384,
    maxInFlightRequests: 1,
    maxSessions: 100,
    idleTimeout: "5 minutes",
    requestTimeout: "15 seconds",
    maxConnections: 200
  }
}).pipe(Layer.provide(Small))
