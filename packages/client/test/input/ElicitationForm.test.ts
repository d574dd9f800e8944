/**
 * Form elicitation: the request that a handler receives, and the content that the client sends, fills in or withholds.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { ClientError } from "../../src/ClientError.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import { ask, done, failure, fork, form, inputRequired, type Json, logged, open, turns } from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"
import { cpuTime } from "../support/cpuTime.ts"

const revisions = Revision.all.filter((revision) => revision >= "2025-06-18")

type Handler = (request: Elicitation.FormRequest) => Effect.Effect<Elicitation.FormAnswer>

/**
 * Sends one form to a client, and returns the response: a result, a JSON-RPC error, or the failure of the call in
 * 2026-07-28.
 */
const asked = (
  revision: Revision.Revision,
  handler: Handler,
  params: Json
) =>
  Effect.gen(function*() {
    const host = Elicitation.layer({ form: handler })
    if (revision !== "2026-07-28") {
      const { server } = yield* open(revision, host)
      const { mode: _, ...older } = params
      const { error, result } = yield* ask(server, "elicitation/create", revision < "2025-11-25" ? older : params)
      return { result: result as Json, error: error as Json, failed: undefined }
    }
    const rounds = [inputRequired({ q: { method: "elicitation/create", params } }, "s"), done]
    const { client, server } = yield* open(revision, host, () => rounds.shift()!)
    const called = yield* Effect.result(client.callTool("t"))
    return {
      result: (server.requests("tools/call")[1]?.params as Json)?.inputResponses.q,
      error: undefined,
      failed: called._tag === "Failure" ? called.failure : undefined
    }
  })

const constantly = (content: Elicitation.Content): Handler => () => Effect.succeed(Elicitation.accept(content))

const text = { type: "string" } as const

