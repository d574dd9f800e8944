/**
 * Requests to the token endpoint and the revocation endpoint (RFC 6749, 3.2; RFC 7009).
 */
import { quote } from "@skein/protocol/Text"
import * as RetryAfter from "@skein/runtime/RetryAfter"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as oauth from "oauth4webapi"
import { InsecureUrl, OAuthError, TokenRequestFailed } from "./OAuthError.ts"
import type { Outbound } from "../../shared/Outbound.ts"
import { tokenResponse } from "../../shared/tokenResponse.ts"
import { basicAuthorization, redirectTarget } from "../../shared/web.ts"
import type { Prover } from "./dpop.ts"
import { codeWithout, fail, oauthError, quoteWithout } from "./errors.ts"
import type { ServerMetadata } from "./metadata.ts"
import { bounded, place, SendError, sendPromise } from "./send.ts"
import { isSecure } from "./urls.ts"

/** A client and its way to authenticate. */
export interface AuthenticatedClient {
  readonly clientId: string
  readonly authenticate: oauth.ClientAuth
  /** The secrets that a server could repeat in its answer. */
  readonly secrets: ReadonlyArray<string>
}

/** The answer of the token endpoint. */
export interface TokenResponse {
  readonly accessToken: string
  readonly tokenType: "Bearer" | "DPoP"
  /** In seconds. */
  readonly expiresIn: number | undefined
  readonly refreshToken: string | undefined
  readonly scope: string | undefined
  readonly idToken: string | undefined
}

/**
 * `client_secret_basic` (RFC 6749, 2.3.1). `oauth.ClientSecretBasic` also encodes "-", "." and "_", which servers that
 * do not decode refuse.
 */
export const basic = (secret: string): oauth.ClientAuth => (_server, client, _body, headers) => {
  headers.set("authorization", basicAuthorization(client.client_id, secret))
}

/** The method for a secret: the one of the registration, else the first that both sides support. */
export const secretAuthentication = (
  secret: string,
  server: ServerMetadata,
  registered: string | undefined
): oauth.ClientAuth => {
  const supported = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"]
  const method = registered ??
    ["client_secret_basic", "client_secret_post", "none"].find((method) => supported.includes(method))
  return method === "none" ? oauth.None() : method === "client_secret_post" ?
    oauth.ClientSecretPost(secret) :
    basic(secret)
}

// The parameters whose values are secret.
const secretParameters = [
  "assertion",
  "client_assertion",
  "client_secret",
  "code",
  "code_verifier",
  "refresh_token",
  "subject_token",
  "token"
]

/** `secrets` receives what is sent, so that it can be removed from a text of the server that repeats it. */
const options = (
  outbound: Outbound,
  signal: AbortSignal,
  prover: Prover | undefined,
  secrets: Array<string>,
  onIdToken: (token: unknown) => void
): oauth.TokenEndpointRequestOptions => ({
  // `isSecure` has decided: http is only on the loopback interface.
  [oauth.allowInsecureRequests]: true,
  [oauth.customFetch]: async (url: string, init: { headers: Record<string, string>; body: URLSearchParams }) => {
    secrets.push(
      ...secretParameters.flatMap((name) => init.body.get(name) ?? []),
      ...(init.headers["authorization"]?.split(" ").slice(1) ?? [])
    )
    const { headers, status, text } = await sendPromise(
      outbound,
      new URL(url),
      { method: "POST", headers: init.headers, body: init.body.toString() },
      signal
    )
    return tokenResponse(status, headers, text, (json) => {
      // An ID token only names the person (`personOf`), so the library does not judge it.
      onIdToken(json["id_token"])
      return { ...json, id_token: undefined }
    })
  },
  ...(prover === undefined ? {} : { DPoP: prover.handle })
})

const client = ({ clientId }: AuthenticatedClient): oauth.Client => ({
  client_id: clientId,
  // The clocks of servers differ: an assertion that is issued in the future is refused.
  [oauth.clockSkew]: -5
})

/** The requested delay in milliseconds. A date that has passed requests none. */
const retryAfterOf = (headers: Headers): number | undefined =>
  RetryAfter.parse(headers.get("retry-after"), Date.parse(headers.get("date") ?? "") || Date.now()) || undefined

/** The purpose of a request, for messages. */
interface Purpose {
  readonly notSent: string
  readonly refused: string
  readonly endpoint: string
}

const toObtain: Purpose = {
  notSent: "No token was obtained",
  refused: "gave no token",
  endpoint: "a token endpoint"
}

const toRevoke: Purpose = {
  notSent: "The token was not revoked",
  refused: "did not revoke the token",
  endpoint: "a revocation endpoint"
}

/** Where an answer leads that is a redirect, for a message: a slash at the end of the endpoint may be missing. */
const describeRedirect = ({ headers, status }: Response, endpoint: URL): string => {
  const target = redirectTarget(status, headers, endpoint)
  return target === undefined
    ? ""
    : `, which leads to ${
      place(target)
    }. Redirects of such requests are not followed: the metadata has to name that URL`
}

