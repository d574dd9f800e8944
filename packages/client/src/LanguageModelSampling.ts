/**
 * A handler for `sampling/createMessage` that uses a language model of `effect/ai`. It is a module of its own, so that
 * other programs do not load `effect/ai`.
 *
 * Text, images, audio and the system prompt are passed to the model. Tools are passed if `tools` is on; the server runs
 * them. The `modelPreferences` of a request are ignored unless `configure` uses them.
 *
 * **Gotchas.** An error of the model is a defect: it is logged, and the server receives an internal error. In
 * 2026-07-28 the call fails with `InputRefused`.
 *
 * @example
 * const Asking = LanguageModelSampling.layer({
 *   configure: ({ maxTokens, temperature }) =>
 *     OpenAiLanguageModel.withConfigOverride({ max_output_tokens: maxTokens, temperature }),
 *   review: (request) =>
 *     Effect.flatMap(approve(request), (yes) =>
 *       yes ? Effect.succeed(request) : Effect.fail(new Sampling.SamplingRefused({})))
 * })
 * const Live = Client.layer(transport).pipe(Layer.provide(Asking), Layer.provide(Model))
 */
import type { AiError } from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { contentOf, prompt, stopReason, toolsOf } from "./internal/input/prompt.ts"
import type { Sampling } from "./internal/input/services.ts"
import { type Answer, layer as sampling, type Request, type SamplingRefused } from "./Sampling.ts"

/** Wraps the effect that calls the model, to configure the provider. */
export interface Configure {
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
}

/** The options of the handler. */
export interface Options<R = never> {
  /**
   * Passes the parameters that each provider names differently: `maxTokens` above all, since "the client MUST respect
   * the `maxTokens` parameter", and `temperature`, `stopSequences` and `modelPreferences` as far as the provider
   * supports them.
   */
  readonly configure: (request: Request) => Configure
  /**
   * Receives each request before the model, and may change or refuse it: "Provide UI that makes it easy and intuitive
   * to review sampling requests. Allow users to view and edit prompts before sending."
   */
  readonly review?: ((request: Request) => Effect.Effect<Request, SamplingRefused, R>) | undefined
  /**
   * Receives each response before the server, and may change or refuse it: "Present generated responses for review
   * before delivery."
   */
  readonly present?: ((answer: Answer, request: Request) => Effect.Effect<Answer, SamplingRefused, R>) | undefined
  /** Whether the tools of a request are passed to the model, since 2025-11-25: false by default. */
  readonly tools?: boolean | undefined
  /** The name of the model if its response has none: its `ModelName`, or `unknown`, by default. */
  readonly model?: string | undefined
}

interface Generated {
  readonly content: ReadonlyArray<Response.AnyPart>
  readonly finishReason: Response.FinishReason
}

const generate = (request: Request) => {
  const { toolChoice, tools } = request
  if (tools === undefined) return LanguageModel.generateText({ prompt: prompt(request) })
  const handle = () => Effect.die(new Error("The tools of a request are run by the server"))
  return LanguageModel.generateText({
    prompt: prompt(request),
    toolkit: { tools: toolsOf(tools), handle },
    toolChoice: toolChoice?.mode ?? "auto",
    disableToolCallResolution: true
  })
}

const ask = (request: Request, configure: Configure, named: string | undefined) =>
  Effect.gen(function*() {
    const asked: Effect.Effect<Generated, AiError, LanguageModel.LanguageModel> = generate(request)
    const { content, finishReason } = yield* configure(asked)
    const known = content.find((part) => part.type === "response-metadata")?.modelId
    const name = Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName))
    const answer: Answer = {
      role: "assistant",
      model: known ?? named ?? name ?? "unknown",
      content: contentOf(content, request.server.revision),
      stopReason: stopReason(finishReason)
    }
    return answer
  }).pipe(Effect.orDie)

/**
 * Provides a handler that uses the `LanguageModel` in the context.
 *
 * @example
 * LanguageModelSampling.layer({
 *   configure: ({ maxTokens }) => OpenAiLanguageModel.withConfigOverride({ max_output_tokens: maxTokens })
 * })
 */
export const layer = <R = never>(
  { configure, model, present, review, tools }: Options<R>
): Layer.Layer<Sampling, never, LanguageModel.LanguageModel | Exclude<R, Scope.Scope>> =>
  sampling((given) =>
    Effect.gen(function*() {
      const request = review === undefined ? given : yield* review(given)
      const answer = yield* ask(request, configure(request), model)
      return present === undefined ? answer : yield* present(answer, request)
    }), { tools }) as Layer.Layer<Sampling, never, LanguageModel.LanguageModel | Exclude<R, Scope.Scope>>
