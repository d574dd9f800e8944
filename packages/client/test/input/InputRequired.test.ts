/**
 * 2026-07-28, multi round-trip requests: the client retries a request with the answers to the server's input requests.
 */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Exceptions from "../../../protocol/test/oracle/Exceptions.ts"
import * as Spec from "../../../protocol/test/oracle/Spec.ts"
import * as Validate from "../../../protocol/test/oracle/Validate.ts"
import type * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Sampling from "../../src/Sampling.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { done, fork, form, Host, inputRequired, type Json, open, textAnswer, turns } from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

const elicit = (message = "Well?") => ({
  method: "elicitation/create",
  params: { ...form({ n: { type: "string" } }), message }
})
const sample = (text = "Hi") => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 1 }
})
const list = { method: "roots/list" }

/** Accepts each form with its own message. */
const echo = Elicitation.layer({ form: ({ message }) => Effect.succeed(Elicitation.accept({ n: message })) })

const playing = (host: Layer.Layer<never>, replies: ReadonlyArray<ScriptedServer.Reply>, options?: Client.Options) => {
  const left = [...replies]
  return open("2026-07-28", host, () => left.shift() ?? done, options)
}

const accepted = (n: string) => ({ action: "accept", content: { n } })

const paramsOf = (server: { readonly requests: (method: string) => ReadonlyArray<Json> }, method = "tools/call") =>
  server.requests(method).map(({ params: { _meta, ...params } }) => params)

const questions = { resultType: "input_required", requestState: "s", inputRequests: { q: elicit() } }

