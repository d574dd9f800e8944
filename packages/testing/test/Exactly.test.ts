/** What the client makes of one fault each, over HTTP: the outcome is known to the letter. */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as RudeServer from "@skein/testing/RudeServer"
import * as Script from "@skein/testing/Script"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"

const eras = ["2025-11-25", "2026-07-28"] as const

const resumption = { initialDelay: 1, maxDelay: 2, maxAttempts: 5, maxReconnects: 12 }
const options: Client.Options = {
  limits: { timeout: "20 seconds" },
  reconnect: { initialDelay: 1, maxDelay: 5, maxAttempts: 3 }
}

const open = (
  script: Script.Script
): Effect.Effect<readonly [RudeServer.RudeHttp, Client.Client], never, Scope.Scope> =>
  Effect.gen(function*() {
    const rude = yield* RudeServer.http(script)
    const revisions = [script.revision ?? "2025-11-25"] as const
    const made = Client.make(Http.transport({ url: rude.url, resumption }), { ...options, revisions })
    return [rude, yield* Effect.orDie(made)] as const
  })

const quiet = Effect.provide(Logger.layer([]))

const called = (client: Client.Client, tool: string, args: object) =>
  Effect.match(client.callTool(tool, args), {
    onFailure: (error) => error.reason._tag as string,
    onSuccess: ({ content }) => (content[0] as { readonly text: string }).text
  })

describe("the connection is cut after each number of bytes", () => {
  it.live(
    "2025-11-25 · a stream that had begun gives its answer; else the call fails, and is not made again",
    () =>
      quiet(Effect.gen(function*() {
        const most = 700
        const [rude, client] = yield* open({
          revision: "2025-11-25",
          resumable: "primed",
          faults: Array.from({ length: most }, (_, nth) => Script.rule("call", Script.cut(nth), { nth }))
        })
        const outcomes: Array<string> = []
        for (let after = 0; after < most; after++) {
          const key = `cut ${after}`
          const outcome = yield* called(client, "progress", { key, n: 3 })
          expect(rude.times(key), `${key}, carried out`).toBe(1)
          outcomes.push(outcome === key ? "answered" : outcome)
        }
        // There is one place before which nothing can be taken up again, and after which everything can.
        const begun = outcomes.indexOf("answered")
        expect(begun).toBeGreaterThan(100)
        expect(begun).toBeLessThan(400)
        expect(new Set(outcomes.slice(0, begun))).toEqual(new Set(["Closed"]))
        expect(new Set(outcomes.slice(begun))).toEqual(new Set(["answered"]))
        expect(rude.sessions).toBe(1)
      })),
    30_000
  )

  it.live(
    "2026-07-28 · where the answer is not whole the call fails, and is not made again",
    () =>
      quiet(Effect.gen(function*() {
        const most = 450
        const [rude, client] = yield* open({
          revision: "2026-07-28",
          faults: Array.from({ length: most }, (_, nth) => Script.rule("call", Script.cut(nth), { nth }))
        })
        const outcomes: Array<string> = []
        for (let after = 0; after < most; after++) {
          const key = `cut ${after}`
          const outcome = yield* called(client, "echo", { key })
          expect(rude.times(key), `${key}, carried out`).toBe(1)
          outcomes.push(outcome === key ? "answered" : outcome)
        }
        const whole = outcomes.indexOf("answered")
        expect(whole).toBeGreaterThan(200)
        expect(new Set(outcomes.slice(0, whole))).toEqual(new Set(["Closed"]))
        expect(new Set(outcomes.slice(whole))).toEqual(new Set(["answered"]))
      })),
    30_000
  )
})

