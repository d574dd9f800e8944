/**
 * The tokens of one account at one server: the headers of a request, and the action after a refusal.
 *
 * The server refuses a request, and `refused` returns whether the transport sends it again. The first row that applies
 * decides. A job is an action that may change the tokens: one runs at a time, in the lock of the store (`jobs.ts`).
 *
 * | Refusal               | State                                                      | Action                               |
 * | --------------------- | ---------------------------------------------------------- | ------------------------------------ |
 * | `use_dpop_nonce`      | the nonce is known, and this is attempt 1 or 2             | retry with the nonce                 |
 * | `use_dpop_nonce`      | otherwise                                                  | none: the refusal is the result      |
 * | 403 of another reason | any                                                        | none: the refusal is the result      |
 * | 401, or scopes        | the token was replaced, in any process                     | retry with the new token             |
 * | 401, or scopes        | the delay of a failed token request is not over            | fail with the error of that request  |
 * | 401                   | the token was granted within `signInInterval`              | fail: `TokenRefused`                 |
 * | 401                   | a refresh token, not used within `signInInterval`          | refresh, and retry if it was granted |
 * | 401                   | a person did not sign in, within `signInInterval`          | fail: `SignInFailed`                 |
 * | 401                   | otherwise                                                  | obtain tokens by the grant, retry    |
 * | scopes                | none are named                                             | fail: `InsufficientScope`            |
 * | scopes                | they were requested before, and not granted                | fail: `InsufficientScope`            |
 * | scopes                | the bound of step-ups within `signInInterval` is reached   | fail: `InsufficientScope`            |
 * | scopes                | otherwise                                                  | obtain tokens with these scopes too  |
 *
 * "Scopes" is a 403 with `insufficient_scope`. Tokens of another authorization server than the one that was discovered are
 * not used: the last row of each refusal applies. Tokens with a short remaining lifetime (`minTokenLifetime`) are refreshed
 * before a request, and a failure of that refresh is not a failure of the request.
 */
import type { Challenge, CredentialsRequest } from "@skein/client/Credentials"
import { quote } from "@skein/protocol/Text"
import type { Headers } from "@skein/runtime/Connection"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import { InsufficientScope, type OAuthError, TokenRefused, TokenRequestFailed } from "../protocol/OAuthError.ts"
import { makeTokenBackoff } from "./backoff.ts"
import { noChallenge, type OAuthChallenge, oauthChallenge } from "../protocol/challenge.ts"
import type { Discovery } from "../protocol/discovery.ts"
import { type DpopKey, keyFor, prove, type Prover } from "../protocol/dpop.ts"
import type { Environment, SignInChange } from "./environment.ts"
import { codeWithout, fail, without } from "../protocol/errors.ts"
import { makeJobs, signInNow } from "./jobs.ts"
import { signIn as askPerson, withOfflineAccess } from "./personSignIn.ts"
import { now, type SavedTokens, tokensKey } from "./records.ts"
import { makeRecentDiscovery } from "./recentDiscovery.ts"
import * as Scopes from "../protocol/scopes.ts"
import { place } from "../protocol/send.ts"
import { checkMark, marked } from "./signInMark.ts"
import { makeStepUps } from "./stepUps.ts"
import { isLockLost, makeStoredTokens } from "./storedTokens.ts"
import { logResource, obtain, proverOf, refresh, resourceOf, type Target } from "./tokens.ts"
import { sameIssuer } from "../protocol/urls.ts"

const none: Effect.Effect<Headers> = /* @__PURE__ */ Effect.succeed({})

/** Whether tokens are still valid, as far as their issuer has said. */
const isValid = (tokens: SavedTokens, time: number): boolean =>
  tokens.expiresAt === undefined || tokens.expiresAt > time

/** A challenge without the token, which a server may repeat in texts that are quoted in errors. */
const withoutToken = ({ error, resourceMetadata, scope, ...rest }: OAuthChallenge, token: string): OAuthChallenge => ({
  ...rest,
  error: error && codeWithout(error, [token]),
  scope: scope && without(scope, [token]),
  resourceMetadata: resourceMetadata && without(resourceMetadata, [token])
})

