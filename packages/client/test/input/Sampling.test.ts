/**
 * Sampling: the request that a handler receives, the requests that the client refuses, and the answers that it sends.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import type * as Client from "../../src/Client.ts"
import * as Sampling from "../../src/Sampling.ts"
import { ask, done, inputRequired, type Json, logged, open, textAnswer } from "./kit.ts"
import { fieldsOf } from "../support/fields.ts"

const text = (text: string) => ({ type: "text", text })
const user = (content: Json) => ({ role: "user", content })
const assistant = (content: Json) => ({ role: "assistant", content })
const use = (id: string) => ({ type: "tool_use", id, name: "weather", input: {} })
const result = (toolUseId: string) => ({ type: "tool_result", toolUseId, content: [text("18")] })
const weather = { name: "weather", inputSchema: { type: "object" } }
const question = (messages: Json = [user(text("Hi"))], rest: Json = {}) => ({ messages, maxTokens: 10, ...rest })

/** Sends one sampling request, and returns the response or the failure of the call. */
const asked = (
  revision: Revision.Revision,
  handler: Sampling.Handler,
  params: Json,
  options?: Sampling.Options,
  clientOptions?: Client.Options
) =>
  Effect.gen(function*() {
    const host = Sampling.layer(handler, options)
    if (revision !== "2026-07-28") {
      const { server } = yield* open(revision, host, undefined, clientOptions)
      const { error, result } = yield* ask(server, "sampling/createMessage", params)
      return { error, result, failed: undefined }
    }
    const rounds = [inputRequired({ q: { method: "sampling/createMessage", params } }), done]
    const { client, server } = yield* open(revision, host, () => rounds.shift()!)
    const called = yield* Effect.result(client.callTool("t"))
    return {
      error: undefined,
      result: (server.requests("tools/call")[1]?.params as Json)?.inputResponses.q,
      failed: called._tag === "Failure" ? called.failure : undefined
    }
  })

const answering = (answer: Sampling.Answer): Sampling.Handler => () => Effect.succeed(answer)

