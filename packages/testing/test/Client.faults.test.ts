/** The outcome of client calls over HTTP for each fault separately. */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as FaultyServer from "@skein/testing/FaultyServer"
import * as Scenario from "@skein/testing/Scenario"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import { withBounds } from "../../client/test/http/support/changedBounds.ts"

const eras = ["2025-11-25", "2026-07-28"] as const

const resumption = { initialDelay: 1, maxDelay: 2, maxAttempts: 5 }
const bounds = { maxReconnects: 12 }
const options: Client.Options = {
  limits: { timeout: "20 seconds" },
  reconnect: { initialDelay: 1, maxDelay: 5, maxAttempts: 3 }
}

const open = (
  scenario: Scenario.Scenario
): Effect.Effect<readonly [FaultyServer.HttpServer, Client.Client], never, Scope.Scope> =>
  Effect.gen(function*() {
    const server = yield* FaultyServer.http(scenario)
    const revisions = [scenario.revision ?? "2025-11-25"] as const
    const made = Client.make(withBounds(Http.transport({ url: server.url, resumption }), bounds), {
      ...options,
      revisions
    })
    return [server, yield* Effect.orDie(made)] as const
  })

const quiet = Effect.provide(Logger.layer([]))

const called = (client: Client.Client, tool: string, args: object) =>
  Effect.match(client.callTool(tool, args), {
    onFailure: (error) => error.reason._tag as string,
    onSuccess: ({ content }) => (content[0] as { readonly text: string }).text
  })

describe("the connection is cut after each number of bytes", () => {
  it.live(
    "2025-11-25 · returns the response if the stream had begun, else fails the call and does not repeat it",
    () =>
      quiet(Effect.gen(function*() {
        const most = 700
        const [server, client] = yield* open({
          revision: "2025-11-25",
          resumable: "primed",
          faults: Array.from({ length: most }, (_, nth) => Scenario.rule("request", Scenario.cut(nth), { nth }))
        })
        const outcomes: Array<string> = []
        for (let after = 0; after < most; after++) {
          const key = `cut ${after}`
          const outcome = yield* called(client, "progress", { key, n: 3 })
          expect(server.callCount(key), `${key}, carried out`).toBe(1)
          outcomes.push(outcome === key ? "answered" : outcome)
        }
        // Up to one position no stream can be resumed, and after it every stream can.
        const begun = outcomes.indexOf("answered")
        expect(begun).toBeGreaterThan(100)
        expect(begun).toBeLessThan(400)
        expect(new Set(outcomes.slice(0, begun))).toEqual(new Set(["Closed"]))
        expect(new Set(outcomes.slice(begun))).toEqual(new Set(["answered"]))
        expect(server.sessionCount).toBe(1)
      })),
    120_000
  )

  it.live(
    "2026-07-28 · fails the call without repeating it if the response is incomplete",
    () =>
      quiet(Effect.gen(function*() {
        const most = 450
        const [server, client] = yield* open({
          revision: "2026-07-28",
          faults: Array.from({ length: most }, (_, nth) => Scenario.rule("request", Scenario.cut(nth), { nth }))
        })
        const outcomes: Array<string> = []
        for (let after = 0; after < most; after++) {
          const key = `cut ${after}`
          const outcome = yield* called(client, "echo", { key })
          expect(server.callCount(key), `${key}, carried out`).toBe(1)
          outcomes.push(outcome === key ? "answered" : outcome)
        }
        const whole = outcomes.indexOf("answered")
        expect(whole).toBeGreaterThan(200)
        expect(new Set(outcomes.slice(0, whole))).toEqual(new Set(["Closed"]))
        expect(new Set(outcomes.slice(whole))).toEqual(new Set(["answered"]))
      })),
    120_000
  )
})

