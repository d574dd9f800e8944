import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as LanguageModelSampling from "@skein/client/LanguageModelSampling"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import type { Transport } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** The user interface that the programs need. */
export interface Screen {
  readonly confirm: (lines: ReadonlyArray<string>) => Effect.Effect<boolean>
  readonly form: (
    title: string,
    request: Elicitation.FormRequest
  ) => Effect.Effect<Elicitation.Content | "declined" | "closed">
  readonly browse: (address: string) => Effect.Effect<void>
}

/** The largest number of tokens in an answer of the model. Each provider has its own name for it. */
export const MaxTokens = Context.Reference<number>("docs/MaxTokens", { defaultValue: () => 1_000 })

// #region form
export const forms = (screen: Screen) => {
  const turn = Semaphore.makeUnsafe(1)
  return Elicitation.layer({
    form: (request) =>
      turn.withPermit(Effect.map(screen.form(`${request.server.label} asks`, request), (entered) => {
        if (entered === "declined") return Elicitation.decline
        return entered === "closed" ? Elicitation.cancel : Elicitation.accept(entered)
      }))
  })
}
// #endregion

// #region url
export const addresses = (screen: Screen) =>
  Elicitation.layer({
    url: ({ host, message, server, url, warnings }) =>
      Effect.gen(function*() {
        const lines = [`${server.label} wants you to visit ${host}: ${message}`, url.href, ...warnings]
        if (!(yield* screen.confirm(lines))) return Elicitation.decline
        yield* screen.browse(url.href)
        return Elicitation.consent()
      })
  })
// #endregion

// #region provide
export const open = (transport: Transport, screen: Screen) =>
  Client.layer(transport, { label: "The tea house" }).pipe(Layer.provide(forms(screen)))
// #endregion

export const workspace = Effect.gen(function*() {
  const folders = yield* SubscriptionRef.make<ReadonlyArray<Roots.Root>>([{ uri: "file:///home/ada/tea" }])
  return { folders, roots: Roots.layerStream(SubscriptionRef.changes(folders)) }
})

// #region sampling
export const models = (screen: Screen, answer: (request: Sampling.Request) => Effect.Effect<Sampling.Answer>) =>
  Sampling.layer((request) =>
    Effect.gen(function*() {
      const { maxTokens, messages, server } = request
      const lines = [`${server.label} asks the model, up to ${maxTokens} tokens`, JSON.stringify(messages)]
      if (!(yield* screen.confirm(lines))) return yield* new Sampling.SamplingRefused({})
      return yield* answer(request)
    })
  )
// #endregion

export const languageModel = (screen: Screen) =>
  LanguageModelSampling.layer({
    // With a provider, in its own terms: `withConfigOverride({ max_output_tokens: maxTokens })`.
    configure: ({ maxTokens }) => (effect) => Effect.provideService(effect, MaxTokens, maxTokens),
    review: (request) =>
      Effect.flatMap(
        screen.confirm([JSON.stringify(request.messages)]),
        (yes) => yes ? Effect.succeed(request) : Effect.fail(new Sampling.SamplingRefused({}))
      )
  })
