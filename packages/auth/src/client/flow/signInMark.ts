/**
 * The mark of a sign-in in the store: a person is being asked, or did not sign in a moment ago. All processes that share
 * the store see it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { type OAuthError, SignInFailed } from "../protocol/OAuthError.ts"
import type { Environment } from "./environment.ts"
import { fail } from "../protocol/errors.ts"
import { now, read, remove, SignInMark, signInMarkKey, write } from "./records.ts"
import { place } from "../protocol/send.ts"

/** Whether a person is being asked in some process. `key` is that of the tokens. */
export const isAsked = ({ store }: Environment, key: string): Effect.Effect<boolean, OAuthError> =>
  Effect.flatMap(
    read(store, SignInMark, signInMarkKey(key)),
    (mark) => Effect.map(now, (time) => mark !== undefined && mark.expiresAt > time)
  )

/** Marks that a person is being asked while an effect runs. That a person did not sign in is remembered. */
export const marked = <A>(
  { settings, store }: Environment,
  key: string,
  effect: Effect.Effect<A, OAuthError>
): Effect.Effect<A, OAuthError> => {
  const mark = signInMarkKey(key)
  const end = (exit: Exit.Exit<A, OAuthError>): Effect.Effect<void, OAuthError> => {
    const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
    const tag = error?.reason._tag
    return tag === "AuthorizationDenied" || tag === "SignInFailed"
      ? Effect.flatMap(now, (failedAt) => write(store, mark, { expiresAt: 0, failedAt }))
      : remove(store, mark)
  }
  return Effect.andThen(
    Effect.flatMap(now, (time) => write(store, mark, { expiresAt: time + settings.signInTimeout })),
    Effect.onExit(effect, (exit) => Effect.ignore(end(exit)))
  )
}

/** Fails if a person was asked a moment ago, in any process, and did not sign in. */
export const checkMark = ({ settings, store }: Environment, key: string, url: URL): Effect.Effect<void, OAuthError> =>
  Effect.flatMap(read(store, SignInMark, signInMarkKey(key)), (mark) =>
    Effect.flatMap(now, (time) => {
      if (mark?.failedAt === undefined || time - mark.failedAt >= settings.signInInterval) return Effect.void
      return fail(
        new SignInFailed({
          message: `No sign-in at ${place(url)} was started: the person denied one, or did not complete it, within ` +
            "signInInterval. Sign in with OAuth.signIn, or try again later"
        })
      )
    }))
