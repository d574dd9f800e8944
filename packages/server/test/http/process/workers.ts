/** The server of the tests of workers. */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Metrics from "@skein/server/Metrics"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as RateLimit from "@skein/server/RateLimit"
import * as Resource from "@skein/server/Resource"
import * as SqlStateStore from "@skein/server/SqlStateStore"
import * as State from "@skein/server/State"
import * as StateStore from "@skein/server/StateStore"
import * as Telemetry from "@skein/server/Telemetry"
import * as Tool from "@skein/server/Tool"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as OtlpResource from "effect/observability/OtlpResource"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import cluster from "node:cluster"
import { existsSync } from "node:fs"
import { join } from "node:path"

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
// Node reports a message of its own that it could not send, because the primary process was killed, in this way.
const epipe = Tool.layer(Tool.make("epipe"), () =>
  Effect.sync(() => {
    setImmediate(() => process.emit("error" as never, new Error("write EPIPE") as never))
    return "reported"
  }))
const touch = Tool.layer(Tool.make("touch"), () => Effect.as(Catalog.updated("test://watched"), "touched"))
const watched = Resource.layer(Resource.make("test://watched"), Effect.succeed("watched"))

const { database, fails, folder, foreign, limited, ...options } = JSON.parse(process.argv[2] ?? "{}")

// The files of a folder control the workers: "<number>.unready" fails the check of one, "<number>.stopped" blocks its
// check, and with "slow" a worker but the first waits for "go" before it listens.
const number = cluster.worker?.id
const has = (file: string): boolean => existsSync(join(folder, file))
const check = Effect.suspend(() => has(`${number}.stopped`) ? Effect.never : Effect.succeed(!has(`${number}.unready`)))
const waits = folder !== undefined && cluster.isWorker && number !== 1 && has("slow")
const gate = waits
  ? Layer.effectDiscard(
    Effect.repeat(Effect.delay(Effect.sync(() => has("go")), "20 millis"), { until: (goes) => goes })
  )
  : Layer.empty
/** Answers with the resource of the exporters of this worker. */
const resource = HttpRouter.add(
  "GET",
  "/resource",
  Effect.map(OtlpResource.fromConfig({ serviceName: "workers" }), HttpServerResponse.jsonUnsafe)
)
// A metric that has no meaningful sum.
if (folder !== undefined) Effect.runSync(Metric.update(Metric.gauge("test_worker"), number ?? 0))

const operated = folder === undefined ? {} : {
  // The primary process logs the address when all workers have started.
  onListening: ({ url }: NodeHttp.Server["Service"]) => Effect.logInfo(`Listening on ${url}`),
  health: { check },
  routes: NodeRoutes.make(
    Layer.mergeAll(
      Metrics.layerHttp(),
      resource,
      HttpRouter.add("GET", "/which", HttpServerResponse.text(`${number}`))
    )
  )
}

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
      epipe,
      touch,
      watched,
      count,
      folder === undefined ? Layer.empty : Telemetry.layer(),
      limited === true ? RateLimit.layer() : Layer.empty
    ).pipe(
      Layer.provide(
        database === undefined ? StateStore.layerMemory() : SqlStateStore.layer().pipe(
          Layer.provide(SqliteClient.layer({ filename: database }))
        )
      ),
      Layer.provide(gate),
      Layer.provide(fails === true ? Layer.effectDiscard(Effect.die(new Error("no database"))) : Layer.empty)
    ),
    { ...options, ...operated }
  )}
