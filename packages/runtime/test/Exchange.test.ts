/** An exchange on its own, as an endpoint of the request era holds it: what it tells its owner, and in which order. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import * as Exchange from "@skein/runtime/Exchange"
import { RequestError } from "@skein/runtime/RequestError"
import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

type Outcome = Effect.Effect<Exchange.Answer, McpError.McpError, Exchange.McpRequest>

/** An owner that remembers what it was told. */
class Recorder implements Exchange.Owner {
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

  run(exchange: Exchange.Exchange) {
    return Effect.runFork(Effect.provideService(this.#handler, Exchange.McpRequest, exchange))
  }

  answer(_: Exchange.Exchange, message: JsonRpc.Success | JsonRpc.Failure) {
    if (this.answers.push(message) <= this.#unsendable) throw new TypeError("no JSON form")
    this.told.push("answer")
  }

  drop() {
    this.told.push("drop")
  }

  say(_: Exchange.Exchange, method: string) {
    this.told.push(method)
    return true
  }

  ask(_: Exchange.Exchange, method: string) {
    this.told.push(method)
    return Effect.fail(new RequestError({ reason: "Unsupported", method, message: "no" }))
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
  const exchange = new Exchange.Exchange(owner, request, { revision: "2026-07-28", info: undefined, capabilities: {} })
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
    const end = Deferred.makeUnsafe<Exchange.Answer>()
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
    const seen: Array<Exchange.Exchange> = []
    const owner = new Recorder(Effect.map(Exchange.McpRequest, (exchange) => {
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
      const end = Deferred.makeUnsafe<Exchange.Answer>()
      const owner = new Recorder(Deferred.await(end))
      const exchange = start(owner)
      yield* exchange.progress({ progress: 1 })
      yield* exchange.notify("notifications/message", {})
      expect(yield* Effect.flip(exchange.request("roots/list"))).toMatchObject({ reason: "Unsupported" })
      expect(owner.told).toEqual(["suspended", "notifications/progress", "notifications/message"])
      Deferred.doneUnsafe(end, Effect.succeed({}))
      owner.told.length = 0
      yield* exchange.progress({ progress: 2 })
      yield* exchange.notify("notifications/message", {})
      expect(yield* Effect.flip(exchange.request("roots/list"))).toMatchObject({
        reason: "Closed",
        method: "roots/list"
      })
      expect(owner.told).toEqual([])
    }))
})
