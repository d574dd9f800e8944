/** Properties of client calls to a faulty server over HTTP. */
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Transport } from "@skein/runtime/Connection"
import * as FaultyServer from "@skein/testing/FaultyServer"
import type * as Scenario from "@skein/testing/Scenario"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { harmless, maxMessageBytes, resumable, session, stateless } from "./scenarios.ts"
import { checkOutcomes, runClient, turnsUntil } from "./clientRun.ts"
import { withBounds } from "../../client/test/http/support/changedBounds.ts"

const settings = (url: string, maxAttempts: number): Http.Settings => ({
  url,
  maxMessageBytes,
  shutdownTimeout: 100,
  resumption: { initialDelay: 1, maxDelay: 20, maxAttempts }
})

const bounds = { postTimeout: 300, maxReconnects: 40 }

const httpClients = [
  ["fetch", (url: string, maxAttempts = 4) => withBounds(Http.transport(settings(url, maxAttempts)), bounds)],
  ["node:http", (url: string, maxAttempts = 4) => withBounds(NodeHttp.transport(settings(url, maxAttempts)), bounds)]
] as const

/** The most HTTP requests that one run may send, including the repetitions that the bounds of the client allow. */
const maxRequests = 400

const arbitrary = { runs: 40, concurrency: 20 }

describe.each(httpClients)(
  "calls over HTTP, by %s",
  (httpClient, transport: (url: string, maxAttempts?: number) => Transport) => {
    const run = (scenario: Scenario.Scenario) =>
      Effect.gen(function*() {
        const server = yield* FaultyServer.http(scenario)
        const outcomes = yield* runClient(transport(server.url))
        // Up to 2025-11-25 the response to a call whose stream was cut may arrive on another stream.
        checkOutcomes(scenario, outcomes, server.callCount, { oneStream: scenario.revision !== "2026-07-28" })
        expect(server.requestCount).toBeLessThan(maxRequests)
        // `fetch` owns its sockets and retains them for a while.
        if (httpClient === "node:http") yield* turnsUntil(() => server.openConnections === 0)
      })

    it.live.prop(
      "2025-11-25, resumable · ends every call with its response or a typed error within its deadline, repeats none, " +
        "and bounds the reconnects",
      { scenario: resumable },
      ({ scenario }) => run(scenario),
      { timeout: 60_000, arbitrary }
    )

    it.live.prop(
      "2025-11-25, resumable · returns the response of every call if streams are cut only after they have begun",
      { scenario: harmless },
      ({ scenario }) =>
        Effect.gen(function*() {
          const server = yield* FaultyServer.http(scenario)
          const outcomes = yield* runClient(transport(server.url, 40), 120_000)
          expect(outcomes.map(({ exit, key }) => [exit, server.callCount(key)])).toEqual(
            outcomes.map(({ key }) => [Exit.succeed(key), 1])
          )
          expect(outcomes).toHaveLength(7)
        }),
      { timeout: 60_000, arbitrary }
    )

    it.live.prop(
      "2024-11-05 to 2025-11-25 · ends every call likewise if no stream can be resumed",
      { scenario: session },
      ({ scenario }) => run(scenario),
      { timeout: 60_000, arbitrary }
    )

    it.live.prop(
      "2026-07-28 · ends every call likewise in the stateless revision",
      { scenario: stateless },
      ({ scenario }) => run(scenario),
      { timeout: 60_000, arbitrary }
    )
  }
)
