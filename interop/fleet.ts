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
import { once } from "node:events"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { MemoryFleet } from "../packages/server/test/http/fleet/memoryFleet.ts"
import { type SessionServer, startServer } from "./skeinServer.ts"

const nodes = 3

/** Delays of 0 to 50 ms, the same in each run. */
const delays = (seed = 1) => () => {
  seed = Math.imul(seed, 48_271) % 0x7fffffff
  return Math.abs(seed) % 51
}

/** Passes each request to the next port. */
const balance = async (ports: ReadonlyArray<number>) => {
  let turn = 0
  const server = http.createServer((incoming, outgoing) => {
    const { headers, method, url } = incoming
    const port = ports[turn++ % ports.length]
    const request = http.request({ host: "127.0.0.1", port, method, path: url, headers, agent: false }, (response) => {
      outgoing.writeHead(response.statusCode!, response.headers)
      outgoing.flushHeaders()
      response.on("error", () => outgoing.destroy()).pipe(outgoing)
    })
    request.on("error", () => outgoing.destroy())
    outgoing.on("close", () => request.destroy())
    incoming.pipe(request)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    }
  }
}

/** Serves at three nodes over Streamable HTTP. The server shares what a user would share: the events, and the keys. */
export const startFleet = async <E>(server: Layer.Layer<McpServer, E>): Promise<SessionServer> => {
  const fleet = new MemoryFleet(delays())
  const scope = Scope.makeUnsafe()
  const keys = ["interop interop interop interop!"]
  const running = await Promise.all(Array.from({ length: nodes }, async () => {
    const { layer } = await Effect.runPromise(Scope.provide(fleet.node(), scope))
    const shared = Layer.mergeAll(
      layer,
      Layer.succeed(EventStore.EventStore, fleet.events),
      RequestState.layer({ keys })
    )
    return startServer(server.pipe(Layer.provide(Layer.orDie(shared))), {}, Layer.orDie(shared))
  }))
  const balancer = await balance(running.map(({ port }) => port))
  const sum = (count: (one: SessionServer["endpoint"]) => number) =>
    running.reduce((total, { endpoint }) => total + count(endpoint), 0)
  return {
    http: { transport: "http", url: `http://127.0.0.1:${balancer.port}/mcp` },
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
