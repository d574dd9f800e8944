/** URL elicitation, as an input request and as URLElicitationRequiredError (-32042). */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { ask, done, failure, fork, inputRequired, type Json, logged, open, turns } from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

type Handler = (request: Elicitation.UrlRequest) => Effect.Effect<Elicitation.UrlAnswer>

const params = (url: string): Json => ({ mode: "url", message: "Go there", url, elicitationId: "e1" })

const asked = (revision: "2025-11-25" | "2026-07-28", handler: Handler, url: string) =>
  Effect.gen(function*() {
    const host = Elicitation.layer({ url: handler })
    if (revision === "2025-11-25") {
      const { server } = yield* open(revision, host)
      return (yield* ask(server, "elicitation/create", params(url))) as Json
    }
    const { elicitationId: _, ...rest } = params(url)
    const rounds = [inputRequired({ q: { method: "elicitation/create", params: rest } }), done]
    const { client, server } = yield* open(revision, host, () => rounds.shift()!)
    const called = yield* Effect.result(client.callTool("t"))
    return called._tag === "Failure"
      ? { error: called.failure }
      : { result: (server.requests("tools/call")[1]!.params as Json).inputResponses.q }
  })

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect("MUST show the full URL to the user for examination before consent; SHOULD highlight the domain", () =>
      Effect.gen(function*() {
        let seen: Elicitation.UrlRequest | undefined
        const { result } = yield* asked(revision, (request) => {
          seen = request
          return Effect.succeed(Elicitation.consent())
        }, "https://pay.example.com:8443/a?b=c#d")
        assert.strictEqual(seen!.url.href, "https://pay.example.com:8443/a?b=c#d")
        assert.strictEqual(seen!.host, "pay.example.com:8443")
        assert.deepStrictEqual(seen!.warnings, [])
        assert.strictEqual(seen!.required, false)
        assert.strictEqual(seen!.elicitationId, revision === "2025-11-25" ? "e1" : undefined)
        assert.strictEqual(seen!.server.info?.name, "scripted")
        // "For URL mode: The `content` field is omitted"
        assert.deepStrictEqual(result, { action: "accept" })
      }))

    it.effect("sends decline and cancel", () =>
      Effect.gen(function*() {
        for (const answer of [Elicitation.decline, Elicitation.cancel]) {
          const { result } = yield* asked(revision, () => Effect.succeed(answer), "https://example.com")
          assert.deepStrictEqual(result, { action: answer.action })
        }
      }))

    it.effect("SHOULD have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)", () =>
      Effect.gen(function*() {
        const expected: { readonly [url: string]: ReadonlyArray<string> } = {
          "https://xn--pple-43d.com/": ["punycode"],
          "https://аpple.com/": ["punycode"],
          "https://bank.com@evil.example/": ["credentials"],
          "http://example.com/": ["insecure"],
          "http://127.0.0.1:3000/": [],
          "http://localhost/": [],
          "http://tea.localhost:3000/": [],
          "http://localhost.example/": ["insecure"],
          "http://127.evil.example/": ["insecure"],
          "http://[::1]/": []
        }
        for (const [url, warnings] of Object.entries(expected)) {
          let seen: Elicitation.UrlRequest | undefined
          yield* asked(revision, (request) => {
            seen = request
            return Effect.succeed(Elicitation.decline)
          }, url)
          assert.deepStrictEqual(seen!.warnings, warnings, url)
        }
      }))

    it.effect("The `url` parameter MUST contain a valid URL; rejects other schemes than http and https without the handler", () =>
      Effect.gen(function*() {
        const shown: Array<unknown> = []
        const handler: Handler = (request) => Effect.sync(() => (shown.push(request), Elicitation.consent()))
        for (
          const url of [
            "",
            "example.com",
            "/x",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "ftp://a"
          ]
        ) {
          const { error } = yield* asked(revision, handler, url)
          if (revision === "2025-11-25") assert.strictEqual((error as Json)?.code, -32602, url)
          else assert.strictEqual((error as Json)?.reason._tag, "InvalidResponse", url)
        }
        assert.deepStrictEqual(shown, [])
      }))
  })
}

