/** Calls of the client to a server that is rude over HTTP. */
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Transport } from "@skein/runtime/Connection"
import * as RudeServer from "@skein/testing/RudeServer"
import type * as Script from "@skein/testing/Script"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { alone, harmless, maxMessage, resumable, session } from "./scripts.ts"
import { judge, pay, turnsUntil } from "./visits.ts"

const settings = (url: string, maxAttempts: number): Http.Settings => ({
  url,
  maxMessageBytes: maxMessage,
  closeTimeout: 100,
  postTimeout: 300,
  resumption: { initialDelay: 1, maxDelay: 20, maxAttempts, maxReconnects: 40 }
})

const wires = [
  ["fetch", (url: string, maxAttempts = 4) => Http.transport(settings(url, maxAttempts))],
  ["node:http", (url: string, maxAttempts = 4) => NodeHttp.transport(settings(url, maxAttempts))]
] as const

/** What one visit may send: its calls and handshakes, again and again as far as the bounds of its client allow. */
const bound = 400

const arbitrary = { runs: 40, concurrency: 20 }

describe.each(wires)("calls over HTTP, by %s", (wire, transport: (url: string, maxAttempts?: number) => Transport) => {
  const visit = (script: Script.Script) =>
    Effect.gen(function*() {
      const rude = yield* RudeServer.http(script)
      const outcomes = yield* pay(transport(rude.url))
      // In the session era the answer of a call whose stream broke off may come on any other.
      judge(script, outcomes, rude.times, { oneStream: script.revision !== "2026-07-28" })
      expect(rude.requests).toBeLessThan(bound)
      // The sockets of `fetch` are its own, and wait a while for whoever comes next.
      if (wire === "node:http") yield* turnsUntil(() => rude.open === 0)
    })

  it.live.prop(
    "2025-11-25, resumable · every call ends with its one answer or a typed error inside its deadline, none twice; " +
      "and the reconnects are bounded",
    { script: resumable },
    ({ script }) => visit(script),
    { timeout: 60_000, arbitrary }
  )

  it.live.prop(
    "2025-11-25, resumable · where a stream breaks off only after it has begun, every call ends with its one answer",
    { script: harmless },
    ({ script }) =>
      Effect.gen(function*() {
        const rude = yield* RudeServer.http(script)
        const outcomes = yield* pay(transport(rude.url, 40), 20_000)
        expect(outcomes.map(({ exit, key }) => [exit, rude.times(key)])).toEqual(
          outcomes.map(({ key }) => [Exit.succeed(key), 1])
        )
        expect(outcomes).toHaveLength(7)
      }),
    { timeout: 60_000, arbitrary }
  )

  it.live.prop(
    "2024-11-05 to 2025-11-25 · the same, where nothing can be taken up again",
    { script: session },
    ({ script }) => visit(script),
    { timeout: 60_000, arbitrary }
  )

  it.live.prop(
    "2026-07-28 · the same, where each request stands alone",
    { script: alone },
    ({ script }) => visit(script),
    { timeout: 60_000, arbitrary }
  )
})
