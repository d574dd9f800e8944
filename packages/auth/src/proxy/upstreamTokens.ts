/** The tokens of the upstream that a proxy keeps: one record per grant, renewed by one caller at a time. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ProxyStoreError } from "./store.ts"
import { SignInRequired, type UpstreamToken, UpstreamTokenError, UpstreamUnavailable } from "./UpstreamToken.ts"
import { SharedEffects } from "../server/tokens/sharedEffects.ts"
import type { SealedStore } from "./sealedRecords.ts"
import type { Upstream, UpstreamTokens } from "./upstream.ts"

export interface UpstreamTokenOptions {
  readonly store: SealedStore
  readonly upstream: Upstream
  /** How long before its expiry a token is renewed, in milliseconds. */
  readonly renewBeforeMillis: number
  readonly grantMillis: number
}

/** The tokens of a grant. */
interface Kept extends UpstreamTokens {
  /** When the grant ends, in milliseconds since 1970. A renewal does not extend it. */
  readonly endsAt: number
}

/** How many sign-ins of one principal `ofPrincipal` chooses from. */
const maxSignIns = 16

const keyOf = (grant: string): string => `Upstream ${grant}`
const principalKey = (id: string): string => `Principal ${id}`

const ended = (cause?: unknown): UpstreamTokenError =>
  new UpstreamTokenError({
    reason: new SignInRequired({ message: "the sign-in has ended: the user must sign in again", cause })
  })

/** Of a person who has not signed in, or whose last sign-in has ended long ago. */
const never = (): UpstreamTokenError =>
  new UpstreamTokenError({
    reason: new SignInRequired({ message: "the sign-in has ended, or there was none: the user must sign in again" })
  })

const unavailable = (cause: ProxyStoreError): UpstreamTokenError =>
  new UpstreamTokenError({
    reason: new UpstreamUnavailable({ message: `the store of tokens is not available: ${cause.message}`, cause })
  })

/** The service of handlers, and what the proxy itself needs. */
export const makeUpstreamTokens = ({ grantMillis, renewBeforeMillis, store, upstream }: UpstreamTokenOptions) => {
  const read = (grant: string) => Effect.map(store.get(keyOf(grant)), (entry) => entry?.value as Kept | undefined)
  const save = (grant: string, tokens: Kept) => {
    const { endsAt, expiresAt, refresh } = tokens
    // A token that cannot be renewed ends its grant when it expires.
    const until = refresh === undefined && expiresAt !== undefined ? Math.min(expiresAt, endsAt) : endsAt
    return store.set(keyOf(grant), tokens, { group: grant, expiresAt: until })
  }
  const end = (grant: string) => Effect.andThen(store.removeGroup(grant), store.remove(`Grant ${grant}`))
  const isFresh = ({ expiresAt, refresh }: UpstreamTokens): boolean =>
    expiresAt === undefined || refresh === undefined || Date.now() < expiresAt - renewBeforeMillis

  /** Renews a token, unless another caller or instance has done so meanwhile. */
  const renew = (grant: string) =>
    Effect.gen(function*() {
      const tokens = yield* read(grant)
      if (tokens === undefined || isFresh(tokens)) return tokens
      const renewed = { ...yield* upstream.refresh(tokens), endsAt: tokens.endsAt }
      // The old refresh token may be dead already: nothing may interrupt the save.
      yield* save(grant, renewed)
      return renewed
    }).pipe(
      Effect.uninterruptible,
      Effect.catchTag("UpstreamError", (error) =>
        error.isFinal
          ? Effect.andThen(end(grant), Effect.fail(ended(error)))
          : Effect.fail(
            new UpstreamTokenError({ reason: new UpstreamUnavailable({ message: error.message, cause: error }) })
          ))
    )

  /** Renews a token once for all callers of this process: during an outage they do not wait for one attempt each. */
  const renewals = new SharedEffects<Kept | undefined, UpstreamTokenError | ProxyStoreError>()
  const renewed = (grant: string) => renewals.run(grant, store.withLock(`Renewal ${grant}`, renew(grant)))

  const ofGrant = (grant: string): Effect.Effect<Redacted.Redacted, UpstreamTokenError> =>
    Effect.gen(function*() {
      const kept = yield* read(grant)
      const tokens = kept === undefined || isFresh(kept)
        ? kept
        : yield* renewed(grant)
      return tokens === undefined ? yield* ended() : Redacted.make(tokens.access)
    }).pipe(Effect.catchTag("ProxyStoreError", (error) => Effect.fail(unavailable(error))))

  /** The grants of a principal, the latest first. Some of them may have ended. */
  const grantsOf = (id: string) =>
    Effect.map(store.get(principalKey(id)), (entry) => (entry?.value ?? []) as ReadonlyArray<string>)

  /** The token of the first grant that has not ended. */
  const ofFirst = (
    [grant, ...others]: ReadonlyArray<string>
  ): Effect.Effect<Redacted.Redacted, UpstreamTokenError> =>
    grant === undefined
      ? Effect.suspend(() => Effect.fail(never()))
      : Effect.catch(ofGrant(grant), (error) =>
        error.reason._tag === "SignInRequired" && others.length > 0 ? ofFirst(others) : Effect.fail(error))

  const hasToken = (token: Redacted.Redacted) => (grant: string) =>
    Effect.map(read(grant), (tokens) => tokens?.access === Redacted.value(token))

  return {
    service: {
      ofGrant,
      ofPrincipal: (id) =>
        Effect.matchEffect(grantsOf(id), {
          onFailure: (error) => Effect.fail(unavailable(error)),
          onSuccess: ofFirst
        }),
      endGrant: (grant) => Effect.mapError(end(grant), unavailable),
      refused: (id, token) =>
        Effect.mapError(
          Effect.flatMap(
            Effect.flatMap(grantsOf(id), (grants) => Effect.filter(grants, hasToken(token))),
            (grants) => Effect.forEach(grants, end, { discard: true })
          ),
          unavailable
        )
    } satisfies UpstreamToken["Service"],
    /** Whether the grant still has its upstream. */
    exists: (grant: string) => Effect.map(read(grant), (tokens) => tokens !== undefined),
    /** Stores the tokens of a new grant. */
    begin: (grant: string, principalId: string, tokens: UpstreamTokens) => {
      const endsAt = Date.now() + grantMillis
      const remember = Effect.gen(function*() {
        const grants = [grant, ...yield* grantsOf(principalId)].slice(0, maxSignIns)
        yield* store.set(principalKey(principalId), grants, { expiresAt: endsAt })
      })
      return Effect.andThen(
        save(grant, { ...tokens, endsAt }),
        // Two sign-ins of one person may end at once.
        store.withLock(principalKey(principalId), remember)
      )
    }
  }
}
