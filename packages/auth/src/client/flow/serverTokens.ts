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
import { TokenBackoff } from "./backoff.ts"
import { noChallenge, type OAuthChallenge, oauthChallenge } from "../protocol/challenge.ts"
import type { Discovery } from "../protocol/discovery.ts"
import { type DpopKey, keyFor, prove, type Prover } from "../protocol/dpop.ts"
import type { Environment, SignInChange } from "./environment.ts"
import { fail, without } from "../protocol/errors.ts"
import { Jobs, signInNow } from "./jobs.ts"
import { signIn, withOfflineAccess } from "./personSignIn.ts"
import { now, type SavedTokens, tokensKey } from "./records.ts"
import { RecentDiscovery } from "./recentDiscovery.ts"
import * as Scopes from "../protocol/scopes.ts"
import { place } from "../protocol/send.ts"
import { checkMark, marked } from "./signInMark.ts"
import { StepUps } from "./stepUps.ts"
import { isLockLost, StoredTokens } from "./storedTokens.ts"
import { logResource, obtain, proverOf, refresh, resourceOf, type Target } from "./tokens.ts"
import { sameIssuer } from "../protocol/urls.ts"

const none: Effect.Effect<Headers> = /* @__PURE__ */ Effect.succeed({})

/** Whether tokens are still valid, as far as their issuer has said. */
const isValid = (tokens: SavedTokens, time: number): boolean =>
  tokens.expiresAt === undefined || tokens.expiresAt > time

/** The tokens of one server, for any number of transports and requests. */
export class ServerTokens {
  readonly url: URL
  readonly #environment: Environment
  readonly #key: string
  /** `undefined` until the store was read; `null` without tokens. */
  #tokens: SavedTokens | null | undefined = undefined
  /** The headers of a bearer token, which are the same for each request. */
  #headers: Effect.Effect<Headers> = none
  #prover: Prover | undefined = undefined
  #nonce: string | undefined = undefined
  #renewalFailedAt = -Infinity
  readonly #stored: StoredTokens
  readonly #jobs: Jobs
  readonly #discovery: RecentDiscovery
  readonly #stepUps: StepUps
  readonly #backoff: TokenBackoff