/** The tokens of one server, for any number of transports and requests. */
export const makeServerTokens = (environment: Environment, url: URL) => {
  const discovery = makeRecentDiscovery(environment, url)
  const stepUps = makeStepUps(environment.settings)
  const key = tokensKey(environment.settings.account, url)
  const stored = makeStoredTokens(environment, key)
  const backoff = makeTokenBackoff(environment, key)
  const jobs = makeJobs(environment, key, {
    isReplaced: (used) => held != null && held.accessToken !== used,
    lockLost: () => drop(),
    // A person is still being asked with `SignInRequired`: `OAuth.finish` ends the sign-in.
    failed: (error) =>
      error.reason._tag === "SignInRequired" || backoff.isRepeated(error)
        ? Effect.void
        : publish("failed", error)
  })
  /** `undefined` until the store was read; `null` without tokens. */
  let held: SavedTokens | null | undefined
  /** The headers of a bearer token, which are the same for each request. */
  let bearer: Effect.Effect<Headers> = none
  let prover: Prover | undefined
  let lastNonce: string | undefined
  let renewalFailedAt = -Infinity

  /** The headers of a request. Without tokens there are none: the server says whether it requires any. */
  const headers = (request: CredentialsRequest): Effect.Effect<Headers, OAuthError> => {
    const tokens = held
    if (tokens === undefined) return Effect.flatMap(begin(), () => headers(request))
    // An exit, without an effect around it: the transport takes the headers without a fiber and a timeout.
    if (tokens === null) return bearer
    const { clock } = environment
    const time = clock.currentTimeMillisUnsafe()
    if (!isDue(tokens, time)) return headersOf(tokens, request, time)
    // A failure is not one of the request: the tokens may still be valid, and a refusal reports it otherwise.
    const renewed = Effect.ignore(jobs.run("refresh", tokens.accessToken, renew()))
    return Effect.flatMap(
      renewed,
      () => headersOf(held ?? tokens, request, clock.currentTimeMillisUnsafe())
    )
  }

  /** Remembers a nonce for the next proof (RFC 9449, 8.2). */
  const nonce = (value: string | undefined): void => {
    if (value !== undefined) lastNonce = value
  }

  /** Answers a refusal: `true` if other credentials are there now. */
  const refused = (challenge: Challenge, used: string | undefined): Effect.Effect<boolean, OAuthError> => {
    const { attempt, status, wwwAuthenticate } = challenge
    const token = used ?? held?.accessToken
    const parsed = withoutToken(oauthChallenge(wwwAuthenticate), token ?? "")
    // The token is accepted; the proof lacks the nonce of the server, which came with this refusal.
    if (parsed.error === "use_dpop_nonce") return Effect.succeed(attempt <= 2 && lastNonce !== undefined)
    if (status === 403 && parsed.error !== "insufficient_scope") return Effect.succeed(false)
    return status === 403
      ? jobs.run(`scopes ${parsed.scope}`, token, stepUp(parsed, token))
      : jobs.run("sign-in", token, unauthorized(parsed, token))
  }

  /** Signs in, also if there are tokens. */
  const signIn = (named: string | undefined, scope: string | undefined): Effect.Effect<void, OAuthError> => {
    const job = Effect.gen(function*() {
      discovery.forget()
      stepUps.clear()
      yield* backoff.reset
      const before = yield* stored.current
      const found = yield* discover(named ?? before?.resourceMetadataUrl)
      const challenge = { ...noChallenge, resourceMetadata: named, scope }
      yield* grant(found, challenge, select(found, challenge, undefined), undefined)
      return true
    })
    return Effect.asVoid(jobs.run(signInNow, undefined, job))
  }

  /** Stores tokens that were obtained for this server, and uses them from now on. */
  const save = (tokens: SavedTokens): Effect.Effect<void, OAuthError> =>
    Effect.gen(function*() {
      if (environment.settings.dpop === "always" && tokens.tokenType === "Bearer") {
        return yield* fail(
          new TokenRequestFailed({
            message: `${quote(tokens.issuer)} gave a token that is not bound to a key, and the option dpop is always`,
            retryable: false
          })
        )
      }
      // Stored before a request uses them.
      const written = yield* Effect.exit(stored.write(tokens))
      discovery.forget()
      yield* backoff.end
      if (Exit.isFailure(written) && Cause.findErrorOption(written.cause).pipe(Option.exists(isLockLost))) drop()
      else yield* use(tokens)
      yield* written
    })

  /** Stores tokens that an effect obtains, in the lock. */
  const replace = (tokens: Effect.Effect<SavedTokens, OAuthError>): Effect.Effect<void, OAuthError> =>
    jobs.locked(Effect.andThen(
      Effect.andThen(backoff.reset, stored.current),
      Effect.uninterruptible(Effect.flatMap(tokens, save))
    ))

  /** Removes the tokens, in the lock. Returns them, so that they can be revoked. */
  const clear = (): Effect.Effect<SavedTokens | undefined, OAuthError> =>
    jobs.locked(Effect.gen(function*() {
      const tokens = yield* stored.current
      yield* stored.remove
      stepUps.clear()
      yield* Effect.andThen(backoff.reset, backoff.end)
      yield* use(undefined)
      return tokens
    }))

  /** Reads the tokens in the lock, and uses them: another process may have replaced them. */
  const load = (): Effect.Effect<SavedTokens | undefined, OAuthError> =>
    Effect.gen(function*() {
      const tokens = yield* stored.current
      yield* tokens !== undefined && stored.isUnsaved() ? save(tokens) : use(tokens)
      return tokens
    })

  const publish = (status: SignInChange["status"], error?: OAuthError): Effect.Effect<void> => {
    const change = error === undefined ? { url, status } : { url, status, error }
    return Effect.asVoid(PubSub.publish(environment.changes, change))
  }

  /** Reads the tokens for the first request, outside of the lock. A job that has begun meanwhile has read newer ones. */
  const begin = (): Effect.Effect<void, OAuthError> =>
    Effect.flatMap(stored.state, (tokens) => held === undefined ? use(tokens) : Effect.void)

  /** Drops the tokens in memory: the process that took the lock over has stored newer ones. */
  const drop = (): void => {
    stored.drop()
    held = undefined
  }

  const use = (tokens: SavedTokens | undefined): Effect.Effect<void, OAuthError> =>
    Effect.gen(function*() {
      const before = held
      if (before?.dpop?.publicJwk !== tokens?.dpop?.publicJwk || before?.tokenType !== tokens?.tokenType) {
        prover = tokens?.tokenType === "DPoP" ? yield* proverOf(tokens.dpop) : undefined
      }
      held = tokens ?? null
      bearer = tokens === undefined ? none : Effect.succeed({ authorization: `Bearer ${tokens.accessToken}` })
    })

  const headersOf = (
    tokens: SavedTokens,
    request: CredentialsRequest,
    time: number
  ): Effect.Effect<Headers, OAuthError> => {
    const own = prover
    if (tokens.tokenType === "Bearer" || own === undefined) return bearer
    const { accessToken } = tokens
    return Effect.map(
      prove(own, request.method, request.url, accessToken, lastNonce, time),
      (dpop) => ({ authorization: `DPoP ${accessToken}`, dpop })
    )
  }

  /** Whether tokens are about to expire and can be renewed without a person. */
  const isDue = (tokens: SavedTokens, time: number): boolean => {
    const { expiresAt, obtainedAt, refreshToken } = tokens
    if (expiresAt === undefined) return false
    const { definition, settings } = environment
    // Tokens with a shorter lifetime than `minTokenLifetime` would be refreshed for each request.
    const early = Math.min(settings.minTokenLifetime, (expiresAt - obtainedAt) / 2)
    return expiresAt - early <= time && time - renewalFailedAt >= settings.discoveryInterval &&
      !backoff.isActive(time) &&
      (refreshToken !== undefined || definition._tag !== "AuthorizationCode")
  }

  const discover = (named: string | undefined): Effect.Effect<Discovery, OAuthError> =>
    discovery.find(named, held?.issuer)

  /** The tokens that came from the authorization server that was found; those of another one are not used with it. */
  const sameOf = (tokens: SavedTokens | undefined, { server }: Discovery): SavedTokens | undefined =>
    tokens !== undefined && sameIssuer(tokens.issuer, server.issuer) ? tokens : undefined

  const select = (
    found: Discovery,
    challenge: OAuthChallenge,
    before: SavedTokens | undefined
  ): ReadonlyArray<string> =>
    Scopes.select({
      configured: environment.settings.scopes,
      challenged: challenge.scope,
      supported: found.resource?.scopesSupported,
      before: before?.requestedScopes ?? []
    })

  const targetOf = (
    found: Discovery,
    named: string | undefined,
    scopes: ReadonlyArray<string>,
    dpop: DpopKey | undefined
  ): Target => ({
    url,
    server: found.server,
    resource: resourceOf(environment, found, url),
    resourceMetadataUrl: named,
    scopes,
    dpop
  })

  /** Obtains tokens by the grant, and stores them before they are used. */
  const grant = (
    found: Discovery,
    challenge: OAuthChallenge,
    scopes: ReadonlyArray<string>,
    ownKey: DpopKey | undefined
  ): Effect.Effect<void, OAuthError> =>
    Effect.gen(function*() {
      const { definition, settings } = environment
      if (scopes.length > settings.maxScopes) {
        return yield* fail(
          new InsufficientScope({
            message: `${place(url)} names ${scopes.length} scopes, more than ${settings.maxScopes}. ` +
              "Configure those that are needed with the option scopes",
            scopes: scopes.slice(0, settings.maxScopes)
          })
        )
      }
      yield* logResource(environment, url)
      const isProofAsked = challenge.dpop || found.resource?.dpopRequired === true
      const dpop = ownKey ??
        (yield* keyFor(settings.dpop, found.server.dpop_signing_alg_values_supported, isProofAsked))
      const target = targetOf(
        found,
        challenge.resourceMetadata,
        withOfflineAccess(environment, found.server, scopes),
        dpop
      )
      if (definition._tag !== "AuthorizationCode") {
        yield* publish("refreshing")
        yield* save(yield* obtain(environment, target))
      } else {
        yield* publish("signing-in")
        const asked = Effect.flatMap(
          askPerson(environment, definition.options, found, target),
          (redeem) => Effect.uninterruptible(Effect.flatMap(redeem, save))
        )
        yield* marked(environment, key, asked)
      }
      yield* publish("signed-in")
    }).pipe(Effect.tapError(backoff.failed))

  /** Renews tokens with their refresh token. `false` if there is none, or it does not work any longer. */
  const refreshTokens = (found: Discovery, tokens: SavedTokens): Effect.Effect<boolean, OAuthError> => {
    const { refreshToken } = tokens
    if (refreshToken === undefined) return Effect.succeed(false)
    const target = targetOf(found, tokens.resourceMetadataUrl, tokens.requestedScopes, tokens.dpop)
    return Effect.uninterruptible(
      Effect.gen(function*() {
        yield* publish("refreshing")
        const refreshed = yield* refresh(environment, target, tokens, refreshToken)
        yield* save(refreshed.tokens)
        if (refreshed._tag === "Refused") return false
        yield* publish("signed-in")
        return true
      }).pipe(Effect.tapError(backoff.failed))
    )
  }

  /** Renews tokens before they expire. */
  const renew = (): Effect.Effect<boolean, OAuthError> =>
    Effect.gen(function*() {
      const tokens = yield* load()
      if (tokens === undefined || !isDue(tokens, yield* now)) return true
      yield* backoff.check
      const found = yield* discover(tokens.resourceMetadataUrl)
      if (sameOf(tokens, found) === undefined) return false
      if (yield* refreshTokens(found, tokens)) return true
      if (environment.definition._tag === "AuthorizationCode") return false
      const challenge = { ...noChallenge, resourceMetadata: tokens.resourceMetadataUrl }
      yield* grant(found, challenge, tokens.requestedScopes, tokens.dpop)
      return true
    }).pipe(Effect.tapError(() =>
      Effect.map(now, (time) => {
        renewalFailedAt = time
      })
    ))

  /** Answers a 401. */
  const unauthorized = (challenge: OAuthChallenge, used: string | undefined): Effect.Effect<boolean, OAuthError> =>
    Effect.gen(function*() {
      const tokens = yield* load()
      // Another process that shares the store has signed in or refreshed the tokens meanwhile.
      if (tokens !== undefined && tokens.accessToken !== used) return true
      yield* backoff.check
      const found = yield* discover(challenge.resourceMetadata)
      const same = sameOf(tokens, found)
      const time = yield* now
      const { signInInterval } = environment.settings
      const isFresh = (since: number): boolean =>
        same !== undefined && time - since < signInInterval &&
        // A token that was issued without a lifetime (`expires_in: 0`) is refused again after another sign-in.
        (isValid(same, time) || same.expiresAt === same.obtainedAt)
      if (same !== undefined && isFresh(same.grantedAt)) {
        return yield* fail(
          new TokenRefused({
            message: `${place(url)} refused a token that ${quote(same.issuer)} has just issued for it` +
              `${challenge.error === undefined ? "" : ` (${quote(challenge.error)})`}. ` +
              "The server has to accept this issuer, resource and scopes; another sign-in would not help"
          })
        )
      }
      if (same !== undefined && !isFresh(same.obtainedAt) && (yield* refreshTokens(found, same))) return true
      yield* checkMark(environment, key, url)
      yield* grant(found, challenge, select(found, challenge, same), undefined)
      return true
    })

  /**
   * Answers a 403 with `insufficient_scope`: requests the scopes that were requested before and those of the challenge
   * (2026-07-28, Step-Up Authorization Flow), unless that was done before.
   */
  const stepUp = (challenge: OAuthChallenge, used: string | undefined): Effect.Effect<boolean, OAuthError> =>
    Effect.gen(function*() {
      const tokens = yield* load()
      if (tokens !== undefined && tokens.accessToken !== used) return true
      yield* backoff.check
      const challenged = Scopes.parse(challenge.scope)
      const stop = (why: string) =>
        fail(
          new InsufficientScope({
            message: `${place(url)} requires scopes${
              challenged.length === 0 ? "" : ` (${quote(challenged.join(" "))})`
            } that its token lacks, and ${why}`,
            scopes: challenged
          })
        )
      if (challenged.length === 0) return yield* stop("it does not name them. Configure them with the option scopes")
      const found = yield* discover(challenge.resourceMetadata ?? tokens?.resourceMetadataUrl)
      const same = sameOf(tokens, found)
      const scopes = Scopes.union(same?.requestedScopes ?? [], challenged)
      if (
        stepUps.wereRefused(scopes) || (same !== undefined && Scopes.covers(same.requestedScopes, challenged))
      ) {
        return yield* stop(
          "they were requested before and not granted. The person or an administrator has to grant them"
        )
      }
      if (!stepUps.begin(yield* now)) {
        const { maxStepUps } = environment.settings
        return yield* stop(`it has required others ${maxStepUps} times within signInInterval`)
      }
      const named = challenge.resourceMetadata ?? tokens?.resourceMetadataUrl
      yield* Effect.tapError(
        grant(found, { ...challenge, resourceMetadata: named }, scopes, same?.dpop),
        (error) => Effect.sync(() => stepUps.failed(scopes, error))
      )
      return true
    })

  return {
    headers,
    nonce,
    refused,
    signIn,
    replace,
    clear,
    /** Reads the tokens, and leaves alone those that requests carry: a job may be replacing them. */
    read: stored.state,
    publish
  }
}

export type ServerTokens = ReturnType<typeof makeServerTokens>
