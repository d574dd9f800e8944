/**
 * Thousands of random interleavings of all events of a peer, each compared with the model message by message. No fiber
 * runs between two steps, so racing events happen in one tick, in every order.
 */
import * as McpError from "@skein/protocol/McpError"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import type * as RequestContext from "@skein/runtime/RequestContext"
import type * as Peer from "@skein/runtime/Peer"
import type { RequestError } from "@skein/runtime/RequestError"
import { describe, expect, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { failureOf, logged, poll, raw, settle } from "./kit.ts"
import { bounds, type Kind, kinds, limits, Model } from "./model.ts"

/** The relative frequency of each step. */
const weights = {
  request: 10,
  again: 2,
  batch: 2,
  step: 8,
  cancel: 6,
  call: 7,
  answer: 6,
  interrupt: 4,
  progress: 4,
  report: 4,
  notice: 2,
  endNotice: 2,
  notify: 1,
  room: 1,
  drain: 1,
  tick: 7,
  turn: 2,
  ended: 0.6,
  lost: 0.2,
  close: 0.4
}

interface Step {
  readonly name: keyof typeof weights
  readonly a: number
  readonly b: number
}

const names = Object.keys(weights) as ReadonlyArray<keyof typeof weights>
const total = names.reduce((sum, name) => sum + weights[name], 0)

const pick = (part: number): keyof typeof weights => {
  let rest = part * total
  for (const name of names) {
    rest -= weights[name]
    if (rest < 0) return name
  }
  return "turn"
}

// One word each for the step, its target and its kind.
const word = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff_ffff })))

// Generated numbers lean to the ends of their range. They are spread, because otherwise every other script would close
// the session at once.
const spread = (n: number): number => {
  let x = (n + 0x9e37_79b9) >>> 0
  x = Math.imul(x ^ (x >>> 16), 0x21f0_aaad)
  x = Math.imul(x ^ (x >>> 15), 0x735a_2d97)
  return (x ^ (x >>> 15)) >>> 0
}

const steps = Arbitrary.array(
  Arbitrary.map(Arbitrary.all([word, word, word]), ([n, a, b]): Step => ({
    name: pick(spread(n) / 2 ** 32),
    a: spread(a),
    b: spread(b)
  })),
  { minLength: 1, maxLength: 120 }
)

const text = (json: any): string => {
  if (Array.isArray(json)) return `[${json.map(text).join(", ")}]`
  if (json.method === undefined) return `answer ${json.id} ${json.error === undefined ? "ok" : json.error.code}`
  if (json.id !== undefined) return `${json.method} ${json.id}`
  if (json.method === "notifications/cancelled") return `cancel ${json.params.requestId}`
  if (json.method === "notifications/progress") return `progress ${json.params.progressToken} ${json.params.progress}`
  return json.method
}

/** Handlers of every kind, and the controls that end them. */
class Bench {
  readonly kinds = new Map<number, Kind>()
  readonly exchanges = new Map<number, RequestContext.RequestContext>()
  readonly ends = new Map<number, Deferred.Deferred<RequestContext.Answer, McpError.McpError>>()
  readonly notices: Array<Deferred.Deferred<void>> = []
  peer: Peer.Peer | undefined = undefined

