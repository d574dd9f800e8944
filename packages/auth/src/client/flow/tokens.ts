/**
 * Obtains tokens by each grant, and renews them.
 */
import { quote } from "@skein/protocol/Text"
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as jose from "jose"
import type { Definition, IdentityAssertionOptions, JwtBearerOptions } from "../grants/Grant.ts"
import { CredentialUnavailable, DiscoveryFailed, type OAuthError, TokenRequestFailed } from "../protocol/OAuthError.ts"
import { checkIssuer, configuredClient, forgetClient, knownClient } from "./clients.ts"
import { type Discovery, serverMetadataOf } from "../protocol/discovery.ts"
import { type DpopKey, makeProver, type Prover } from "../protocol/dpop.ts"
import type { Environment } from "./environment.ts"
import { fail } from "../protocol/errors.ts"
import type { ServerMetadata } from "../protocol/metadata.ts"
import { now, type SavedTokens } from "./records.ts"
import * as Scopes from "../protocol/scopes.ts"
import { place } from "../protocol/send.ts"
import { canonicalUri, sameIssuer, serverUrl } from "../protocol/urls.ts"
import { type AuthenticatedClient, requestToken, type TokenResponse } from "../protocol/tokenEndpoint.ts"

/** The purpose of a request for tokens. */
export interface Target {
  readonly url: URL
  readonly server: ServerMetadata
  /** The `resource` parameter, byte for byte as it was published (RFC 8707). */
  readonly resource: string | undefined
  readonly resourceMetadataUrl: string | undefined
  readonly scopes: ReadonlyArray<string>
  readonly dpop: DpopKey | undefined
}

/** The configured `resource` of a server. */
const configuredResource = ({ settings }: Environment, url: URL): string | undefined =>
  settings.servers.get(serverUrl(url))?.resource ?? settings.resource

/**
 * The `resource` parameter of requests for a server. 2025-06-18, Resource Parameter Implementation: "MCP clients MUST send
 * this parameter regardless of whether authorization servers support it". So servers without metadata get it, too: those
 * of 2025-03-26, which does not define it, ignore it (RFC 6749, 3.1 and 3.2).
 */
export const resourceOf = (environment: Environment, { resource }: Discovery, url: URL): string | undefined => {
  const configured = configuredResource(environment, url)
  return configured === undefined
    ? resource?.resource ?? canonicalUri(url)
    : configured === "omit"
    ? undefined
    : configured
}

/** Logs that the resource of a server was configured. */
export const logResource = (environment: Environment, url: URL): Effect.Effect<void> => {
  const configured = configuredResource(environment, url)
  if (configured === undefined) return Effect.void
  return configured === "omit"
    ? Effect.logInfo("the resource parameter is left out of token requests", { server: place(url) })
    : Effect.logInfo("the configured resource is sent in token requests", { server: place(url), resource: configured })
}

/** The parameters that each token request has. */
export const parameters = (
  resource: string | undefined,
  scopes: ReadonlyArray<string>
): Record<string, string> => {
  const scope = Scopes.format(scopes)
  return { ...(resource === undefined ? {} : { resource }), ...(scope === undefined ? {} : { scope }) }
}

/** A longer lifetime counts as this one, in seconds (31 years): the time of its end remains a number. */
const maxLifetime = 1_000_000_000

/** Longer names are not shown. */
const maxNameChars = 256

const nameOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= maxNameChars ? value : undefined

/**
 * Reads the person of an ID token that came with an answer of the token endpoint. Only an ID token names the person to the
 * client. An access token does not, even if it is a JWT: it is meant for the server, and "the client MUST NOT inspect the
 * content of the access token" (RFC 9068, 6).
 *
 * The connection to the endpoint proves
 * who made it, in the place of the signature (OpenID Connect Core 1.0, 3.1.3.7, 6). `undefined` if it is of another
 * issuer or for another client, or names no person.
 */
export const personOf = (idToken: string | undefined, issuer: string, clientId: string): SavedTokens["person"] => {
  if (idToken === undefined) return undefined
  try {
    const { aud, iss, sub, ...claims } = jose.decodeJwt(idToken)
    const subject = nameOf(sub)
    const audiences = Array.isArray(aud) ? aud : [aud]
    if (subject === undefined || iss === undefined || !sameIssuer(iss, issuer) || !audiences.includes(clientId)) {
      return undefined
    }
    const name = nameOf(claims["email"]) ?? nameOf(claims["preferred_username"]) ?? nameOf(claims["name"])
    return { subject, ...(name === undefined ? {} : { name }) }
  } catch {
    return undefined
  }
}

