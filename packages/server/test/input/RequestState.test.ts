/**
 * 2026-07-28, basic/patterns/mrtr: `requestState`, which travels with a request, and the `inputResponses` beside it.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Principal } from "@skein/runtime/Connection"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import { once } from "@skein/server/Once"
import * as RequestState from "@skein/server/RequestState"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as base from "../kit.ts"
import * as kit from "./kit.ts"

const key = (letter: string): string => letter.repeat(32)
const text = Elicitation.make({ text: Schema.String })
const ask = (message: string) => Effect.map(Elicitation.accepted(Elicitation.form(message, text)), ({ text }) => text)

/** A tool with two input requests, which counts its runs. */
const asking = (runs: { count: number }) =>
  Effect.gen(function*() {
    runs.count++
    return (yield* ask("a")) + (yield* ask("b"))
  })

interface Setup {
  readonly options?: RequestState.Options
  readonly principal?: Principal
  readonly name?: string
}

const revision = "2026-07-28"
const input = { x: Schema.optionalKey(Schema.Unknown) }

/** A server with two equal tools, `t` and `u`; a client of it; and the number of the handler's runs. */
const setup = ({ name = "test", options, principal }: Setup = {}) =>
  Effect.gen(function*() {
    const runs = { count: 0 }
    const tools = [Tool.make("t", { input }), Tool.make("u", { input })]
    const server = McpServer.layer(
      { name, version: "1.0.0" },
      ...tools.map((tool) => Tool.layer(tool, () => asking(runs)))
    )
    const client = yield* kit.client(
      options === undefined ? server : Layer.provide(server, RequestState.layer(options)),
      {
        revision,
        answer: ({ params }) => kit.accept({ text: params.message.toUpperCase() }),
        ...(principal === undefined ? {} : { principal })
      }
    )
    const first = (params: kit.Json = { name: "t" }) =>
      Effect.map(client.once("tools/call", params), ({ result }): kit.Json => ({
        ...params,
        requestState: result.requestState,
        inputResponses: client.responses(result)
      }))
    const retry = (params: kit.Json) => client.once("tools/call", params)
    return { client, first, retry, runs }
  })

/** Expects that a retry is refused with `-32602` and this message, without running the handler. */
const refuses = (
  { retry, runs }: { readonly retry: (params: kit.Json) => Effect.Effect<kit.Json>; readonly runs: { count: number } },
  params: kit.Json,
  message: string
) =>
  Effect.gen(function*() {
    const before = runs.count
    const { error } = yield* retry(params)
    expect(error).toMatchObject({ code: -32602 })
    expect(error.message).toContain(message)
    expect(runs.count).toBe(before)
  })