  constructor(environment: Environment, url: URL) {
    this.#environment = environment
    this.#discovery = new RecentDiscovery(environment, url)
    this.#stepUps = new StepUps(environment.settings)
    this.url = url
    this.#key = tokensKey(environment.settings.account, url)
    this.#stored = new StoredTokens(environment, this.#key)
    this.#backoff = new TokenBackoff(environment, this.#key)
    this.#jobs = new Jobs(environment, this.#key, {
      isReplaced: (used) => this.#tokens != null && this.#tokens.accessToken !== used,
      lockLost: () => this.#drop(),
      // A person is still being asked with `SignInRequired`: `OAuth.finish` ends the sign-in.
      failed: (error) =>
        error.reason._tag === "SignInRequired" || this.#backoff.isRepeated(error)
          ? Effect.void
          : this.publish("failed", error)
    })
  }

  /** The headers of a request. Without tokens there are none: the server says whether it requires any. */
  headers(request: CredentialsRequest): Effect.Effect<Headers, OAuthError> {
    const tokens = this.#tokens
    if (tokens === undefined) return Effect.flatMap(this.#begin(), () => this.headers(request))
    // An exit, without an effect around it: the transport takes the headers without a fiber and a timeout.
    if (tokens === null) return this.#headers
    const { clock } = this.#environment
    const time = clock.currentTimeMillisUnsafe()
    if (!this.#isDue(tokens, time)) return this.#headersOf(tokens, request, time)
    // A failure is not one of the request: the tokens may still be valid, and a refusal reports it otherwise.
    const renewed = Effect.ignore(this.#jobs.run("refresh", tokens.accessToken, this.#renew()))
    return Effect.flatMap(
      renewed,
      () => this.#headersOf(this.#tokens ?? tokens, request, clock.currentTimeMillisUnsafe())
    )
  }

  /** Remembers a nonce for the next proof (RFC 9449, 8.2). */
  nonce(value: string | undefined): void {
    if (value !== undefined) this.#nonce = value
  }

  /** Answers a refusal: `true` if other credentials are there now. */
  refused(challenge: Challenge, used: string | undefined): Effect.Effect<boolean, OAuthError> {
    const { attempt, status, wwwAuthenticate } = challenge
    const token = used ?? this.#tokens?.accessToken
    // A server may repeat the token in its challenge, whose texts are quoted in errors.
    const parsed = oauthChallenge(wwwAuthenticate && without(wwwAuthenticate, [token ?? ""]))
    // The token is accepted; the proof lacks the nonce of the server, which came with this refusal.
    if (parsed.error === "use_dpop_nonce") return Effect.succeed(attempt <= 2 && this.#nonce !== undefined)
    if (status === 403 && parsed.error !== "insufficient_scope") return Effect.succeed(false)
    return status === 403
      ? this.#jobs.run(`scopes ${parsed.scope}`, token, this.#stepUp(parsed, token))
      : this.#jobs.run("sign-in", token, this.#unauthorized(parsed, token))
  }

  /** Signs in, also if there are tokens. */
  signIn(named: string | undefined, scope: string | undefined): Effect.Effect<void, OAuthError> {
    const job = Effect.gen({ self: this }, function*() {
      this.#discovery.forget()
      this.#stepUps.clear()
      yield* this.#backoff.reset
      const before = yield* this.#stored.current
      const found = yield* this.#discover(named ?? before?.resourceMetadataUrl)
      const challenge = { ...noChallenge, resourceMetadata: named, scope }
      yield* this.#grant(found, challenge, this.#select(found, challenge, undefined), undefined)
      return true
    })
    return Effect.asVoid(this.#jobs.run(signInNow, undefined, job))
  }

  /** Stores tokens that were obtained for this server, and uses them from now on. */
  save(tokens: SavedTokens): Effect.Effect<void, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      if (this.#environment.settings.dpop === "always" && tokens.tokenType === "Bearer") {
        return yield* fail(
          new TokenRequestFailed({
            message: `${quote(tokens.issuer)} gave a token that is not bound to a key, and the option dpop is always`,
            retryable: false
          })
        )
      }
      // Stored before a request uses them.
      const written = yield* Effect.exit(this.#stored.write(tokens))
      this.#discovery.forget()
      yield* this.#backoff.end
      if (Exit.isFailure(written) && Cause.findErrorOption(written.cause).pipe(Option.exists(isLockLost))) this.#drop()
      else yield* this.#use(tokens)
      yield* written
    })
  }

  /** Stores tokens that an effect obtains, in the lock. */
  replace(tokens: Effect.Effect<SavedTokens, OAuthError>): Effect.Effect<void, OAuthError> {
    return this.#jobs.locked(Effect.andThen(
      Effect.andThen(this.#backoff.reset, this.#stored.current),
      Effect.uninterruptible(Effect.flatMap(tokens, (tokens) => this.save(tokens)))
    ))
  }

  /** Removes the tokens, in the lock. Returns them, so that they can be revoked. */
  clear(): Effect.Effect<SavedTokens | undefined, OAuthError> {
    return this.#jobs.locked(Effect.gen({ self: this }, function*() {
      const tokens = yield* this.#stored.current
      yield* this.#stored.remove
      this.#stepUps.clear()
      yield* Effect.andThen(this.#backoff.reset, this.#backoff.end)
      yield* this.#use(undefined)
      return tokens
    }))
  }

  /** Reads the tokens, and leaves alone those that requests carry: a job may be replacing them. */
  read(): Effect.Effect<SavedTokens | undefined, OAuthError> {
    return this.#stored.state
  }

  /** Reads the tokens in the lock, and uses them: another process may have replaced them. */
  load(): Effect.Effect<SavedTokens | undefined, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      const tokens = yield* this.#stored.current
      yield* tokens !== undefined && this.#stored.isUnsaved ? this.save(tokens) : this.#use(tokens)
      return tokens
    })
  }

  publish(status: SignInChange["status"], error?: OAuthError): Effect.Effect<void> {
    const { url } = this
    const change = error === undefined ? { url, status } : { url, status, error }
    return Effect.asVoid(PubSub.publish(this.#environment.changes, change))
  }

  /** Reads the tokens for the first request, outside of the lock. A job that has begun meanwhile has read newer ones. */
  #begin(): Effect.Effect<void, OAuthError> {
    return Effect.flatMap(this.#stored.state, (tokens) => this.#tokens === undefined ? this.#use(tokens) : Effect.void)
  }

  /** Drops the tokens in memory: the process that took the lock over has stored newer ones. */
  #drop(): void {
    this.#stored.drop()
    this.#tokens = undefined
  }

  #use(tokens: SavedTokens | undefined): Effect.Effect<void, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      const before = this.#tokens
      if (before?.dpop?.publicJwk !== tokens?.dpop?.publicJwk || before?.tokenType !== tokens?.tokenType) {
        this.#prover = tokens?.tokenType === "DPoP" ? yield* proverOf(tokens.dpop) : undefined
      }
      this.#tokens = tokens ?? null
      this.#headers = tokens === undefined ? none : Effect.succeed({ authorization: `Bearer ${tokens.accessToken}` })
    })
  }

  #headersOf(tokens: SavedTokens, request: CredentialsRequest, time: number): Effect.Effect<Headers, OAuthError> {
    const prover = this.#prover
    if (tokens.tokenType === "Bearer" || prover === undefined) return this.#headers
    const { accessToken } = tokens
    return Effect.map(
      prove(prover, request.method, request.url, accessToken, this.#nonce, time),
      (dpop) => ({ authorization: `DPoP ${accessToken}`, dpop })
    )
  }

  /** Whether tokens are about to expire and can be renewed without a person. */
  #isDue(tokens: SavedTokens, time: number): boolean {
    const { expiresAt, obtainedAt, refreshToken } = tokens
    if (expiresAt === undefined) return false
    const { definition, settings } = this.#environment
    // Tokens with a shorter lifetime than `minTokenLifetime` would be refreshed for each request.
    const early = Math.min(settings.minTokenLifetime, (expiresAt - obtainedAt) / 2)
    return expiresAt - early <= time && time - this.#renewalFailedAt >= settings.discoveryInterval &&
      !this.#backoff.isActive(time) &&
      (refreshToken !== undefined || definition._tag !== "AuthorizationCode")
  }

  #discover(named: string | undefined): Effect.Effect<Discovery, OAuthError> {
    return this.#discovery.find(named, this.#tokens?.issuer)
  }

  /** The tokens that came from the authorization server that was found; those of another one are not used with it. */
  #same(tokens: SavedTokens | undefined, { server }: Discovery): SavedTokens | undefined {
    return tokens !== undefined && sameIssuer(tokens.issuer, server.issuer) ? tokens : undefined
  }

  #select(found: Discovery, challenge: OAuthChallenge, before: SavedTokens | undefined): ReadonlyArray<string> {
    return Scopes.select({
      configured: this.#environment.settings.scopes,
      challenged: challenge.scope,
      supported: found.resource?.scopesSupported,
      before: before?.requestedScopes ?? []
    })
  }

  #target(
    found: Discovery,
    named: string | undefined,
    scopes: ReadonlyArray<string>,
    dpop: DpopKey | undefined
  ): Target {
    return {
      url: this.url,
      server: found.server,
      resource: resourceOf(this.#environment, found, this.url),
      resourceMetadataUrl: named,
      scopes,
      dpop
    }
  }

  /** Obtains tokens by the grant, and stores them before they are used. */
  #grant(
    found: Discovery,
    challenge: OAuthChallenge,
    scopes: ReadonlyArray<string>,
    key: DpopKey | undefined
  ): Effect.Effect<void, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      const environment = this.#environment
      const { definition, settings } = environment
      if (scopes.length > settings.maxScopes) {
        return yield* fail(
          new InsufficientScope({
            message: `${place(this.url)} names ${scopes.length} scopes, more than ${settings.maxScopes}. ` +
              "Configure those that are needed with the option scopes",
            scopes: scopes.slice(0, settings.maxScopes)
          })
        )
      }
      yield* logResource(environment, this.url)
      const isProofAsked = challenge.dpop || found.resource?.dpopRequired === true
      const dpop = key ?? (yield* keyFor(settings.dpop, found.server.dpop_signing_alg_values_supported, isProofAsked))
      const target = this.#target(
        found,
        challenge.resourceMetadata,
        withOfflineAccess(environment, found.server, scopes),
        dpop
      )
      if (definition._tag !== "AuthorizationCode") {
        yield* this.publish("refreshing")
        yield* this.save(yield* obtain(environment, target))
      } else {
        yield* this.publish("signing-in")
        const asked = Effect.flatMap(
          signIn(environment, definition.options, found, target),
          (redeem) => Effect.uninterruptible(Effect.flatMap(redeem, (tokens) => this.save(tokens)))
        )
        yield* marked(environment, this.#key, asked)
      }
      yield* this.publish("signed-in")
    }).pipe(Effect.tapError(this.#backoff.failed))
  }

  /** Renews tokens with their refresh token. `false` if there is none, or it does not work any longer. */
  #refresh(found: Discovery, tokens: SavedTokens): Effect.Effect<boolean, OAuthError> {
    const { refreshToken } = tokens
    if (refreshToken === undefined) return Effect.succeed(false)
    const target = this.#target(found, tokens.resourceMetadataUrl, tokens.requestedScopes, tokens.dpop)
    return Effect.uninterruptible(
      Effect.gen({ self: this }, function*() {
        yield* this.publish("refreshing")
        const refreshed = yield* refresh(this.#environment, target, tokens, refreshToken)
        yield* this.save(refreshed.tokens)
        if (refreshed._tag === "Refused") return false
        yield* this.publish("signed-in")
        return true
      }).pipe(Effect.tapError(this.#backoff.failed))
    )
  }

  /** Renews tokens before they expire. */
  #renew(): Effect.Effect<boolean, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      const tokens = yield* this.load()
      if (tokens === undefined || !this.#isDue(tokens, yield* now)) return true
      yield* this.#backoff.check
      const found = yield* this.#discover(tokens.resourceMetadataUrl)
      if (this.#same(tokens, found) === undefined) return false
      if (yield* this.#refresh(found, tokens)) return true
      if (this.#environment.definition._tag === "AuthorizationCode") return false
      const challenge = { ...noChallenge, resourceMetadata: tokens.resourceMetadataUrl }
      yield* this.#grant(found, challenge, tokens.requestedScopes, tokens.dpop)
      return true
    }).pipe(Effect.tapError(() =>
      Effect.map(now, (time) => {
        this.#renewalFailedAt = time
      })
    ))
  }

  /** Answers a 401. */
  #unauthorized(challenge: OAuthChallenge, used: string | undefined): Effect.Effect<boolean, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      const tokens = yield* this.load()
      // Another process that shares the store has signed in or refreshed the tokens meanwhile.
      if (tokens !== undefined && tokens.accessToken !== used) return true
      yield* this.#backoff.check
      const found = yield* this.#discover(challenge.resourceMetadata)
      const same = this.#same(tokens, found)
      const time = yield* now
      const { signInInterval } = this.#environment.settings
      const isFresh = (since: number): boolean =>
        same !== undefined && time - since < signInInterval && isValid(same, time)
      if (same !== undefined && isFresh(same.grantedAt)) {
        return yield* fail(
          new TokenRefused({
            message: `${place(this.url)} refused a token that ${quote(same.issuer)} has just issued for it` +
              `${challenge.error === undefined ? "" : ` (${quote(challenge.error)})`}. ` +
              "The server has to accept this issuer, resource and scopes; another sign-in would not help"
          })
        )
      }
      if (same !== undefined && !isFresh(same.obtainedAt) && (yield* this.#refresh(found, same))) return true
      yield* checkMark(this.#environment, this.#key, this.url)
      yield* this.#grant(found, challenge, this.#select(found, challenge, same), undefined)
      return true
    })
  }

  /**
   * Answers a 403 with `insufficient_scope`: requests the scopes that were requested before and those of the challenge
   * (2026-07-28, Step-Up Authorization Flow), unless that was done before.
   */
  #stepUp(challenge: OAuthChallenge, used: string | undefined): Effect.Effect<boolean, OAuthError> {
    return Effect.gen({ self: this }, function*() {
      const tokens = yield* this.load()
      if (tokens !== undefined && tokens.accessToken !== used) return true
      yield* this.#backoff.check
      const challenged = Scopes.parse(challenge.scope)
      const stop = (why: string) =>
        fail(
          new InsufficientScope({
            message: `${place(this.url)} requires scopes${
              challenged.length === 0 ? "" : ` (${quote(challenged.join(" "))})`
            } that its token lacks, and ${why}`,
            scopes: challenged
          })
        )
      if (challenged.length === 0) return yield* stop("it does not name them. Configure them with the option scopes")
      const found = yield* this.#discover(challenge.resourceMetadata ?? tokens?.resourceMetadataUrl)
      const same = this.#same(tokens, found)
      const scopes = Scopes.union(same?.requestedScopes ?? [], challenged)
      if (
        this.#stepUps.wereRefused(scopes) || (same !== undefined && Scopes.covers(same.requestedScopes, challenged))
      ) {
        return yield* stop(
          "they were requested before and not granted. The person or an administrator has to grant them"
        )
      }
      if (!this.#stepUps.begin(yield* now)) {
        const { maxStepUps } = this.#environment.settings
        return yield* stop(`it has required others ${maxStepUps} times within signInInterval`)
      }
      const named = challenge.resourceMetadata ?? tokens?.resourceMetadataUrl
      yield* Effect.tapError(
        this.#grant(found, { ...challenge, resourceMetadata: named }, scopes, same?.dpop),
        (error) => Effect.sync(() => this.#stepUps.failed(scopes, error))
      )
      return true
    })
  }
}
