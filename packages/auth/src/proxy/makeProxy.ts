/** The authorization server of a proxy: its engine, its pages, its keys and its tokens. */
import { type HttpAnswer, networkOf, type PageRequest } from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as jose from "jose"
import { randomUUID } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { JWK } from "oidc-provider"
import { ProxyStore, ProxyStoreError } from "./store.ts"
import * as NodeOutbound from "../shared/node/NodeOutbound.ts"
import { readJwt } from "../server/tokens/parseToken.ts"
import * as TokenVerifier from "../server/tokens/TokenVerifier.ts"
import { makeBridge } from "./bridge.ts"
import { makeClientDocuments } from "./clientDocuments.ts"
import { interactionPath } from "./engine.ts"
import { sendMessage } from "./html.ts"
import { loadLibrary } from "./library.ts"
import { cookiePrefixOf, engineOf } from "./proxyEngine.ts"
import type { Options } from "./proxyOptions.ts"
import { resolve, startFailed } from "./resolveOptions.ts"
import { makeSealedStore, type SealedStore } from "./sealedRecords.ts"
import { makeSealing } from "./sealing.ts"
import { makeSignIn, type NewGrant } from "./signIn.ts"
import { makeUpstream, UpstreamError } from "./upstream.ts"
import { makeUpstreamTokens } from "./upstreamTokens.ts"

/** The paths of the authorization server, for routers and for the pages of a protection. */
export const paths: ReadonlyArray<string> = [
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/auth",
  "/auth/*",
  "/token",
  "/token/revocation",
  "/reg",
  "/reg/*",
  "/jwks",
  `${interactionPath}*`,
  "/upstream/callback"
]

const isOwnPath = (path: string): boolean =>
  paths.some((own) => own.endsWith("/*") ? path.startsWith(own.slice(0, -1)) : path === own)

/**
 * The signing key of all instances. The first instance makes it. An instance with other keys does not start: a second
 * signing key would end the access tokens of the others.
 */
const signingKey = (store: SealedStore): Effect.Effect<JWK, ProxyStoreError> =>
  store.withLock(
    "Key signing",
    Effect.gen(function*() {
      const kept = yield* store.getStrict("Key signing")
      if (kept !== undefined) {
        // It is encrypted again, so that the old key can be removed.
        if (!kept.isCurrent) yield* store.set("Key signing", kept.value)
        return kept.value as JWK
      }
      const key = yield* Effect.promise(async () => {
        const { privateKey } = await jose.generateKeyPair("ES256", { extractable: true })
        return { ...await jose.exportJWK(privateKey), kid: randomUUID(), alg: "ES256", use: "sig" } as JWK
      })
      yield* store.set("Key signing", key)
      return key
    })
  )

/** A verifier of the proxy's own tokens: the signature, and whether the grant still has its upstream. */
const verifierOf = (
  origin: string,
  key: JWK,
  exists: (grant: string) => Effect.Effect<boolean, ProxyStoreError>
): TokenVerifier.TokenVerifier => {
  const { d: _, ...publicKey } = key
  const keys = jose.createLocalJWKSet({ keys: [publicKey as jose.JWK] })
  const invalid = (message: string, problem: TokenVerifier.TokenProblem) =>
    new TokenVerifier.InvalidToken({ message, problem })
  return TokenVerifier.make({
    issuer: origin,
    acceptsOpaque: false,
    verify: (token) =>
      Effect.gen(function*() {
        if (readJwt(token) === undefined) {
          return yield* Effect.fail(invalid("the token is not a signed JWT", "Malformed"))
        }
        const { payload } = yield* Effect.tryPromise({
          try: () => jose.jwtVerify(token, keys, { issuer: origin, typ: "at+jwt", algorithms: ["ES256"] }),
          catch: (cause) =>
            cause instanceof jose.errors.JWTExpired
              ? invalid("the token has expired", "Expired")
              : invalid("the token is not one of this server", "Signature")
        })
        const { aud, client_id: clientId, cnf, exp, grant, scope, sub } = payload as jose.JWTPayload & {
          readonly cnf?: { readonly jkt?: string }
        }
        // "validate third-party token status before honoring" (2025-03-26, third-party authorization flow).
        // A token of an identity assertion has no grant, and no upstream.
        const live = grant === undefined || (yield* exists(String(grant)).pipe(
          Effect.mapError((cause) =>
            new TokenVerifier.VerifierUnavailable({ message: cause.message, retryAfterSeconds: 5, cause })
          )
        ))
        if (!live) return yield* Effect.fail(invalid("the sign-in of this token has ended", "Inactive"))
        return {
          audiences: [aud ?? []].flat(),
          expiresAt: exp,
          subject: sub,
          clientId: String(clientId),
          scopes: String(scope ?? "").split(" ").filter((one) => one !== ""),
          claims: payload,
          ...cnf?.jkt !== undefined && { confirmation: { jkt: cnf.jkt } }
        }
      })
  })
}

