/**
 * The credentials of requests over HTTP: headers that a transport adds to each request, and a callback for refused
 * requests.
 *
 * Give them to a transport, or provide them as a service where `Client.make` runs. The credentials of the transport
 * take precedence. Their headers never appear in a log, in the message of an error, or in a request to another origin.
 *
 * **Gotchas.** The service applies to every client that is made where it is provided, so it must check the `url` of
 * each request. `bearer` does not: as a service it sends its token to the servers of all these clients. A `ClientPool`
 * does not pass the service on to its servers.
 *
 * @example
 * Http.transport({ url, credentials: Credentials.bearer(Redacted.make(token)) })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Headers } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** The request that credentials are for. */
export interface CredentialsRequest {
  readonly method: "GET" | "POST" | "DELETE"
  /** The URL of this request. After a redirect and in HTTP+SSE it is not the URL of the server. */
  readonly url: URL
  /**
   * The URL that the transport was given, which identifies the server: the same for all its requests. Transports of this
   * package always set it; without it, `url` counts.
   */
  readonly server?: URL | undefined
}

/** A response of a server. */
export interface CredentialsReply {
  /** The URL of the request. */
  readonly url: URL
  /** The URL of the server, as in `CredentialsRequest`. */
  readonly server?: URL | undefined
  readonly status: number
  /** Reads a header of the response. */
  readonly header: (name: string) => string | undefined
}

/** A request that a server refused with status 401 or 403. */
export interface Challenge extends CredentialsReply {
  /** 401: credentials are missing or not accepted. 403: these credentials do not allow the request. */
  readonly status: 401 | 403
  /** The header `WWW-Authenticate` as it was received. */
  readonly wwwAuthenticate: string | undefined
  /**
   * The header `Authorization` of the refused request, as `headers` returned it: which token was refused. It is not an
   * own property of the object, so a log of the object does not contain it.
   */
  readonly authorization: string | undefined
  /** How often this request has been refused with 401 or 403, from 1. */
  readonly attempt: number
}

/** The credentials of a program. A transport that is given no `credentials` uses this service, if there is one. */
export class Credentials extends Context.Service<Credentials, {
  /**
   * Returns the headers to add. It runs for each request. A failure fails the request with `HttpError`, and nothing is
   * sent. The timeouts of calls stand still while it runs, up to 15 minutes.
   */
  readonly headers: (request: CredentialsRequest) => Effect.Effect<Headers, unknown>
  /**
   * Runs when a request is refused. `true` means that `headers` returns other credentials now: the transport sends the
   * request again, at most three times. With `false` the request fails with `Unauthorized`, and so it does
   * after a failure, which is then the `cause` of the error.
   *
   * It may take as long as a person needs to sign in: the timeouts of calls stand still meanwhile, up to
   * 15 minutes. It does not end when the request is cancelled, but when the last client that waits for it is
   * closed.
   *
   * Refusals are reported one at a time. A request whose credentials were replaced while it was in flight is sent again
   * without a report, and requests that are refused with the same status and `WWW-Authenticate` during a report share
   * its outcome, so that many refused requests renew a token once. A refused DELETE is not reported.
   */
  readonly refused: (challenge: Challenge) => Effect.Effect<boolean, unknown>
  /**
   * Receives the status and the headers of each response: a server may send a nonce for the next request with any of
   * them (RFC 9449, 8.2). It must not throw.
   */
  readonly replied?: ((reply: CredentialsReply) => void) | undefined
  /**
   * Extensions for authorization that these credentials implement, by their identifiers, with their settings. The
   * client declares them in its capabilities.
   *
   * @example
   * const extensions = { "io.modelcontextprotocol/oauth-client-credentials": {} }
   */
  readonly extensions?: Readonly<Record<string, JsonObject>> | undefined
  /**
   * Returns for whom the requests to a server act, as a text without a secret that stays the same while tokens are renewed
   * and differs for another person: a digest of an issuer and a subject, for example. A `ServerProfile` contains it, and
   * is used only while it is the same. Without it, or for `undefined`, all credentials count as the same.
   */
  readonly authorizationContext?: ((server: URL) => Effect.Effect<string | undefined>) | undefined
}>()("@skein/client/Credentials") {}

/** A token, or an effect that returns the current one. */
export type Token = Redacted.Redacted | Effect.Effect<Redacted.Redacted, unknown>

const authorization = (token: Redacted.Redacted): Headers => ({ authorization: `Bearer ${Redacted.value(token)}` })

/**
 * Credentials that send a bearer token (`Authorization: Bearer …`). An effect runs for each request, so that it can
 * cache a token and renew it. After a 401 the effect runs once more, in case it returns another token.
 *
 * @example
 * Http.transport({ url, credentials: Credentials.bearer(Effect.flatMap(session, ({ accessToken }) => accessToken)) })
 */
export const bearer = (token: Token): Credentials["Service"] => {
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

/** Credentials whose functions return promises, or values. The members are those of `Credentials`. */
export interface AsyncCredentials {
  readonly headers: (request: CredentialsRequest, context: AsyncContext) => Headers | PromiseLike<Headers>
  /** Without it, refused requests fail with `Unauthorized`. */
  readonly refused?:
    | ((challenge: Challenge, context: AsyncContext) => boolean | PromiseLike<boolean>)
    | undefined
  readonly replied?: ((reply: CredentialsReply) => void) | undefined
  readonly extensions?: Readonly<Record<string, JsonObject>> | undefined
  readonly authorizationContext?:
    | ((server: URL) => string | undefined | PromiseLike<string | undefined>)
    | undefined
}

/** The last argument of an async function of credentials. */
export interface AsyncContext {
  /** Aborts when the credentials are no longer needed. */
  readonly signal: AbortSignal
}

/**
 * Makes credentials of async functions. A rejection is a failure of the function.
 *
 * @example
 * Http.transport({ url, credentials: Credentials.async({ headers: async () => ({ "x-api-key": await readKey() }) }) })
 */
export { asyncCredentials as async }

const asyncCredentials = (
  { authorizationContext, extensions, headers, refused, replied }: AsyncCredentials
): Credentials["Service"] => ({
  headers: (request) => attempt(async (signal) => headers(request, { signal })),
  refused: (challenge) =>
    refused === undefined ? Effect.succeed(false) : attempt(async (signal) => refused(challenge, { signal })),
  replied,
  extensions,
  authorizationContext: authorizationContext &&
    ((server) => Effect.promise(async () => authorizationContext(server)))
})

/** Runs an async function. The failure is the reason of its rejection. */
const attempt = <A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, unknown> =>
  Effect.catchDefect(Effect.promise(run), (error) => Effect.fail(error))
