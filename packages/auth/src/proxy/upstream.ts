/** The authorization server behind a proxy: its metadata, and the requests to it. */
import { clip } from "@skein/protocol/Text"
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Options from "@skein/runtime/Options"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { decodeJwt } from "jose/jwt/decode"
import * as oauth from "oauth4webapi"
import { tokenResponse } from "../shared/tokenResponse.ts"
import { maxRedirects, readText, redirectTarget, staysOnOrigin } from "../shared/web.ts"
import { issuerOfTenant } from "../server/tokens/issuers.ts"

/** A person at the upstream. */
export interface UpstreamUser {
  /** The unchanging id of the person at the upstream. */
  readonly id: string
  readonly name?: string | undefined
}

/** The claims of an ID token. */
export type IdTokenClaims = { readonly [claim: string]: unknown }

/** An authorization server where this server is registered by hand. */
export interface UpstreamOptions {
  /** The name that people know: `GitHub`. It is on the consent page. */
  readonly name: string
  /** Its issuer. Its metadata is fetched, unless both endpoints are given. */
  readonly issuer: string
  /** The client that was registered by hand, with `<origin>/upstream/callback` as its redirect URI. */
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
  /** The scope that is asked for, separated by spaces. */
  readonly scope?: string | undefined
  readonly authorizationEndpoint?: string | undefined
  readonly tokenEndpoint?: string | undefined
  readonly userinfoEndpoint?: string | undefined
  /** `client_secret_post` by default, which most accept. */
  readonly tokenEndpointAuthMethod?: "client_secret_basic" | "client_secret_post" | undefined
  /** Further parameters of its authorization request: `{ access_type: "offline" }` for refresh tokens of Google. */
  readonly authorizationParameters?: Readonly<Record<string, string>> | undefined
  /** The issuer of its ID tokens, where it is another. `{tenantid}` stands for their claim `tid`, as at Entra. */
  readonly idTokenIssuer?: string | undefined
  /**
   * Finds the person of a token. By default `sub` and `name` of the userinfo endpoint. `idToken` has the verified claims of
   * the ID token, if the upstream issued one.
   */
  readonly user?:
    | ((accessToken: Redacted.Redacted, idToken: IdTokenClaims | undefined) => Effect.Effect<UpstreamUser, unknown>)
    | undefined
  /**
   * How long one request to it may take: 10 seconds by default, and 15 at most. A renewal can be three requests, and its
   * lock in the store lasts a minute. Raise it for an upstream that answers slowly.
   */
  readonly requestTimeout?: Duration.Input | undefined
}

/** A request to the upstream failed. `isFinal` if the same request cannot succeed later. */
export class UpstreamError extends PrintableError.tagged("UpstreamError")<{
  readonly isFinal: boolean
}> {}

/** The tokens of the upstream for one grant. They are stored encrypted. */
export interface UpstreamTokens {
  readonly access: string
  readonly refresh: string | undefined
  /** When the access token expires, in milliseconds since 1970. Undefined if the upstream does not say it. */
  readonly expiresAt: number | undefined
}

const maxAnswerBytes = 262_144

/** A `fetch` whose answers have at most 256 KiB. Redirects of documents are followed on their origin. */
const boundedFetch = async (url: string, init: RequestInit, redirects = 0): Promise<Response> => {
  const reply = await fetch(url, { ...init, redirect: "manual" })
  const tooLong = () => new Error(`the answer is longer than ${maxAnswerBytes} bytes`)
  const text = await readText(reply, maxAnswerBytes, tooLong)
  const { headers, status, statusText } = reply
  const target = redirectTarget(status, headers, new URL(url))
  // A header with a token goes to the address that it was meant for alone.
  const isDocument = init.body == null && !new Headers(init.headers).has("authorization")
  if (target !== undefined && isDocument && redirects < maxRedirects && staysOnOrigin(target, new URL(url))) {
    return boundedFetch(target.href, init, redirects + 1)
  }
  return new Response(text === "" ? null : text, { status, statusText, headers })
}

/** A `fetch` for token endpoints. */
const tokenFetch = async (url: string, init: RequestInit): Promise<Response> => {
  const reply = await boundedFetch(url, init)
  return tokenResponse(reply.status, reply.headers, await reply.text())
}

/** The errors of RFC 6749 that say nothing about the code or the token: the operator repairs them, or time does. */
const temporary = new Set(["invalid_client", "server_error", "slow_down", "temporarily_unavailable"])

/**
 * The error of a failed request. It has no cause: the errors of `oauth4webapi` contain the answer, in which there may be
 * tokens, and the upstream's description may quote the request.
 */
const failure = (cause: unknown): UpstreamError => {
  const answered = cause instanceof oauth.ResponseBodyError || cause instanceof oauth.AuthorizationResponseError
  if (answered) {
    const status = cause instanceof oauth.ResponseBodyError ? cause.status : 400
    // `error` is a code of RFC 6749.
    return new UpstreamError({
      message: `the upstream answered ${clip(cause.error, 64)}`,
      isFinal: status < 500 && status !== 429 && !temporary.has(cause.error)
    })
  }
  const { code, name } = cause as { readonly code?: unknown; readonly name?: unknown }
  return new UpstreamError({
    message: `the upstream did not answer as expected (${String(code ?? name ?? "unknown")})`,
    isFinal: false
  })
}

