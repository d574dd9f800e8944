/**
 * The tokens of `skein login` as the credentials of a call, and the sign-in of `--login`.
 */
import type { Unauthorized } from "@skein/client/ClientError"
import type { Credentials } from "@skein/client/Credentials"
import type { OAuth } from "@skein/auth/OAuth"
import type { OAuthError } from "@skein/auth/OAuthError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { quoteLine } from "../base/format.ts"
import { tokenFolder, usedTokenFolder } from "../base/nodeProcess.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { hasAuthorization, type SignInOptions } from "./signInOptions.ts"

/** The credentials of the calls of one command. */
interface SignIns {
  /** The credentials for a server. Undefined if the headers authorize its requests already. */
  readonly credentials: (url: URL, headers: Readonly<Record<string, string>>) => Credentials["Service"] | undefined
  /** The server, if a sign-in could help after a refusal. */
  readonly url: () => URL | undefined
  /** Reads the stored tokens for the servers above, so that a failure is one of the command. */
  readonly prepared: Effect.Effect<void, CommandFailed>
}

/** The tokens for a server. Undefined without `--login` and without an earlier sign-in: nothing is loaded then. */
const oauthFor = Effect.fnUntraced(function*(
  url: URL,
  options: SignInOptions | undefined
): Effect.fn.Return<OAuth | undefined, CommandFailed, Process | Scope.Scope> {
  const folder = options === undefined ? yield* usedTokenFolder : yield* tokenFolder
  if (folder === undefined) return undefined
  const process = yield* Process
  const { inStore, interactive, loadLogin, makeOAuth, namedBy, openStore, saveLogin, storedSignIn } = yield* Effect
    .promise(() => import("./signIn.ts"))
  const store = yield* openStore(folder)
  if (options === undefined) {
    const { oauth, state } = yield* storedSignIn(url, store)
    return state === undefined ? undefined : oauth
  }
  const given = namedBy(options, process)
  const named = { ...yield* inStore(loadLogin(store, url)), ...given }
  const oauth = yield* makeOAuth(url, store, yield* interactive(options, process), named, options)
  if (Object.keys(given).length === 0) return oauth
  const remember = Effect.ignore(saveLogin(store, url, named))
  return {
    ...oauth,
    refused: (challenge) => Effect.tap(oauth.refused(challenge), (again) => again ? remember : Effect.void)
  }
})

/** Makes the credentials, which end with the scope. */
export const makeSignIns = Effect.fnUntraced(function*(
  options: SignInOptions | undefined
): Effect.fn.Return<SignIns, never, Process | Scope.Scope> {
  const context = yield* Effect.context<Process | Scope.Scope>()
  const all: Array<Effect.Effect<void, CommandFailed>> = []
  let last: URL | undefined
  // A 403 without a challenge does not ask for other tokens.
  let isFinal = false
  return {
    url: () => isFinal ? undefined : last,
    credentials: (url, headers) => {
      if (hasAuthorization(headers)) return undefined
      last = url
      let oauth: OAuth | undefined
      all.push(Effect.map(Effect.provide(oauthFor(url, options), context), (made) => {
        oauth = made
      }))
      return {
        headers: (request) => oauth === undefined ? Effect.succeed({}) : oauth.headers(request),
        refused: (challenge) =>
          Effect.suspend(() => {
            isFinal = challenge.status === 403 && challenge.wwwAuthenticate === undefined
            return oauth === undefined ? Effect.succeed(false) : oauth.refused(challenge)
          }),
        authorizationContext: (server) => oauth?.authorizationContext?.(server) ?? Effect.undefined,
        replied: (reply) => oauth?.replied?.(reply)
      }
    },
    prepared: Effect.suspend(() => Effect.all(all, { discard: true }))
  }
})

// Compared by its tag: `@skein/auth` is not loaded for calls without a sign-in.
const isOAuthError = (cause: unknown): cause is OAuthError =>
  typeof cause === "object" && cause !== null && "_tag" in cause && cause._tag === "OAuthError"

/**
 * The failure of a call that a server refused. `url` is that of the server, if a sign-in could help; otherwise `other`
 * is the advice.
 */
export const unauthorized = ({ cause, message }: Unauthorized, url: URL | undefined, other: string): CommandFailed => {
  // The message of a failed sign-in says what to do.
  if (isOAuthError(cause)) return failed(3, cause.message)
  const advice = url === undefined ? other : `. Sign in with: skein login ${quoteLine(url.href)}`
  return failed(3, `${message}${advice}`)
}
