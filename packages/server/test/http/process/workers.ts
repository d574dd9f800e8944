/** The server of the tests of workers. */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as RateLimit from "@skein/server/RateLimit"
import * as Resource from "@skein/server/Resource"
import * as SqlStateStore from "@skein/server/SqlStateStore"
import * as State from "@skein/server/State"
import * as StateStore from "@skein/server/StateStore"
import * as Tool from "@skein/server/Tool"
import * as SqliteClient from "@skein/sql/SqliteClient"
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

const { database, fails, foreign, limited, ...options } = JSON.parse(process.argv[2] ?? "{}")

/** A tool with a state. A server with one cannot have workers, unless its store is shared. */
const counts = () => {
  const hits = State.make("hits", { initial: 0, scope: "session", stateless: "fail" })
  return Tool.layer(Tool.make("count"), () => Effect.map(hits.update((n) => n + 1), String))
}
const count = database === undefined && limited !== true ? Layer.empty : counts()

// Another program may run a server as a worker of its own cluster.
if (foreign === true && cluster.isPrimary) cluster.fork().on("exit", (code) => process.exit(code))
else {NodeHttp.runMain(
    McpServer.layer(
      { name: "workers", version: "1.0.0" },
      pid,
      slow,
      ask,
      touch,
      watched,
      count,
      limited === true ? RateLimit.layer() : Layer.empty
    ).pipe(
      Layer.provide(
        database === undefined ? StateStore.layerMemory() : SqlStateStore.layer().pipe(
          Layer.provide(SqliteClient.layer({ filename: database }))
        )
      ),
      Layer.provide(fails === true ? Layer.effectDiscard(Effect.die(new Error("no database"))) : Layer.empty)
    ),
    options
  )}
