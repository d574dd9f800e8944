import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as AuditLog from "@skein/server/AuditLog"
import * as Elicitation from "@skein/server/Elicitation"
import * as Retry from "@skein/server/Retry"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as input from "../input/kit.ts"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

class Busy extends Data.TaggedError("Busy")<{ readonly message: string }> {}

const busy = new Busy({ message: "busy" })
const quick = Schedule.spaced("1 second")

/** A tool whose handler fails until its run with this number. */
const failing = (until: number, name = "t", annotations: object = { idempotentHint: true }) => {
  const seen = { runs: 0 }
  const definition = Tool.layer(
    Tool.make(name, { annotations }),
    () => Effect.suspend(() => ++seen.runs < until ? Effect.fail(busy) : Effect.succeed(`run ${seen.runs}`))
  )
  return { definition, seen }
}

/** Calls a tool, and lets the time pass that its attempts wait. */
const call = (client: kit.Client, name = "t") =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(client.request("tools/call", { name }), { startImmediately: true })
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

for (const revision of support.eras) {
  describe(`${revision} · retry`, () => {
    it.effect("runs the handler again after the delay, within one request", () =>
      Effect.gen(function*() {
        const { definition, seen } = failing(3)
        const entries: Array<AuditLog.Entry> = []
        const log = AuditLog.layer({
          methods: ["tools/call"],
          sink: (entry) => Effect.sync(() => void entries.push(entry))
        })
        const client = yield* kit.client(kit.server(log, Retry.layer({ schedule: quick }), definition), revision)
        const fiber = yield* Effect.forkChild(client.call("t"), { startImmediately: true })
        yield* kit.settle
        expect(seen.runs).toBe(1)
        yield* TestClock.adjust("1 second")
        expect(seen.runs).toBe(2)
        yield* TestClock.adjust("1 second")
        expect((yield* Fiber.join(fiber)).content[0].text).toBe("run 3")
        expect(entries).toMatchObject([{ outcome: "ok", durationMs: 2_000 }])
      }))

    it.effect("answers with the last failure after maxAttempts, 3 by default", () =>
      Effect.gen(function*() {
        for (const maxAttempts of [undefined, 1, 5]) {
          const { definition, seen } = failing(100)
          const client = yield* kit.client(kit.server(Retry.layer({ maxAttempts }), definition), revision)
          expect((yield* call(client)).result).toMatchObject({ isError: true, content: [{ text: "busy" }] })
          expect(seen.runs).toBe(maxAttempts ?? 3)
        }
      }))

    it.effect("applies to tools that say that a repeated call is harmless, or that the author names", () =>
      Effect.gen(function*() {
        const cases = [
          ["none", {}],
          ["destructive", { destructiveHint: true }],
          ["readOnly", { readOnlyHint: true }],
          ["idempotent", { idempotentHint: true }]
        ] as const
        const tools = cases.map(([name, annotations]) => failing(100, name, annotations))
        const client = yield* kit.client(
          kit.server(Retry.layer(), tools[0]!.definition, ...tools.slice(1).map(({ definition }) => definition)),
          revision
        )
        for (const [name] of cases) yield* call(client, name)
        expect(tools.map(({ seen }) => seen.runs)).toEqual([1, 1, 3, 3])
        const named = failing(100, "named", {})
        const other = yield* kit.client(kit.server(Retry.layer({ tools: ["named"] }), named.definition), revision)
        yield* call(other, "named")
        expect(named.seen.runs).toBe(3)
      }))

    it.effect("retries neither defects, JSON-RPC errors, invalid arguments nor results of the handler, unless told", () =>
      Effect.gen(function*() {
        let runs = 0
        const t = (handler: Effect.Effect<any, any>) =>
          Tool.layer(
            Tool.make("t", { annotations: { readOnlyHint: true } }),
            () => Effect.andThen(Effect.sync(() => ++runs), handler)
          )
        const outcomes = [
          [Effect.die("dead"), 3],
          [Effect.fail(McpError.other(7, "no")), 3],
          [Effect.succeed(Tool.result({ content: "no", isError: true })), 1]
        ] as const
        for (const [handler, told] of outcomes) {
          for (const [options, expected] of [[{}, 1], [{ when: () => true }, told]] as const) {
            runs = 0
            const client = yield* kit.client(kit.server(Retry.layer(options), t(handler)), revision)
            yield* call(client)
            expect(runs).toBe(expected)
          }
        }
        const strict = Tool.layer(
          Tool.make("t", { input: { n: Schema.Int }, annotations: { readOnlyHint: true } }),
          () => Effect.succeed("x")
        )
        let asked = 0
        const watching = Retry.layer({ when: () => ++asked > 0 })
        yield* call(yield* kit.client(kit.server(watching, strict), revision))
        expect(asked).toBe(0)
      }))

    it.effect("passes the failure, the call and the number of the attempt to the predicate", () =>
      Effect.gen(function*() {
        const attempts: Array<unknown> = []
        const { definition } = failing(100)
        const layer = Retry.layer({
          when: ({ attempt, call, error, isDefect }) => {
            attempts.push([call.name, attempt, error, isDefect])
            return attempt < 2
          }
        })
        yield* call(yield* kit.client(kit.server(layer, definition), revision))
        expect(attempts).toEqual([["t", 1, busy, false], ["t", 2, busy, false]])
      }))

    it.effect("does not ask the client twice, and stops when the call is cancelled", () =>
      Effect.gen(function*() {
        let runs = 0
        const ask = Tool.layer(Tool.make("t", { annotations: { idempotentHint: true } }), () =>
          Effect.andThen(Elicitation.accepted(Elicitation.form("Sure?", { sure: Schema.Boolean })), () => {
            runs++
            return Effect.fail(busy)
          }))
        const asked = yield* input.client(kit.server(Retry.layer({ schedule: quick }), ask), {
          revision,
          answer: () =>
            input.accept({ sure: true })
        })
        expect(yield* asked.call("t")).toBe("failed: busy")
        expect([runs, asked.asked.length]).toEqual([1, 1])
        const { definition, seen } = failing(100)
        const client = yield* kit.client(
          kit.server(Retry.layer({ schedule: quick, maxAttempts: 100 }), definition),
          revision
        )
        const requestId = client.send("tools/call", { name: "t" })
        yield* kit.settle
        client.notify("notifications/cancelled", { requestId })
        yield* kit.settle
        yield* TestClock.adjust("1 minute")
        expect(seen.runs).toBe(1)
      }))
  })
}
