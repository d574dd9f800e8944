/** The server of the tests of workers. */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import cluster from "node:cluster"

const pid = Tool.layer(Tool.make("pid"), () => Effect.sync(() => String(process.pid)))
const slow = Tool.layer(
  Tool.make("slow"),
  () => Effect.as(Effect.delay(Effect.logWarning("half way"), "300 millis"), String(process.pid))
)
const ask = Tool.layer(Tool.make("ask"), () =>
  Effect.gen(function*() {
    const request = yield* McpRequest
    const params = { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 1 }
    return String((yield* Effect.orDie(request.request("sampling/createMessage", params)))["model"])
  }))
const touch = Tool.layer(Tool.make("touch"), () => Effect.as(Catalog.updated("test://watched"), "touched"))
const watched = Resource.layer(Resource.make("test://watched"), Effect.succeed("watched"))

const { fails, foreign, ...options } = JSON.parse(process.argv[2] ?? "{}")

// Another program may run a server as a worker of its own cluster.
if (foreign === true && cluster.isPrimary) cluster.fork().on("exit", (code) => process.exit(code))
else {NodeHttp.runMain(
    McpServer.layer({ name: "workers", version: "1.0.0" }, pid, slow, ask, touch, watched).pipe(
      Layer.provide(fails === true ? Layer.effectDiscard(Effect.fail(new Error("no database"))) : Layer.empty)
    ),
    options
  )}