const one = { mode: "url", message: "Sign in", url: "https://example.com/in", elicitationId: "one" }
const two = { mode: "url", message: "Pay", url: "https://example.com/pay", elicitationId: "two" }

/** Fails the first `times` calls with URLElicitationRequiredError, and responds to the next. */
const requires = (elicitations: Json, times = 1): ScriptedServer.Script => {
  let calls = 0
  return () =>
    ++calls <= times
      ? ScriptedServer.failure(-32042, "First things first", { elicitations })
      : ScriptedServer.success({ content: [] })
}

const setup = (handler: Handler | undefined, script: ScriptedServer.Script, options?: Client.Options) =>
  open(
    "2025-11-25",
    Elicitation.layer({ form: () => Effect.succeed(Elicitation.cancel), url: handler }),
    script,
    options
  )

const complete = (server: ScriptedServer.ScriptedServer, elicitationId: unknown) =>
  server.notify("notifications/elicitation/complete", { elicitationId } as Json)

const agree: Handler = () => Effect.succeed(Elicitation.consent())

const surfaced = { reason: "ProtocolError", message: "tools/call: First things first" } as const

describe("2025-11-25 · URLElicitationRequiredError (-32042)", () => {
  it.effect("MAY wait for this notification to automatically retry: retries the call once after all are complete", () =>
    Effect.gen(function*() {
      const seen: Array<Elicitation.UrlRequest> = []
      const { client, server } = yield* setup(
        (request) => Effect.sync(() => (seen.push(request), Elicitation.consent())),
        requires([one, two])
      )
      const call = yield* fork(client.callTool("t", { a: 1 }))
      yield* turns()
      assert.deepStrictEqual(seen.map(({ url, elicitationId, required }) => [url.href, elicitationId, required]), [
        [one.url, "one", true],
        [two.url, "two", true]
      ])
      assert.deepInclude(seen[0]!.server, { method: "tools/call", revision: "2025-11-25" })
      complete(server, "two")
      yield* turns()
      assert.strictEqual(server.requests("tools/call").length, 1)
      complete(server, "one")
      yield* turns()
      assert.strictEqual(call.pollUnsafe()?._tag, "Success")
      const [first, second] = server.requests("tools/call")
      assert.deepStrictEqual(first!.params, second!.params)
      assert.notStrictEqual(first!.id, second!.id)
    }))

  it.effect("MUST ignore notifications referencing unknown or already-completed IDs", () =>
    Effect.gen(function*() {
      const { client, server } = yield* setup(agree, requires([one]))
      complete(server, "one")
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      for (const id of ["two", undefined, null, 1, {}, "__proto__"]) complete(server, id)
      yield* turns()
      assert.isUndefined(call.pollUnsafe())
      complete(server, "one")
      complete(server, "one")
      yield* turns()
      assert.strictEqual(call.pollUnsafe()?._tag, "Success")
      assert.strictEqual(server.requests("tools/call").length, 2)
    }))

  it.effect("counts a completion notification that arrives before the user has agreed", () =>
    Effect.gen(function*() {
      const agreed = yield* Deferred.make<Elicitation.UrlAnswer>()
      const { client, server } = yield* setup(() => Deferred.await(agreed), requires([one]))
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      complete(server, "one")
      yield* turns()
      assert.strictEqual(server.requests("tools/call").length, 1)
      yield* Deferred.succeed(agreed, Elicitation.consent())
      yield* turns()
      assert.strictEqual(call.pollUnsafe()?._tag, "Success")
    }))

  it.effect("SHOULD still provide manual controls that let the user retry: `done` ends the wait as well", () =>
    Effect.gen(function*() {
      const pressed = yield* Deferred.make<void>()
      const { client } = yield* setup(
        () => Effect.succeed(Elicitation.consent(Deferred.await(pressed))),
        requires([one])
      )
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      assert.isUndefined(call.pollUnsafe())
      yield* Deferred.succeed(pressed, undefined)
      yield* turns()
      assert.strictEqual(call.pollUnsafe()?._tag, "Success")
    }))

  it.effect("fails with the server's error and its elicitations if there is no handler", () =>
    Effect.gen(function*() {
      const { client, server } = yield* setup(undefined, requires([one]))
      const error = yield* Effect.flip(client.callTool("t"))
      assert.deepInclude(fieldsOf(error), surfaced)
      assert.deepInclude(fieldsOf(error).error, { reason: "UrlElicitationRequired", data: { elicitations: [one] } })
      assert.strictEqual(server.requests("tools/call").length, 1)
    }))

  it.effect("fails with the server's error at once if the user does not consent to all", () =>
    Effect.gen(function*() {
      for (const answer of [Elicitation.decline, Elicitation.cancel]) {
        const { client, server } = yield* setup(
          ({ elicitationId }) => Effect.succeed(elicitationId === "two" ? answer : Elicitation.consent()),
          requires([one, two])
        )
        assert.deepInclude(fieldsOf(yield* Effect.flip(client.callTool("t"))), surfaced)
        assert.strictEqual(server.requests("tools/call").length, 1)
      }
    }))

  it.effect("retries once, and fails with the server's error if the server requires URLs again", () =>
    Effect.gen(function*() {
      const { client, server } = yield* setup(
        () => Effect.succeed(Elicitation.consent(Effect.void)),
        requires([one], 9)
      )
      assert.deepInclude(fieldsOf(yield* Effect.flip(client.callTool("t"))), surfaced)
      assert.strictEqual(server.requests("tools/call").length, 2)
    }))

  it.effect("fails with the server's error, without the handler, if the elicitations are malformed, have no id or an invalid URL", () =>
    Effect.gen(function*() {
      const { elicitationId: _, ...anonymous } = one
      const many = Array.from({ length: 33 }, (_, n) => ({ ...one, elicitationId: `${n}` }))
      const form = { mode: "form", message: "?", requestedSchema: { type: "object", properties: {} } }
      const bad = [undefined, [], {}, "x", [form], [anonymous], [one, { ...two, url: "javascript:1" }], many]
      for (const elicitations of bad) {
        let asked = 0
        const { client } = yield* setup(
          () => Effect.sync(() => (asked++, Elicitation.consent())),
          requires(elicitations)
        )
        assert.deepInclude(fieldsOf(yield* Effect.flip(client.callTool("t"))), surfaced, JSON.stringify(elicitations))
        assert.strictEqual(asked, 0)
      }
    }))

  it.effect("2025-11-25 only: fails with the server's error in 2026-07-28, which does not have -32042", () =>
    Effect.gen(function*() {
      const { client } = yield* open("2026-07-28", Elicitation.layer({ url: agree }), requires([one]))
      assert.strictEqual(fieldsOf(yield* Effect.flip(client.callTool("t"))).error?.reason, "UrlElicitationRequired")
    }))

  it.effect("fails with the server's error after the call's maxTimeout", () =>
    Effect.gen(function*() {
      const { client, server } = yield* setup(agree, requires([one], 9))
      const hour = yield* fork(client.callTool("t"))
      const minute = yield* fork(client.callTool("t", {}, { maxTimeout: "1 minute" }))
      yield* turns()
      yield* TestClock.adjust("59999 millis")
      assert.isUndefined(minute.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepInclude(fieldsOf(failure(minute)), surfaced)
      yield* TestClock.adjust("3539999 millis")
      assert.isUndefined(hour.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepInclude(fieldsOf(failure(hour)), surfaced)
      assert.strictEqual(server.requests("tools/call").length, 2)
    }))

  it.effect("fails with the server's error when the connection ends", () =>
    Effect.gen(function*() {
      const { client, server } = yield* setup(agree, requires([one]))
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      server.disconnect()
      yield* turns()
      assert.deepInclude(fieldsOf(failure(call)), surfaced)
    }))

  it.effect("interrupts the handler when the call is interrupted", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const { client } = yield* setup(
        () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++)),
        requires([one, two])
      )
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      call.interruptUnsafe()
      yield* turns()
      assert.strictEqual(interrupted, 2)
    }))

  it.effect("logs a defect of the handler and fails with the server's error", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { client } = yield* setup(() => Effect.die(new Error("boom")), requires([one]))
        assert.deepInclude(fieldsOf(yield* Effect.flip(client.callTool("t"))), surfaced)
        assert.isTrue(lines.some((line) => line.startsWith("Error") && line.includes("boom")))
      })
    ))
})