/** A token with the claims that all tokens of a grant have, for the id of its principal. */
const tokenOf = (
  issuer: string,
  resource: string,
  { accountId, clientId, id, scopes }: NewGrant
): TokenVerifier.VerifiedToken => ({
  issuer,
  clientId,
  scopes,
  subject: accountId,
  audiences: [resource],
  expiresAt: undefined,
  confirmation: undefined,
  claims: { iss: issuer, aud: resource, sub: accountId, client_id: clientId, scope: scopes.join(" "), grant: id }
})

/** How long a client that was refused is asked to wait, in seconds: the window has ended by then. */
const retryAfterSeconds = 60

/**
 * How many times the bound is for all clients together where their addresses are not known (`WebHttp` without
 * `address`): with the bound of one client, each could lock out the others.
 */
const unknownAddressFactor = 50

/** The networks that are counted in one minute. */
const maxNetworks = 10_000

/** Counts requests per network address, in windows of a minute. An IPv6 address counts by its first 64 bits. */
export class MinuteLimit {
  readonly #max: number
  #window = 0
  #counts = new Map<string, number>()

  constructor(maxPerMinute: number) {
    this.#max = maxPerMinute
  }

  /** Whether a request is within the limit. It counts as one. */
  allows({ address = "" }: Pick<PageRequest, "address">, now: number): boolean {
    const window = Math.floor(now / 60_000)
    // The table is new each minute, so it holds the addresses of a minute at most.
    if (window !== this.#window || this.#counts.size >= maxNetworks) [this.#window, this.#counts] = [window, new Map()]
    const network = networkOf(address)
    const count = (this.#counts.get(network) ?? 0) + 1
    this.#counts.set(network, count)
    return count <= (address === "" ? this.#max * unknownAddressFactor : this.#max)
  }
}

/** Starts the authorization server of a proxy. `principalIdOf` finds the id of the principal of a token. */
export const makeProxy = (options: Options, principalIdOf: (token: TokenVerifier.VerifiedToken) => string) =>
  Effect.gen(function*() {
    const resolved = yield* Effect.try({
      try: () => resolve(options),
      catch: startFailed
    })
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const onProblem = (event: string, detail: Readonly<Record<string, unknown>>): void =>
      void runFork(Effect.logDebug(`authorization proxy: ${event}`, detail))
    const { library, notices } = yield* Effect.tryPromise({ try: loadLibrary, catch: startFailed })
    yield* Effect.forEach(notices, (notice) => Effect.logDebug(notice), { discard: true })
    const sealing = yield* makeSealing(resolved.keys)
    const store = makeSealedStore(yield* ProxyStore, sealing)
    const key = yield* Effect.mapError(signingKey(store), startFailed)
    const upstream = makeUpstream(options.upstream, `${resolved.origin}/upstream/callback`)
    const tokens = makeUpstreamTokens({
      store,
      upstream,
      renewBeforeMillis: resolved.renewBeforeMillis,
      grantMillis: resolved.refreshTokenSeconds * 1000
    })
    const registrations = new MinuteLimit(resolved.maxSignInsPerMinute / 3)
    const signIns = new MinuteLimit(resolved.maxSignInsPerMinute)
    const consents = new MinuteLimit(resolved.maxSignInsPerMinute)
    /** The addresses of the requests that the engine is answering. */
    const addresses = new WeakMap<IncomingMessage, string | undefined>()
    const documents = makeClientDocuments({
      store,
      onProblem,
      outbound: options.outbound ?? NodeOutbound.make(),
      keepMillis: resolved.refreshTokenSeconds * 1000
    })
    const engine = yield* Effect.try({
      try: () =>
        engineOf(options, {
          allowsDocument: (request) =>
            request === undefined || registrations.allows({ address: addresses.get(request) }, Date.now()),
          documents,
          exists: tokens.exists,
          key,
          library,
          onProblem,
          resolved,
          sealing,
          store
        }),
      catch: startFailed
    })
    const { provider } = engine
    const signIn = makeSignIn({
      provider,
      store,
      sealing,
      upstream,
      options,
      resolved,
      begin: (grant, kept, client) =>
        Effect.suspend(() =>
          Effect.andThen(
            tokens.begin(grant.id, principalIdOf(tokenOf(resolved.origin, options.resource, grant)), kept),
            documents.remember(grant.clientId, client)
          )
        )
    })
    const warn = (event: string, error: Error): void =>
      void runFork(Effect.logWarning(`authorization proxy: ${event}`, { error: error.message }))
    const { name } = options.upstream
    /** Tells the person what failed, and the operator why. */
    const fail = (response: ServerResponse, error: unknown): void => {
      const advice = `Start again in the application. If it fails again, tell the operator of ${resolved.serverName}.`
      if (error instanceof UpstreamError) {
        warn(`the sign-in at ${name} failed`, error)
        return error.isFinal
          ? sendMessage(response, 403, `${name} refused the sign-in`, advice)
          : sendMessage(response, 502, `${name} does not answer`, advice)
      }
      if (error instanceof ProxyStoreError) {
        warn("the store failed", error)
        return sendMessage(response, 503, "The sign-in cannot go on now", advice)
      }
      onProblem("page", { error: error instanceof Error ? error.message : String(error) })
      sendMessage(response, 403, "This sign-in cannot go on", signIn.expired)
    }
    const bridge = makeBridge({
      origin: resolved.originUrl,
      sealing,
      cookiePrefix: cookiePrefixOf(resolved),
      onProblem,
      handle: (request, response, { address }) => {
        addresses.set(request, address)
        const path = (request.url ?? "/").split("?")[0]!
        // Each makes a record in the store, which stays until `signInTimeout`. A consent can be sent many times.
        const limit = path === "/auth"
          ? signIns
          : path.startsWith(interactionPath) && request.method === "POST"
          ? consents
          : undefined
        if (limit?.allows({ address }, Date.now()) === false) {
          onProblem("authorization.error", { error: "too many sign-ins: maxSignInsPerMinute" })
          response.setHeader("retry-after", String(retryAfterSeconds))
          return sendMessage(
            response,
            429,
            "Too many sign-ins",
            "Too many sign-ins were begun from your network. Start again in the application in a minute."
          )
        }
        const page = path === "/upstream/callback"
          ? signIn.callback
          : path.startsWith(interactionPath)
          ? signIn.interaction
          : undefined
        if (page === undefined) return engine.handle(request, response)
        page(request, response).catch((error: unknown) => fail(response, error))
      }
    })
    const pages = (request: PageRequest, answer: HttpAnswer): boolean => {
      if (!isOwnPath(request.path)) return false
      if (request.path === "/reg" && request.method === "POST" && !registrations.allows(request, Date.now())) {
        answer.reply(
          429,
          { "content-type": "application/json", "retry-after": String(retryAfterSeconds) },
          JSON.stringify({
            error: "too_many_requests",
            error_description: "too many registrations: try again in a minute"
          })
        )
      } else if (request.path === "/upstream/callback") {
        const state = new URLSearchParams(request.query).get("state")
        Effect.runPromise(signIn.signInOf(state)).then(
          (id) => bridge.answer(request, answer, id),
          (error: unknown) => {
            warn("the store failed", error instanceof Error ? error : new Error(String(error)))
            answer.reply(503, { "retry-after": "5" }, "")
          }
        )
      } else bridge.answer(request, answer)
      return true
    }
    return {
      origin: resolved.origin,
      pages,
      paths,
      tokens: tokens.service,
      verifier: verifierOf(resolved.origin, key, tokens.exists),
      provider
    }
  })