for (const revision of revisions) {
  describe(revision, () => {
    it.effect("Provide UI that makes it clear which server is requesting information", () =>
      Effect.gen(function*() {
        let seen: Elicitation.FormRequest | undefined
        yield* asked(revision, (request) => {
          seen = request
          return Effect.succeed(Elicitation.decline)
        }, form({ name: { ...text, title: "Name" } }, ["name"]))
        assert.deepInclude(seen!.server, {
          revision,
          method: revision === "2026-07-28" ? "tools/call" : undefined
        })
        assert.deepStrictEqual(seen!.server.info, { name: "scripted", version: "1.0.0" })
        assert.strictEqual(seen!.message, "Well?")
        assert.deepStrictEqual(seen!.requestedSchema, {
          type: "object",
          properties: { name: { type: "string", title: "Name" } },
          required: ["name"]
        })
      }))

    it.effect("For form mode: The `content` field contains the submitted data matching the requested schema", () =>
      Effect.gen(function*() {
        const params = form({ name: text, age: { type: "integer", minimum: 18 }, ok: { type: "boolean" } }, ["name"])
        const { result } = yield* asked(revision, constantly({ name: "Ada", age: 36, ok: true }), params)
        assert.deepStrictEqual(result, { action: "accept", content: { name: "Ada", age: 36, ok: true } })
      }))

    it.effect("sends decline and cancel without the typed content", () =>
      Effect.gen(function*() {
        for (const action of ["decline", "cancel"] as const) {
          const typed = { action, content: { name: "secret" } } as Elicitation.FormAnswer
          const { result } = yield* asked(revision, () => Effect.succeed(typed), form({ name: text }))
          assert.deepStrictEqual(result, { action })
        }
      }))

    it.effect("SEP-1034 · fills absent fields with their defaults, but not fields that the user left empty", () =>
      Effect.gen(function*() {
        const params = form({
          name: { ...text, default: "Bob" },
          age: { type: "integer", default: 7 },
          ok: { type: "boolean", default: true },
          no: { type: "boolean", default: false },
          color: { ...text, enum: ["red", "blue"], default: "blue" }
        })
        let defaults: Json
        const { result } = yield* asked(revision, (request) => {
          defaults = request.defaults
          return Effect.succeed(Elicitation.accept({ ok: undefined }))
        }, params)
        const filled = { name: "Bob", age: 7, no: false, color: "blue" }
        assert.deepStrictEqual(result, { action: "accept", content: filled })
        assert.deepStrictEqual(defaults, { ...filled, ok: true })
      }))

    it.effect("allow users to review and modify their responses: problem() returns why the client would not send the content", () =>
      Effect.gen(function*() {
        const { result } = yield* asked(revision, ({ problem }) =>
          Effect.sync(() => {
            assert.strictEqual(problem({}), `"age" is required and was left empty`)
            assert.strictEqual(problem({ age: 3 }), `the value of "age" does not match the schema of the field`)
            assert.isUndefined(problem({ age: 18 }))
            return Elicitation.accept({ age: 18 })
          }), form({ age: { type: "integer", minimum: 18 } }, ["age"]))
        assert.deepStrictEqual(result.content, { age: 18 })
      }))

    it.effect("ignores a default that does not match the schema of the field its own field", () =>
      Effect.gen(function*() {
        const params = form({
          ok: { type: "boolean", default: true },
          color: { ...text, enum: ["red"], default: "blue" }
        })
        const { result } = yield* asked(revision, constantly({}), params)
        assert.deepStrictEqual(result.content, { ok: true })
      }))

    it.effect("never sends content that violates the schema: logs it, and responds with an internal error or fails the call", () =>
      logged((lines) =>
        Effect.gen(function*() {
          const params = form({ pin: { ...text, maxLength: 4 } })
          const { error, failed, result } = yield* asked(revision, constantly({ pin: "hunter2" }), params)
          assert.strictEqual(result, undefined)
          if (revision === "2026-07-28") {
            assert.deepInclude(fieldsOf(failed), { reason: "InputRefused", method: "tools/call" })
            assert.include(failed!.message, `"q" (elicitation/create)`)
            assert.include(String(failed!.cause), `the value of "pin" does not match the schema of the field`)
          } else {
            assert.deepInclude(error, { code: -32603, message: "Internal error" })
            assert.hasAllKeys(error.data, ["reference"])
          }
          const line = lines.find((line) => line.startsWith("Error"))
          assert.include(line, `the value of "pin" does not match the schema of the field`)
          // The typed text is private.
          assert.notInclude(JSON.stringify([lines, error, String(failed)]), "hunter2")
        })
      ))

    it.effect("rejects a form that cannot be filled in, without the handler", () =>
      Effect.gen(function*() {
        const shown: Array<unknown> = []
        const handler: Handler = (request) => Effect.sync(() => (shown.push(request), Elicitation.cancel))
        const broken = [
          form({ name: text }, ["nickname"]),
          form({ name: { ...text, pattern: "(?=a)b" } }),
          form({ name: { ...text, minLength: -1 } }),
          form({ name: { type: "object", properties: {} } }),
          form({ name: { type: "array", items: { type: "object" } } })
        ]
        for (const params of broken) {
          const { error, failed } = yield* asked(revision, handler, params)
          if (revision === "2026-07-28") assert.strictEqual(failed?.reason._tag, "InvalidResponse")
          else assert.strictEqual(error?.code, -32602)
        }
        assert.deepStrictEqual(shown, [])
      }))

    if (revision === "2025-06-18") {
      it.effect("rejects a form with multiple choice, which has no answer in this revision, without the handler", () =>
        Effect.gen(function*() {
          const requestedSchema = form({ a: { type: "array", items: { type: "string", enum: ["x"] } } })
          const { error } = yield* asked(revision, () => Effect.die("asked"), requestedSchema)
          assert.strictEqual(error.code, -32_602)
          assert.strictEqual(error.message, "2025-06-18 does not support multiple choice in a form")
        }))
    }

    it.effect("responds to a defect of the handler with an internal error and a reference, and logs the cause", () =>
      logged((lines) =>
        Effect.gen(function*() {
          for (
            const handler of [() => Effect.die(new Error("boom")), () => {
              throw new Error("boom")
            }]
          ) {
            const { error, failed } = yield* asked(revision, handler, form({}))
            if (revision === "2026-07-28") {
              assert.strictEqual(failed?.reason._tag, "InputRefused")
              assert.deepStrictEqual(failed?.cause, new Error("boom"))
            } else assert.strictEqual(error.code, -32603)
            assert.notInclude(JSON.stringify(error ?? {}), "boom")
          }
          assert.strictEqual(lines.filter((line) => line.startsWith("Error") && line.includes("boom")).length, 2)
        })
      ))

    it.effect("accepts fields named __proto__, constructor or toString", () =>
      Effect.gen(function*() {
        const properties = JSON.parse(
          `{"__proto__": {"type":"string"}, "constructor": {"type":"string"}, "toString": {"type":"integer"}}`
        )
        const content = JSON.parse(`{"__proto__": "a", "constructor": "b", "toString": 1}`)
        const { result } = yield* asked(revision, constantly(content), form(properties, ["__proto__"]))
        assert.strictEqual(JSON.stringify(result.content), JSON.stringify(content))
        assert.strictEqual(({} as Json).a, undefined)
        const { failed, error } = yield* logged(() => asked(revision, constantly({}), form(properties, ["__proto__"])))
        assert.isTrue(failed !== undefined || error !== undefined)
      }))

    it.effect("rejects a form with more than 1,000 fields, without the handler", () =>
      Effect.gen(function*() {
        for (const count of [1_000, 1_001, 10_000]) {
          const names = Array.from({ length: count }, (_, n) => `field ${n}`)
          const properties = Object.fromEntries(names.map((name) => [name, { ...text, maxLength: 9 }]))
          const content = Object.fromEntries(names.map((name) => [name, "x"]))
          let seen = 0
          const handler: Handler = () => Effect.sync(() => (seen++, Elicitation.accept(content)))
          const { error, failed, result } = yield* asked(revision, handler, form(properties, names))
          assert.strictEqual(seen, count === 1_000 ? 1 : 0)
          if (count === 1_000) assert.deepStrictEqual(result.content, content)
          else if (revision === "2026-07-28") assert.strictEqual(failed?.reason._tag, "InvalidResponse")
          else assert.deepInclude(error, { code: -32602, message: `The form has ${count} fields, more than 1000` })
        }
      }))

    it.effect("enforces a hostile pattern in linear time", () =>
      Effect.gen(function*() {
        const params = form({ name: { ...text, pattern: "^(a+)+$" } })
        const before = cpuTime()
        const { error, failed } = yield* logged(() =>
          asked(revision, constantly({ name: `${"a".repeat(5_000)}!` }), params)
        )
        assert.isTrue(failed !== undefined || error !== undefined)
        const { result } = yield* asked(revision, constantly({ name: "aaa" }), params)
        assert.deepStrictEqual(result.content, { name: "aaa" })
        assert.isBelow(cpuTime() - before, 1_000)
      }))
  })
}

