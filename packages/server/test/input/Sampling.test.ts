/** Sampling: the messages that may be sent, and both shapes of content. */
import { describe, expect, it } from "@effect/vitest"
import type { InputError } from "@skein/server/InputError"
import * as Json from "@skein/protocol/Json"
import * as Content from "@skein/server/Content"
import * as Sampling from "@skein/server/Sampling"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as kit from "./kit.ts"

const revisions = ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] as const
const sampled = (content: kit.Json, stopReason = "endTurn") => ({ role: "assistant", model: "m", content, stopReason })

/** Requests sampling in a revision, and returns the sent request and its outcome. */
const asking = (revision: typeof revisions[number], request: Sampling.Request, answer: kit.Json) =>
  Effect.gen(function*() {
    const seen: Array<Result.Result<Sampling.Answer, InputError>> = []
    const handler = Effect.map(Effect.result(Sampling.createMessage(request)), (result) => {
      seen.push(result)
      return "done"
    })
    const client = yield* kit.client(kit.tool(handler), { revision, answer: () => answer })
    yield* client.call("t")
    return { sent: client.asked[0]?.params, result: seen.at(-1)! }
  })

const failure = <A>(result: Result.Result<A, InputError>) => Result.isFailure(result) ? result.failure : undefined

const use = (id: string): Sampling.Block => ({ type: "tool_use", id, name: "f", input: {} })
const result = (id: string) => Sampling.toolResult({ id }, "ok")
const tools = [{ name: "f", description: "F", inputSchema: { type: "object" as const } }]

