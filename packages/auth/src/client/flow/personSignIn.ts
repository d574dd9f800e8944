/**
 * The sign-in of a person: authorization code with PKCE (OAuth 2.1, 4.1), in one process or begun in one and finished
 * in another.
 */
import { quote } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as oauth from "oauth4webapi"
import type { AuthorizationCodeOptions } from "../grants/Grant.ts"
import {
  AuthorizationDenied,
  DiscoveryFailed,
  InvalidAuthorizationResponse,
  type OAuthError,
  PkceUnsupported,
  SignInFailed,
  SignInRequired
} from "../protocol/OAuthError.ts"
import type { RedirectRequired, SignInError } from "../grants/SignIn.ts"
import { checkIssuer, clientForSignIn, doubtClient, knownClient, redirectUris, registrationKind } from "./clients.ts"
import type { Discovery } from "../protocol/discovery.ts"
import type { Environment } from "./environment.ts"
import { fail, oauthError, quoteWithout } from "../protocol/errors.ts"
import type { ServerMetadata } from "../protocol/metadata.ts"
import {
  digest,
  isPresent,
  locked,
  now,
  pendingKey,
  PendingSignIn,
  type PendingState,
  PendingStates,
  pendingStatesKey,
  read,
  remove,
  type SavedTokens,
  tokensKey,
  write
} from "./records.ts"
import * as Scopes from "../protocol/scopes.ts"
import { place as at } from "../protocol/send.ts"
import { parameters, proverOf, save, type Target } from "./tokens.ts"
import { type AuthenticatedClient, requestToken } from "../protocol/tokenEndpoint.ts"
import { sameIssuer, serverUrl } from "../protocol/urls.ts"

/** At most so many sign-ins of one account at one server can be finished at a time; the oldest ones are dropped. */
const maxPending = 5

/** The sign-ins that are listed at a time. The records of further ones stay in the store if they are never finished. */
const maxListed = 2_000

/** Recording one sign-in removes the records of at most so many that have expired, since all others wait meanwhile. */
const maxRemoved = 20

/** Checks the endpoints before the sign-in: without a token endpoint, the code could not be redeemed afterwards. */
const checkEndpoints = (server: ServerMetadata): Effect.Effect<void, OAuthError> => {
  const missing = (["authorization_endpoint", "token_endpoint"] as const).find((name) => server[name] === undefined)
  return missing === undefined
    ? Effect.void
    : fail(new DiscoveryFailed({ message: `The metadata of ${quote(server.issuer)} has no ${missing}` }))
}

/** 2025-11-25: "MCP clients MUST verify PKCE support before proceeding with authorization". */
const checkPkce = ({ settings }: Environment, { server, url }: Target): Effect.Effect<void, OAuthError> => {
  const { code_challenge_methods_supported: methods, issuer } = server
  if (methods?.includes("S256") === true) return Effect.void
  if (
    settings.servers.get(serverUrl(url))?.assumePkce === true ||
    settings.assumePkce.some((each) => sameIssuer(each, issuer))
  ) {
    return Effect.logInfo(
      "PKCE is assumed of an authorization server that does not announce it",
      { issuer, server: at(url) }
    )
  }
  return fail(
    new PkceUnsupported({
      message:
        `The metadata of ${quote(issuer)} does not announce PKCE with S256 (code_challenge_methods_supported). ` +
        "If the server is known to support it, set assumePkce for it in the option servers",
      issuer
    })
  )
}

const authorizationUrl = Effect.fnUntraced(function*(
  options: AuthorizationCodeOptions,
  { resource, scopes, server }: Target,
  clientId: string,
  redirectUri: string,
  state: string,
  codeVerifier: string
): Effect.fn.Return<URL, OAuthError> {
  // `checkEndpoints` has decided that there is one.
  const url = new URL(server.authorization_endpoint!)
  const challenge = yield* Effect.promise(() => oauth.calculatePKCECodeChallenge(codeVerifier))
  const all = {
    // OpenID Connect Core 1.0, 11: without consent no refresh token is given for `offline_access`.
    ...(scopes.includes("offline_access") ? { prompt: "consent" } : {}),
    ...options.authorizationParameters,
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challenge,
    code_challenge_method: "S256",
    state,
    ...parameters(resource, scopes)
  }
  for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value)
  return url
})

/**
 * Records a sign-in, so that any process that shares the store can finish it once. Its state is listed before, so that
 * no record is left that is not listed.
 */