describe.each(eras)("%s", (revision) => {
  it.live("an answer in the name of a call that waits elsewhere is nobody's: each call has a stream of its own", () =>
    quiet(Effect.gen(function*() {
      const [rude, client] = yield* open({
        revision,
        faults: [Script.rule("call", { _tag: "Id", how: "another" }, { nth: 1 })]
      })
      const slow = yield* Effect.forkChild(called(client, "slow", { key: "mine", ms: 100 }))
      const turn = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(turn, { until: () => rude.times("mine") === 1 })
      expect(yield* called(client, "echo", { key: "yours" })).not.toBe("yours")
      expect(yield* Fiber.join(slow)).toBe("mine")
    })))

  it.live("BOM, CRLF, comments, data in pieces, bytes one by one, strangers and noise: the answer is read", () =>
    quiet(Effect.gen(function*() {
      const spelled = (newline: "\n" | "\r\n" | "\r", bom: boolean) =>
        ({ _tag: "Text", newline, bom, comments: true, pieces: true }) as const
      const faults: ReadonlyArray<Script.Fault> = [
        spelled("\n", true),
        spelled("\r\n", false),
        spelled("\r\n", true),
        spelled("\r", true),
        { _tag: "Drip" },
        { _tag: "Strangers" },
        { _tag: "Noise" },
        { _tag: "Extras" },
        { _tag: "Progress", times: 500 },
        { _tag: "Twice" },
        { _tag: "Backwards" },
        { _tag: "Id", how: "twice" },
        { _tag: "ContentType", type: "Text/Event-Stream; charset=UTF-8" },
        { _tag: "Huge", bytes: 1_000_000, answer: true }
      ]
      const [rude, client] = yield* open({
        revision,
        faults: faults.map((fault, nth) => Script.rule("call", fault, { nth }))
      })
      for (const fault of faults) {
        const key = `é😀 ${JSON.stringify(fault)}`
        expect(yield* called(client, "echo", { key })).toBe(key)
        expect(rude.times(key)).toBe(1)
      }
    })))

  it.live("what is no answer fails the call, with a reason, and the next one is answered", () =>
    quiet(Effect.gen(function*() {
      const status = (status: 400 | 500 | 502 | 503 | 504, body: "empty" | "html" | "error" | "garbage") =>
        ({ _tag: "Status", status, body, done: true }) as const
      const faults: ReadonlyArray<readonly [Script.Fault, string]> = [
        [status(400, "html"), "HttpError"],
        [status(500, "garbage"), "HttpError"],
        [status(502, "html"), "HttpError"],
        [status(503, "empty"), "HttpError"],
        [status(504, "html"), "HttpError"],
        [status(400, "error"), "ProtocolError"],
        [{ _tag: "ContentType", type: "text/html" }, "HttpError"],
        [{ _tag: "ContentType", type: "" }, "HttpError"],
        [{ _tag: "Redirect", status: 302, to: "same" }, "HttpError"],
        [{ _tag: "Redirect", status: 307, to: "loop" }, "HttpError"],
        [{ _tag: "Redirect", status: 308, to: "nobody" }, "HttpError"],
        [{ _tag: "Refuse", code: 42 }, "ProtocolError"],
        [{ _tag: "Answer", is: "without result" }, "Closed"]
      ]
      for (const [fault, reason] of faults) {
        // What is redirected comes again.
        const times = fault._tag === "Redirect" ? 100 : 1
        const [rude, client] = yield* open({ revision, faults: [Script.rule("call", fault, { times })] })
        const key = JSON.stringify(fault)
        expect([key, yield* called(client, "echo", { key })]).toEqual([key, reason])
        expect(rude.times(key)).toBe("done" in fault || fault._tag !== "Redirect" ? 1 : 0)
        if (times === 1) expect(yield* called(client, "echo", { key: "next" })).toBe("next")
        expect(rude.requests).toBeLessThan(20)
      }
    })))
})

describe("2025-11-25, resumable", () => {
  it.live("a stream that is closed politely for ever, with an event each time, is given up after maxReconnects", () =>
    quiet(Effect.gen(function*() {
      const poll = { _tag: "Poll", retry: 0 } as const
      const [rude, client] = yield* open({
        resumable: "primed",
        listens: false,
        faults: [Script.rule("call", poll), Script.rule("stream", poll, { times: 1_000 })]
      })
      expect(yield* called(client, "slow", { key: "never", ms: 60_000 })).toBe("Closed")
      expect([rude.resumed, rude.times("never")]).toEqual([resumption.maxReconnects, 1])
    })))

  it.live("a stream that cannot be had again is given up after maxAttempts", () =>
    quiet(Effect.gen(function*() {
      for (
        const fault of [Script.cut(0), Script.cut(30, "end"), {
          _tag: "Status",
          status: 502,
          body: "html",
          done: false
        }] as const
      ) {
        const [rude, client] = yield* open({
          resumable: "primed",
          listens: false,
          faults: [Script.rule("call", { _tag: "Poll" }), Script.rule("stream", fault, { nth: 1, times: 1_000 })]
        })
        expect(yield* called(client, "slow", { key: "never", ms: 60_000 })).toBe("Closed")
        // Those that were cut inside of their head never came so far as to be counted as streams.
        expect(rude.requests).toBeLessThan(2 * resumption.maxAttempts + 6)
        expect(rude.times("never")).toBe(1)
      }
    })))

  it.live("a call whose stream is redirected when it is taken up again is not made again", () =>
    quiet(Effect.gen(function*() {
      for (const to of ["nobody", "loop"] as const) {
        const [rude, client] = yield* open({
          resumable: "primed",
          listens: false,
          faults: [
            Script.rule("call", { _tag: "Poll", retry: 0 }),
            Script.rule("stream", { _tag: "Redirect", status: 307, to }, { nth: 1, times: 1_000 })
          ]
        })
        expect(yield* called(client, "slow", { key: "redirected", ms: 60_000 })).toBe("Closed")
        expect(rude.times("redirected")).toBe(1)
      }
    })))

  it.live("a session that is forgotten is opened anew, and what was not begun is done once", () =>
    quiet(Effect.gen(function*() {
      const [rude, client] = yield* open({ faults: [Script.rule("call", { _tag: "Forget" }, { nth: 1 })] })
      expect(yield* called(client, "echo", { key: "one" })).toBe("one")
      expect(yield* called(client, "echo", { key: "two" })).toBe("two")
      expect([rude.sessions, rude.times("one"), rude.times("two")]).toEqual([2, 1, 1])
    })))

  it.live("a server that restarts in the middle of a call may have done it: the call fails, and the next one is answered", () =>
    quiet(Effect.gen(function*() {
      for (const done of [true, false]) {
        const [rude, client] = yield* open({ faults: [Script.rule("call", { _tag: "Restart", done, code: 0 })] })
        expect(yield* called(client, "echo", { key: "lost" })).toBe("Closed")
        expect(rude.times("lost")).toBe(done ? 1 : 0)
        expect(yield* called(client, "echo", { key: "next" })).toBe("next")
        expect([rude.restarts, rude.sessions]).toEqual([1, 2])
      }
    })))
})
