/**
 * Answers the sampling requests of a server in the place of a language model: with the texts of `--sampling`, or those
 * that the person types.
 */
import * as Sampling from "@skein/client/Sampling"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Semaphore from "effect/Semaphore"
import { blockText, quoteBlock } from "../base/format.ts"
import type { Console, Terminal } from "../base/process.ts"

const answer = (text: string): Sampling.Answer => ({
  role: "assistant",
  content: { type: "text", text },
  model: "a person",
  stopReason: "endTurn"
})

const refused = /* @__PURE__ */ Effect.fail(/* @__PURE__ */ new Sampling.SamplingRefused({}))

/** The messages of a request. Their further lines are marked, so that none can pass for a line of this program. */
const messagesOf = ({ messages, systemPrompt }: Sampling.Request): ReadonlyArray<string> => [
  ...systemPrompt === undefined ? [] : [`  system: ${quoteBlock(systemPrompt)}`],
  ...messages.map(({ content, role }) => {
    const blocks = Array.isArray(content) ? content : [content]
    const texts = blocks.map((block) => "data" in block || "text" in block ? blockText(block) : `[${block.type}]`)
    return `  ${role}: ${quoteBlock(texts.join("\n"))}`
  })
]

/** Answers each request with the next of the texts. A further request is refused, unless `atEnd` leaves it open. */
export const answeringWith = (
  texts: ReadonlyArray<string>,
  { warn }: Pick<Console, "warn">,
  atEnd?: Effect.Effect<never>
): Layer.Layer<Sampling.Sampling> => {
  const left = [...texts]
  return Sampling.layer(() =>
    Effect.suspend(() => {
      const text = left.shift()
      if (text !== undefined) {
        warn("Answered a sampling request with the text of --sampling")
        return Effect.succeed(answer(text))
      }
      const outcome = atEnd === undefined ? "Refused" : "Did not answer"
      warn(`${outcome} a sampling request: --sampling has answers for ${texts.length} only`)
      return atEnd ?? refused
    })
  )
}

/**
 * Lets the person answer. `turn` is taken while a question is on the terminal. The end of the input refuses, unless `atEnd`
 * leaves the request open.
 */
export const answeringOn = (
  { readLine, writeLine }: Terminal,
  serverName: string,
  turn: Semaphore.Semaphore,
  atEnd: Effect.Effect<never, Sampling.SamplingRefused> = refused
): Layer.Layer<Sampling.Sampling> =>
  Sampling.layer((request) =>
    turn.withPermit(Effect.gen(function*() {
      yield* writeLine(`\n${serverName} asks a language model (sampling), of at most ${request.maxTokens} tokens:`)
      for (const line of messagesOf(request)) yield* writeLine(line)
      const text = yield* readLine("Answer in its place (an empty line refuses): ")
      if (text === undefined) return yield* atEnd
      return text === "" ? yield* refused : answer(text)
    }))
  )
