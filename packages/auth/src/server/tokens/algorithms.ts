/**
 * The algorithms of signatures that are accepted from others.
 *
 * Symmetric ones are not: the key of a verifier would sign tokens as well, and a public key that is used as the secret
 * of an HMAC makes a valid signature for any sender (RFC 8725, 2.1). `none` is not a signature.
 */

/** The asymmetric algorithms of RFC 7518, 8037 and 9864 that WebCrypto has everywhere. */
export const asymmetric: ReadonlyArray<string> = [
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
  "PS256",
  "PS384",
  "PS512",
  "RS256",
  "RS384",
  "RS512"
]

// Other than these, `jose` knows the algorithms of FIPS 204.
const isAsymmetric = (algorithm: string): boolean => asymmetric.includes(algorithm) || /^ML-DSA-\d+$/.test(algorithm)

/** Returns the algorithms of an option. Throws if one of them is not an asymmetric one. */
export const checkAlgorithms = (name: string, algorithms: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wrong = algorithms.find((algorithm) => !isAsymmetric(algorithm))
  if (wrong !== undefined) throw new Error(`${name}: the algorithm ${wrong} is not allowed: use an asymmetric one`)
  if (algorithms.length === 0) throw new Error(`${name}: algorithms is empty`)
  return algorithms
}