/** Fields with values that fit and values that do not. */
const fields: ReadonlyArray<readonly [Json, ReadonlyArray<unknown>, ReadonlyArray<unknown>]> = [
  [{ type: "string" }, ["", "x"], [1, true, ["x"]]],
  [{ type: "string", minLength: 2, maxLength: 3 }, ["ab", "abc", "👍👍👍"], ["a", "abcd", "👍"]],
  [{ type: "string", format: "email" }, ["a@b.c", "ä+b@example.com"], ["a", "a@", "@b", "a b@c", "a@b@c"]],
  [{ type: "string", format: "uri" }, ["https://a.b/c?d#e", "urn:a:b"], ["a", "//a.b", "https://a b", "https://ä.de"]],
  [{ type: "string", format: "date" }, ["2026-02-28", "2024-02-29"], [
    "2026-02-29",
    "2026-2-3",
    "28.2.2026",
    "2026-13-01"
  ]],
  [
    { type: "string", format: "date-time" },
    ["2026-07-28T09:30:00Z", "2026-07-28T09:30:00.5+02:00", "2016-12-31T23:59:60z"],
    ["2026-07-28T09:30:00", "2026-07-28", "2026-02-30T09:30:00Z", "2026-07-28T24:30:00Z"]
  ],
  [{ type: "number", minimum: 0, maximum: 1 }, [0, 0.5, 1], [-0.1, 1.1, "0.5", Number.NaN, Infinity]],
  [{ type: "integer" }, [0, -3, 2.0], [0.5, "1", Infinity]],
  [{ type: "boolean" }, [true, false], ["true", 0]],
  [{ type: "string", enum: ["a", "b"] }, ["a", "b"], ["c", "A", 1]],
  [{ type: "string", enum: ["a", "b"], enumNames: ["A", "B"] }, ["a", "b"], ["A", "c"]],
  [{ type: "string", oneOf: [{ const: "a", title: "A" }, { const: "b", title: "B" }] }, ["a", "b"], ["A", "c", 1]],
  [{ type: "array", items: { type: "string", enum: ["a", "b"] } }, [[], ["a"], ["a", "b"]], ["a", ["c"], [1]]],
  [
    {
      type: "array",
      minItems: 1,
      maxItems: 2,
      items: { anyOf: [{ const: "a", title: "A" }, { const: "b", title: "B" }] }
    },
    [["a"], ["a", "b"]],
    [[], ["A"], ["a", "b", "a"]]
  ]
]

