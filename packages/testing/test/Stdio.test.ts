/** Calls of the client to a program that is rude over stdio. */
import * as Stdio from "@skein/client/Stdio"
import * as RudeServer from "@skein/testing/RudeServer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { maxMessage, stdio } from "./scripts.ts"
import { judge, pay } from "./visits.ts"

const graces = { stdin: 100, term: 100, kill: 1_000, settle: 50 }

describe("calls over stdio", () => {
  it.live.prop(
    "every call ends with its one answer or a typed error, none twice; and the starts are bounded",
    { script: stdio },
    ({ script }) =>
      Effect.gen(function*() {
        const rude = yield* RudeServer.stdio(script)
        const { args, command } = rude
        const outcomes = yield* pay(
          Stdio.transport({ command, args, stderr: "ignore", graces, maxLineBytes: maxMessage })
        )
        const done = yield* rude.calls
        const times = (key: string) => done.filter((call) => call.key === key).length
        judge(script, outcomes, times, { oneStream: true })
        expect(yield* rude.starts).toBeLessThan(40)
      }),
    { timeout: 60_000, arbitrary: { runs: 16, concurrency: 4 } }
  )
})
