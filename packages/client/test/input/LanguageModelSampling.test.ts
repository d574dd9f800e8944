/** Sampling requests answered by a language model of `effect/ai`. */
import { assert, describe, it } from "@effect/vitest"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Response from "effect/ai/Response"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as LanguageModelSampling from "../../src/LanguageModelSampling.ts"
import * as Sampling from "../../src/Sampling.ts"
import { ask, type Json, logged, open } from "./kit.ts"

class MaxTokens extends Context.Reference<number>("MaxTokens", { defaultValue: () => -1 }) {}

const usage = {
  inputTokens: { uncached: 1, total: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}
const finish = (reason: Response.FinishReason): Json => ({ type: "finish", reason, usage, response: undefined })

/** Sends one sampling request to a client whose model always generates `parts`, and returns the model's requests. */
const setup = (
  parts: ReadonlyArray<Json>,
  options: Partial<LanguageModelSampling.Options> = {},
  params: Json = {},
  revision: "2024-11-05" | "2025-11-25" = "2025-11-25"
) =>
  Effect.gen(function*() {
    const seen: Array<{ readonly options: LanguageModel.ProviderOptions; readonly maxTokens: number }> = []
    const model = Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({
        generateText: (options) =>
          Effect.gen(function*() {
            seen.push({ options, maxTokens: yield* MaxTokens })
            if (parts.length === 0) {
              return yield* new AiError.AiError({
                module: "test",
                method: "generateText",
                reason: new AiError.UnknownError({ description: "out of order" })
              })
            }
            return parts as Array<Response.PartEncoded>
          }),
        streamText: () => Stream.empty
      })
    )
    const host = LanguageModelSampling.layer({
      configure: ({ maxTokens }) => (effect) => Effect.provideService(effect, MaxTokens, maxTokens),
      ...options
    })
    const { server } = yield* open(
      revision,
      Layer.provide(host, Layer.merge(model, Layer.succeed(Model.ModelName, "provided")))
    )
    const messages = [{ role: "user", content: { type: "text", text: "Hi" } }]
    const { error, result } = yield* ask(server, "sampling/createMessage", { messages, maxTokens: 7, ...params })
    return { error, result, seen, prompt: seen[0]?.options.prompt.content as Json }
  })

const text = (text: string) => ({ type: "text", text })

