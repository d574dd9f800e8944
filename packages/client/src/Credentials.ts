/**
 * Who asks, over HTTP: what adds credentials to each request, and hears when a server wants others.
 *
 * Give it to a transport (`Http.transport({ url, credentials })`) or provide it as a service around `Client.make`; what is given
 * to the transport counts. Nothing that it says reaches a log, another origin, or the message of an error.
 *
 * **Gotchas.** A service is asked for every server that is connected to where it is provided: it has to look at the `url`. `bearer` does
 * not, and as a service tells its token to all of them. A `ClientPool` does not hand the service on to its servers.
 *
 * ```ts
 * Http.transport({ url, credentials: Credentials.bearer(Redacted.make(token)) })
 * ```
 */
import type { Headers } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** The request that credentials are for. */
export interface CredentialsRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly url: URL
}

/** How a server refused a request. */
export interface Challenge {
  /** 401: it wants to know who asks, or does not believe it. 403: whoever asks may not. */
  readonly status: 401 | 403
  /** The header `WWW-Authenticate`, as it came. */
  readonly wwwAuthenticate: string | undefined
  readonly url: URL
  /** How often this one request was refused so: 1 the first time. */
  readonly attempt: number
}

/** See the module's text. */
export interface Credentials {
  /** The headers to add to a request. Runs for each; what fails here fails the request as `HttpError`, and nothing is sent. */
  readonly headers: (request: CredentialsRequest) => Effect.Effect<Headers, unknown>
  /**
   * Hears of a refusal. `true`: `headers` gives other credentials now, and the request is to be made once more, within the
   * transport's `maxChallenges`. What fails counts as `false`. Told one refusal at a time: a request that was refused with credentials
   * that have been replaced since is made once more without a word, so that many at once renew a token once.
   */
  readonly refused: (challenge: Challenge) => Effect.Effect<boolean, unknown>
}

/** The credentials of a program, for transports that are given none. */
export const Credentials: Context.Service<Credentials, Credentials> = Context.Service<Credentials>(
  "@skein/client/Credentials"
)

/** A token, or what finds it out. */
export type Token = Redacted.Redacted | Effect.Effect<Redacted.Redacted, unknown>

const authorization = (token: Redacted.Redacted): Headers => ({ authorization: `Bearer ${Redacted.value(token)}` })

/**
 * Credentials that are a bearer token. An effect is run for each request, so that it may keep a token and renew it; after a 401 it
 * is asked once more, in case that it has another one now.
 */
export const bearer = (token: Token): Credentials => {
  if (Redacted.isRedacted(token)) {
    const headers = Effect.succeed(authorization(token))
    return { headers: () => headers, refused: () => Effect.succeed(false) }
  }
  const headers = Effect.map(token, authorization)
  return {
    headers: () => headers,
    refused: ({ attempt, status }) => Effect.succeed(status === 401 && attempt === 1)
  }
}