describe("servers MUST reject state that fails verification", () => {
  it.effect("rejects state that was changed, at any position", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      const params = yield* server.first()
      const state: string = params.requestState
      for (const at of [0, 10, 20, Math.floor(state.length / 2), state.length - 2]) {
        const other = state[at] === "A" ? "B" : "A"
        const requestState = state.slice(0, at) + other + state.slice(at + 1)
        yield* refuses(server, { ...params, requestState }, "this server has not issued it")
      }
      for (const requestState of ["", "AAAA", "not base64!", state.slice(0, -4), `${state}AAAA`, "a".repeat(60_000)]) {
        yield* refuses(server, { ...params, requestState }, "this server has not issued it")
      }
      expect((yield* server.retry(params)).result.resultType).toBe("input_required")
    }))

  it.effect("rejects state other than a string, or beyond maxChars", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      yield* refuses(server, { name: "t", requestState: 7 }, "a string is expected")
      yield* refuses(
        server,
        { name: "t", requestState: "A".repeat(65_537) },
        "longer than every state that this server issues"
      )
    }))

  it.effect("rejects the state of a different principal", () =>
    Effect.gen(function*() {
      const server = yield* setup({ principal: { id: "alice" } })
      const params = yield* server.first()
      for (const principal of [{ id: "bob" }, undefined]) {
        server.client.principal = principal
        yield* refuses(server, params, "it was issued to another principal")
      }
      server.client.principal = { id: "alice", name: "Alice, whose claims have changed" }
      expect((yield* server.retry(params)).result.resultType).toBe("input_required")
    }))

  it.effect("rejects the state of an anonymous caller from a principal", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      const params = yield* server.first()
      server.client.principal = { id: "null" }
      yield* refuses(server, params, "it was issued to another principal")
    }))

  it.effect("rejects state after its expiry: 10 minutes by default", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      const params = yield* server.first()
      yield* TestClock.adjust("599999 millis")
      expect((yield* server.retry(params)).result.resultType).toBe("input_required")
      yield* TestClock.adjust("1 millis")
      yield* refuses(server, params, "it has expired")
    }))

  it.effect("rejects state after the configured expiry", () =>
    Effect.gen(function*() {
      const server = yield* setup({ options: { lifetime: "1 second" } })
      const params = yield* server.first()
      yield* TestClock.adjust("1 second")
      yield* refuses(server, params, "it has expired")
    }))

  it.effect("rejects state on a request that does not match", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      const params = yield* server.first({ name: "t", arguments: { x: { a: 1, b: [1, 2] } } })
      const other = "it belongs to a request with another method or other params"
      yield* refuses(server, { ...params, name: "u" }, other)
      yield* refuses(server, { ...params, arguments: {} }, other)
      yield* refuses(server, { ...params, arguments: { x: { a: 1, b: [2, 1] } } }, other)
      // In any order of members, and with any `_meta`.
      const again = { ...params, arguments: { x: { b: [1, 2], a: 1 } }, _meta: { progressToken: 7 } }
      expect((yield* server.retry(again)).result.resultType).toBe("input_required")
    }))

  it.effect("rejects the state of another server, regardless of the keys", () =>
    Effect.gen(function*() {
      const keys = [key("k")]
      const one = yield* setup({ options: { keys } })
      const params = yield* one.first()
      yield* refuses(yield* setup(), params, "this server has not issued it")
      yield* refuses(yield* setup({ options: { keys }, name: "another" }), params, "this server has not issued it")
      expect((yield* (yield* setup({ options: { keys } })).retry(params)).result.resultType).toBe("input_required")
    }))
})

describe("keys", () => {
  it.effect("seals with the newest key, and opens with all of them", () =>
    Effect.gen(function*() {
      const [a, b] = [key("a"), new TextEncoder().encode(key("b"))]
      const before = yield* setup({ options: { keys: [a] } })
      const during = yield* setup({ options: { keys: [b, Redacted.make(a)] } })
      const after = yield* setup({ options: { keys: [b] } })
      const params = yield* before.first()
      const { result } = yield* during.retry(params)
      yield* refuses(after, params, "this server has not issued it")
      const next = { ...params, requestState: result.requestState, inputResponses: during.client.responses(result) }
      expect(kit.textOf(yield* after.retry(next))).toBe("AB")
    }))

  it.effect("fails the layer for a key of fewer than 32 bytes", () =>
    Effect.gen(function*() {
      const layer = RequestState.layer({ keys: [key("a"), "short"] })
      const error = yield* base.failure(layer)
      expect(error).toMatchObject({ _tag: "RequestStateKeyError", message: expect.stringContaining("key 2") })
      expect(String(error)).not.toContain("short")
    }))

  it.effect("does not accept the state of another server in the same process", () =>
    Effect.gen(function*() {
      const params = yield* (yield* setup()).first()
      yield* refuses(yield* setup(), params, "this server has not issued it")
    }))

  it.effect("names SKEIN_STATE_KEYS in a warning, once, if a state was sealed with another key", () =>
    base.logged((lines) =>
      Effect.gen(function*() {
        const warnings = () => lines.filter((line) => line.includes("SKEIN_STATE_KEYS")).length
        const params = yield* (yield* setup()).first()
        const server = yield* setup()
        const own = yield* server.first()
        for (const requestState of ["x", "s", `${own.requestState.slice(0, -4)}AAAA`]) {
          yield* refuses(server, { ...params, requestState }, "this server has not issued it")
        }
        expect(warnings()).toBe(0)
        yield* refuses(server, params, "this server has not issued it")
        yield* refuses(server, params, "this server has not issued it")
        expect(warnings()).toBe(1)
      })
    ))

  it.effect("takes the keys of the surrounding services if the layer has none", () =>
    Effect.gen(function*() {
      const one = yield* setup({ options: { keys: [key("a")] } })
      const other = yield* Effect.provideService(
        setup({ options: { lifetime: "1 hour" } }),
        RequestState.RequestState,
        { keys: [key("a")] }
      )
      const { result } = yield* other.retry(yield* one.first())
      expect(result.resultType).toBe("input_required")
    }))
})