const describe = (
  error: unknown,
  issuer: string,
  url: URL,
  { endpoint, notSent, refused }: Purpose,
  secrets: ReadonlyArray<string>
): OAuthError => {
  if (error instanceof OAuthError) return error
  if (error instanceof SendError) {
    return oauthError(
      error.insecure
        ? new InsecureUrl({ message: error.message })
        : new TokenRequestFailed({ message: `${notSent}: ${error.message}`, retryable: true })
    )
  }
  if (error instanceof oauth.ResponseBodyError) {
    const { error_description: text, response, status } = error
    const description = typeof text === "string" ? `: ${quoteWithout(text, secrets)}` : ""
    const code = codeWithout(error.error, secrets)
    return oauthError(
      new TokenRequestFailed({
        message: `${quote(issuer)} ${refused}: ${quote(code)} (${status})${description}`,
        error: code,
        status,
        retryable: status === 429 || error.error === "temporarily_unavailable" || error.error === "slow_down",
        retryAfter: retryAfterOf(response.headers)
      })
    )
  }
  const cause = error instanceof Error ? error.cause : undefined
  const response = cause instanceof Response ? cause : undefined
  const status = response?.status
  return oauthError(
    new TokenRequestFailed({
      message: status === undefined
        ? `${quote(issuer)} ${refused}: its answer is not one of ${endpoint} ` +
          `(${error instanceof Error ? error.message : "unknown error"})`
        : `${quote(issuer)} ${refused}: it answered ${status}${describeRedirect(response!, url)}`,
      status,
      // An answer that is not OAuth's comes from a proxy or a page in between, and says nothing about the tokens.
      retryable: status === undefined || ![400, 401, 403].includes(status),
      retryAfter: response === undefined ? undefined : retryAfterOf(response.headers)
    })
  )
}

/** The longest access token, in bytes: Node's servers read only so many of all headers of a request. */
const maxTokenBytes = 16_384

/** Why no request can carry a token: kept, it would make every request fail until a person signs out. */
const tokenProblem = (token: string): string | undefined =>
  token.length > maxTokenBytes
    ? `is longer than ${maxTokenBytes} bytes`
    // RFC 6750, 2.1: no spaces, no control characters, and nothing outside of ASCII.
    : /^[\u0021-\u007e]+$/.test(token)
    ? undefined
    : "cannot be sent in a header: it has characters that tokens cannot have"

/**
 * Sends a request that must not be interrupted: the server may have used up a code or a refresh token for its answer.
 * It is bounded by its timeout alone.
 */
const finish = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptible(Effect.flatMap(Effect.forkDetach(effect, { startImmediately: true }), Fiber.join))

/** Requests a token. A DPoP proof without the nonce of the server is sent once more with it (RFC 9449, 8). */
export const requestToken = (
  outbound: Outbound,
  server: ServerMetadata,
  by: AuthenticatedClient,
  grantType: string,
  parameters: Readonly<Record<string, string>>,
  prover: Prover | undefined,
  recognizedTokenTypes: Readonly<Record<string, () => void>> = {}
): Effect.Effect<TokenResponse, OAuthError> => {
  const { issuer, token_endpoint } = server
  if (token_endpoint === undefined) {
    return fail(
      new TokenRequestFailed({ message: `The metadata of ${quote(issuer)} has no token_endpoint`, retryable: false })
    )
  }
  const url = new URL(token_endpoint)
  if (!isSecure(url)) {
    return fail(new InsecureUrl({ message: `The token_endpoint of ${quote(issuer)} is not an https URL` }))
  }
  const as = server as oauth.AuthorizationServer
  const secrets = [...by.secrets]
  let idToken: string | undefined
  const onIdToken = (token: unknown): void => {
    idToken = typeof token === "string" ? token : undefined
  }
  const attempt = async (signal: AbortSignal) => {
    const extra = options(outbound, signal, prover, secrets, onIdToken)
    const response = await oauth.genericTokenEndpointRequest(
      as,
      client(by),
      by.authenticate,
      grantType,
      { ...parameters },
      extra
    )
    return oauth.processGenericTokenEndpointResponse(as, client(by), response, {
      recognizedTokenTypes: { ...recognizedTokenTypes }
    })
  }
  const request = Effect.tryPromise({
    try: (signal) =>
      attempt(signal).catch((error: unknown) => {
        if (prover !== undefined && oauth.isDPoPNonceError(error)) return attempt(signal)
        throw error
      }),
    catch: (error) => describe(error, issuer, url, toObtain, secrets)
  })
  return Effect.flatMap(
    Effect.mapError(
      finish(bounded(outbound, url, request)),
      (error) => describe(error, issuer, url, toObtain, secrets)
    ),
    (json) => {
      const problem = tokenProblem(json.access_token)
      return problem === undefined
        ? Effect.succeed({
          accessToken: json.access_token,
          tokenType: json.token_type === "dpop" ? "DPoP" as const : "Bearer" as const,
          expiresIn: json.expires_in,
          refreshToken: json.refresh_token,
          scope: json.scope,
          idToken
        })
        : fail(
          new TokenRequestFailed({ message: `${quote(issuer)} gave a token that ${problem}`, retryable: false })
        )
    }
  )
}

/** Revokes a token (RFC 7009). */
export const revoke = (
  outbound: Outbound,
  server: ServerMetadata,
  by: AuthenticatedClient,
  token: string,
  hint: "access_token" | "refresh_token"
): Effect.Effect<void, OAuthError> => {
  const url = new URL(server.revocation_endpoint ?? "")
  const secrets = [...by.secrets]
  const request = Effect.tryPromise({
    try: async (signal) => {
      const response = await oauth.revocationRequest(
        server as oauth.AuthorizationServer,
        client(by),
        by.authenticate,
        token,
        { ...options(outbound, signal, undefined, secrets, () => {}), additionalParameters: { token_type_hint: hint } }
      )
      await oauth.processRevocationResponse(response)
    },
    catch: (error) => describe(error, server.issuer, url, toRevoke, secrets)
  })
  return Effect.mapError(
    bounded(outbound, url, request),
    (error) => describe(error, server.issuer, url, toRevoke, secrets)
  )
}
