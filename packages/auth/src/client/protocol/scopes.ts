/**
 * The scopes of a request: lists of case-sensitive words that are separated by spaces (RFC 6749, 3.3).
 */

/** Reads a `scope` parameter. `undefined` and blank text have no scopes; a repeated scope counts once. */
export const parse = (text: string | undefined): ReadonlyArray<string> =>
  text === undefined ? [] : [...new Set(text.split(/[ \t\r\n]+/).filter((scope) => scope !== ""))]

/**
 * The scopes that a token endpoint has granted. GitHub separates them by commas, which may be part of a scope elsewhere:
 * they separate if no requested scope has one.
 */
export const granted = (text: string, requested: ReadonlyArray<string>): ReadonlyArray<string> =>
  parse(requested.some((scope) => scope.includes(",")) ? text : text.replaceAll(",", " "))

/** All scopes of the lists, each one once, in the order of their first appearance. */
export const union = (...lists: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => [
  ...new Set(lists.flat())
]

/** Whether `scopes` has all scopes of `wanted`. */
export const covers = (scopes: ReadonlyArray<string>, wanted: ReadonlyArray<string>): boolean =>
  wanted.every((scope) => scopes.includes(scope))

/** A `scope` parameter, or `undefined` without scopes: an empty one is not allowed (RFC 6749, 3.3). */
export const format = (scopes: ReadonlyArray<string>): string | undefined =>
  scopes.length === 0 ? undefined : scopes.join(" ")

/** The scopes to choose from. */
export interface Choice {
  /** The option `scopes`. */
  readonly configured: ReadonlyArray<string> | undefined
  /** The `scope` of the challenge. */
  readonly challenged: string | undefined
  /** `scopes_supported` of the protected resource metadata. */
  readonly supported: ReadonlyArray<string> | undefined
  /** The scopes that were requested before, from the same authorization server. */
  readonly before: ReadonlyArray<string>
}

/**
 * The scopes of a first sign-in: those that are configured, else those of the challenge, else those that the server
 * lists, else none. Scopes that were requested before stay requested (2026-07-28, Scope Selection Strategy).
 */
export const select = ({ before, challenged, configured, supported }: Choice): ReadonlyArray<string> =>
  union(before, configured ?? (challenged === undefined ? supported ?? [] : parse(challenged)))
