/**
 * The keys of an authorization server: its JSON Web Key Set (RFC 7517).
 *
 * `createRemoteJWKSet` of jose also stores keys and fetches them with a cooldown. It is not used, because it has no bound for
 * the bytes of a key set, follows its address without the checks of `fetchDocument`, does not tell the issuer of a key
 * (Entra names one for each), and cannot end the use of old keys with 503 while the issuer is unavailable.
 */
import * as Options from "@skein/runtime/Options"
import * as Backoff from "@skein/runtime/Backoff"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { CryptoKey, JSONWebKeySet, JWSHeaderParameters } from "jose"
import { JOSEError, JWKSMultipleMatchingKeys } from "jose/errors"
import { createLocalJWKSet } from "jose/jwks/local"
import { fetchDocument, type FetchOptions, unavailable } from "./fetchDocument.ts"
import { SharedEffects } from "./sharedEffects.ts"
import type { VerifierUnavailable } from "./verifiedToken.ts"

/** How the keys of an issuer are stored. */
export interface KeyOptions extends FetchOptions {
  /**
   * How long keys are used while the issuer is unavailable: 24 hours by default, since they were fetched. Then tokens
   * are answered with 503 until the keys are available. Lower it where revoked keys matter more than outages.
   */
  readonly keyLifetime?: Duration.Input | undefined
}

/** How long keys are used before they are fetched again, in milliseconds. They are used meanwhile. */
const keyRefreshInterval = 600_000

/**
 * How often keys are fetched at most for a token whose key is unknown, in milliseconds. After a failure they are fetched
 * again after a second, then after twice as long each time, up to this.
 */
const keyFetchInterval = 30_000

type LocalKeys = ReturnType<typeof createLocalJWKSet>

interface KeySetDocument {
  readonly local: LocalKeys
  /** The issuers of single keys, by `kid`, where the key set names them, as that of all tenants of Entra does. */
  readonly issuers: ReadonlyMap<unknown, string>
}

interface Keys extends KeySetDocument {
  /** The keys that were found, by the algorithm and the `kid` of headers. */
  readonly known: Map<string, ReadonlyArray<CryptoKey>>
  readonly fetchedAt: number
}

// Keys that match a token without `kid`. Each may cost a verification of its signature.
const maxCandidates = 8

const candidatesOf = (local: LocalKeys, header: JWSHeaderParameters): Effect.Effect<ReadonlyArray<CryptoKey>> =>
  Effect.promise(async () => {
    try {
      return [await local(header)]
    } catch (error) {
      const found: Array<CryptoKey> = []
      if (!(error instanceof JWKSMultipleMatchingKeys)) {
        // No key matches, or the only one is malformed.
        if (error instanceof JOSEError || error instanceof DOMException || error instanceof TypeError) return found
        throw error
      }
      for await (const key of error) {
        if (found.push(key) === maxCandidates) break
      }
      return found
    }
  })

/** The issuers of keys that name one. Where two keys of one `kid` differ, neither is of a known issuer. */
const issuersOf = ({ keys }: JSONWebKeySet): ReadonlyMap<unknown, string> => {
  const issuers = new Map<unknown, string>()
  for (const key of keys) {
    const { issuer, kid } = key as { readonly issuer?: unknown; readonly kid?: unknown }
    if (typeof issuer === "string") issuers.set(kid, (issuers.get(kid) ?? issuer) === issuer ? issuer : "")
  }
  return issuers
}

/** The members of a header by which a key is found. Undefined for a `kid` that is not a text. */
const nameOf = ({ alg, kid }: { readonly alg?: unknown; readonly kid?: unknown }): string | undefined =>
  kid === undefined ? String(alg) : typeof kid === "string" ? `${String(alg)} ${kid}` : undefined

/** The keys that may have signed a token: none if the issuer has no such key. */
export type FoundKeys = ReadonlyArray<CryptoKey> | Effect.Effect<ReadonlyArray<CryptoKey>, VerifierUnavailable>

/** The keys of one issuer. They are fetched when a token needs them. */
export class KeySet {
  readonly #address: Effect.Effect<string, VerifierUnavailable>
  readonly #options: KeyOptions
  readonly #maxAge: number
  readonly #fetching = new SharedEffects<Keys, VerifierUnavailable>()
  #keys: Keys | undefined
  #nextFetch = -Infinity
  #failures = 0
  #failure: VerifierUnavailable | undefined

  /** `address` is run before each fetch, since the address in the metadata may change. */
  constructor(address: Effect.Effect<string, VerifierUnavailable>, options: KeyOptions) {
    this.#address = address
    this.#options = options
    this.#maxAge =
      Options.resolve<Pick<KeyOptions, "keyLifetime">>(options, {}, { keyLifetime: "24 hours" }).keyLifetime
  }