describe("2026-07-28", () => {
  it.effect("the client MUST construct the requested inputs before retrying the original request", () =>
    Effect.gen(function*() {
      const host = new Host()
      const { client, server } = yield* playing(host.layer as never, [
        inputRequired({ who: elicit(), what: sample(), where: list }, "s1")
      ])
      yield* client.callTool("t", { a: 1 })
      assert.deepStrictEqual(paramsOf(server), [
        { name: "t", arguments: { a: 1 } },
        {
          name: "t",
          arguments: { a: 1 },
          inputResponses: {
            who: { action: "accept", content: {} },
            what: { ...textAnswer("re: Hi") },
            where: { roots: [{ uri: "file:///home", name: "home" }] }
          },
          requestState: "s1"
        }
      ])
      if (!Spec.present) return
      for (const message of server.requests("tools/call")) {
        const { _tag, ...request } = message as Json
        const refusal = Validate.refusal(Exceptions.load("2026-07-28"), "CallToolRequest", {
          jsonrpc: "2.0",
          ...request
        })
        assert.isUndefined(refusal)
      }
    }))

  it.effect("shares the validation steps among the forms of a round, so that more forms take no longer than one", () =>
    Effect.gen(function*() {
      // Some 50,000 steps show that the default fits. That is more than a 32nd of the total.
      const field = { type: "string", pattern: "^(?:a?){300}$", default: "a".repeat(300) }
      const ask = { method: "elicitation/create", params: { ...form({ n: field }), message: "Well?" } }
      for (const count of [1, 32]) {
        const defaults: Array<Json> = []
        const host = Elicitation.layer({
          form: (request) =>
            Effect.as(Effect.sync(() => defaults.push(request.defaults)), Elicitation.accept({ n: "a" }))
        })
        const inputs = Object.fromEntries(Array.from({ length: count }, (_, at) => [`q${at}`, ask]))
        const { client } = yield* playing(host as never, [inputRequired(inputs, "s1")])
        const exit = yield* Effect.exit(client.callTool("t"))
        assert.strictEqual(exit._tag, "Success")
        assert.deepStrictEqual(defaults, Array.from({ length: count }, () => count === 1 ? { n: field.default } : {}))
      }
    }))

  it.effect("retries each request that may get an InputRequiredResult: tools/call, prompts/get, resources/read", () =>
    Effect.gen(function*() {
      const results: { readonly [method: string]: Json } = {
        "tools/call": { content: [] },
        "prompts/get": { messages: [] },
        "resources/read": { contents: [], ttlMs: 0, cacheScope: "private" }
      }
      const asked = new Set<string>()
      const { client, server } = yield* open("2026-07-28", echo, ({ method }) => {
        if (asked.has(method)) return ScriptedServer.success({ resultType: "complete", ...results[method]! })
        asked.add(method)
        return inputRequired({ q: elicit(method) })
      })
      yield* client.callTool("t")
      yield* client.getPrompt("p", { a: "b" })
      yield* client.readResource("test://r")
      for (const method of Object.keys(results)) {
        const [first, second] = paramsOf(server, method)
        assert.deepStrictEqual(second, { ...first, inputResponses: { q: accepted(method) } })
      }
    }))

  it.effect("Servers MUST NOT send InputRequiredResult responses on any other client requests: fails with InvalidResponse", () =>
    Effect.gen(function*() {
      const { client } = yield* playing(echo, [inputRequired({ q: elicit() })])
      assert.strictEqual((yield* Effect.flip(client.listToolsPage())).reason._tag, "InvalidResponse")
    }))

  it.effect("The JSON-RPC `id` MUST be different between the initial request and the retry", () =>
    Effect.gen(function*() {
      const { client, server } = yield* playing(echo, [inputRequired({ q: elicit() }), inputRequired({ q: elicit() })])
      yield* client.callTool("t")
      assert.strictEqual(new Set(server.requests("tools/call").map(({ id }) => id)).size, 3)
    }))

  it.effect("the client MUST echo back the exact value of requestState, and MUST NOT inspect, parse or modify it", () =>
    Effect.gen(function*() {
      const states = [
        "",
        " ",
        "{\"a\": 1, \"__proto__\": {}}",
        "é\u0301\u0000\ufffd\u2028 \"\\",
        "x".repeat(100_000),
        "eyJhbGciOiJub25lIn0.e30."
      ]
      for (const state of states) {
        const { client, server } = yield* playing(echo, [inputRequired({ q: elicit() }, state)])
        yield* client.callTool("t")
        assert.strictEqual(paramsOf(server)[1].requestState, state)
      }
    }))

  it.effect("If the InputRequiredResult does not contain a requestState, the client MUST NOT include one in the retry", () =>
    Effect.gen(function*() {
      const { client, server } = yield* playing(echo, [
        inputRequired({ a: elicit("a") }, "one"),
        inputRequired({ b: elicit("b") }),
        inputRequired(undefined, "three")
      ])
      yield* client.callTool("t")
      assert.deepStrictEqual(paramsOf(server), [
        { name: "t" },
        { name: "t", inputResponses: { a: accepted("a") }, requestState: "one" },
        { name: "t", inputResponses: { b: accepted("b") } },
        { name: "t", requestState: "three" }
      ])
    }))

  it.effect("does not contain the inputRequests field: the client MAY retry the original request immediately", () =>
    Effect.gen(function*() {
      const { client, server } = yield* playing(Layer.empty, [inputRequired(undefined, "a"), inputRequired({}, "b")])
      yield* client.callTool("t")
      assert.deepStrictEqual(paramsOf(server).map(({ requestState }) => requestState), [undefined, "a", "b"])
      assert.isTrue(paramsOf(server).every((params) => !("inputResponses" in params)))
    }))

  it.effect("Servers MUST include at least one of inputRequests or requestState: fails with InvalidResponse without both", () =>
    Effect.gen(function*() {
      const { client, server } = yield* playing(echo, [inputRequired(undefined)])
      const error = yield* Effect.flip(client.callTool("t"))
      assert.deepInclude(fieldsOf(error), { reason: "InvalidResponse", method: "tools/call" })
      assert.strictEqual(server.requests("tools/call").length, 1)
    }))

  it.effect("both fields MUST NOT be used for any other request that the client may be sending in parallel", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2026-07-28", echo, ({ params }) => {
        const { inputResponses, name } = params as Json
        return inputResponses === undefined ? inputRequired({ [name]: elicit(name) }, `state of ${name}`) : done
      })
      const names = ["a", "b", "c"]
      yield* Effect.forEach(names, (name) => client.callTool(name), { concurrency: "unbounded" })
      for (const { inputResponses, name, requestState } of paramsOf(server)) {
        if (inputResponses === undefined) continue
        assert.deepStrictEqual(inputResponses, { [name]: accepted(name) })
        assert.strictEqual(requestState, `state of ${name}`)
      }
      assert.strictEqual(paramsOf(server).length, 6)
    }))

  it.effect("retries a request at most maxRounds times (default 16), then fails with LimitExceeded", () =>
    Effect.gen(function*() {
      for (
        const [options, rounds] of [[{}, 16], [{ limits: { maxRounds: 2 } }, 2], [
          { limits: { maxRounds: 0 } },
          0
        ]] as const
      ) {
        const { client, server } = yield* open("2026-07-28", echo, () => inputRequired({ q: elicit() }, "s"), options)
        const error = yield* Effect.flip(client.callTool("t"))
        assert.deepInclude(fieldsOf(error), { reason: "LimitExceeded", method: "tools/call" })
        assert.include(error.message, "maxRounds")
        assert.strictEqual(server.requests("tools/call").length, rounds + 1)
      }
    }))

  it.effect("fails with LimitExceeded, without a handler, above 32 input requests in a round", () =>
    Effect.gen(function*() {
      for (const count of [32, 33, 1_000]) {
        let asked = 0
        const host = Elicitation.layer({ form: () => Effect.sync(() => (asked++, Elicitation.cancel)) })
        const questions = Object.fromEntries(Array.from({ length: count }, (_, n) => [`q${n}`, elicit()]))
        const { client } = yield* playing(host, [inputRequired(questions)])
        const called = yield* Effect.result(client.callTool("t"))
        assert.strictEqual(called._tag, count === 32 ? "Success" : "Failure")
        assert.strictEqual(asked, count === 32 ? 32 : 0)
        if (called._tag === "Failure") {
          assert.strictEqual(called.failure.reason._tag, "LimitExceeded")
          assert.include(called.failure.message, "input requests, more than 32")
        }
      }
    }))

  it.effect("handles input requests in parallel, at most 8 at a time", () =>
    Effect.gen(function*() {
      const open_ = yield* Deferred.make<void>()
      let now = 0
      let peak = 0
      const host = Elicitation.layer({
        form: () =>
          Effect.gen(function*() {
            peak = Math.max(peak, ++now)
            yield* Deferred.await(open_)
            now--
            return Elicitation.cancel
          })
      })
      const questions = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`q${n}`, elicit()]))
      const { client, server } = yield* playing(host, [inputRequired(questions)])
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      assert.strictEqual(now, 8)
      yield* Deferred.succeed(open_, undefined)
      yield* turns()
      assert.strictEqual(call.pollUnsafe()?._tag, "Success")
      assert.strictEqual(peak, 8)
      assert.strictEqual(Object.keys(paramsOf(server)[1].inputResponses).length, 20)
    }))

  it.effect("fails with Unsupported, without a handler, if one input request has no service", () =>
    Effect.gen(function*() {
      let asked = 0
      const host = Elicitation.layer({ form: () => Effect.sync(() => (asked++, Elicitation.cancel)) })
      const address = { method: "elicitation/create", params: { mode: "url", message: "?", url: "https://a.b" } }
      for (const other of [sample(), list, address]) {
        const { client, server } = yield* playing(host, [inputRequired({ mine: elicit(), other })])
        const error = yield* Effect.flip(client.callTool("t"))
        assert.deepInclude(fieldsOf(error), { reason: "Unsupported", method: "tools/call" })
        assert.include(error.message, `"other" (${other.method})`)
        assert.strictEqual(server.requests("tools/call").length, 1)
      }
      assert.strictEqual(asked, 0)
    }))

  it.effect("fails with InvalidResponse on a malformed input request", () =>
    Effect.gen(function*() {
      const bad: ReadonlyArray<Json> = [
        { q: { method: "tools/list" } },
        { q: { method: "elicitation/create", params: { mode: "fax", message: "?" } } },
        { q: { method: "elicitation/create" } },
        [elicit()],
        "q"
      ]
      for (const questions of bad) {
        const { client } = yield* playing(new Host().layer as never, [inputRequired(questions)])
        assert.strictEqual(
          (yield* Effect.flip(client.callTool("t"))).reason._tag,
          "InvalidResponse",
          JSON.stringify(questions)
        )
      }
    }))

  it.effect("fails when one input request is refused, and interrupts the handlers of the others", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const host = Layer.merge(
        Elicitation.layer({ form: () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++)) }),
        Sampling.layer(() => Effect.andThen(Effect.yieldNow, Effect.fail(new Sampling.SamplingRefused({}))))
      )
      const { client, server } = yield* playing(host as never, [
        inputRequired({ a: elicit(), b: sample(), c: elicit() })
      ])
      const error = yield* Effect.flip(client.callTool("t"))
      assert.deepInclude(fieldsOf(error), { reason: "InputRefused", method: "tools/call" })
      assert.include(error.message, `"b" (sampling/createMessage)`)
      assert.strictEqual(interrupted, 2)
      assert.strictEqual(server.requests("tools/call").length, 1)
    }))

  it.effect("calls the handler once for each key in a round, and again if the next round has the key", () =>
    Effect.gen(function*() {
      const asked: Array<string> = []
      const host = Elicitation.layer({
        form: ({ message }) => Effect.sync(() => (asked.push(message), Elicitation.accept({ n: `${asked.length}` })))
      })
      const { client, server } = yield* playing(host, [
        inputRequired({ a: elicit("a"), b: elicit("b") }),
        inputRequired({ a: elicit("a") })
      ])
      yield* client.callTool("t")
      assert.deepStrictEqual(asked, ["a", "b", "a"])
      assert.deepStrictEqual(paramsOf(server)[2].inputResponses, { a: accepted("3") })
    }))

  it.effect("accepts any key, including __proto__", () =>
    Effect.gen(function*() {
      const keys = ["__proto__", "constructor", "", "a.b/c", "k".repeat(10_000), "1", "\u0000"]
      const questions = Object.fromEntries(keys.map((key) => [key, elicit(key)]))
      const { client, server } = yield* playing(echo, [inputRequired(questions)])
      yield* client.callTool("t")
      const { inputResponses } = paramsOf(server)[1]
      for (const key of keys) {
        assert.isTrue(Object.hasOwn(inputResponses, key), key.slice(0, 20))
        assert.deepStrictEqual(inputResponses[key], accepted(key))
      }
      assert.strictEqual(Object.keys(inputResponses).length, keys.length)
      assert.isUndefined(({} as Json).action)
    }))

  it.effect("names the missing service in the error", () =>
    Effect.gen(function*() {
      for (const [question, service] of [[elicit(), "Elicitation"], [sample(), "Sampling"], [list, "Roots"]] as const) {
        const { client } = yield* playing(Layer.empty, [inputRequired({ q: question })])
        const error = yield* Effect.flip(client.callTool("t"))
        assert.strictEqual(error.reason._tag, "Unsupported")
        assert.include(error.message, `the client was made without the service ${service}`)
      }
    }))

  it.effect("shortens strings of the server in errors", () =>
    Effect.gen(function*() {
      const { client } = yield* playing(Layer.empty, [inputRequired({ ["k".repeat(100_000)]: list })])
      assert.isBelow((yield* Effect.flip(client.callTool("t"))).message.length, 300)
    }))

  it.effect("excludes the user's time: each round has the timeout of a separate request", () =>
    Effect.gen(function*() {
      const answered = yield* Deferred.make<Elicitation.FormAnswer>()
      const host = Elicitation.layer({ form: () => Deferred.await(answered) })
      const { client } = yield* playing(host, [inputRequired({ q: elicit() })], { limits: { timeout: 100 } })
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      yield* TestClock.adjust("2 hours")
      assert.isUndefined(call.pollUnsafe())
      yield* Deferred.succeed(answered, Elicitation.cancel)
      yield* turns()
      assert.strictEqual(call.pollUnsafe()?._tag, "Success")
    }))

  it.effect("bounds the server's time of all rounds by maxTimeout, then calls no handler", () =>
    Effect.gen(function*() {
      let asked = 0
      const host = Elicitation.layer({
        form: () =>
          Effect.as(Effect.sleep("2 hours"), Elicitation.cancel).pipe(Effect.tap(() => Effect.sync(() => asked++)))
      })
      const { client, server } = yield* open("2026-07-28", host, () => "no response", { limits: { timeout: 100 } })
      const call = yield* fork(Effect.flip(client.callTool("t", {}, { maxTimeout: 150 })))
      const answered = (n: number) =>
        Effect.gen(function*() {
          yield* turns()
          yield* TestClock.adjust(60)
          assert.strictEqual(server.requests("tools/call").length, n)
          server.send(JsonRpc.success(server.requests("tools/call")[n - 1]!.id, questions))
          yield* turns()
        })
      for (const n of [1, 2]) {
        yield* answered(n)
        yield* TestClock.adjust("2 hours")
        yield* turns()
        assert.strictEqual(asked, n)
      }
      // The first rounds took 120 of the 150 ms, so the third has 30.
      yield* TestClock.adjust(29)
      assert.isUndefined(call.pollUnsafe())
      yield* TestClock.adjust(1)
      yield* turns()
      const exit = call.pollUnsafe()
      assert.strictEqual(exit?._tag, "Success")
      assert.deepInclude(fieldsOf(exit?._tag === "Success" ? exit.value : undefined), {
        reason: "Timeout",
        method: "tools/call"
      })
      assert.deepStrictEqual([asked, server.requests("tools/call").length], [2, 3])
    }))

  it.effect("calls no handler for input requests that arrive after maxTimeout", () =>
    Effect.gen(function*() {
      const { client } = yield* playing(echo, [inputRequired({ q: elicit() })])
      const error = yield* Effect.flip(client.callTool("t", {}, { maxTimeout: 0 }))
      assert.strictEqual(error.reason._tag, "Timeout")
    }))
})
