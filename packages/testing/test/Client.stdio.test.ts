/** Properties of client calls to a faulty server over stdio. */
import * as Stdio from "@skein/client/Stdio"
import * as FaultyServer from "@skein/testing/FaultyServer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { maxMessageBytes, stdio } from "./scenarios.ts"
import { checkOutcomes, runClient } from "./clientRun.ts"

describe("calls over stdio", () => {
  it.live.prop(
    "ends every call with its response or a typed error, repeats none, and bounds the number of process starts",
    { scenario: stdio },
    ({ scenario }) =>
      Effect.gen(function*() {
        const server = yield* FaultyServer.stdio(scenario)
        const { args, command } = server
        const outcomes = yield* runClient(
          Stdio.transport({ command, args, stderr: "ignore", shutdownTimeout: 100, maxLineBytes: maxMessageBytes })
        )
        const calls = yield* server.calls
        const callCount = (key: string) => calls.filter((call) => call.key === key).length
        checkOutcomes(scenario, outcomes, callCount, { oneStream: true })
        expect(yield* server.startCount).toBeLessThan(40)
      }),
    { timeout: 60_000, arbitrary: { runs: 16, concurrency: 4 } }
  )
})
