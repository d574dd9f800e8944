/**
 * The server that is treated badly: one that offers a bit of everything, with bounds on time so short that what was left behind is
 * over within seconds. Whoever started it asks it over the channel between them how it is.
 */
import * as AuditLog from "@skein/server/AuditLog"
import * as Catalog from "@skein/server/Catalog"
import * as Concurrency from "@skein/server/Concurrency"
import * as EventStore from "@skein/server/EventStore"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Polling from "@skein/server/Polling"
import * as Progress from "@skein/server/Progress"
import * as RateLimit from "@skein/server/RateLimit"
import * as Resource from "@skein/server/Resource"
import * as MaxResponseSize from "@skein/server/MaxResponseSize"
import * as Sampling from "@skein/server/Sampling"
import * as Telemetry from "@skein/server/Telemetry"
import * as Timeout from "@skein/server/Timeout"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { active, census, metric, type State } from "./census.ts"
import { internals } from "../../packages/server/src/internal/catalogState.ts"

const echo = Tool.layer(Tool.make("echo", { description: "Answers at once." }), () => Effect.succeed("at once"))

const ignore = (): void => {}

/** With `--leak` each call leaves a timer behind: for the test that it is found. */
const leak = process.argv.includes("--leak")
  ? Effect.sync(() => void setTimeout(ignore, 1_000_000))
  : Effect.void

const slow = Tool.layer(
  Tool.make("slow", { description: "Takes its time." }),
  () => Effect.delay(Effect.as(leak, "slowly"), "100 millis")
)

const never = Tool.layer(Tool.make("never", { description: "Never ends by itself." }), () => Effect.never)

const count = Tool.layer(
  Tool.make("count", { description: "Tells how far it is, with pauses, and logs." }),
  () =>
    Effect.as(
      Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], (progress) =>
        Effect.log(`at ${progress}`).pipe(
          Effect.andThen(Progress.report({ progress, total: 8 })),
          Effect.andThen(Effect.sleep("10 millis"))
        )),
      "counted"
    )
)

const poll = Tool.layer(
  Tool.make("poll", { description: "Lets its client go, and works on." }),
  () => Effect.as(Effect.andThen(Polling.disconnect("1 seconds"), Effect.sleep("50 millis")), "polled")
)

const long = "x".repeat(256 * 1024)

/** More than the system keeps between two sockets that nobody reads from. */
const flood = Tool.layer(
  Tool.make("flood", { description: "Says more than anybody wants to read." }),
  () =>
    Effect.as(
      Effect.forEach(
        Array.from({ length: 64 }, (_, index) => index),
        (index) => Progress.report({ progress: index, message: long })
      ),
      "said"
    )
)

const ask = Tool.layer(
  Tool.make("ask", { description: "Asks the client's model." }),
  () =>
    Effect.map(Sampling.createMessage({ messages: "Well?", maxTokens: 10 }, { timeout: "500 millis" }), Sampling.text)
)

const watched = "soak://watched"

const resource = Resource.layer(Resource.make(watched, { name: "watched" }), Effect.succeed("It changes all the time."))

const passing = Tool.add(Tool.make("passing", { description: "Comes and goes." }), () => Effect.succeed("Still there."))

/** Closed while the process is counted. */
const going = Latch.makeUnsafe(true)
/** Open while nothing changes. */
const still = Latch.makeUnsafe()

/** What is offered changes all the time, so that there is always something to tell those who listen. */
const changes = Layer.effectDiscard(
  Effect.forkScoped(Effect.forever(
    Effect.scoped(Effect.andThen(passing, Effect.sleep("40 millis"))).pipe(
      Effect.andThen(Effect.ignore(Catalog.updated(watched))),
      Effect.andThen(Effect.sleep("40 millis")),
      Effect.andThen(Effect.suspend(() => {
        if (!going.isOpen()) still.openUnsafe()
        return going.await
      }))
    )
  ))
)

/**
 * Stops what changes all the time, with its timers, and waits until Node has forgotten the date of the last answer's header, for which it
 * has a timer of a second.
 */
const rest = Effect.suspend(() => {
  still.closeUnsafe()
  going.closeUnsafe()
  return Effect.andThen(still.await, Effect.sleep("1100 millis"))
})

/** All that may remember something of whoever calls. Nobody comes twice, so that what is remembered by mistake adds up. */
const middleware = Layer.mergeAll(
  Telemetry.layer(),
  AuditLog.layer({ sink: () => Effect.void }),
  RateLimit.layer({ limit: 1_000, window: "10 seconds", maxKeys: 200 }),
  Concurrency.layer({ limit: 3, key: Middleware.perPrincipalAndTarget }),
  Timeout.layer({ timeout: "1 minute" }),
  MaxResponseSize.layer()
)

const log = EventStore.make() as EventStore.Store & { readonly size: number }

const server = McpServer.layer(
  { name: "soak", version: "1.0.0", listChangedDebounce: "10 millis" },
  echo,
  slow,
  never,
  count,
  poll,
  flood,
  ask,
  resource,
  changes,
  middleware
).pipe(
  Layer.merge(Layer.succeed(EventStore.EventStore, log)),
  // A client that does not read is worth a warning, and there are thousands of them here.
  Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "Error"))
)

const control = ({ endpoint, port }: NodeHttp.Server["Service"]) =>
  Effect.flatMap(McpServer.McpServer, ({ [internals]: core, inspect }) => {
    const state = Effect.map(inspect, (tree): State => ({
      sessions: endpoint.sessions,
      peers: tree.sessions.length,
      requests: tree.requests.length + tree.sessions.reduce((sum, { requests }) => sum + requests.length, 0),
      questions: tree.sessions.reduce((sum, { calls }) => sum + calls.length, 0),
      streams: tree.streams,
      listens: [...core.hub.listens].length,
      watched: core.hub.subscribedResources,
      logged: log.size,
      measured: metric("mcp.server.sessions") + metric("mcp.server.streams"),
      sockets: active("TCPSocketWrap")
    }))
    process.on("message", (question: { readonly census?: true; readonly snapshot?: string | undefined }) => {
      if (question.census === undefined) return void process.send?.(Effect.runSync(state))
      void Effect.runPromise(
        Effect.andThen(rest, state).pipe(
          Effect.flatMap((found) => Effect.promise(() => census(found, question.snapshot))),
          Effect.ensuring(going.open)
        )
      ).then((census) => process.send?.(census))
    })
    process.on("disconnect", () => process.exit(1))
    return Effect.sync(() => void process.send?.(port))
  })

NodeHttp.runMain(server, {
  port: 0,
  maxUnsentChars: 64 * 1024,
  keepAliveInterval: "1 seconds",
  principal: ({ headers }) => ({ id: String(headers["x-user"]) }),
  legacySse: LegacySse.make(),
  sessions: { idleTimeout: "2 seconds", initializeTimeout: "2 seconds" },
  onListening: control
})
