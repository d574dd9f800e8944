/**
 * Suggestions for a name that does not exist, as `effect/cli` has them for commands and options.
 */
import { ClientError, ProtocolError } from "@skein/client/ClientError"
import { nearest } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { quoteName } from "../base/format.ts"

/** The end of a message about a name that does not exist: `; did you mean brew?`, or nothing. */
export const suggestion = (typed: string, names: ReadonlyArray<string>): string => {
  const near = nearest(typed, names)
  return near === undefined ? "" : `; did you mean ${quoteName(near)}?`
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