export interface Upstream {
  /** Begins a sign-in: the address that the person is sent to. */
  readonly authorizationUrl: (state: string, verifier: string) => Effect.Effect<URL, UpstreamError>
  /** Finishes a sign-in with the query of the callback. */
  readonly exchange: (
    query: URLSearchParams,
    state: string,
    verifier: string
  ) => Effect.Effect<UpstreamTokens & { readonly user: UpstreamUser }, UpstreamError>
  readonly refresh: (tokens: UpstreamTokens) => Effect.Effect<UpstreamTokens, UpstreamError>
}

/** How long one request to the upstream may take, in milliseconds. */
export const requestTimeoutOf = ({ requestTimeout }: UpstreamOptions): number =>
  Options.resolve({ requestTimeout }, {}, { requestTimeout: "10 seconds" }).requestTimeout

/** Connects to an upstream. Its metadata is fetched at the first need, and kept. */
export const makeUpstream = (options: UpstreamOptions, redirectUri: string): Upstream => {
  const { clientId, clientSecret, issuer } = options
  const client: oauth.Client = { client_id: clientId }
  const secret = Redacted.value(clientSecret)
  const authentication = options.tokenEndpointAuthMethod === "client_secret_basic"
    ? oauth.ClientSecretBasic(secret)
    : oauth.ClientSecretPost(secret)
  const http = (fetch: (url: string, init: RequestInit) => Promise<Response> = boundedFetch) => ({
    [oauth.allowInsecureRequests]: issuer.startsWith("http:"),
    [oauth.customFetch]: fetch as never,
    signal: AbortSignal.timeout(requestTimeoutOf(options))
  })
  const given: oauth.AuthorizationServer = {
    issuer,
    ...options.authorizationEndpoint !== undefined && { authorization_endpoint: options.authorizationEndpoint },
    ...options.tokenEndpoint !== undefined && { token_endpoint: options.tokenEndpoint },
    ...options.userinfoEndpoint !== undefined && { userinfo_endpoint: options.userinfoEndpoint }
  }
  let known: oauth.AuthorizationServer | undefined =
    given.authorization_endpoint !== undefined && given.token_endpoint !== undefined ? given : undefined
  const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failure })
  const discover = async (): Promise<oauth.AuthorizationServer> => {
    if (known !== undefined) return known
    const url = new URL(issuer)
    const found = await oauth.discoveryRequest(url, { algorithm: "oidc", ...http() })
      .then((reply) => oauth.processDiscoveryResponse(url, reply))
      .catch(async () =>
        oauth.processDiscoveryResponse(url, await oauth.discoveryRequest(url, { algorithm: "oauth2", ...http() }))
      )
    return known = { ...found, ...given }
  }
  const tokensOf = (answer: oauth.TokenEndpointResponse, refresh: string | undefined): UpstreamTokens => ({
    access: answer.access_token,
    refresh: answer.refresh_token ?? refresh,
    expiresAt: answer.expires_in === undefined ? undefined : Date.now() + answer.expires_in * 1000
  })
  /** The upstream with the issuer of the ID token in an answer, which differs for each tenant. */
  const issuedBy = async (server: oauth.AuthorizationServer, reply: Response): Promise<oauth.AuthorizationServer> => {
    const { idTokenIssuer } = options
    if (idTokenIssuer === undefined) return server
    const answer: unknown = await reply.clone().json().catch(() => undefined)
    const { id_token: token } = Object(answer) as { readonly id_token?: unknown }
    const issuer = typeof token === "string" ? issuerOfTenant(idTokenIssuer, decodeJwt(token)) : undefined
    return issuer === undefined ? server : { ...server, issuer }
  }
  const userOf = (
    server: oauth.AuthorizationServer,
    access: string,
    idToken: IdTokenClaims | undefined
  ): Effect.Effect<UpstreamUser, UpstreamError> =>
    options.user !== undefined
      ? Effect.mapError(options.user(Redacted.make(access), idToken), failure)
      : attempt(async () => {
        const reply = await oauth.userInfoRequest(server, client, access, http())
        const { name, sub } = await oauth.processUserInfoResponse(server, client, oauth.skipSubjectCheck, reply)
        return { id: sub, name }
      })
  return {
    authorizationUrl: (state, verifier) =>
      attempt(async () => {
        const url = new URL((await discover()).authorization_endpoint!)
        const parameters = {
          response_type: "code",
          client_id: clientId,
          redirect_uri: redirectUri,
          ...options.scope !== undefined && { scope: options.scope },
          state,
          code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
          ...options.authorizationParameters
        }
        for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
        return url
      }),
    exchange: (query, state, verifier) =>
      Effect.flatMap(
        attempt(async () => {
          const server = await discover()
          const params = oauth.validateAuthResponse(server, client, query, state)
          const reply = await oauth.authorizationCodeGrantRequest(
            server,
            client,
            authentication,
            params,
            redirectUri,
            verifier,
            http(tokenFetch)
          )
          const answer = await oauth.processAuthorizationCodeResponse(await issuedBy(server, reply), client, reply)
          return { server, tokens: tokensOf(answer, undefined), idToken: oauth.getValidatedIdTokenClaims(answer) }
        }),
        ({ idToken, server, tokens }) =>
          Effect.map(userOf(server, tokens.access, idToken), (user) => ({ ...tokens, user }))
      ),
    refresh: ({ refresh }) =>
      attempt(async () => {
        const server = await discover()
        const reply = await oauth.refreshTokenGrantRequest(server, client, authentication, refresh!, http(tokenFetch))
        const issuing = await issuedBy(server, reply)
        return tokensOf(await oauth.processRefreshTokenResponse(issuing, client, reply), refresh)
      })
  }
}