/** Makes the record that is stored of an answer of the token endpoint. */
export const save = Effect.fnUntraced(function*(
  target: Target,
  clientId: string,
  registration: SavedTokens["registration"],
  response: TokenResponse,
  before: SavedTokens | undefined
): Effect.fn.Return<SavedTokens, OAuthError> {
  const { dpop, resource, resourceMetadataUrl, scopes, server } = target
  if (response.tokenType === "DPoP" && dpop === undefined) {
    return yield* fail(
      new TokenRequestFailed({
        message: `${quote(server.issuer)} gave a token that is bound to a key (DPoP), which was not requested`,
        retryable: false
      })
    )
  }
  const time = yield* now
  return {
    issuer: server.issuer,
    resource,
    resourceMetadataUrl,
    clientId,
    registration,
    accessToken: response.accessToken,
    tokenType: response.tokenType,
    refreshToken: response.refreshToken ?? before?.refreshToken,
    obtainedAt: time,
    expiresAt: response.expiresIn === undefined
      ? undefined
      : time + Math.min(response.expiresIn, maxLifetime) * 1_000,
    requestedScopes: scopes,
    // RFC 6749, 5.1: without `scope` the granted scopes are those that were requested.
    grantedScopes: response.scope === undefined
      ? before?.grantedScopes ?? scopes
      : Scopes.granted(response.scope, scopes),
    grantedAt: before?.grantedAt ?? time,
    // A refresh token of a public client is bound to the key even if the access token is not (RFC 9449, 5).
    dpop,
    person: personOf(response.idToken, server.issuer, clientId) ?? before?.person
  }
})

/** Makes the prover of a target that is bound to a key. */
export const proverOf = (dpop: DpopKey | undefined): Effect.Effect<Prover | undefined, OAuthError> =>
  dpop === undefined ? Effect.succeed(undefined) : makeProver(dpop)

const assertionOf = (
  environment: Environment,
  target: Target,
  { assertion }: JwtBearerOptions
): Effect.Effect<string, OAuthError> =>
  Effect.matchEffect(
    environment.provide(
      Awaitable.call(() =>
        assertion({
          issuer: target.server.issuer,
          resource: target.resource ?? target.url.href,
          scopes: target.scopes
        })
      )
    ),
    {
      // The failure may quote the assertion.
      onFailure: () =>
        fail(
          new CredentialUnavailable({
            message: `The assertion for ${quote(target.server.issuer)} could not be obtained`
          })
        ),
      onSuccess: (value) => Effect.succeed(Redacted.value(value))
    }
  )

const tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
const idJag = "urn:ietf:params:oauth:token-type:id-jag"

/** Exchanges the ID token of a person for an ID-JAG at the identity provider (RFC 8693; enterprise-managed, step 2). */
const identityAssertion = Effect.fnUntraced(function*(
  environment: Environment,
  target: Target,
  { identityProvider }: IdentityAssertionOptions
): Effect.fn.Return<string, OAuthError> {
  const { clientId, idToken, issuer, tokenEndpoint } = identityProvider
  const server = tokenEndpoint === undefined
    ? yield* serverMetadataOf(environment.outbound, issuer)
    : { issuer, token_endpoint: tokenEndpoint }
  if (server === undefined) {
    return yield* fail(
      new DiscoveryFailed({
        message: `The identity provider ${quote(issuer)} has no metadata. ` +
          "Check its issuer, or configure its tokenEndpoint"
      })
    )
  }
  const client = yield* configuredClient(environment, server, clientId, identityProvider)
  const subject = yield* environment.secret(idToken, `The ID token for ${quote(issuer)}`)
  const { accessToken } = yield* requestToken(
    environment.outbound,
    server,
    client,
    tokenExchange,
    {
      requested_token_type: idJag,
      audience: target.server.issuer,
      resource: target.resource ?? target.url.href,
      ...(target.scopes.length === 0 ? {} : { scope: target.scopes.join(" ") }),
      subject_token: subject,
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token"
    },
    undefined,
    // RFC 8693, 2.2.1: an issued token that is not an access token has the type `N_A`.
    { n_a: () => {} }
  )
  return accessToken
})

const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

/** RFC 7523, 3.1: the client of an assertion may be unnamed. */
const anonymous: AuthenticatedClient = {
  clientId: "-",
  authenticate: (_server, _client, body) => void body.delete("client_id"),
  secrets: []
}

