/**
 * Answers `sampling/createMessage` with a language model of `effect/ai`. A module of its own, so that only who wants it
 * loads it.
 *
 * ```ts
 * const Asking = LanguageModelSampling.layer({
 *   configure: ({ maxTokens, temperature }) =>
 *     OpenAiLanguageModel.withConfigOverride({ max_output_tokens: maxTokens, temperature }),
 *   review: (request) =>
 *     Effect.flatMap(approve(request), (yes) =>
 *       yes ? Effect.succeed(request) : Effect.fail(new Sampling.SamplingRefused({})))
 * })
 * const Live = Client.layer(transport).pipe(Layer.provide(Asking), Layer.provide(Model))
 * ```
 *
 * Texts, images and audio are handed on, and the system prompt; and tools, when `tools` is on: the server runs them.
 * Which model answers is the host's choice: `modelPreferences` are not looked at, unless `configure` does.
 *
 * **Gotchas.** What the model fails with is a defect: it is logged, and the server hears of an internal error; in the
 * request era the call fails with `InputRefused`.
 */
import type { AiError } from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Model from "effect/ai/Model"
import type * as Response from "effect/ai/Response"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { Needed } from "./internal/input/captured.ts"
import { contentOf, prompt, stopReason, toolsOf } from "./internal/input/prompt.ts"
import type { Sampling } from "./internal/input/services.ts"
import { type Answer, layer as sampling, type Request, type SamplingRefused } from "./Sampling.ts"

/** Changes how a model is asked, or what stands around it. */
export interface Configure {
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R>
}

/** How a model is asked. */
export interface Options<R = never> {
  /**
   * Gives the model what each provider has its own words for: `maxTokens` above all, since "the client MUST respect the
   * `maxTokens` parameter", and `temperature`, `stopSequences` and the preferences as far as it can.
   */
  readonly configure: (request: Request) => Configure
  /**
   * Sees each request before the model does, and may change or refuse it: "Provide UI that makes it easy and intuitive
   * to review sampling requests. Allow users to view and edit prompts before sending."
   */
  readonly review?: ((request: Request) => Effect.Effect<Request, SamplingRefused, R>) | undefined
  /** Sees each answer before the server does: "Present generated responses for review before delivery." */
  readonly present?: ((answer: Answer, request: Request) => Effect.Effect<Answer, SamplingRefused, R>) | undefined
  /** Whether the model may be given the tools of a request, since 2025-11-25: false by default. */
  readonly tools?: boolean | undefined
  /** What the model is called where it does not say so itself: its `ModelName`, or `unknown`, by default. */
  readonly model?: string | undefined
}

interface Said {
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
    const asked: Effect.Effect<Said, AiError, LanguageModel.LanguageModel> = generate(request)
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

/** Answers with the `LanguageModel` that is provided. */
export const layer = <R = never>(
  { configure, model, present, review, tools }: Options<R>
): Layer.Layer<Sampling, never, LanguageModel.LanguageModel | Needed<R>> =>
  sampling((given) =>
    Effect.gen(function*() {
      const request = review === undefined ? given : yield* review(given)
      const answer = yield* ask(request, configure(request), model)
      return present === undefined ? answer : yield* present(answer, request)
    }), { tools }) as Layer.Layer<Sampling, never, LanguageModel.LanguageModel | Needed<R>>
