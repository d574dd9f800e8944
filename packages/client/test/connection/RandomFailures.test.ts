/**
 * Random schedules of failures: connections that cannot be opened or are lost before or after a request, with or
 * without a clean end, and requests that are refused, lost alone, or never answered.
 */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { ConnectionLost, MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { turn } from "./support.ts"

const refusal = (status: number, undelivered?: boolean) =>
  new TransportError({ reason: new MessageRejected({ message: `HTTP ${status}`, status }), undelivered })

/**
 * The fates of a message. Each determines whether the server may have it, and whether the client may report it as
 * undelivered.
 */
const fates: ReadonlyArray<readonly [name: string, fate: ScriptedServer.Delivery]> = [
  ["answered", undefined],
  ["answered", undefined],
  ["answered", undefined],
  ["no response", "drop"],
  ["lost before", "lose"],
  ["lost after", { delivered: "lose" }],
  [
    "nobody took it",
    new TransportError({ reason: new ConnectionLost({ message: "ECONNREFUSED" }), undelivered: true })
  ],
  ["its answer was lost", { delivered: ScriptedServer.lost("ECONNRESET") }],
  ["busy", refusal(503)],
  ["busy, and not handled", refusal(503, true)],
  ["no session", refusal(404, true)],
  ["refused", refusal(400)]
]

interface Call {
  readonly repeatable: boolean
  /** Milliseconds, like `after`. */
  readonly timeout: number
  readonly after: number
  readonly interrupted: boolean
}

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

const bool = Arbitrary.schema(Schema.Boolean)

const calls = Arbitrary.array(
  Arbitrary.map(
    Arbitrary.all([bool, int(1, 20), int(0, 3_000), int(0, 9)]),
    ([repeatable, timeout, after, dice]): Call => ({
      repeatable,
      timeout: timeout * 500,
      after,
      interrupted: dice === 0
    })
  ),
  { minLength: 1, maxLength: 8 }
)

const schedule = Arbitrary.array(int(0, fates.length - 1), { minLength: 0, maxLength: 24 })
/** The attempts to connect that fail, and the times in milliseconds at which connections are closed. */
const openings = Arbitrary.array(bool, { minLength: 0, maxLength: 12 })
const cuts = Arbitrary.array(Arbitrary.all([int(1, 4_000), bool]), { minLength: 0, maxLength: 6 })

/** The argument `key` identifies the call. */
const keyOf = ({ params }: JsonRpc.Request): number => {
  const args = params?.["arguments"]
  return JsonRpc.isObject(args) ? Number(args["key"]) : NaN
}

const reasons: ReadonlyArray<ClientError["reason"]["_tag"]> = ["Closed", "Timeout", "HttpError"]
const maxAttempts = 3
const maxRetries = 2

describe("random schedules of failures", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect.prop(
      `${revision} · each call ends once, with its own answer or a typed error, within its deadline; a call that is not repeatable ` +
        "reaches the server at most once; the attempts to connect are bounded; no resources remain",
      [calls, schedule, openings, cuts],
      ([calls, schedule, openings, cuts]) =>
        Effect.gen(function*() {
          const line = ScriptedServer.make(ScriptedServer.handshake(revision, (request) =>
            ScriptedServer.success({
              content: [{ type: "text", text: String(keyOf(request)) }],
              resultType: "complete"
            })))
          let sent = 0
          line.onRequest = (request) => request.method === "tools/call" ? fates[schedule[sent++] ?? 0]![1] : undefined
          line.onConnect = (attempt) =>
            attempt > 1 && openings[attempt - 2] === true
              ? new TransportError({ reason: new OpenFailed({ message: "nobody there" }) })
              : undefined
          const scope = yield* Scope.make()
          const client = yield* Scope.provide(
            Client.make(line.transport, {
              revisions: [revision],
              reconnect: { maxAttempts },
              limits: { maxRetries }
            }),
            scope
          )
          let now = 0
          const ends = new Map<number, { at: number; exit: Exit.Exit<unknown, ClientError>; times: number }>()
          const fibers = yield* Effect.forEach(calls, (call, key) =>
            Effect.forkChild(
              Effect.andThen(
                Effect.sleep(call.after),
                client.callTool("tool", { key }, { retry: call.repeatable, timeout: call.timeout })
              ).pipe(
                Effect.onExit((exit) =>
                  Effect.sync(() => void ends.set(key, { at: now, exit, times: (ends.get(key)?.times ?? 0) + 1 }))
                )
              ),
              { startImmediately: true }
            ))
          const due = cuts.map(([at, graceful]) => ({ at, graceful }))
          const step = 250
          // The longest call, the latest start, and a margin.
          for (now = step; now <= 13_500; now += step) {
            yield* TestClock.adjust(step)
            for (let turns = 0; turns < 4; turns++) yield* turn
            for (const cut of due.filter(({ at }) => at > now - step && at <= now)) {
              if (line.openConnections === 0) continue
              if (cut.graceful) line.disconnect()
              else line.lose()
            }
            for (const [key, call] of calls.entries()) {
              if (call.interrupted && now - step <= call.after + 700 && call.after + 700 < now) {
                yield* Fiber.interrupt(fibers[key]!)
              }
            }
            if (ends.size === calls.length && due.every(({ at }) => at < now)) break
          }
          const details = JSON.stringify({ calls, fates: schedule.map((fate) => fates[fate]![0]), openings, cuts })
          for (const [key, call] of calls.entries()) {
            const end = ends.get(key)
            assert.isDefined(end, `call ${key} has not ended: ${details}`)
            assert.strictEqual(end!.times, 1)
            assert.isAtMost(end!.at, call.after + call.timeout + 2 * step, `call ${key} is late: ${details}`)
            const { exit } = end!
            if (Exit.isSuccess(exit)) {
              assert.deepStrictEqual((exit.value as { readonly content: unknown }).content, [{
                type: "text",
                text: String(key)
              }])
            } else if (!Exit.hasInterrupts(exit)) {
              const error = Exit.findErrorOption(exit)
              assert.strictEqual(error._tag, "Some", details)
              if (error._tag === "Some") {
                assert.include(reasons, error.value.reason._tag, `${error.value.message}: ${details}`)
              }
            } else assert.isTrue(call.interrupted)
            const reached = line.requests("tools/call").filter((request) => keyOf(request) === key).length
            assert.isAtMost(reached, call.repeatable ? 1 + maxRetries : 1, details)
            if (Exit.isSuccess(exit)) assert.isAtLeast(reached, 1)
            if (Exit.isFailure(exit)) {
              const error = Exit.findErrorOption(exit)
              // The host may retry a call that is reported as undelivered, so the report must be true.
              if (error._tag === "Some" && error.value.undelivered === true) assert.strictEqual(reached, 0, details)
            }
          }
          assert.isAtMost(line.maxOpenConnections, 1)
          // The schedules are shorter than the time after which a connection resets the count.
          assert.isAtMost(line.attempts, 1 + maxAttempts)
          const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(closing)
          assert.strictEqual(line.openConnections, 0)
          yield* client.ended
          for (const fiber of fibers) yield* Fiber.await(fiber)
          return true
        }),
      { timeout: 60_000, arbitrary: { runs: 150, size: 30, seed: "skein" } }
    )
  }
})