describe("bounds", () => {
  const endless = Effect.forever(ask("more?")) as Effect.Effect<never, Effect.Error<ReturnType<typeof ask>>>
  const count = (options: RequestState.Options | undefined, expected: number) =>
    Effect.gen(function*() {
      const server = kit.tool(endless)
      const client = yield* kit.client(
        options === undefined ? server : Layer.provide(server, RequestState.layer(options)),
        { revision, answer: () => kit.accept({ text: "" }) }
      )
      expect(yield* client.call("t")).toContain(
        `failed: tools/call was answered with input requests ${expected} times (maxRounds): elicitation/create was not sent`
      )
      expect(client.asked).toHaveLength(expected)
    })

  it.effect("allows 16 rounds by default", () => count(undefined, 16))
  it.effect("allows the configured number of rounds", () => count({ maxRounds: 3 }, 3))

  const sized = (options: RequestState.Options | undefined, length: number) =>
    Effect.gen(function*() {
      const handler = Effect.andThen(once("k", Schema.String, Effect.succeed("x".repeat(length))), ask("a"))
      const server = kit.tool(handler)
      const client = yield* kit.client(
        options === undefined ? server : Layer.provide(server, RequestState.layer(options)),
        { revision, answer: () => kit.accept({ text: "done" }) }
      )
      return yield* client.request("tools/call", { name: "t" })
    })

  it.effect("allows 65,536 characters of state by default", () =>
    Effect.gen(function*() {
      expect(kit.textOf(yield* sized(undefined, 48_000))).toBe("done")
      const { error } = yield* sized(undefined, 49_152)
      expect(error).toMatchObject({ code: -32603, message: expect.stringContaining("exceeds maxChars (65536)") })
    }))

  it.effect("allows the configured number of characters of state", () =>
    Effect.gen(function*() {
      expect((yield* sized({ maxChars: 1000 }, 1000)).error).toMatchObject({ code: -32603 })
      expect(kit.textOf(yield* sized({ maxChars: 100_000 }, 49_152))).toBe("done")
    }))
})

