/**
 * The metadata of an authorization server: RFC 8414, and OpenID Connect Discovery.
 */
import { clip } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import { metadataUrls, objectOf } from "../../shared/web.ts"
import { fetchDocument, type FetchOptions, unavailable } from "./fetchDocument.ts"
import type { VerifierUnavailable } from "./verifiedToken.ts"

const retryAfterSeconds = 30

type Metadata = { readonly [name: string]: unknown }

/**
 * Finds the metadata of an issuer that `pick` accepts. The `issuer` of the metadata is compared as text (RFC 8414, 3.3). A
 * document of another issuer is not used. `wanted` is what the failure says was not found.
 */
export const findMetadata = Effect.fnUntraced(function*<A>(
  issuer: string,
  wanted: string,
  pick: (metadata: Metadata) => A | undefined,
  options: FetchOptions
) {
  let other: unknown
  let fault = ""
  for (const { href: address } of metadataUrls(new URL(issuer))) {
    const { json, redirect, status } = yield* fetchDocument(
      address,
      { headers: { accept: "application/json" } },
      options
    )
    // A proxy in front of an issuer answers so for paths that it does not know. The document may be in the next place.
    if (status >= 500 || status === 429 || redirect !== "") fault ||= `${address} has status ${status}${redirect}`
    const metadata = objectOf(json)
    if (status !== 200 || metadata === undefined) continue
    if (metadata["issuer"] !== issuer) {
      other = metadata["issuer"]
      continue
    }
    const found = pick(metadata)
    if (found !== undefined) return found
  }
  return yield* unavailable(
    fault !== ""
      ? `the metadata of ${issuer} could not be read: ${fault}`
      : other === undefined
      ? `no metadata of ${issuer} has ${wanted}`
      : `the metadata of ${issuer} is that of ${clip(JSON.stringify(other), 200)}: the option issuer must be equal`,
    retryAfterSeconds
  )
})

/** Finds an endpoint of an issuer in its metadata. */
export const discover = (
  issuer: string,
  member: "jwks_uri" | "introspection_endpoint",
  options: FetchOptions
): Effect.Effect<string, VerifierUnavailable> =>
  findMetadata(issuer, member, (metadata) => {
    const endpoint = metadata[member]
    return typeof endpoint === "string" ? endpoint : undefined
  }, options)
