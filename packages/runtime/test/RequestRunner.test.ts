/** The runner of inbound requests: how it handles each outcome of a handler, and in which order. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestContext from "@skein/runtime/RequestContext"
import { RequestRunner } from "@skein/runtime/RequestRunner"
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"

type Outcome = Effect.Effect<RequestContext.Answer, McpError.McpError, RequestContext.McpRequest>

/** A sink and a logger that record the steps of a request, in order. */
class Recorder implements RequestContext.ResponseSink {
  readonly steps: Array<string> = []
  readonly responses: Array<JsonRpc.Success | JsonRpc.Failure> = []
  readonly #handler: Outcome
  readonly #unsendable: number

  /** The first `unsendable` responses cannot be sent. */
  constructor(handler: Outcome, unsendable = 0) {
    this.#handler = handler
    this.#unsendable = unsendable
  }

  start(request: RequestContext.Exchange): void {
    const logger = Logger.make(() => void this.steps.push("defect"))
    const services = Context.make(Logger.CurrentLoggers, new Set([logger]))
    new RequestRunner<never>({ dispatch: () => this.#handler }, services).start(request)
  }

  respond(_: RequestContext.Exchange, message: JsonRpc.Success | JsonRpc.Failure) {
    if (this.responses.push(message) <= this.#unsendable) throw new TypeError("no JSON form")
    this.steps.push("respond")
  }

  discard() {
    this.steps.push("discard")
  }

  notify(_: RequestContext.Exchange, method: string) {
    this.steps.push(method)
    return true
  }

  drained(): Effect.Effect<void> {
    return Effect.void
  }

  suspended() {
    this.steps.push("suspended")
  }

  ended() {
    this.steps.push("ended")
  }
}

const start = (recorder: Recorder) => {
  const message = { _tag: "Request", id: 1, method: "tools/call", params: { _meta: { progressToken: 1 } } } as const
  const request = new RequestContext.Exchange(recorder, message, {
    revision: "2026-07-28",
    info: undefined,
    capabilities: {}
  })
  recorder.start(request)
  return request
}

describe("a request", () => {
  it("sends the response of a request that does not suspend before start returns", () => {
    const recorder = new Recorder(Effect.succeed({ ok: true }))
    const request = start(recorder)
    expect(recorder.steps).toEqual(["respond"])
    expect(recorder.responses).toEqual([{ _tag: "Success", id: 1, result: { ok: true } }])
    expect([request.fiber, request.startedAt, request.cancelled]).toEqual([undefined, undefined, false])
    request.cancel()
    expect([request.cancelled, recorder.steps]).toEqual([false, ["respond"]])
  })

  it("reports a suspending request as suspended, answers it, and reports it as ended", () => {
    const end = Deferred.makeUnsafe<RequestContext.Answer>()
    const recorder = new Recorder(Deferred.await(end))
    const request = start(recorder)
    expect(recorder.steps).toEqual(["suspended"])
    expect(request.fiber).toBeDefined()
    Deferred.doneUnsafe(end, Effect.succeed({}))
    expect(recorder.steps).toEqual(["suspended", "respond", "ended"])
  })

  it("discards a cancelled request once", () => {
    const recorder = new Recorder(Effect.never)
    const request = start(recorder)
    request.cancel()
    request.cancel()
    expect(request.cancelled).toBe(true)
    expect(recorder.steps).toEqual(["suspended", "discard", "ended"])
  })

  it("logs a defect before it answers the request", () => {
    const recorder = new Recorder(Effect.die("broken"))
    start(recorder)
    expect(recorder.steps).toEqual(["defect", "respond"])
    expect(recorder.responses[0]).toMatchObject({ _tag: "Failure", error: { code: -32603 } })
  })

  it("answers with -32603 if the result cannot be sent", () => {
    const recorder = new Recorder(Effect.succeed({}), 1)
    start(recorder)
    expect(recorder.steps).toEqual(["defect", "respond"])
    expect(recorder.responses.map((answer) => answer._tag)).toEqual(["Success", "Failure"])
  })

  it("provides the request context to the handler", () => {
    const seen: Array<RequestContext.RequestContext> = []
    const recorder = new Recorder(Effect.map(RequestContext.McpRequest, (request) => {
      seen.push(request)
      return {}
    }))
    expect(seen).toEqual([])
    const request = start(recorder)
    expect(seen).toEqual([request.received])
    expect(recorder.steps).toEqual(["respond"])
  })

  it.effect("sends through the sink while the request runs, and nothing after its end", () =>
    Effect.gen(function*() {
      const end = Deferred.makeUnsafe<RequestContext.Answer>()
      const recorder = new Recorder(Deferred.await(end))
      const request = start(recorder)
      yield* request.received.progress({ progress: 1 })
      yield* request.received.notify("notifications/message", {})
      expect(yield* Effect.flip(request.received.request("roots/list"))).toMatchObject({
        reason: { _tag: "Unsupported" }
      })
      expect(recorder.steps).toEqual(["suspended", "notifications/progress", "notifications/message"])
      Deferred.doneUnsafe(end, Effect.succeed({}))
      recorder.steps.length = 0
      yield* request.received.progress({ progress: 2 })
      yield* request.received.notify("notifications/message", {})
      expect(yield* Effect.flip(request.received.request("roots/list"))).toMatchObject({
        reason: { _tag: "Closed" },
        method: "roots/list"
      })
      expect(recorder.steps).toEqual([])
    }))

  it.effect("2026-07-28 · requests input through its round, which starts when it is first needed", () =>
    Effect.gen(function*() {
      const end = Deferred.makeUnsafe<RequestContext.Answer>()
      const recorder = new Recorder(Deferred.await(end))
      const request = start(recorder)
      const asked: Array<unknown> = []
      let opened = 0
      request.rounds = (of) => {
        expect(of).toBe(request)
        opened++
        return {
          ask: (...question) => Effect.sync(() => ({ n: asked.push(question) })),
          once: (_key, effect) => effect
        }
      }
      expect(request.round).toBe(undefined)
      const options = { key: "k" }
      expect(yield* request.received.request("roots/list", { a: 1 }, options)).toEqual({ n: 1 })
      expect(yield* request.received.request("roots/list")).toEqual({ n: 2 })
      expect(asked).toEqual([["roots/list", { a: 1 }, options], ["roots/list", undefined, undefined]])
      expect([opened, recorder.steps]).toEqual([1, ["suspended"]])
      Deferred.doneUnsafe(end, Effect.succeed({}))
      expect(yield* Effect.flip(request.received.request("roots/list"))).toMatchObject({ reason: { _tag: "Closed" } })
      expect([opened, request.finished]).toEqual([1, true])
    }))

  describe("replaceWith", () => {
    const replacement = Effect.succeed({ resultType: "input_required" })

    /** A suspended request whose handler is replaced. */
    const interrupted = (handler: Outcome, instead: Effect.Effect<RequestContext.Answer> = replacement) => {
      const recorder = new Recorder(handler)
      const request = start(recorder)
      request.replaceWith(instead)
      return { recorder, request }
    }

    it("answers with the replacement after the handler and its finalizers have ended", () => {
      const released = Deferred.makeUnsafe<void>()
      const { recorder } = interrupted(Effect.ensuring(Effect.never, Deferred.await(released)))
      expect(recorder.steps).toEqual(["suspended"])
      Deferred.doneUnsafe(released, Effect.void)
      expect(recorder.steps).toEqual(["suspended", "respond", "ended"])
      expect(recorder.responses).toMatchObject([{ _tag: "Success", result: { resultType: "input_required" } }])
    })

    it("cancels the request while the replacement runs", () => {
      const { request, recorder } = interrupted(Effect.never, Effect.never)
      expect([recorder.steps, request.finished]).toEqual([["suspended"], false])
      request.cancel()
      expect(recorder.steps).toEqual(["suspended", "discard", "ended"])
    })

    it("does not answer with the replacement after a cancellation", () => {
      const released = Deferred.makeUnsafe<void>()
      const { recorder, request } = interrupted(Effect.ensuring(Effect.never, Deferred.await(released)))
      request.cancel()
      Deferred.doneUnsafe(released, Effect.void)
      expect(recorder.steps).toEqual(["suspended", "discard", "ended"])
    })

    it("answers with the outcome of a handler that ignores the interruption", () => {
      const end = Deferred.makeUnsafe<RequestContext.Answer, McpError.McpError>()
      const { recorder, request } = interrupted(Effect.uninterruptible(Deferred.await(end)))
      expect(request.state).toBe("Replacing")
      Deferred.doneUnsafe(end, Effect.fail(McpError.invalidParams("no")))
      expect(request.state).toBe("Done")
      expect(recorder.responses).toMatchObject([{ _tag: "Failure", id: 1, error: { code: -32602, message: "no" } }])
      expect(recorder.steps).toEqual(["suspended", "respond", "ended"])
    })

    it("answers with -32603 when a finalizer of the handler dies", () => {
      const { recorder } = interrupted(Effect.ensuring(Effect.never, Effect.die("torn")))
      expect(recorder.steps).toEqual(["suspended", "defect", "respond", "ended"])
      expect(recorder.responses).toMatchObject([{ _tag: "Failure", error: { code: -32603 } }])
    })
  })
})