describe("inputResponses", () => {
  it.effect("requests missing input again, and retains the received input", () =>
    Effect.gen(function*() {
      const handler = Effect.map(
        Effect.all([ask("a"), ask("b")], { concurrency: "unbounded" }),
        (both) => both.join("")
      )
      let turn = 0
      const client = yield* kit.client(kit.tool(handler), {
        revision,
        // In its first turn the client does not answer `b`.
        answer: ({ params }) =>
          params.message === "b" && turn++ === 0 ? undefined : kit.accept({ text: params.message.toUpperCase() })
      })
      expect(yield* client.call("t")).toBe("AB")
      expect(client.asked.map(({ params }) => params.message)).toEqual(["a", "b", "b"])
      expect(client.asked[1]!.key).toBe(client.asked[2]!.key)
    }))

  it.effect("SHOULD ignore any information it does not recognize or need", () =>
    Effect.gen(function*() {
      const { client, first, retry } = yield* setup()
      const params = yield* first()
      const second = yield* retry({
        ...params,
        inputResponses: { ...params.inputResponses, more: kit.accept({ x: 1 }), ["__proto__"]: kit.accept({}) }
      })
      const done = yield* retry({
        name: "t",
        requestState: second.result.requestState,
        // A stored response is not replaced.
        inputResponses: {
          ...Object.fromEntries(Object.keys(params.inputResponses).map((key) => [key, kit.accept({ text: "forged" })])),
          ...client.responses(second.result)
        }
      })
      expect(kit.textOf(done)).toBe("AB")
    }))

  it.effect("does not store a response to an input request that was not made yet", () =>
    Effect.gen(function*() {
      const server = yield* setup({ options: { keys: [key("k")] } })
      // The key of the second input request, from an earlier request.
      const params = yield* server.first()
      const { result } = yield* server.retry(params)
      const [later] = Object.keys(result.inputRequests)
      const fresh = yield* server.first()
      const second = yield* server.retry({
        ...fresh,
        inputResponses: { ...fresh.inputResponses, [later!]: kit.accept({ text: "too early" }) }
      })
      expect(Object.keys(second.result.inputRequests)).toEqual([later])
    }))

  it.effect("reads null as absent: as state, as responses, and as one response", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      const params = yield* server.first()
      const asked = Object.keys(params.inputResponses)[0]!
      for (
        const nulls of [
          { name: "t", requestState: null, inputResponses: null },
          { ...params, inputResponses: null },
          { ...params, inputResponses: { [asked]: null } }
        ]
      ) {
        const { result } = yield* server.retry(nulls)
        expect(result.resultType).toBe("input_required")
        expect(Object.values<kit.Json>(result.inputRequests).map(({ params }) => params.message)).toEqual(["a"])
      }
    }))

  it.effect("ignores responses without state", () =>
    Effect.gen(function*() {
      const { first, retry } = yield* setup()
      const { inputResponses } = yield* first()
      expect((yield* retry({ name: "t", inputResponses })).result.resultType).toBe("input_required")
    }))

  it.effect("accepts responses without state for an input request with acceptUnsolicited, and ignores other keys", () =>
    Effect.gen(function*() {
      const name = Elicitation.make({ name: Schema.String })
      const asking = (key: string, unasked = true) =>
        Effect.map(
          Elicitation.accepted(Elicitation.form(`${key}?`, name, { key, acceptUnsolicited: unasked })),
          ({ name }) => name
        )
      const handler = Effect.gen(function*() {
        const first = yield* asking("user_name")
        return `${first} ${yield* asking("other", false)}`
      })
      const client = yield* kit.client(kit.tool(handler), { revision, answer: () => kit.accept({ name: "Bob" }) })
      const inputResponses = {
        user_name: kit.accept({ name: "Alice" }),
        other: kit.accept({ name: "Eve" }),
        unknown_extra_key: kit.accept({ foo: "bar" })
      }
      const first = yield* client.once("tools/call", { name: "t", inputResponses })
      expect(Object.keys(first.result.inputRequests)).toEqual(["other"])
      // The response is stored, as every other response is.
      const { requestState } = first.result
      const second = { name: "t", requestState, inputResponses: client.responses(first.result) }
      expect(kit.textOf(yield* client.once("tools/call", second))).toBe("Alice Bob")
      // A response of another kind is refused.
      const wrong = { name: "t", inputResponses: { user_name: { roots: [] }, wrong_key: kit.accept({}) } }
      expect(Object.keys((yield* client.once("tools/call", wrong)).result.inputRequests)).toEqual(["user_name"])
    }))

  it.effect("rejects responses after the timeout of the input request: the handler fails with Timeout", () =>
    Effect.gen(function*() {
      const hurried = Effect.map(
        Elicitation.accepted(Elicitation.form("a", text, { timeout: "3 seconds" })),
        ({ text }) => text
      )
      const handler = Effect.map(
        Effect.all([Effect.catch(hurried, ({ reason }) => Effect.succeed(reason._tag)), ask("b")], {
          concurrency: "unbounded"
        }),
        (both) => both.join()
      )
      const client = yield* kit.client(kit.tool(handler), {
        revision,
        answer: ({ params }) => kit.accept({ text: params.message.toUpperCase() })
      })
      const { result } = yield* client.once("tools/call", { name: "t" })
      const { requestState } = result
      const inputResponses = client.responses(result)
      const retry = Effect.map(client.once("tools/call", { name: "t", requestState, inputResponses }), kit.textOf)
      yield* TestClock.adjust("2999 millis")
      expect(yield* retry).toBe("A,B")
      yield* TestClock.adjust("1 millis")
      expect(yield* retry).toBe("Timeout,B")
      // Also without any response.
      const unanswered = yield* client.once("tools/call", { name: "t", requestState })
      expect(Object.values<kit.Json>(unanswered.result.inputRequests).map(({ params }) => params.message)).toEqual([
        "b"
      ])
    }))

  it.effect("SHOULD validate that the data is valid: malformed data is -32602, and no handler runs", () =>
    Effect.gen(function*() {
      const server = yield* setup()
      const params = yield* server.first()
      const [asked] = Object.keys(params.inputResponses)
      for (
        const bad of [7, "accept", {}, { action: "maybe" }, { roots: [] }, {
          action: "accept",
          content: { a: {} }
        }]
      ) {
        yield* refuses(server, { ...params, inputResponses: { [asked!]: bad } }, "inputResponses")
      }
      for (const bad of [7, "x", []]) yield* refuses(server, { ...params, inputResponses: bad }, "inputResponses")
    }))

  it.effect("fails the handler's input request if an accepted form does not match its schema", () =>
    Effect.gen(function*() {
      const client = yield* kit.client(kit.tool(ask("a")), { revision, answer: () => kit.accept({ text: 7 }) })
      expect(yield* client.call("t")).toMatch(/^failed: invalid form content: .*text/s)
    }))
})