/** The client of a grant that asks no person. Fails if it belongs to another authorization server than `server`. */
export const grantClient = (
  environment: Environment,
  server: ServerMetadata,
  { options }: Exclude<Definition, { readonly _tag: "AuthorizationCode" }>
): Effect.Effect<AuthenticatedClient, OAuthError> => {
  const { clientId, issuer } = options
  const client = clientId === undefined
    ? Effect.succeed(anonymous)
    : configuredClient(environment, server, clientId, options)
  return Effect.andThen(checkIssuer(clientId ?? "", issuer, server), client)
}

/** Obtains tokens by a grant that asks no person. */
export const obtain = Effect.fnUntraced(function*(
  environment: Environment,
  target: Target
): Effect.fn.Return<SavedTokens, OAuthError> {
  const { definition, outbound } = environment
  const { resource, scopes, server } = target
  if (definition._tag === "AuthorizationCode") return yield* Effect.die("a person has to sign in")
  const client = yield* grantClient(environment, server, definition)
  const prover = yield* proverOf(target.dpop)
  const common = parameters(resource, scopes)
  const [grantType, extra]: readonly [string, Record<string, string>] = definition._tag === "ClientCredentials"
    ? ["client_credentials", {}]
    : [
      jwtBearer,
      {
        assertion: definition._tag === "JwtBearer"
          ? yield* assertionOf(environment, target, definition.options)
          : yield* identityAssertion(environment, target, definition.options)
      }
    ]
  const response = yield* requestToken(outbound, server, client, grantType, { ...extra, ...common }, prover)
  return yield* save(target, client.clientId, "given", response, undefined)
})

/** The outcome of a refresh: new tokens, or the tokens that remain, whose refresh token must not be used again. */
export type Refreshed =
  | { readonly _tag: "Refreshed"; readonly tokens: SavedTokens }
  | { readonly _tag: "Refused"; readonly tokens: SavedTokens }

/** The errors after which the same refresh token never works again. */
const isFinal = (error: string | undefined): boolean =>
  error === "invalid_grant" || error === "bad_refresh_token" || error === "invalid_client" ||
  error === "unauthorized_client"

/** The errors of an authorization server that requires `scope` in a refresh, as Entra does (AADSTS900144). */
const needsScope = ({ reason }: OAuthError): boolean =>
  reason._tag === "TokenRequestFailed" && (reason.error === "invalid_request" || reason.error === "invalid_scope")

/**
 * Renews tokens with their refresh token (RFC 6749, 6). A failure of the network or of the server fails, and loses
 * nothing.
 */
export const refresh = Effect.fnUntraced(function*(
  environment: Environment,
  target: Target,
  tokens: SavedTokens,
  refreshToken: string
): Effect.fn.Return<Refreshed, OAuthError> {
  const { definition, outbound } = environment
  const { server } = target
  const { refreshToken: _, ...rest } = tokens
  const options = definition._tag === "AuthorizationCode" ? definition.options : undefined
  const known = definition._tag !== "AuthorizationCode"
    ? grantClient(environment, server, definition)
    : Effect.catchReason(
      knownClient(environment, definition.options, server, tokens.clientId),
      "OAuthError",
      "RegistrationFailed",
      () => Effect.succeed(undefined)
    )
  const client = yield* known
  if (client === undefined || client.clientId !== tokens.clientId) return { _tag: "Refused", tokens: rest } as const
  const prover = yield* proverOf(tokens.dpop)
  const ask = (scopes: ReadonlyArray<string>) =>
    requestToken(
      outbound,
      server,
      client,
      "refresh_token",
      { ...options?.tokenParameters, refresh_token: refreshToken, ...parameters(tokens.resource, scopes) },
      prover
    )
  // Without `scope` the scopes stay those of the grant.
  const request = Effect.catch(
    ask([]),
    (error) => needsScope(error) && tokens.grantedScopes.length > 0 ? ask(tokens.grantedScopes) : Effect.fail(error)
  )
  const saved = Effect.flatMap(
    request,
    (response) =>
      save(
        { ...target, resource: tokens.resource, dpop: tokens.dpop },
        tokens.clientId,
        tokens.registration,
        response,
        tokens
      )
  )
  return yield* Effect.catch(
    Effect.map(saved, (tokens): Refreshed => ({ _tag: "Refreshed", tokens })),
    Effect.fnUntraced(function*(error: OAuthError) {
      const { reason } = error
      if (reason._tag !== "TokenRequestFailed" || reason.retryable) return yield* Effect.fail(error)
      if (reason.error === "invalid_client" && options !== undefined && tokens.registration === "dynamic") {
        yield* forgetClient(environment, options, server, tokens.clientId)
      }
      // A server that sees a refresh token again after it refused it takes it for stolen.
      return { _tag: "Refused", tokens: isFinal(reason.error) ? rest : tokens } as Refreshed
    })
  )
})