const record = Effect.fnUntraced(function*(
  { store }: Environment,
  state: string,
  pending: PendingSignIn
): Effect.fn.Return<void, OAuthError> {
  const owner = yield* digest(tokensKey(pending.account, new URL(pending.url)))
  yield* locked(store, pendingStatesKey, list(store, { state, owner, expiresAt: pending.expiresAt }))
  yield* write(store, pendingKey(state), pending)
})

/**
 * Lists a sign-in, in the lock of the list, and removes the records of expired sign-ins: also those of accounts that
 * never return. A sign-in that has ended remains listed until it expires.
 */
const list = Effect.fnUntraced(function*(
  store: Environment["store"],
  pending: PendingState
): Effect.fn.Return<void, OAuthError> {
  const time = yield* now
  const before = (yield* read(store, PendingStates, pendingStatesKey)) ?? []
  const expired = before.filter(({ expiresAt }) => expiresAt <= time).slice(-maxRemoved)
  const own = before.filter(({ expiresAt, owner }) => owner === pending.owner && expiresAt > time)
  const open = own.length < maxPending
    ? own
    : yield* Effect.filter(own, ({ state }) => isPresent(store, pendingKey(state)))
  const kept = new Set(open.slice(0, maxPending - 1))
  const removed = new Set([...expired, ...own.filter((each) => !kept.has(each))])
  for (const { state } of removed) yield* remove(store, pendingKey(state))
  const rest = before.filter((each) => !removed.has(each))
  yield* write(store, pendingStatesKey, [pending, ...rest].slice(0, maxListed))
})

const invalid = (message: string): Effect.Effect<never, OAuthError> =>
  fail(new InvalidAuthorizationResponse({ message: `${message}. Nothing of it was used. Sign in again` }))

/**
 * Judges the parameters of the redirect: `iss` and `state` before anything else, so that an error of another server is
 * neither shown nor acted on (RFC 9207; 2026-07-28, Authorization Response Validation).
 */
const codeOf = (
  server: ServerMetadata,
  clientId: string,
  state: string,
  answer: URLSearchParams
): Effect.Effect<string, OAuthError> => {
  const issuers = answer.getAll("iss")
  if (issuers.length > 1 || issuers.some((issuer) => issuer !== server.issuer)) {
    return invalid(`The sign-in at ${quote(server.issuer)} was answered in the name of another issuer (iss)`)
  }
  if (issuers.length === 0 && server.authorization_response_iss_parameter_supported === true) {
    return invalid(`The sign-in at ${quote(server.issuer)} was answered without its issuer (iss), which it announces`)
  }
  try {
    const checked = oauth.validateAuthResponse(
      server as oauth.AuthorizationServer,
      { client_id: clientId },
      answer,
      state
    )
    const code = checked.get("code")
    return code === null || code === ""
      ? invalid(`The sign-in at ${quote(server.issuer)} was answered without a code`)
      : Effect.succeed(code)
  } catch (error) {
    if (!(error instanceof oauth.AuthorizationResponseError)) {
      return invalid(`The answer to the sign-in at ${quote(server.issuer)} does not belong to it (state)`)
    }
    const description = error.error_description === undefined
      ? ""
      : `: ${quoteWithout(error.error_description, [])}`
    return fail(
      new AuthorizationDenied({
        message: `${quote(server.issuer)} denied the sign-in: ${quote(error.error)}${description}`,
        error: error.error
      })
    )
  }
}

/** Exchanges the code for tokens. */
const redeem = Effect.fnUntraced(function*(
  environment: Environment,
  client: AuthenticatedClient,
  pending: PendingSignIn,
  state: string,
  answer: URLSearchParams
): Effect.fn.Return<SavedTokens, OAuthError> {
  const server = pending.server as unknown as ServerMetadata
  const code = yield* codeOf(server, client.clientId, state, answer)
  const { codeVerifier, dpop, redirectUri, requestedScopes, resource, resourceMetadataUrl } = pending
  const { definition } = environment
  const tokenParameters = definition._tag === "AuthorizationCode" ? definition.options.tokenParameters : undefined
  const response = yield* requestToken(
    environment.outbound,
    server,
    client,
    "authorization_code",
    {
      ...tokenParameters,
      code,
      redirect_uri: redirectUri,
      code_verifier: codeVerifier,
      ...parameters(resource, [])
    },
    yield* proverOf(dpop)
  )
  const target = { url: new URL(pending.url), server, resource, resourceMetadataUrl, scopes: requestedScopes, dpop }
  return yield* save(target, client.clientId, pending.registration, response, undefined)
})

