/**
 * Looks at a running server, and interrupts parts of it. A snapshot is computed on demand: requests and sessions store
 * nothing for it, apart from counters and the last failures.
 */
import * as Inspect from "@skein/runtime/Inspect"
import type { Peer } from "@skein/runtime/Peer"
import type { Exchange } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import { internals } from "../catalog/catalogState.ts"
import type { HttpSession, ServerCore } from "./serverCore.ts"
import { interruptedByOperator } from "./tally.ts"
import { ServerSession } from "../base/session.ts"

/** The result of `McpServer.interrupt`. */
export type Interrupted =
  | { readonly _tag: "Request"; readonly method: string }
  | { readonly _tag: "Session" }
  | { readonly _tag: "NotFound" }

/** Ends a request early, and answers it. */
const interruptRequest = (exchange: Exchange): void => {
  // A subscription completes with its result.
  if (exchange.release !== undefined) return exchange.release()
  if (exchange.state === "Running") exchange.replaceWith(Effect.fail(interruptedByOperator))
  else exchange.cancel()
}

/** Makes the part of a server that looks at it. */
export const makeInspector = (server: { readonly name: string; readonly version: string }, core: ServerCore) => {
  const { subscriptions } = core
  const httpSessions = (): ReadonlyMap<Peer, HttpSession> =>
    new Map(
      Array.from(core.endpoints).flatMap(({ openSessions }) => Array.from(openSessions, (one) => [one.peer, one]))
    )

  const inspect = (options: Inspect.Options): Effect.Effect<Inspect.ServerInfo> =>
    Effect.suspend(() => {
      const sessions = httpSessions()
      const listens = new Map(Array.from(subscriptions.listens, (listen) => [listen.request.exchange, listen]))
      return Inspect.server({
        ...server,
        params: options.params,
        peers: subscriptions.peers,
        endpoints: core.endpoints,
        tally: { requests: core.tally.requests, failures: core.tally.failures, last: core.tally.last(options) },
        tasks: core.catalog[internals].extensions.all.flatMap(({ running }) => [...running ?? []]),
        describe: (peer) => {
          const http = sessions.get(peer)
          const { session } = peer
          return {
            connection: http?.describe(),
            principal: http?.principalId ?? (session instanceof ServerSession ? session.principal?.id : undefined)
          }
        },
        subscription: (exchange) => {
          const listen = listens.get(exchange)
          return listen && { lists: listen.kinds, resources: [...listen.uris] }
        }
      })
    })

  const interrupt = (key: string): Effect.Effect<Interrupted> =>
    Effect.sync((): Interrupted => {
      const requests = [
        ...Array.from(core.endpoints).flatMap(({ requests }) => [...requests]),
        ...Array.from(subscriptions.peers).flatMap(({ requests }) => [...requests])
      ]
      const exchange = requests.find((one) => Inspect.keyOf(one) === key)
      if (exchange !== undefined) {
        interruptRequest(exchange)
        return { _tag: "Request", method: exchange.method }
      }
      for (const peer of subscriptions.peers) {
        if (Inspect.keyOf(peer) !== key) continue
        const http = httpSessions().get(peer)
        if (http === undefined) peer.close({ _tag: "ClosedByUs" })
        else http.interrupt()
        return { _tag: "Session" }
      }
      return { _tag: "NotFound" }
    })

  return { inspect, interrupt }
}
