/**
 * Starts Skein servers in the test process that share their sessions, behind a balancer that gives each HTTP request to the
 * next one of them. A message from one to another takes 0 to 50 ms.
 */
import * as EventStore from "@skein/server/EventStore"
import type { McpServer } from "@skein/server/McpServer"
import * as RequestState from "@skein/server/RequestState"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { TestFleet } from "../packages/server/test/http/fleet/kit.ts"
import { MemoryFleet } from "../packages/server/test/http/fleet/memoryFleet.ts"
import { startBalancer } from "../scripts/balancer.ts"
import { type RunningServer, type SessionServer, startServer } from "./skeinServer.ts"

const nodes = 3

/** Delays of 0 to 50 ms, the same in each run. */
const delays = (seed = 1) => () => {
  seed = Math.imul(seed, 48_271) % 0x7fffffff
  return Math.abs(seed) % 51
}

/**
 * Serves at three nodes over Streamable HTTP and HTTP+SSE. The server shares what a user would share: the events, and the
 * keys. The default is a fleet in memory.
 */
export const startFleet = async <E>(
  server: Layer.Layer<McpServer, E>,
  fleet: TestFleet = new MemoryFleet(delays())
): Promise<SessionServer & Pick<RunningServer, "sse">> => {
  const keys = ["interop interop interop interop!"]
  const scope = Scope.makeUnsafe()
  const running = await Promise.all(Array.from({ length: nodes }, async () => {
    const { layer } = await Effect.runPromise(Scope.provide(fleet.node(), scope))
    const shared = Layer.mergeAll(
      layer,
      fleet.events === undefined ? Layer.empty : Layer.succeed(EventStore.EventStore, fleet.events),
      RequestState.layer({ keys })
    )
    return startServer(
      server.pipe(Layer.provide(Layer.orDie(shared))),
      { nodeRequests: { keys } },
      Layer.orDie(shared)
    )
  }))
  const balancer = await startBalancer(running.map(({ port }) => port))
  const sum = (count: (one: SessionServer["endpoint"]) => number) =>
    running.reduce((total, { endpoint }) => total + count(endpoint), 0)
  return {
    http: { transport: "http", url: `http://127.0.0.1:${balancer.port}/mcp` },
    sse: { transport: "sse", url: `http://127.0.0.1:${balancer.port}/sse` },
    port: balancer.port,
    endpoint: {
      get sessions() {
        return sum(({ sessions }) => sessions)
      },
      get streams() {
        return sum(({ streams }) => streams)
      }
    },
    inspect: async () => {
      const all = await Promise.all(running.map(({ inspect }) => inspect()))
      return { sessions: all.flatMap(({ sessions }) => sessions) }
    },
    close: async () => {
      await balancer.close()
      await Promise.all(running.map(({ close }) => close()))
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}
