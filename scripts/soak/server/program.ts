/**
 * The server under test. It uses every feature that holds state, with timeouts so short that abandoned sessions end
 * within seconds. The parent process requests its state over the IPC channel.
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
import { describeFibersOnSignal } from "../../fibers.ts"
import { countActive, countResources, type ServerState, sumMetric } from "../resourceCounts.ts"
import { Bounds, fixedBounds } from "../../../packages/server/src/internal/base/fixedBounds.ts"
import { internals } from "../../../packages/server/src/internal/catalog/catalogState.ts"

const echo = Tool.layer(Tool.make("echo", { description: "Returns immediately." }), () => Effect.succeed("done"))

const noop = (): void => {}
describeFibersOnSignal()

/** With `--leak` each call leaves a timer behind. A test uses it to check that leaks are found. */
const leak = process.argv.includes("--leak")
  ? Effect.sync(() => void setTimeout(noop, 1_000_000))
  : Effect.void

const slow = Tool.layer(
  Tool.make("slow", { description: "Returns after 100 ms." }),
  () => Effect.delay(Effect.as(leak, "done"), "100 millis")
)

const never = Tool.layer(Tool.make("never", { description: "Runs until it is cancelled." }), () => Effect.never)

const count = Tool.layer(
  Tool.make("count", { description: "Reports progress and logs, with pauses." }),
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
  Tool.make("poll", { description: "Closes the stream of its response and continues." }),
  () => Effect.as(Effect.andThen(Polling.disconnect("1 seconds"), Effect.sleep("50 millis")), "polled")
)

const longMessage = "x".repeat(256 * 1024)

/** Sends 16 MiB, which is more than the system buffers for a client that does not read. */
const flood = Tool.layer(
  Tool.make("flood", { description: "Reports 16 MiB of progress." }),
  () =>
    Effect.as(
      Effect.forEach(
        Array.from({ length: 64 }, (_, index) => index),
        (index) => Progress.report({ progress: index, message: longMessage })
      ),
      "done"
    )
)

const ask = Tool.layer(
  Tool.make("ask", { description: "Requests a completion from the client's model." }),
  () =>
    Effect.map(Sampling.createMessage({ messages: "Well?", maxTokens: 10 }, { timeout: "500 millis" }), Sampling.text)
)

const changing = "soak://changing"

const resource = Resource.layer(
  Resource.make(changing, { name: "changing" }),
  Effect.succeed("This resource changes every 80 ms.")
)

const temporary = Tool.add(
  Tool.make("temporary", { description: "Is offered for 40 ms at a time." }),
  () => Effect.succeed("done")
)

/** Closed while resources are counted: nothing may change then. */
const mayChange = Latch.makeUnsafe(true)
/** Open while `changes` waits for `mayChange`. */
const changesPaused = Latch.makeUnsafe()

/**
 * Adds and removes a tool and updates a resource all the time, so that subscribed clients always receive notifications.
 */
const changes = Layer.effectDiscard(
  Effect.forkScoped(Effect.forever(
    Effect.scoped(Effect.andThen(temporary, Effect.sleep("40 millis"))).pipe(
      Effect.andThen(Effect.ignore(Catalog.updated(changing))),
      Effect.andThen(Effect.sleep("40 millis")),
      Effect.andThen(Effect.suspend(() => {
        if (!mayChange.isOpen()) changesPaused.openUnsafe()
        return mayChange.await
      }))
    )
  ))
)

/**
 * Pauses the changes and their timers. Waits 1.1 s more, since Node caches the `Date` header of the last response with
 * a timer of one second.
 */
const pauseChanges = Effect.suspend(() => {
  changesPaused.closeUnsafe()
  mayChange.closeUnsafe()
  return Effect.andThen(changesPaused.await, Effect.sleep("1100 millis"))
})

/**
 * Every middleware that stores something per caller. No caller connects twice, so that each entry that is not removed
 * adds up.
 */
const middleware = Layer.mergeAll(
  Telemetry.layer(),
  AuditLog.layer({ sink: () => Effect.void }),
  RateLimit.layer({ limit: 1_000, interval: "10 seconds" }),
  Concurrency.layer({ limit: 3, key: Middleware.perPrincipalAndTarget }),
  Timeout.layer({ timeout: "1 minute" }),
  MaxResponseSize.layer()
)

const log = EventStore.make() as EventStore.Store & { readonly size: number }

const server = McpServer.layer(
  { name: "soak", version: "1.0.0" },
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
  // The counts of a few addresses only, and many notifications, so that each entry that is not removed adds up.
  Layer.provideMerge(Layer.succeed(Bounds, {
    ...fixedBounds,
    maxKeys: 200,
    listChangedDelay: 10,
    maxUnsentChars: 64 * 1024,
    initializeTimeout: 2_000
  })),
  // The server logs a warning for each client that does not read, and the scenarios have thousands of them.
  Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "Error"))
)

const control = ({ endpoint, port }: NodeHttp.Server["Service"]) =>
  Effect.flatMap(McpServer.McpServer, ({ [internals]: core, inspect }) => {
    const state = Effect.map(inspect, (tree): ServerState => ({
      sessions: endpoint.sessions,
      peers: tree.sessions.length,
      requests: tree.requests.length + tree.sessions.reduce((sum, { requests }) => sum + requests.length, 0),
      outboundRequests: tree.sessions.reduce((sum, { calls }) => sum + calls.length, 0),
      streams: tree.streams,
      listens: [...core.subscriptions.listens].length,
      subscribedResources: core.subscriptions.subscribedResources,
      eventLogSize: log.size,
      openByMetrics: sumMetric("mcp.server.sessions") + sumMetric("mcp.server.streams"),
      sockets: countActive("TCPSocketWrap")
    }))
    process.on("message", (request: { readonly count?: true; readonly snapshot?: string | undefined }) => {
      if (request.count === undefined) return void process.send?.(Effect.runSync(state))
      void Effect.runPromise(
        Effect.andThen(pauseChanges, state).pipe(
          Effect.flatMap((found) => Effect.promise(() => countResources(found, request.snapshot))),
          Effect.ensuring(mayChange.open)
        )
      ).then((counts) => process.send?.(counts))
    })
    process.on("disconnect", () => process.exit(1))
    return Effect.sync(() => void process.send?.(port))
  })

NodeHttp.runMain(server, {
  port: 0,
  keepAliveInterval: "1 seconds",
  principal: ({ headers }) => ({ id: String(headers["x-user"]) }),
  legacySse: LegacySse.make(),
  limits: { idleTimeout: "2 seconds" },
  onListening: control
})
