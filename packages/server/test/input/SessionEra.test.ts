/** Input requests in session-based revisions: requests of the server, on behalf of a request of the client. */
import { describe, expect, it } from "@effect/vitest"
import type { InputError } from "@skein/server/InputError"
import * as Elicitation from "@skein/server/Elicitation"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import * as Schema from "effect/Schema"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const revision = "2025-11-25"
const form = (options?: Elicitation.Options) => Elicitation.form("?", { a: Schema.String }, options)
const sample = (options?: Sampling.Options) => Sampling.createMessage({ messages: "?", maxTokens: 1 }, options)

/** A client that does not answer an input request, and the outcome of the request once it has ended. */
const waiting = <A>(question: Effect.Effect<A, InputError, McpRequest>, answer: kit.Answerer = () => undefined) =>
  Effect.gen(function*() {
    const seen: Array<Result.Result<A, InputError>> = []
    const handler = Effect.map(Effect.result(question), (result) => {
      seen.push(result)
      return "done"
    })
    const client = yield* kit.client(kit.tool(handler), { revision, answer })
    const call = yield* Effect.forkChild(client.call("t"), { startImmediately: true })
    yield* base.settle
    return {
      client,
      call,
      seen,
      reason: () => seen.map((result) => Result.isFailure(result) && result.failure.reason._tag)
    }
  })

describe("2025-11-25", () => {
  it.effect("waits 10 minutes for people, and cancels the request afterwards", () =>
    Effect.gen(function*() {
      const questions = [form(), form({ timeout: undefined }), Elicitation.url("?", "https://example.com"), sample()]
      for (const question of questions) {
        const { call, client, reason } = yield* waiting<unknown>(question)
        yield* TestClock.adjust("599999 millis")
        expect(reason()).toEqual([])
        yield* TestClock.adjust("1 millis")
        expect(yield* Fiber.join(call)).toBe("done")
        expect(reason()).toEqual(["Timeout"])
        const asked = client.received.find(({ id, method }) => id !== undefined && method !== undefined)
        expect(client.notices("notifications/cancelled").map(({ params }) => params.requestId)).toEqual([asked.id])
      }
    }))

  it.effect("waits for the given timeout, and for roots as long as the connection's timeout", () =>
    Effect.gen(function*() {
      for (const [question, wait] of [[form({ timeout: "3 seconds" }), 3000], [Roots.list(), 60_000]] as const) {
        const { call, reason } = yield* waiting<unknown>(question)
        yield* TestClock.adjust(wait - 1)
        expect(reason()).toEqual([])
        yield* TestClock.adjust(1)
        yield* Fiber.join(call)
        expect(reason()).toEqual(["Timeout"])
      }
    }))

  it.effect("cancels the input requests of a cancelled handler", () =>
    Effect.gen(function*() {
      const { call, client } = yield* waiting<unknown>(
        Effect.all([form(), sample()], { concurrency: "unbounded" }) as Effect.Effect<unknown, InputError, McpRequest>
      )
      expect(client.asked).toHaveLength(2)
      client.notify("notifications/cancelled", { requestId: client.sent })
      yield* base.settle
      const asked = client.received.filter(({ id, method }) => id !== undefined && method !== undefined)
      const cancelled = client.notices("notifications/cancelled").map(({ params }) => params.requestId)
      expect(cancelled.toSorted()).toEqual(asked.map(({ id }) => id).toSorted())
      yield* Fiber.interrupt(call)
    }))

  it.effect("fails with ProtocolError and the client's error", () =>
    Effect.gen(function*() {
      const error = { code: -1, message: "User rejected sampling request" }
      const { call, reason, seen } = yield* waiting<unknown>(sample(), () => ({ error }))
      yield* Fiber.join(call)
      expect(reason()).toEqual(["ProtocolError"])
      expect(seen[0]).toMatchObject({
        failure: {
          message: `The client refused sampling/createMessage: ${error.message}`,
          reason: { error: { code: -1 } }
        }
      })
    }))

  it.effect("fails with InvalidResponse for a malformed response", () =>
    Effect.gen(function*() {
      const { call, reason } = yield* waiting<unknown>(form(), () => ({ action: "perhaps" }))
      yield* Fiber.join(call)
      expect(reason()).toEqual(["InvalidResponse"])
    }))

  it.effect("fails with Closed when the connection ends", () =>
    Effect.gen(function*() {
      const { call, client, reason } = yield* waiting<unknown>(form())
      yield* client.connection.close
      yield* base.settle
      expect(reason()).toEqual(["Closed"])
      yield* Fiber.interrupt(call)
    }))

  it.effect("sends parallel input requests at the same time", () =>
    Effect.gen(function*() {
      const { call, client } = yield* waiting<unknown>(
        Effect.all([form(), form(), Roots.list()], { concurrency: "unbounded" }) as never
      )
      expect(client.asked).toHaveLength(3)
      yield* Fiber.interrupt(call)
    }))

  it.effect("completes a visit after the end of its request, while the session is open", () =>
    Effect.gen(function*() {
      const visits: Array<Elicitation.Visit> = []
      const question = Effect.map(
        Elicitation.accepted(Elicitation.url("?", "https://example.com", { elicitationId: "e" })),
        (visit) => visits.push(visit)
      )
      const { call, client } = yield* waiting<unknown>(question, () => ({ action: "accept" }))
      expect(yield* Fiber.join(call)).toBe("done")
      expect(client.notices("notifications/elicitation/complete")).toEqual([])
      yield* visits[0]!.complete
      yield* base.settle
      expect(client.notices("notifications/elicitation/complete").map(({ params }) => params)).toEqual([{
        elicitationId: "e"
      }])
    }))

  it.effect("2026-07-28 · sends no notification of a completed visit", () =>
    Effect.gen(function*() {
      const handler = Effect.flatMap(
        Elicitation.accepted(Elicitation.url("?", "https://example.com")),
        ({ complete }) => Effect.as(complete, "done")
      )
      const client = yield* kit.client(kit.tool(handler), {
        revision: "2026-07-28",
        answer: () => ({ action: "accept" })
      })
      expect(yield* client.call("t")).toBe("done")
      expect(client.received.filter(({ method }) => method !== undefined)).toEqual([])
    }))
})
