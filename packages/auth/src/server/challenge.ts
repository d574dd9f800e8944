/**
 * Writes the `WWW-Authenticate` header of a protected resource (RFC 6750, 3; RFC 9449, 7.1; RFC 9728, 5.1).
 */

/** The parameters of a challenge. */
export interface ChallengeParams {
  readonly error?: string | undefined
  readonly error_description?: string | undefined
  readonly scope?: string | undefined
}

/** The schemes that a resource accepts. */
export interface Schemes {
  readonly bearer: boolean
  /** The algorithms of DPoP proofs, if the resource accepts them. */
  readonly dpop: ReadonlyArray<string> | undefined
}

// "Values for the "error" and "error_description" attributes MUST NOT include characters outside the set
// %x20-21 / %x23-5B / %x5D-7E" (RFC 6750, 3).
const quote = (value: string): string => `"${value.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'")}"`

const write = (scheme: string, params: object): string => {
  const all = Object.entries(params).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [`${name}=${quote(String(value))}`]
  )
  return `${scheme} ${all.join(", ")}`
}

/**
 * Makes the function that writes challenges, with the address of the metadata in each. A resource that accepts both
 * schemes challenges with both. `presented` is the scheme of the credentials that were refused: the error is in the
 * challenge of this scheme, if it is accepted.
 */
export const makeChallenge =
  ({ bearer, dpop }: Schemes, metadata: string | undefined) =>
  (params: ChallengeParams, presented: "Bearer" | "DPoP" = "Bearer"): string => {
    const { scope } = params
    const failed = bearer ? presented : "DPoP"
    const paramsOf = (scheme: string): object => ({
      ...(scheme === failed || params.error === "insufficient_scope" ? params : { scope }),
      resource_metadata: metadata
    })
    const challenges = [
      ...(bearer ? [write("Bearer", paramsOf("Bearer"))] : []),
      ...(dpop === undefined ? [] : [write("DPoP", { ...paramsOf("DPoP"), algs: dpop.join(" ") })])
    ]
    return challenges.join(", ")
  }
