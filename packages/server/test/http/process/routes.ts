/** A server with routes beside its endpoint. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"

const ticks = Stream.fromSchedule(Schedule.spaced("50 millis")).pipe(
  Stream.map((n) => `tick ${n}\n`),
  Stream.encodeText
)
const slow = Effect.as(Effect.delay(Effect.logWarning("half way"), "300 millis"), HttpServerResponse.text("slowly"))

const routes = Layer.mergeAll(
  HttpRouter.add("GET", "/slow", slow),
  HttpRouter.add("GET", "/ticks", HttpServerResponse.stream(ticks)),
  HttpRouter.add("GET", "/reject", Effect.promise(() => Promise.reject(new Error("rejected")))),
  Layer.effectDiscard(Effect.addFinalizer(() => Effect.logWarning("released")))
)

NodeHttp.runMain(McpServer.layer({ name: "routes", version: "1.0.0" }), {
  ...JSON.parse(process.argv[2] ?? "{}"),
  routes: NodeRoutes.make(routes)
})