  /** The keys that may have signed a token with this header: at once if they were found before, and are not old. */
  readonly find = (header: JWSHeaderParameters, now: number): FoundKeys => {
    const keys = this.#keys
    const name = nameOf(header)
    const isFresh = keys !== undefined && now - keys.fetchedAt < Math.min(keyRefreshInterval, this.#maxAge)
    const known = isFresh && name !== undefined ? keys.known.get(name) : undefined
    return known ?? this.#search(header)
  }

  readonly #search = Effect.fnUntraced({ self: this as KeySet }, function*(header: JWSHeaderParameters) {
    const now = yield* Clock.currentTimeMillis
    const keys = this.#keys
    if (keys !== undefined && now - keys.fetchedAt < this.#maxAge) {
      // A token with a known key does not wait. The run has its own timeout.
      const isDue = now - keys.fetchedAt >= keyRefreshInterval && now >= this.#nextFetch
      if (isDue && this.#fetching.size === 0) yield* Effect.forkDetach(Effect.ignore(this.#fetch))
      const candidates = yield* this.#candidates(keys, header)
      if (candidates.length > 0) return candidates
      // The issuer has no such key, as far as is known.
      if (!this.#mayFetch(now) && this.#failure === undefined) return []
    }
    if (!this.#mayFetch(now)) return yield* this.#unavailable(now)
    const fetched = yield* this.#fetch
    return yield* this.#candidates(fetched, header)
  })

  #candidates({ known, local }: Keys, header: JWSHeaderParameters): Effect.Effect<ReadonlyArray<CryptoKey>> {
    return Effect.map(candidatesOf(local, header), (candidates) => {
      // Only names of keys that exist: at most as many as the key set has, for each of their algorithms.
      const name = nameOf(header)
      if (candidates.length > 0 && name !== undefined) known.set(name, candidates)
      return candidates
    })
  }

  /** The issuer of a key, if the key set names it. Empty if it names several, and the token has no `kid`. */
  issuerOf(kid: unknown): string | undefined {
    const issuers = this.#keys?.issuers
    return typeof kid === "string" || issuers === undefined || issuers.size === 0 ? issuers?.get(kid) : ""
  }

  #mayFetch(now: number): boolean {
    return this.#fetching.size > 0 || now >= this.#nextFetch
  }

  #unavailable(now: number): VerifierUnavailable {
    const seconds = Math.max(1, Math.ceil((this.#nextFetch - now) / 1000))
    return unavailable(this.#failure?.message ?? "the keys of the issuer are not available", seconds, this.#failure)
  }

  /**
   * Fetches the keys, or waits for the fetch in progress. A fetch goes on when its callers are interrupted: otherwise a
   * client that sends tokens with an unknown key and disconnects would cause a fetch each time.
   */
  readonly #fetch: Effect.Effect<Keys, VerifierUnavailable> = Effect.suspend(() =>
    this.#fetching.join("") ?? Effect.flatMap(
      Effect.forkDetach(this.#fetching.run("", this.#fetchKeys), { startImmediately: true }),
      Fiber.join
    )
  )

  readonly #fetchKeys: Effect.Effect<Keys, VerifierUnavailable> = Effect.clockWith((clock) =>
    Effect.suspend(() => this.#address).pipe(
      Effect.flatMap((address) => this.#request(address)),
      Effect.map((found) => {
        const fetchedAt = clock.currentTimeMillisUnsafe()
        this.#keys = { ...found, known: new Map(), fetchedAt }
        this.#nextFetch = fetchedAt + keyFetchInterval
        this.#failures = 0
        this.#failure = undefined
        return this.#keys
      }),
      Effect.tapError((failure) =>
        Effect.suspend(() => {
          const wait = Backoff.delay({ initialDelay: 1_000, maxDelay: keyFetchInterval }, ++this.#failures)
          this.#nextFetch = clock.currentTimeMillisUnsafe() + wait
          this.#failure = failure
          return Effect.logWarning("failed to fetch the keys of an issuer", failure)
        })
      )
    )
  )

  #request(address: string): Effect.Effect<KeySetDocument, VerifierUnavailable> {
    const headers = { accept: "application/json, application/jwk-set+json" }
    return Effect.flatMap(fetchDocument(address, { headers }, this.#options), ({ json, redirect, status }) => {
      const fault = status === 200 ? "is not a JSON Web Key Set" : `has status ${status}${redirect}`
      try {
        if (status === 200) {
          const local = createLocalJWKSet(json as JSONWebKeySet)
          return Effect.succeed({ local, issuers: issuersOf(json as JSONWebKeySet) })
        }
      } catch {
        // It says so below.
      }
      return Effect.fail(unavailable(`the key set of the issuer ${fault}: ${address}`))
    })
  }
}
