/** All middleware on one server, in every revision, around a handler with an input request. */
import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as AuditLog from "@skein/server/AuditLog"
import * as Concurrency from "@skein/server/Concurrency"
import * as RateLimit from "@skein/server/RateLimit"
import * as MaxResponseSize from "@skein/server/MaxResponseSize"
import * as Roots from "@skein/server/Roots"
import * as Telemetry from "@skein/server/Telemetry"
import * as Timeout from "@skein/server/Timeout"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as asking from "../input/kit.ts"
import * as kit from "../kit.ts"

const ask = Tool.layer(Tool.make("ask"), () => Effect.map(Roots.list(), (roots) => roots.map(({ uri }) => uri).join()))
const plain = Tool.layer(Tool.make("plain"), () => Effect.succeed("x"))

const set = () => {
  const outcomes: Array<string> = []
  const log = AuditLog.layer({
    methods: ["tools/call"],
    sink: ({ outcome }) => Effect.sync(() => void outcomes.push(outcome))
  })
  const limits = [
    RateLimit.layer({ limit: 6 }),
    Concurrency.layer({ limit: 1, maxQueuedRequests: 0 }),
    Timeout.layer({ timeout: "10 seconds" }),
    MaxResponseSize.layer()
  ] as const
  return { outcomes, server: kit.server(Telemetry.layer(), log, ...limits, ask, plain) }
}

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("a handler with input requests is answered and frees its place; each round counts", () =>
      Effect.gen(function*() {
        const { outcomes, server } = set()
        const answer = () => ({ roots: [{ uri: "file:///a" }] })
        const client = yield* asking.client(server, { revision, answer })
        const rounds = revision === "2026-07-28" ? ["input_required", "ok"] : ["ok"]
        for (let i = 0; i < 3; i++) expect(yield* client.call("ask")).toBe("file:///a")
        expect(outcomes).toEqual([...rounds, ...rounds, ...rounds])
        expect(yield* client.call("plain")).toBe("x")
      }))

    it.effect("an unanswered input request ends at the limit of its handler", () =>
      Effect.gen(function*() {
        const { outcomes, server } = set()
        const client = yield* asking.client(server, { revision })
        if (revision === "2026-07-28") {
          expect((yield* client.once("tools/call", { name: "ask" })).result.resultType).toBe("input_required")
          return
        }
        const id = client.send("tools/call", { name: "ask" })
        yield* kit.settle
        yield* TestClock.adjust("10 seconds")
        yield* kit.settle
        expect(client.received.find((message) => message.id === id && message.method === undefined).result.isError)
          .toBe(true)
        expect(client.notices("notifications/cancelled")).toHaveLength(1)
        expect(outcomes).toEqual(["tool_error"])
        expect(yield* client.call("plain")).toBe("x")
      }))
  })
}
