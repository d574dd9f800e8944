/** An exchange on its own, as an endpoint of the request era holds it: what it tells its owner, and in which order. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import * as RequestContext from "@skein/runtime/RequestContext"
import { RequestError, Unsupported } from "@skein/runtime/RequestError"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

type Outcome = Effect.Effect<RequestContext.Answer, McpError.McpError, RequestContext.McpRequest>

/** An owner that remembers what it was told. */
class Recorder implements RequestContext.Owner {
  readonly told: Array<string> = []
  readonly answers: Array<JsonRpc.Success | JsonRpc.Failure> = []
  drained(): Effect.Effect<void> {
    return Effect.void
  }
  readonly #handler: Outcome
  readonly #unsendable: number

  /** The first `unsendable` answers cannot be sent. */
  constructor(handler: Outcome, unsendable = 0) {
    this.#handler = handler
    this.#unsendable = unsendable
  }

  run(exchange: RequestContext.RequestContext, instead?: RequestContext.RequestContext["instead"]) {
    return Effect.runFork(Effect.provideService(instead ?? this.#handler, RequestContext.McpRequest, exchange))
  }

  answer(_: RequestContext.RequestContext, message: JsonRpc.Success | JsonRpc.Failure) {
    if (this.answers.push(message) <= this.#unsendable) throw new TypeError("no JSON form")
    this.told.push("answer")
  }

  drop() {
    this.told.push("drop")
  }

  say(_: RequestContext.RequestContext, method: string) {
    this.told.push(method)
    return true
  }

  ask(_: RequestContext.RequestContext, method: string) {
    this.told.push(method)
    return Effect.fail(new RequestError({ reason: new Unsupported({ message: "no" }), method }))
  }

  suspended() {
    this.told.push("suspended")
  }

  resumed() {
    this.told.push("resumed")
  }

  defect() {
    this.told.push("defect")
  }
}

const start = (owner: Recorder) => {
  const request = { _tag: "Request", id: 1, method: "tools/call", params: { _meta: { progressToken: 1 } } } as const
  const exchange = new RequestContext.RequestContext(owner, request, {
    revision: "2026-07-28",
    info: undefined,
    capabilities: {}
  })
  exchange.start()
  return exchange
}

describe("an exchange", () => {
  it("that does not suspend is over when start returns, and costs its owner one answer", () => {
    const owner = new Recorder(Effect.succeed({ ok: true }))
    const exchange = start(owner)
    expect(owner.told).toEqual(["answer"])
    expect(owner.answers).toEqual([{ _tag: "Success", id: 1, result: { ok: true } }])
    expect([exchange.fiber, exchange.startedAt, exchange.cancelled]).toEqual([undefined, undefined, false])
    exchange.cancel()
    expect([exchange.cancelled, owner.told]).toEqual([false, ["answer"]])
  })

  it("that suspends says so, is answered, and only then says that it is over", () => {
    const end = Deferred.makeUnsafe<RequestContext.Answer>()
    const owner = new Recorder(Deferred.await(end))
    const exchange = start(owner)
    expect(owner.told).toEqual(["suspended"])
    expect(exchange.fiber).toBeDefined()
    Deferred.doneUnsafe(end, Effect.succeed({}))
    expect(owner.told).toEqual(["suspended", "answer", "resumed"])
  })

  it("that is cancelled is dropped, once", () => {
    const owner = new Recorder(Effect.never)
    const exchange = start(owner)
    exchange.cancel()
    exchange.cancel()
    expect(exchange.cancelled).toBe(true)
    expect(owner.told).toEqual(["suspended", "drop", "resumed"])
  })

  it("that dies tells its owner the cause before it is answered", () => {
    const owner = new Recorder(Effect.die("broken"))
    start(owner)
    expect(owner.told).toEqual(["defect", "answer"])
    expect(owner.answers[0]).toMatchObject({ _tag: "Failure", error: { code: -32603 } })
  })

  it("whose result cannot be sent is answered with -32603 instead", () => {
    const owner = new Recorder(Effect.succeed({}), 1)
    start(owner)
    expect(owner.told).toEqual(["defect", "answer"])
    expect(owner.answers.map((answer) => answer._tag)).toEqual(["Success", "Failure"])
  })

  it("gives its handler itself", () => {
    const seen: Array<RequestContext.RequestContext> = []
    const owner = new Recorder(Effect.map(RequestContext.McpRequest, (exchange) => {
      seen.push(exchange)
      return {}
    }))
    expect(seen).toEqual([])
    const exchange = start(owner)
    expect(seen).toEqual([exchange])
    expect(owner.told).toEqual(["answer"])
  })

  it.effect("says and asks through its owner while it runs, and nothing after its end", () =>
    Effect.gen(function*() {
      const end = Deferred.makeUnsafe<RequestContext.Answer>()
      const owner = new Recorder(Deferred.await(end))
      const exchange = start(owner)
      yield* exchange.progress({ progress: 1 })
      yield* exchange.notify("notifications/message", {})
      expect(yield* Effect.flip(exchange.request("roots/list"))).toMatchObject({ reason: { _tag: "Unsupported" } })
      expect(owner.told).toEqual(["suspended", "notifications/progress", "notifications/message"])
      Deferred.doneUnsafe(end, Effect.succeed({}))
      owner.told.length = 0
      yield* exchange.progress({ progress: 2 })
      yield* exchange.notify("notifications/message", {})
      expect(yield* Effect.flip(exchange.request("roots/list"))).toMatchObject({
        reason: { _tag: "Closed" },
        method: "roots/list"
      })
      expect(owner.told).toEqual([])
    }))

  it.effect("of the request era asks through its round, which is opened when it is first needed", () =>
    Effect.gen(function*() {
      const end = Deferred.makeUnsafe<RequestContext.Answer>()
      const owner = new Recorder(Deferred.await(end))
      const exchange = start(owner)
      const asked: Array<unknown> = []
      let opened = 0
      exchange.rounds = (of) => {
        expect(of).toBe(exchange)
        opened++
        return {
          ask: (...question) => Effect.sync(() => ({ n: asked.push(question) })),
          once: (_key, effect) => effect
        }
      }
      expect(exchange.round).toBe(undefined)
      const options = { key: "k" }
      expect(yield* exchange.request("roots/list", { a: 1 }, options)).toEqual({ n: 1 })
      expect(yield* exchange.request("roots/list")).toEqual({ n: 2 })
      expect(asked).toEqual([["roots/list", { a: 1 }, options], ["roots/list", undefined, undefined]])
      expect([opened, owner.told]).toEqual([1, ["suspended"]])
      Deferred.doneUnsafe(end, Effect.succeed({}))
      expect(yield* Effect.flip(exchange.request("roots/list"))).toMatchObject({ reason: { _tag: "Closed" } })
      expect([opened, exchange.finished]).toEqual([1, true])
    }))

  describe("with an answer in the handler's stead", () => {
    const instead = Effect.succeed({ resultType: "input_required" })

    /** An exchange whose handler is interrupted for it. */
    const interrupted = (handler: Outcome, stead: RequestContext.RequestContext["instead"] = instead) => {
      const owner = new Recorder(handler)
      const exchange = start(owner)
      exchange.instead = stead
      exchange.fiber?.interruptUnsafe()
      return { owner, exchange }
    }

    it("is answered with it when the handler is over, finalizers and all", () => {
      const released = Deferred.makeUnsafe<void>()
      const { owner } = interrupted(Effect.ensuring(Effect.never, Deferred.await(released)))
      expect(owner.told).toEqual(["suspended"])
      Deferred.doneUnsafe(released, Effect.void)
      expect(owner.told).toEqual(["suspended", "answer", "resumed"])
      expect(owner.answers).toMatchObject([{ _tag: "Success", result: { resultType: "input_required" } }])
    })

    it("may suspend for it, and be cancelled meanwhile", () => {
      const { exchange, owner } = interrupted(Effect.never, Effect.never)
      expect([owner.told, exchange.finished]).toEqual([["suspended"], false])
      exchange.cancel()
      expect(owner.told).toEqual(["suspended", "drop", "resumed"])
    })

    it("is not answered with it when it was cancelled", () => {
      const owner = new Recorder(Effect.never)
      const exchange = start(owner)
      exchange.instead = instead
      exchange.cancel()
      expect(owner.told).toEqual(["suspended", "drop", "resumed"])
    })

    it("is answered with what the handler came to, where it came to something before", () => {
      const end = Deferred.makeUnsafe<RequestContext.Answer>()
      const owner = new Recorder(Deferred.await(end))
      const exchange = start(owner)
      exchange.instead = instead
      Deferred.doneUnsafe(end, Effect.succeed({ ok: true }))
      expect(owner.answers).toEqual([{ _tag: "Success", id: 1, result: { ok: true } }])
      expect(owner.told).toEqual(["suspended", "answer", "resumed"])
    })

    it("is answered -32603 when a finalizer of the handler dies", () => {
      const { owner } = interrupted(Effect.ensuring(Effect.never, Effect.die("torn")))
      expect(owner.told).toEqual(["suspended", "defect", "answer", "resumed"])
      expect(owner.answers).toMatchObject([{ _tag: "Failure", error: { code: -32603 } }])
    })
  })
})