describe.each(eras)("%s", (revision) => {
  it.live("ignores a response on one stream to the call of another", () =>
    quiet(Effect.gen(function*() {
      const [server, client] = yield* open({
        revision,
        faults: [Scenario.rule("request", { _tag: "ResponseId", how: "other" }, { nth: 1 })]
      })
      const slow = yield* Effect.forkChild(called(client, "slow", { key: "mine", ms: 100 }))
      const turn = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(turn, { until: () => server.callCount("mine") === 1 })
      expect(yield* called(client, "echo", { key: "yours" })).not.toBe("yours")
      expect(yield* Fiber.join(slow)).toBe("mine")
    })))

  it.live("reads the response despite BOM, CRLF, comments, multi-line data, single bytes, unknown methods and invalid JSON", () =>
    quiet(Effect.gen(function*() {
      const spelled = (newline: "\n" | "\r\n" | "\r", bom: boolean) =>
        ({ _tag: "Formatting", newline, bom, comments: true, multilineData: true }) as const
      const faults: ReadonlyArray<Scenario.Fault> = [
        spelled("\n", true),
        spelled("\r\n", false),
        spelled("\r\n", true),
        spelled("\r", true),
        { _tag: "Drip" },
        { _tag: "UnknownMethods" },
        { _tag: "InvalidJson" },
        { _tag: "ExtraMembers" },
        { _tag: "Progress", times: 500 },
        { _tag: "Duplicate" },
        { _tag: "Reverse" },
        { _tag: "ResponseId", how: "duplicate" },
        { _tag: "ContentType", type: "Text/Event-Stream; charset=UTF-8" },
        { _tag: "LargeMessage", bytes: 1_000_000, response: true }
      ]
      const [server, client] = yield* open({
        revision,
        faults: faults.map((fault, nth) => Scenario.rule("request", fault, { nth }))
      })
      for (const fault of faults) {
        const key = `é😀 ${JSON.stringify(fault)}`
        expect(yield* called(client, "echo", { key })).toBe(key)
        expect(server.callCount(key)).toBe(1)
      }
    })))

  it.live("fails the call with a reason if the response is invalid, and answers the next call", () =>
    quiet(Effect.gen(function*() {
      const status = (status: 400 | 500 | 502 | 503 | 504, body: "empty" | "html" | "error" | "garbage") =>
        ({ _tag: "Status", status, body, handled: true }) as const
      const faults: ReadonlyArray<readonly [Scenario.Fault, string]> = [
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
        [{ _tag: "Redirect", status: 308, to: "closed port" }, "HttpError"],
        [{ _tag: "ErrorResponse", code: 42 }, "ProtocolError"],
        [{ _tag: "ResponseBody", is: "no result" }, "Closed"]
      ]
      for (const [fault, reason] of faults) {
        // The client may send a redirected request again.
        const times = fault._tag === "Redirect" ? 100 : 1
        const [server, client] = yield* open({ revision, faults: [Scenario.rule("request", fault, { times })] })
        const key = JSON.stringify(fault)
        expect([key, yield* called(client, "echo", { key })]).toEqual([key, reason])
        expect(server.callCount(key)).toBe("handled" in fault || fault._tag !== "Redirect" ? 1 : 0)
        if (times === 1) expect(yield* called(client, "echo", { key: "next" })).toBe("next")
        expect(server.requestCount).toBeLessThan(20)
      }
    })))
})

describe("2025-11-25, resumable", () => {
  it.live("gives up a stream that closes after each event once maxReconnects is reached", () =>
    quiet(Effect.gen(function*() {
      const poll = { _tag: "CloseStream", retry: 0 } as const
      const [server, client] = yield* open({
        resumable: "primed",
        standaloneStream: false,
        faults: [Scenario.rule("request", poll), Scenario.rule("stream", poll, { times: 1_000 })]
      })
      expect(yield* called(client, "slow", { key: "never", ms: 60_000 })).toBe("Closed")
      expect([server.resumptionCount, server.callCount("never")]).toEqual([bounds.maxReconnects, 1])
    })))

  it.live("gives up a stream that cannot be resumed after maxAttempts", () =>
    quiet(Effect.gen(function*() {
      for (
        const fault of [Scenario.cut(0), Scenario.cut(30, "end"), {
          _tag: "Status",
          status: 502,
          body: "html",
          handled: false
        }] as const
      ) {
        const [server, client] = yield* open({
          resumable: "primed",
          standaloneStream: false,
          faults: [
            Scenario.rule("request", { _tag: "CloseStream" }),
            Scenario.rule("stream", fault, { nth: 1, times: 1_000 })
          ]
        })
        expect(yield* called(client, "slow", { key: "never", ms: 60_000 })).toBe("Closed")
        // Requests whose response was cut in its head are not counted as streams.
        expect(server.requestCount).toBeLessThan(2 * resumption.maxAttempts + 6)
        expect(server.callCount("never")).toBe(1)
      }
    })))

  it.live("does not repeat a call whose stream is redirected when it is resumed", () =>
    quiet(Effect.gen(function*() {
      for (const to of ["closed port", "loop"] as const) {
        const [server, client] = yield* open({
          resumable: "primed",
          standaloneStream: false,
          faults: [
            Scenario.rule("request", { _tag: "CloseStream", retry: 0 }),
            Scenario.rule("stream", { _tag: "Redirect", status: 307, to }, { nth: 1, times: 1_000 })
          ]
        })
        expect(yield* called(client, "slow", { key: "redirected", ms: 60_000 })).toBe("Closed")
        expect(server.callCount("redirected")).toBe(1)
      }
    })))

  it.live("opens another session after a 404, and carries out the call once", () =>
    quiet(Effect.gen(function*() {
      const [server, client] = yield* open({
        faults: [Scenario.rule("request", { _tag: "ForgetSessions" }, { nth: 1 })]
      })
      expect(yield* called(client, "echo", { key: "one" })).toBe("one")
      expect(yield* called(client, "echo", { key: "two" })).toBe("two")
      expect([server.sessionCount, server.callCount("one"), server.callCount("two")]).toEqual([2, 1, 1])
    })))

  it.live("fails a call during which the server restarts, and answers the next one", () =>
    quiet(Effect.gen(function*() {
      for (const handled of [true, false]) {
        const [server, client] = yield* open({
          faults: [Scenario.rule("request", { _tag: "Restart", handled, exitCode: 0 })]
        })
        expect(yield* called(client, "echo", { key: "lost" })).toBe("Closed")
        expect(server.callCount("lost")).toBe(handled ? 1 : 0)
        expect(yield* called(client, "echo", { key: "next" })).toBe("next")
        expect([server.restartCount, server.sessionCount]).toEqual([1, 2])
      }
    })))
})