for (const revision of Revision.all) {
  describe(revision, () => {
    it.effect("passes the request and the server to the handler, and sends its answer", () =>
      Effect.gen(function*() {
        let seen: Sampling.Request | undefined
        const params = question([user(text("Hi")), assistant(text("Hello"))], {
          systemPrompt: "Be kind.",
          temperature: 0.5,
          stopSequences: ["."],
          modelPreferences: { hints: [{ name: "m" }], costPriority: 0.3 },
          metadata: { a: 1 },
          _meta: { trace: 1 }
        })
        const { result } = yield* asked(revision, (request) => {
          seen = request
          return Effect.succeed(textAnswer("Good day"))
        }, params)
        const { _meta: _, ...rest } = params
        const { server: asker, ...request } = seen!
        assert.deepStrictEqual(request as Json, rest)
        assert.strictEqual(asker.info?.name, "scripted")
        assert.strictEqual(asker.method, revision === "2026-07-28" ? "tools/call" : undefined)
        assert.deepStrictEqual(result, {
          role: "assistant",
          model: "m",
          content: text("Good day"),
          stopReason: "endTurn"
        })
      }))

    it.effect("User rejected sampling request: responds -1, and in 2026-07-28 fails the call and sends nothing", () =>
      Effect.gen(function*() {
        for (
          const [refused, message] of [
            [new Sampling.SamplingRefused({}), "User rejected sampling request"],
            [new Sampling.SamplingRefused({ message: "Not today" }), "Not today"]
          ] as const
        ) {
          const { error, failed } = yield* asked(revision, () => Effect.fail(refused), question())
          if (revision === "2026-07-28") {
            assert.deepInclude(fieldsOf(failed), { reason: "InputRefused", method: "tools/call", cause: refused })
            assert.include(failed!.message, `"q" (sampling/createMessage)`)
            assert.include(failed!.message, message)
          } else assert.deepStrictEqual(error, { code: -1, message })
        }
      }))

    it.effect("`includeContext`: the client MAY modify or ignore this field, and removes it unless the host provides context", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const handler: Sampling.Handler = (request) =>
          Effect.sync(() => (seen.push(request.includeContext), textAnswer("x")))
        const params = question(undefined, { includeContext: "allServers" })
        yield* asked(revision, handler, params)
        yield* asked(revision, handler, params, { context: true })
        assert.deepStrictEqual(seen, [undefined, "allServers"])
      }))

    it.effect("never sends an invalid answer, or one that uses a tool that is not in the request", () =>
      logged((lines) =>
        Effect.gen(function*() {
          const bad: ReadonlyArray<Json> = [
            {},
            undefined,
            { ...textAnswer("x"), role: "system" },
            { ...textAnswer("x"), model: undefined },
            { ...textAnswer("x"), content: [use("1")] }
          ]
          for (const answer of bad) {
            const { error, failed, result } = yield* asked(revision, answering(answer), question())
            assert.isUndefined(result)
            if (revision === "2026-07-28") assert.strictEqual(failed?.reason._tag, "InputRefused")
            else assert.deepInclude(error, { code: -32603, message: "Internal error" })
          }
          assert.strictEqual(lines.filter((line) => line.includes("was not sent")).length, bad.length)
        })
      ))

    it.effect("sends several blocks in revisions that have them", () =>
      logged(() =>
        Effect.gen(function*() {
          const answer = { ...textAnswer("x"), content: [text("a"), text("b")] } as Sampling.Answer
          const { error, result } = yield* asked(revision, answering(answer), question())
          if (revision >= "2025-11-25") assert.deepStrictEqual(result.content, [text("a"), text("b")])
          else assert.strictEqual(error.code, -32603)
          const single = { ...textAnswer("x"), content: [text("a")] } as Sampling.Answer
          const one = yield* asked(revision, answering(single), question())
          assert.deepStrictEqual(one.result.content, revision >= "2025-11-25" ? [text("a")] : text("a"))
        })
      ))
  })
}

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    const refusedAs = (reason: "Unsupported" | "InvalidResponse", { error, failed }: Json) => {
      if (revision === "2026-07-28") assert.strictEqual(failed?.reason._tag, reason)
      else assert.strictEqual(error?.code, -32602)
    }

    it.effect("The client MUST return an error if this field is provided but sampling.tools is not declared", () =>
      Effect.gen(function*() {
        let asks = 0
        const handler: Sampling.Handler = () => Effect.sync(() => (asks++, textAnswer("x")))
        for (const rest of [{ tools: [weather] }, { tools: [] }, { toolChoice: { mode: "none" } }]) {
          refusedAs("Unsupported", yield* asked(revision, handler, question(undefined, rest)))
        }
        assert.strictEqual(asks, 0)
        const { result } = yield* asked(revision, handler, question(undefined, { tools: [weather] }), { tools: true })
        assert.deepStrictEqual(result.content, text("x"))
      }))

    it.effect("sends uses of the request's tools, unless toolChoice forbids them", () =>
      logged(() =>
        Effect.gen(function*() {
          const answer = { ...textAnswer("x"), content: [use("1"), use("2")], stopReason: "toolUse" } as Sampling.Answer
          const tools = { tools: [weather] }
          const { result } = yield* asked(revision, answering(answer), question(undefined, tools), { tools: true })
          assert.deepStrictEqual(result.content, [use("1"), use("2")])
          const none = question(undefined, { ...tools, toolChoice: { mode: "none" } })
          const { error, failed } = yield* asked(revision, answering(answer), none, { tools: true })
          assert.isTrue(error?.code === -32603 || failed?.reason._tag === "InputRefused")
        })
      ))

    const balanced: { readonly [name: string]: Json } = {
      "one use, one result": [user(text("?")), assistant(use("1")), user(result("1"))],
      "results in any order": [assistant([use("1"), use("2")]), user([result("2"), result("1")])],
      "text beside the use": [assistant([text("Well"), use("1")]), user([result("1")]), assistant(text("18"))],
      "two turns": [assistant([use("1")]), user([result("1")]), assistant([use("2")]), user([result("2")])],
      "the same id in two turns": [
        assistant([use("1")]),
        user([result("1")]),
        assistant([use("1")]),
        user([result("1")])
      ],
      "no tools at all": [user([text("a"), text("b")]), user(text("c"))]
    }
    const unbalanced: { readonly [name: string]: Json } = {
      "Tool result missing in request": [assistant([use("1"), use("2")]), user([result("1")])],
      "Tool results mixed with other content": [assistant([use("1")]), user([text("Here:"), result("1")])],
      "mixed without a use before": [user([result("1"), text("there")])],
      "before any other message": [assistant([use("1")]), user(text("wait")), user([result("1")])],
      "a message instead of results": [assistant([use("1")]), assistant(text("18"))],
      "results from the assistant": [assistant([use("1")]), assistant([result("1")])],
      "nothing after the use": [user(text("?")), assistant([use("1")])],
      "empty content": [assistant([use("1")]), user([])],
      "the id of another use": [assistant([use("1")]), user([result("2")])],
      "a result beyond those of the uses": [assistant([use("1")]), user([result("1"), result("2")])],
      "a result without a use before": [user([result("1")])],
      "a use of the user": [user([use("1")]), user([result("1")])]
    }
    for (const [name, messages] of Object.entries(balanced)) {
      it.effect(`every assistant message containing ToolUseContent MUST be followed by its results · accepts: ${name}`, () =>
        Effect.gen(function*() {
          const { result } = yield* asked(
            revision,
            answering(textAnswer("x")),
            question(messages, { tools: [weather] }),
            {
              tools: true
            }
          )
          assert.deepStrictEqual(result.content, text("x"))
        }))
    }
    for (const [name, messages] of Object.entries(unbalanced)) {
      it.effect(`${name}: -32602 (Invalid params)`, () =>
        Effect.gen(function*() {
          let asks = 0
          const handler: Sampling.Handler = () => Effect.sync(() => (asks++, textAnswer("x")))
          refusedAs("InvalidResponse", yield* asked(revision, handler, question(messages), { tools: true }))
          refusedAs("InvalidResponse", yield* asked(revision, handler, question(messages)))
          assert.strictEqual(asks, 0)
        }))
    }
  })
}

describe("2025-11-25", () => {
  it.effect("Receivers that do not declare the task capability MUST process requests normally, ignoring task-augmentation", () =>
    Effect.gen(function*() {
      let seen: Json
      const { result } = yield* asked(
        "2025-11-25",
        (request) => {
          seen = request
          return Effect.succeed(textAnswer("x"))
        },
        question(undefined, { task: { ttl: 1 } }),
        undefined,
        { taskReceiver: false }
      )
      assert.deepStrictEqual(result.content, text("x"))
      assert.notProperty(seen, "task")
    }))
})