const notReached = (cause: SignInError | RedirectRequired): OAuthError =>
  oauthError(
    cause._tag === "RedirectRequired"
      ? new SignInRequired({
        message: "A person has to sign in: send them to the url of this error, and pass the answer to OAuth.finish",
        url: cause.url
      })
      : new SignInFailed({ message: `The sign-in was not completed: ${cause.message}`, cause })
  )

/**
 * Asks a person to sign in, and returns the effect that exchanges the code for tokens: the caller runs it so that it is
 * not interrupted before its tokens are stored. `SignInRequired` means that the sign-in is finished elsewhere.
 */
export const signIn = Effect.fnUntraced(function*(
  environment: Environment,
  options: AuthorizationCodeOptions,
  discovery: Discovery,
  target: Target
): Effect.fn.Return<Effect.Effect<SavedTokens, OAuthError>, OAuthError, Scope.Scope> {
  const { server } = target
  const { settings } = environment
  const registration = registrationKind(options, server)
  if (registration === "given") yield* checkIssuer(options.client!.clientId, options.client!.issuer, server)
  yield* checkEndpoints(server)
  yield* checkPkce(environment, target)
  const place = yield* Effect.mapError(
    environment.signIn!.open({
      redirectUris: yield* redirectUris(environment, options, server),
      fixed: registration !== "dynamic",
      resource: target.resource ?? target.url.href
    }),
    notReached
  )
  const { redirectUri } = place
  const client = yield* clientForSignIn(environment, options, discovery, redirectUri, target.scopes)
  const state = oauth.generateRandomState()
  const codeVerifier = oauth.generateRandomCodeVerifier()
  const url = yield* authorizationUrl(options, target, client.clientId, redirectUri, state, codeVerifier)
  const pending: PendingSignIn = {
    account: settings.account,
    url: target.url.href,
    server: { ...server },
    resource: target.resource,
    resourceMetadataUrl: target.resourceMetadataUrl,
    redirectUri,
    codeVerifier,
    clientId: client.clientId,
    registration,
    requestedScopes: target.scopes,
    dpop: target.dpop,
    expiresAt: (yield* now) + settings.signInTimeout
  }
  yield* record(environment, state, pending)
  const answer = yield* Effect.mapError(place.authorize(url, state), notReached).pipe(
    Effect.onError((cause) => {
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error?.reason._tag === "SignInRequired") return Effect.void
      const doubted = client.isStored ? doubtClient(environment, options, server, client.clientId) : Effect.void
      return Effect.andThen(Effect.ignore(remove(environment.store, pendingKey(state))), Effect.ignore(doubted))
    })
  )
  yield* remove(environment.store, pendingKey(state))
  return redeem(environment, client, pending, state, answer)
}, Effect.scoped)

/**
 * Reads the record of a sign-in that this account has begun. That of another account is not used, and stays: its owner
 * may still finish it.
 */
export const find = Effect.fnUntraced(function*(
  { settings, store }: Environment,
  state: string
): Effect.fn.Return<PendingSignIn, OAuthError> {
  const pending = yield* read(store, PendingSignIn, pendingKey(state))
  if (pending !== undefined && pending.account === settings.account) return pending
  return yield* invalid("This answer belongs to no sign-in that this account has begun, or it was used before")
})

/**
 * Takes the record of a sign-in, and exchanges its answer for tokens, in the lock of its tokens. The record stays while
 * nothing can be exchanged, because the secret of the client is not available.
 */
export const complete = Effect.fnUntraced(function*(
  environment: Environment,
  options: AuthorizationCodeOptions,
  state: string,
  answer: URLSearchParams
): Effect.fn.Return<SavedTokens, OAuthError> {
  const pending = yield* find(environment, state)
  const client = yield* knownClient(
    environment,
    options,
    pending.server as unknown as ServerMetadata,
    pending.clientId
  )
  // Removed before it is used, so that a sign-in can be finished only once.
  yield* remove(environment.store, pendingKey(state))
  if (pending.expiresAt <= (yield* now)) return yield* invalid("The sign-in took longer than signInTimeout")
  return yield* redeem(environment, client, pending, state, answer)
})

/** The scopes of a request with `offline_access`, where the server lists it and refresh tokens are wanted. */
export const withOfflineAccess = (
  { definition, settings }: Environment,
  server: ServerMetadata,
  scopes: ReadonlyArray<string>
): ReadonlyArray<string> =>
  definition._tag === "AuthorizationCode" && settings.offlineAccess &&
    server.scopes_supported?.includes("offline_access") === true
    ? Scopes.union(scopes, ["offline_access"])
    : scopes