  readonly dispatch = (
    exchange: RequestContext.RequestContext
  ): Effect.Effect<RequestContext.Answer, McpError.McpError> => {
    const id = exchange.id as number
    this.exchanges.set(id, exchange)
    switch (this.kinds.get(id)!) {
      case "sync":
        return Effect.succeed({})
      case "throws":
        throw new Error("thrown")
      case "closes":
        return Effect.sync(() => {
          this.peer!.close({ _tag: "Expired" })
          return {}
        })
      case "asks":
        return Effect.match(exchange.request("question", {}, { timeout: 100, maxTimeout: 100 }), {
          onFailure: () => ({}),
          onSuccess: () => ({})
        })
      case "parked":
        return this.#wait(id)
      case "masked":
        return Effect.uninterruptible(this.#wait(id))
      case "slow":
        return Effect.onInterrupt(this.#wait(id), () => Effect.ignore(this.#wait(id)))
    }
  }

  readonly onNotification = (): Effect.Effect<void> =>
    Effect.suspend(() => {
      const end = Deferred.makeUnsafe<void>()
      this.notices.push(end)
      return Deferred.await(end)
    })

  step(id: number, how: "ok" | "error" | "defect"): void {
    const end = this.ends.get(id)
    if (end === undefined) return
    this.ends.delete(id)
    Deferred.doneUnsafe(
      end,
      how === "ok"
        ? Effect.succeed({})
        : how === "error"
        ? Effect.fail(McpError.invalidParams())
        : Effect.die("broken")
    )
  }

  endNotice(): void {
    const end = this.notices.shift()
    if (end !== undefined) Deferred.doneUnsafe(end, Effect.void)
  }

  #wait(id: number): Effect.Effect<RequestContext.Answer, McpError.McpError> {
    return Effect.suspend(() => {
      const end = Deferred.makeUnsafe<RequestContext.Answer, McpError.McpError>()
      this.ends.set(id, end)
      return Deferred.await(end)
    })
  }
}

const outcome = (fiber: Fiber.Fiber<unknown, McpError.McpError | RequestError>): string => {
  const exit = fiber.pollUnsafe()
  if (exit === undefined) return "running"
  if (Exit.isSuccess(exit)) return "ok"
  const error = failureOf(fiber)
  if (error === undefined) return Exit.hasInterrupts(exit) ? "interrupted" : "defect"
  if (error._tag === "McpError") return "error"
  return error.reason._tag === "InvalidResponse" ? "bad" : error.reason._tag
}

const run = (script: ReadonlyArray<Step>) =>
  Effect.gen(function*() {
    const model = new Model()
    const bench = new Bench()
    const scope = yield* Scope.make()
    const { other, peer } = yield* raw({
      revision: "2025-03-26",
      limits,
      bounds,
      dispatch: bench.dispatch,
      onNotification: bench.onNotification
    }).pipe(Effect.provideService(Scope.Scope, scope))
    bench.peer = peer
    let nextRequest = 1
    const fibers = new Map<number, Fiber.Fiber<any, any>>()
    const reported = new Map<number, Array<number>>()
    const background: Array<Fiber.Fiber<void>> = []
    const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkDetach(effect, { startImmediately: true })

    const kindOf = (a: number): Kind => {
      // Handlers that close the session are rare.
      const kind = kinds[a % kinds.length]!
      return kind === "closes" && a % 5 !== 0 ? "parked" : kind
    }
    const fresh = (a: number): readonly [number, Kind] => {
      const id = nextRequest++
      const kind = kindOf(a)
      bench.kinds.set(id, kind)
      return [id, kind]
    }
    const message = (id: number) => ({ jsonrpc: "2.0", id, method: "work", params: { _meta: { progressToken: id } } })
    // Mostly ids of current requests, and sometimes of unknown or completed ones.
    const known = (a: number): number => 1 + a % Math.max(1, nextRequest)
    const inFlight = (a: number, b: number): number => {
      const ids = [...model.requests.keys()]
      return ids.length === 0 || b % 4 === 0 ? known(a) : ids[a % ids.length]!
    }
    const waiting = (a: number, b: number): number => {
      const ids = [...model.calls.keys()]
      return ids.length === 0 || b % 4 === 0 ? 1 + a % 20 : ids[a % ids.length]!
    }
    // A connection reports its end once. This side may close it any number of times.
    const end = (end: Parameters<Peer.Peer["close"]>[0]) => {
      const transport = end._tag === "ClosedByPeer" || end._tag === "Lost"
      if (transport && model.end !== undefined) return
      model.close(end)
      if (end._tag === "ClosedByPeer" || end._tag === "Lost") other.end(end)
      else peer.close(end)
    }

    for (const { a, b, name } of script) {
      const reads = model.end === undefined
      switch (name) {
        case "request": {
          if (!reads) break
          const [id, kind] = fresh(a)
          model.request(id, kind)
          other.json(message(id))
          break
        }
        case "again": {
          const id = inFlight(a, 1)
          if (!reads || !model.requests.has(id)) break
          model.request(id, "sync")
          other.json(message(id))
          break
        }
        case "batch": {
          if (!reads) break
          const members = Array.from({ length: 1 + a % 3 }, (_, index) => fresh(b + index * 7919))
          model.batch(members.map((member) => () => member))
          other.json(members.map(([id]) => message(id)))
          break
        }
        case "step": {
          const id = inFlight(a, b)
          const how = (["ok", "ok", "error", "defect"] as const)[b % 4]!
          // Only a waiting handler can be ended.
          if (!bench.ends.has(id)) break
          model.step(id, how)
          bench.step(id, how)
          break
        }
        case "cancel": {
          if (!reads) break
          const id = inFlight(a, b)
          model.cancel(id)
          other.cancel(id)
          break
        }
        case "call": {
          const timeout = 10 * (1 + a % 5)
          const maxTimeout = 10 * (1 + b % 12)
          const progresses = b % 3 !== 0
          const id = model.call(timeout, maxTimeout, progresses)
          const values: Array<number> = []
          const fiber = yield* fork(peer.request("call", {}, {
            timeout,
            maxTimeout,
            ...(progresses ? { onProgress: ({ progress }) => values.push(progress) } : undefined)
          }))
          if (typeof id === "string") expect(outcome(fiber)).toBe(id)
          else {
            fibers.set(id, fiber)
            reported.set(id, values)
          }
          break
        }
        case "answer": {
          if (!reads) break
          const id = waiting(a, b)
          const how = (["ok", "ok", "error", "bad"] as const)[b % 4]!
          model.answer(id, how)
          if (how === "ok") other.answer(id)
          else if (how === "error") other.fail(id, -32602, "no")
          else other.json({ jsonrpc: "2.0", id, result: [] })
          break
        }
        case "interrupt": {
          const id = waiting(a, b)
          const fiber = fibers.get(id)
          if (fiber === undefined) break
          model.interrupt(id)
          fiber.interruptUnsafe()
          break
        }
        case "progress": {
          if (!reads) break
          const id = waiting(a, b)
          model.progress(id, b % 10)
          other.progress(id, b % 10)
          break
        }
        case "report": {
          const id = inFlight(a, b)
          const exchange = bench.exchanges.get(id)
          if (exchange === undefined) break
          model.report(id, b % 10)
          background.push(yield* fork(exchange.progress({ progress: b % 10 })))
          break
        }
        case "notice":
          if (!reads) break
          model.notice()
          other.notify("notifications/work")
          break
        case "endNotice":
          if (model.notices === 0) break
          model.endNotice()
          bench.endNotice()
          break
        case "notify":
          model.notify()
          background.push(yield* fork(peer.notify("notify")))
          break
        case "room":
          other.room = false
          break
        case "drain":
          other.drain()
          break
        case "tick":
          model.tick()
          yield* TestClock.adjust(10)
          yield* settle
          break
        case "turn":
          yield* settle
          break
        case "ended":
          end({ _tag: "ClosedByPeer" })
          break
        case "lost":
          end({ _tag: "Lost", cause: new TransportError({ reason: new ConnectionLost({ message: "broken" }) }) })
          break
        case "close":
          end({ _tag: "ClosedByUs" })
          break
      }
      expect(other.messages.map(text)).toEqual(model.wire)
      expect([...peer.requests].map((exchange) => exchange.id)).toEqual([...model.requests.keys()])
      expect([...peer.calls].map((call) => call.id)).toEqual([...model.calls.keys()])
    }

    // The scope closes. Handlers that ignore the interruption are ended afterwards, and then nothing remains.
    model.close({ _tag: "ClosedByUs" })
    const closing = yield* fork(Scope.close(scope, Exit.void))
    yield* TestClock.adjust(1000)
    yield* settle
    expect(poll(closing)).toBe("succeeded")
    expect((yield* peer.ended)._tag).toBe(model.end!._tag)
    expect(other.messages.map(text)).toEqual(model.wire)
    for (const id of [...bench.ends.keys()]) bench.step(id, "ok")
    for (const [id, fiber] of fibers) {
      expect([id, outcome(fiber)]).toEqual([id, model.outcomes.get(id)])
      expect(reported.get(id)).toEqual(model.reported.get(id))
    }
    yield* settle
    expect([...peer.requests]).toEqual([])
    expect([...peer.calls]).toEqual([])
    expect(background.every((fiber) => fiber.pollUnsafe() !== undefined)).toBe(true)
    expect(other.messages.map(text)).toEqual(model.wire)
    expect([other.waiters, other.closes]).toEqual([0, 1])
  })

describe("random interleavings", () => {
  it.effect.prop(
    `2025-11-25 · both parties MUST handle these race conditions gracefully: every request is answered once, or not at all when it was cancelled or the session ended; every call ends once; ` +
      `ended requests get no further messages; no resources remain`,
    [steps],
    ([script]) => logged(() => Effect.as(run(script), true)),
    { timeout: 60_000, arbitrary: { runs: 400, size: 120, seed: "skein" } }
  )
})
