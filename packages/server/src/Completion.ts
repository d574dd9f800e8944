/**
 * Completion: suggestions for the arguments of prompts and the variables of resource templates, while they are typed.
 *
 * They are given where the prompt or the template is bound to its handler. What has a schema of literals completes by itself.
 * Clients get the best 100, how many there are, and whether there are more.
 *
 * @example
 * const review = Prompt.make("review", { arguments: { language: Schema.String, framework: Schema.String } })
 * const live = Prompt.layer(review, handler, {
 *   complete: {
 *     language: ["python", "typescript", "rust"],
 *     framework: (value, { language }) => Effect.map(frameworks(language), Completion.matching(value))
 *   }
 * })
 */
import type * as Effect from "effect/Effect"
import type { HandlerError } from "./HandlerError.ts"

/** The values of other arguments, as far as the client has sent them (since 2025-06-18). They are not validated. */
export type Others<Names extends string> = { readonly [N in Names]?: string }

/**
 * Where the suggestions for one argument come from:
 *
 * - a list, or an effect of one: those that match what was typed are suggested, as `matching` ranks them;
 * - a function of what was typed and of the other arguments: its answer is taken as it is, the best first.
 *
 * What it fails with is answered `-32603` and its message. What it suggests is shown to whoever may see the prompt or template.
 */
export type Source<Names extends string, E = HandlerError, R = unknown> =
  | ReadonlyArray<string>
  | Effect.Effect<ReadonlyArray<string>, E, R>
  | ((
    value: string,
    others: Others<Names>
  ) => ReadonlyArray<string> | Effect.Effect<ReadonlyArray<string>, E, R>)

/** The sources by the arguments that they are for. */
export type Sources<Names extends string> = { readonly [N in Names]?: Source<Names> }

/** What a prompt or a template may be given besides its handler. `C` is inferred: sources for its own names, and no others. */
export interface Options<Names extends string, C> {
  /** What completes the arguments while they are typed. */
  readonly complete?: C & { readonly [N in keyof C]: N extends Names ? C[N] : never } | undefined
}

/** The services that sources need. */
export type Services<C> = ServicesOf<C[keyof C]>

type ServicesOf<S> = S extends Effect.Effect<infer _A, infer _E, infer R> ? R
  : S extends (...args: never) => infer Answer ? Answer extends Effect.Effect<infer _A, infer _E, infer R> ? R : never
  : never

/**
 * The candidates that match what was typed, without regard to case: first those that begin with it, then those that contain it,
 * then those that have its letters in their order. Within each they keep their order. With nothing typed all match.
 */
export const match = (value: string, candidates: ReadonlyArray<string>): ReadonlyArray<string> => {
  const typed = value.toLowerCase()
  if (typed === "") return candidates
  const begin: Array<string> = []
  const contain: Array<string> = []
  const resemble: Array<string> = []
  for (const candidate of candidates) {
    const text = candidate.toLowerCase()
    if (text.startsWith(typed)) begin.push(candidate)
    else if (text.includes(typed)) contain.push(candidate)
    else if (hasLetters(text, typed)) resemble.push(candidate)
  }
  return [...begin, ...contain, ...resemble]
}

/** The same for a pipe. */
export const matching = (value: string) => (candidates: ReadonlyArray<string>): ReadonlyArray<string> =>
  match(value, candidates)

const hasLetters = (text: string, typed: string): boolean => {
  if (typed.length > text.length) return false
  let found = 0
  for (let at = 0; at < text.length && found < typed.length; at++) if (text[at] === typed[found]) found++
  return found === typed.length
}