describe("sampling", () => {
  it.effect("rejects an integer that JavaScript rounds in the arguments of a tool call of the model", () =>
    Effect.gen(function*() {
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        const answer = JSON.stringify(sampled([{ ...use("1"), input: { ids: [0] } }], "toolUse"))
        const { result } = yield* asking(
          revision,
          { messages: [Sampling.user("Hi")], maxTokens: 10, tools },
          Json.parse(answer.replace("[0]", "[1915883588174806058]")) as kit.Json
        )
        expect(failure(result)).toMatchObject({
          reason: { _tag: "InvalidResponse" },
          message: expect.stringContaining("content[0].input.ids[0] is 1915883588174806058, an integer beyond 2^53")
        })
      }
    }))

  for (const revision of revisions) {
    it.effect(`${revision} · reads one block or several as a list`, () =>
      Effect.gen(function*() {
        const request = {
          messages: [Sampling.user("Hi"), Sampling.assistant([Content.text("one")])],
          maxTokens: 10,
          systemPrompt: "Be brief",
          temperature: 0.5,
          stopSequences: ["."],
          modelPreferences: { hints: [{ name: "m" }], speedPriority: 1 },
          metadata: { a: 1 }
        }
        const block = { type: "text", text: "Hello" }
        const one = yield* asking(revision, request, sampled(block))
        expect(one.sent).toMatchObject({
          ...request,
          messages: [{ role: "user", content: { type: "text", text: "Hi" } }, {}]
        })
        expect(one.result).toMatchObject({
          success: { role: "assistant", model: "m", stopReason: "endTurn", content: [block] }
        })
        if (revision >= "2025-11-25") {
          const several = yield* asking(revision, request, sampled([block, { type: "text", text: "!" }]))
          expect(Result.isSuccess(several.result) && Sampling.text(several.result.success)).toBe("Hello!")
        }
      }))

    it.effect(`${revision} · sends and reads images and audio`, () =>
      Effect.gen(function*() {
        const image = Content.image(new Uint8Array([1]), "image/png")
        const { result, sent } = yield* asking(
          revision,
          { messages: [Sampling.user(image)], maxTokens: 1 },
          sampled(image)
        )
        expect(sent.messages[0].content).toEqual(image)
        expect(Result.isSuccess(result) && result.success.content).toEqual([image])
      }))

    it.effect(`${revision} · fails with InvalidResponse for a malformed result, or -32602 within a request`, () =>
      Effect.gen(function*() {
        const handler = Effect.map(Sampling.createMessage({ messages: "?", maxTokens: 1 }), Sampling.text)
        const client = yield* kit.client(kit.tool(handler), { revision, answer: () => ({ role: "assistant" }) })
        const text = yield* client.call("t")
        expect(text).toMatch(
          revision === "2026-07-28" ? /^-32602 .*inputResponses/ : /^failed: invalid response to sampling/
        )
      }))
  }

  it.effect("does not send a request that the specification does not allow", () =>
    Effect.gen(function*() {
      const { result, sent } = yield* asking("2026-07-28", { messages: "?", maxTokens: 1.5 }, sampled([]))
      expect(failure(result)).toMatchObject({ reason: { _tag: "InvalidRequest" } })
      expect(failure(result)!.message).toContain("maxTokens")
      expect(sent).toBe(undefined)
    }))

  it.effect("2025-06-18 · refuses tools, and several blocks in a message, at once", () =>
    Effect.gen(function*() {
      const requests: ReadonlyArray<Sampling.Request> = [
        { messages: "?", maxTokens: 1, tools },
        { messages: [Sampling.user([Content.text("a"), Content.text("b")])], maxTokens: 1 },
        { messages: [Sampling.assistant(use("1")), Sampling.user(result("1"))], maxTokens: 1 }
      ]
      for (const request of requests) {
        const { result, sent } = yield* asking("2025-06-18", request, sampled([]))
        expect(failure(result)).toMatchObject({ reason: { _tag: "Unsupported" } })
        expect(sent).toBe(undefined)
      }
    }))

  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · sends tools, tool uses and tool results`, () =>
      Effect.gen(function*() {
        const request: Sampling.Request = {
          messages: [
            Sampling.user("?"),
            Sampling.assistant([Content.text("Let me see"), use("1"), use("2")]),
            Sampling.user([
              result("2"),
              Sampling.toolResult({ id: "1" }, "no", { isError: true, structuredContent: { a: 1 } })
            ]),
            Sampling.assistant("Done")
          ],
          tools,
          toolChoice: { mode: "required" },
          maxTokens: 1
        }
        const { result: answer, sent } = yield* asking(revision, request, sampled([use("3"), use("4")], "toolUse"))
        expect(sent).toMatchObject({ tools, toolChoice: { mode: "required" }, messages: [{}, {}, {}, {}] })
        expect(sent.messages[2].content[1]).toMatchObject({ type: "tool_result", toolUseId: "1", isError: true })
        expect(Result.isSuccess(answer) && Sampling.toolUses(answer.success).map(({ id }) => id)).toEqual(["3", "4"])
      }))

    it.effect(`${revision} · every tool use MUST be matched by a tool result, in a message that has nothing else`, () =>
      Effect.gen(function*() {
        const bad: ReadonlyArray<ReadonlyArray<Sampling.Message>> = [
          [Sampling.assistant(use("1"))],
          [Sampling.assistant(use("1")), Sampling.user("next")],
          [Sampling.assistant([use("1"), use("2")]), Sampling.user(result("1"))],
          [Sampling.assistant(use("1")), Sampling.user([result("1"), result("2")])],
          [Sampling.user(result("1"))],
          [Sampling.assistant(use("1")), Sampling.user([Content.text("Here:"), result("1")])],
          [Sampling.user(use("1")), Sampling.user(result("1"))],
          [Sampling.assistant(use("1")), Sampling.assistant(result("1"))]
        ]
        for (const messages of bad) {
          const { result, sent } = yield* asking(revision, { messages, maxTokens: 1, tools }, sampled([]))
          expect(failure(result)).toMatchObject({ reason: { _tag: "InvalidRequest" } })
          expect(sent).toBe(undefined)
        }
      }))
  }
})