describe("2025-11-25 · Validate user input before sending", () => {
  for (const [field, fitting, unfitting] of fields) {
    it.effect(JSON.stringify(field), () =>
      Effect.gen(function*() {
        for (const value of fitting) {
          const { result } = yield* asked("2025-11-25", constantly({ f: value as never }), form({ f: field }))
          assert.deepStrictEqual(result?.content, { f: value }, String(value))
        }
        for (const value of unfitting) {
          const { error } = yield* logged(() =>
            asked("2025-11-25", constantly({ f: value as never }), form({ f: field }))
          )
          assert.strictEqual(error?.code, -32603, String(value))
        }
      }))
  }

  it.effect("rejects content without a required field or with an unknown field", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const params = form({ name: text, nick: text }, ["name"])
        const wrongs: ReadonlyArray<readonly [Elicitation.Content, string]> = [
          [{ nick: "x" }, `"name" is required and was left empty`],
          [{ name: undefined }, `"name" is required and was left empty`],
          [{ name: "x", password: "y" }, `the form has no field "password"`]
        ]
        for (const [content, why] of wrongs) {
          const { error } = yield* asked("2025-11-25", constantly(content), params)
          assert.strictEqual(error.code, -32603)
          assert.isTrue(lines.some((line) => line.includes(why)), why)
        }
      })
    ))
})

class Screen extends Context.Service<Screen, { readonly show: (text: string) => Effect.Effect<boolean> }>()("Screen") {}

describe("handlers", () => {
  it.effect("capture services in their layer, and have a scope for each request", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const screen = Layer.succeed(Screen, { show: (text) => Effect.sync(() => log.push(`show ${text}`) > 0) })
      const host = Elicitation.layer({
        form: ({ message }) =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() => Effect.sync(() => log.push("hide")))
            return (yield* (yield* Screen).show(message)) ? Elicitation.accept({ ok: true }) : Elicitation.decline
          })
      })
      // The layer requires no scope.
      const closed: Layer.Layer<Elicitation.Elicitation, never, Screen> = host
      const none: Exclude<Layer.Services<typeof closed>, Screen> extends never ? true : Scope.Scope = true
      assert.isTrue(none)
      const { server } = yield* open("2025-11-25", Layer.provide(closed, screen))
      for (const id of [1, 2]) {
        const { result } = yield* ask(server, "elicitation/create", form({ ok: { type: "boolean" } }), id)
        assert.deepStrictEqual(result, { action: "accept", content: { ok: true } })
      }
      assert.deepStrictEqual(log, ["show Well?", "hide", "show Well?", "hide"])
    }))

  it.effect("2025-11-25 · are interrupted when the server cancels the request, which gets no response", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const form_ = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
      const { server } = yield* open("2025-11-25", Elicitation.layer({ form: form_ }))
      const asking = yield* fork(ask(server, "elicitation/create", form({})))
      yield* turns()
      server.notify("notifications/cancelled", { requestId: "q", reason: "too late" })
      yield* turns()
      assert.strictEqual(interrupted, 1)
      assert.isUndefined(server.received.find((message: Json) => message.id === "q"))
      yield* Effect.sync(() => asking.interruptUnsafe())
    }))

  it.effect("2026-07-28 · are interrupted with the call, which is not retried", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const form_ = () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
      const question = { method: "elicitation/create", params: form({}) }
      const { client, server } = yield* open(
        "2026-07-28",
        Elicitation.layer({ form: form_ }),
        () => inputRequired({ a: question, b: question })
      )
      const call = yield* fork(client.callTool("t"))
      yield* turns()
      assert.strictEqual(interrupted, 0)
      call.interruptUnsafe()
      yield* turns()
      assert.strictEqual(interrupted, 2)
      assert.strictEqual(call.pollUnsafe()?._tag, "Failure")
      assert.isUndefined(failure(call as never) as ClientError | undefined)
      assert.strictEqual(server.requests("tools/call").length, 1)
    }))

  it.effect("2026-07-28 · fail the call with InputRefused if they interrupt themselves", () =>
    logged(() =>
      Effect.gen(function*() {
        const { failed } = yield* asked("2026-07-28", () => Effect.interrupt, form({}))
        assert.strictEqual(failed?.reason._tag, "InputRefused")
      })
    ))
})