describe("the state", () => {
  it.effect("hides input responses and results from the client", () =>
    Effect.gen(function*() {
      const handler = Effect.andThen(once("k", Schema.String, Effect.succeed("the secret")), ask("a"))
      const client = yield* kit.client(kit.tool(handler), { revision, answer: () => undefined })
      const { result } = yield* client.once("tools/call", { name: "t" })
      const bytes = Buffer.from(result.requestState, "base64url").toString("latin1")
      expect(bytes).not.toContain("secret")
      expect(result.requestState).toMatch(/^[\w-]+$/)
      const again = yield* client.once("tools/call", { name: "t" })
      expect(again.result.requestState).not.toBe(result.requestState)
    }))

  it.effect("creates no state for a handler that never requests input", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const server = base.server(
        Tool.layer(Tool.make("t"), () =>
          Effect.flatMap(McpRequest, (exchange) =>
            Effect.sync(() => {
              seen.push(exchange.exchange.round, exchange.exchange.state, typeof exchange.exchange.rounds)
              return "done"
            })))
      )
      const client = yield* kit.client(server, { revision })
      expect(yield* client.call("t")).toBe("done")
      expect(seen).toEqual([undefined, "Running", "function"])
    }))

  it.effect("accepts deeply nested params, or refuses them with -32602", () =>
    Effect.gen(function*() {
      const nested = (depth: number): kit.Json => depth === 0 ? 1 : JSON.parse("[".repeat(depth) + "]".repeat(depth))
      const { first, retry } = yield* setup()
      const params = yield* first({ name: "t", arguments: { x: nested(500) } })
      expect((yield* retry(params)).result.resultType).toBe("input_required")
      const { client } = yield* setup()
      const deep = yield* client.once("tools/call", { name: "t", arguments: { x: nested(4000) } })
      expect(deep.result?.resultType ?? deep.error?.code).toSatisfy((textOf) =>
        textOf === "input_required" || textOf === -32602
      )
    }))

  it.effect("ignores state on a method that cannot request input", () =>
    Effect.gen(function*() {
      const { client } = yield* setup()
      const { result } = yield* client.once("tools/list", { requestState: "whatever" })
      expect(result.tools).toHaveLength(2)
    }))
})
