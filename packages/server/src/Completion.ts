/**
 * Completion: suggestions for the arguments of prompts and the variables of resource templates while a user types them.
 *
 * Pass the sources of suggestions to `Prompt.layer` or `ResourceTemplate.layer`. An argument whose schema consists of
 * literals is completed automatically. Clients receive the best 100 suggestions, their total number, and whether there
 * are more.
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
import type { Awaitable } from "@skein/runtime/Awaitable"
import type * as Effect from "effect/Effect"
import type { HandlerError } from "./HandlerError.ts"

/** The values of the other arguments that the client has sent (since 2025-06-18). They are not validated. */
export type Others<Names extends string> = { readonly [N in Names]?: string }

/**
 * The source of the suggestions for one argument:
 *
 * - a list, or an effect that returns one: the entries that match the typed text are suggested, ranked as by
 *   `matching`;
 * - a function of the typed text and the other arguments, which returns a list, a promise or an effect: its list is used
 *   unchanged, the best suggestion first.
 *
 * A failure, or the rejection with an error that clients may see (`HandlerContext`), is answered with `-32603` and its message. All callers that may see the prompt or template receive the
 * suggestions.
 */
export type Source<Names extends string, E = HandlerError, R = unknown> =
  | ReadonlyArray<string>
  | Effect.Effect<ReadonlyArray<string>, E, R>
  | ((
    value: string,
    others: Others<Names>
  ) => Awaitable<ReadonlyArray<string>, E, R>)

/** The sources by argument. */
export type Sources<Names extends string> = { readonly [N in Names]?: Source<Names> }

/**
 * Options of `Prompt.layer` and `ResourceTemplate.layer`. `C` is inferred: sources for the arguments of the definition,
 * and no others.
 */
export interface Options<Names extends string, C> {
  /** The sources of suggestions by argument. */
  readonly complete?: C & { readonly [N in keyof C]: N extends Names ? C[N] : never } | undefined
}

/** The services that the sources need. */
export type Services<C> = ServicesOf<C[keyof C]>

type ServicesOf<S> = S extends Effect.Effect<infer _A, infer _E, infer R> ? R
  : S extends (...args: never) => infer Answer ? Answer extends Effect.Effect<infer _A, infer _E, infer R> ? R : never
  : never

/**
 * Returns the candidates that match the typed text, ignoring case: first those that start with it, then those that
 * contain it, then those that contain its letters in the same order. Each group keeps the order of the candidates. All
 * candidates match an empty text.
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

/**
 * `match` for use in a pipe.
 *
 * @example
 * Effect.map(frameworks(language), Completion.matching(value))
 */
export const matching = (value: string) => (candidates: ReadonlyArray<string>): ReadonlyArray<string> =>
  match(value, candidates)

const hasLetters = (text: string, typed: string): boolean => {
  if (typed.length > text.length) return false
  let found = 0
  for (let at = 0; at < text.length && found < typed.length; at++) if (text[at] === typed[found]) found++
  return found === typed.length
}
