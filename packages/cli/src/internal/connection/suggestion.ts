/**
 * Suggestions for a name that does not exist, as `effect/cli` has them for commands and options. It does not
 * export its edit distance.
 */
import { ClientError, ProtocolError } from "@skein/client/ClientError"
import * as Effect from "effect/Effect"
import { quoteName } from "../base/format.ts"

/** How many changes of a character may lead to a suggestion. */
const maxDistance = 2

// A server can list many long names, and the time of a comparison is the product of two lengths.
const [maxNames, maxLength] = [1_000, 64]

/** How many characters must be inserted, deleted or replaced to make one text the other (Levenshtein). */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let at = 1; at <= one.length; at++) {
    const next = [at]
    for (let to = 1; to <= other.length; to++) {
      const isSame = one[at - 1] === other[to - 1]
      next.push(Math.min(row[to]! + 1, next[to - 1]! + 1, row[to - 1]! + (isSame ? 0 : 1)))
    }
    row = next
  }
  return row[other.length]!
}

/** The end of a message about a name that does not exist: `; did you mean brew?`, or nothing. */
export const suggestion = (typed: string, names: ReadonlyArray<string>): string => {
  if (typed.length > maxLength) return ""
  const near = names.slice(0, maxNames)
    .filter((name) => Math.abs(name.length - typed.length) <= maxDistance)
    .map((name) => ({ name, distance: distance(typed.toLowerCase(), name.toLowerCase()) }))
    .filter((each) => each.distance <= maxDistance && each.distance < typed.length)
    .toSorted((one, other) => one.distance - other.distance)[0]
  return near === undefined ? "" : `; did you mean ${quoteName(near.name)}?`
}

/**
 * Adds a suggestion to the refusal of a request, if the server does not list the name that the request has. `names` is
 * what it lists, and runs only after a refusal.
 */
export const suggesting = <A, E, R>(
  request: Effect.Effect<A, E | ClientError, R>,
  name: string,
  names: Effect.Effect<ReadonlyArray<string>, ClientError>
): Effect.Effect<A, E | ClientError, R> =>
  Effect.catchIf(
    request,
    (error): error is ClientError => error instanceof ClientError && error.reason._tag === "ProtocolError",
    (error) =>
      Effect.flatMap(Effect.orElseSucceed(names, (): ReadonlyArray<string> => []), (all) => {
        const { reason } = error
        if (reason._tag !== "ProtocolError" || all.includes(name)) return Effect.fail(error)
        const message = `${error.message}${suggestion(name, all)}`
        return Effect.fail(new ClientError({ ...error, reason: new ProtocolError({ ...reason, message }) }))
      })
  )