describe("LanguageModelSampling", () => {
  it.effect("sends text to the model and returns its text, model name and stop reason", () =>
    Effect.gen(function*() {
      const { prompt, result } = yield* setup([text("Good "), text("day"), finish("stop")], {}, {
        systemPrompt: "Be kind."
      })
      assert.deepStrictEqual(result, {
        role: "assistant",
        model: "provided",
        content: text("Good day"),
        stopReason: "endTurn"
      })
      assert.deepStrictEqual(prompt.map(({ role }: Json) => role), ["system", "user"])
      assert.strictEqual(prompt[0].content, "Be kind.")
      assert.strictEqual(prompt[1].content[0].text, "Hi")
    }))

  it.effect("the client MUST respect the `maxTokens` parameter: passes it to `configure`", () =>
    Effect.gen(function*() {
      const { result, seen } = yield* setup([text("Go"), finish("length")])
      assert.strictEqual(seen[0]!.maxTokens, 7)
      assert.strictEqual(result.stopReason, "maxTokens")
    }))

  it.effect("returns the model id of the response, or else the configured name", () =>
    Effect.gen(function*() {
      const metadata = { type: "response-metadata", id: "r", modelId: "m-1", timestamp: undefined, request: undefined }
      const { result } = yield* setup([metadata, text("x"), finish("stop")], { model: "mine" })
      assert.strictEqual(result.model, "m-1")
      assert.strictEqual((yield* setup([text("x"), finish("other")], { model: "mine" })).result.model, "mine")
    }))

  it.effect("sends images and audio to the model, and returns images", () =>
    Effect.gen(function*() {
      const messages = [{
        role: "user",
        content: [
          text("What is this?"),
          { type: "image", data: "aGk=", mimeType: "image/png" },
          { type: "audio", data: "aG8=", mimeType: "audio/wav" }
        ]
      }]
      const { prompt, result } = yield* setup(
        [text("This:"), { type: "file", mediaType: "image/png", data: "aGk=" }, finish("stop")],
        {},
        { messages }
      )
      assert.deepStrictEqual(
        prompt[0].content.map(({ data, mediaType, type }: Json) => [type, mediaType, data]),
        [["text", undefined, undefined], ["file", "image/png", "aGk="], ["file", "audio/wav", "aG8="]]
      )
      assert.deepStrictEqual(result.content, [text("This:"), { type: "image", data: "aGk=", mimeType: "image/png" }])
    }))

  it.effect("2024-11-05 · returns only the text, since a message has one block", () =>
    Effect.gen(function*() {
      const parts = [
        text("This:"),
        { type: "file", mediaType: "image/png", data: "aGk=" },
        text("that"),
        finish("stop")
      ]
      const { result } = yield* setup(parts, {}, {}, "2024-11-05")
      assert.deepStrictEqual(result.content, text("This:\nthat"))
    }))

  it.effect("sends tools to the model, and its tool calls to the server", () =>
    Effect.gen(function*() {
      const messages = [
        { role: "user", content: text("Weather?") },
        { role: "assistant", content: [{ type: "tool_use", id: "1", name: "weather", input: { city: "Paris" } }] },
        { role: "user", content: [{ type: "tool_result", toolUseId: "1", content: [text("18")], isError: true }] }
      ]
      const inputSchema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
      const { prompt, result, seen } = yield* setup(
        [{ type: "tool-call", id: "2", name: "weather", params: { city: "London" } }, finish("tool-calls")],
        { tools: true },
        {
          messages,
          tools: [{ name: "weather", description: "Tells it", inputSchema }],
          toolChoice: { mode: "required" }
        }
      )
      assert.deepStrictEqual(result.content, { type: "tool_use", id: "2", name: "weather", input: { city: "London" } })
      assert.strictEqual(result.stopReason, "toolUse")
      assert.deepStrictEqual(prompt.map(({ role }: Json) => role), ["user", "assistant", "tool"])
      assert.deepInclude(prompt[1].content[0], {
        type: "tool-call",
        id: "1",
        name: "weather",
        params: { city: "Paris" }
      })
      assert.deepInclude(prompt[2].content[0], { id: "1", name: "weather", isFailure: true, result: "18" })
      const [tool] = seen[0]!.options.tools
      assert.strictEqual(tool!.name, "weather")
      assert.strictEqual(tool!.description, "Tells it")
      assert.strictEqual(seen[0]!.options.toolChoice, "required")
    }))

  it.effect("Allow users to view and edit prompts before sending; Present generated responses for review before delivery", () =>
    Effect.gen(function*() {
      const { prompt, result } = yield* setup([text("secret"), finish("stop")], {
        review: (request) => Effect.succeed({ ...request, systemPrompt: "Be brief." }),
        present: (answer, { server: asker }) =>
          Effect.succeed({ ...answer, content: { type: "text", text: `for ${asker.info?.name}` } })
      })
      assert.strictEqual(prompt[0].content, "Be brief.")
      assert.deepStrictEqual(result.content, text("for scripted"))
    }))

  it.effect("with the ability to deny sampling requests: a refusal does not call the model", () =>
    Effect.gen(function*() {
      const { error, seen } = yield* setup([text("x"), finish("stop")], {
        review: () => Effect.fail(new Sampling.SamplingRefused({}))
      })
      assert.strictEqual(error.code, -1)
      assert.deepStrictEqual(seen, [])
    }))

  it.effect("responds with an internal error, and logs it, if the model fails", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { error } = yield* setup([])
        assert.deepInclude(error, { code: -32603, message: "Internal error" })
        assert.isTrue(lines.some((line) => line.includes("out of order")))
      })
    ))
})
