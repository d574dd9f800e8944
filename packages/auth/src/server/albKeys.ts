/**
 * The keys of AWS load balancers: one address per key, in PEM form.
 */
import * as Effect from "effect/Effect"
import type { CryptoKey } from "jose"
import { importSPKI } from "jose/key/import"
import { Failures } from "./failures.ts"
import { type FetchOptions, fetchText, unavailable } from "./tokens/fetchDocument.ts"
import { SharedEffects } from "./tokens/sharedEffects.ts"
import type { VerifierUnavailable } from "./tokens/verifiedToken.ts"

// The id of a key becomes a part of an address.
const keyId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const maxKeys = 20
const maxFetches = 10
const maxSenders = 1_000

/**
 * Makes the function that finds the key of a token. Unknown keys are fetched, ten in 30 seconds for each network address:
 * whether a key exists is known after its fetch only. With one count for all addresses, a sender of invented keys would
 * keep out the tokens of all other senders after a change of the key.
 */
export const albKeys = (
  address: string,
  options: FetchOptions
): (
  header: { readonly [name: string]: unknown },
  sender: string | undefined
) => Effect.Effect<ReadonlyArray<CryptoKey>, VerifierUnavailable> => {
  const keys = new Map<string, CryptoKey>()
  const fetching = new SharedEffects<CryptoKey | undefined, VerifierUnavailable>()
  let counts: Failures | undefined
  const fetchKey = (id: string): Effect.Effect<CryptoKey | undefined, VerifierUnavailable> =>
    Effect.flatMap(fetchText(`${address}/${id}`, {}, options), ({ status, text }) => {
      if (status === 403 || status === 404) return Effect.undefined
      if (status !== 200) {
        return Effect.fail(
          unavailable(`the request for the key of the load balancer was answered with status ${status}`, 5)
        )
      }
      return Effect.tryPromise({
        try: async () => {
          const key = await importSPKI(text, "ES256")
          keys.set(id, key)
          if (keys.size > maxKeys) keys.delete(keys.keys().next().value!)
          return key
        },
        catch: () => unavailable("the key of the load balancer is not a public key in PEM form", 5)
      })
    })
  return ({ kid }, sender = "unknown") => {
    if (typeof kid !== "string" || !keyId.test(kid)) return Effect.succeed([])
    const known = keys.get(kid)
    if (known !== undefined) return Effect.succeed([known])
    return Effect.clockWith((clock) => {
      const pending = fetching.join(kid)
      if (pending === undefined) {
        counts ??= new Failures(clock, maxFetches, { failureInterval: 30_000, maxFailureAddresses: maxSenders })
        const seconds = counts.retryAfter(sender)
        if (seconds !== undefined) {
          return Effect.fail(unavailable("the key of the load balancer is not known yet", seconds))
        }
        counts.add(sender)
      }
      return Effect.map(pending ?? fetching.run(kid, fetchKey(kid)), (key) => key === undefined ? [] : [key])
    })
  }
}
