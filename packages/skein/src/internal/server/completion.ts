/**
 * Completion: suggestions for the arguments of prompts and the variables of templates while a user types them.
 */
import * as Core from "@skein/server/Completion"

/**
 * The source of the suggestions for one argument: a list, whose entries that match the typed text are suggested; or a function
 * of the typed text and the other arguments, which are not validated. Its list is used unchanged, the best suggestion first.
 * Clients receive the best 100. All callers that may see the prompt or template receive them.
 */
export type CompletionSource<Names extends string> =
  | ReadonlyArray<string>
  | ((
    value: string,
    others: { readonly [N in Names]?: string }
  ) => ReadonlyArray<string> | Promise<ReadonlyArray<string>>)

/** The sources by argument. */
export type Completions<Names extends string> = { readonly [N in Names]?: CompletionSource<Names> }

/** The suggestions of a prompt or a template. `C` is inferred: sources for its arguments, and no others. */
export interface CompletionOptions<Names extends string, C> {
  /** The sources of suggestions by argument. An argument whose schema consists of literals is completed automatically. */
  readonly complete?: C & { readonly [N in keyof C]: N extends Names ? C[N] : never } | undefined
}

/**
 * Returns the candidates that match the typed text, ignoring case: first those that start with it, then those that contain it,
 * then those that contain its letters in the same order.
 *
 * @example
 * complete: { framework: async (typed, { language }) => matchCompletions(typed, await frameworks(language)) }
 */
export const matchCompletions: (value: string, candidates: ReadonlyArray<string>) => ReadonlyArray<string> = Core.match
