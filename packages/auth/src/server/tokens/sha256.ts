/**
 * SHA-256 of a text as a function, which Node, Bun, Deno and workers with Node's modules have. Elsewhere only WebCrypto
 * has it, as a promise (`@skein/runtime/Digest`).
 */

/** The used part of `node:crypto`. */
interface NodeCrypto {
  readonly createHash: (algorithm: string) => {
    readonly update: (text: string) => { readonly digest: (encoding: "base64url") => string }
  }
  /** Since Node 20.12: half the time of `createHash` for a short text. */
  readonly hash?: (algorithm: string, text: string, encoding: "base64url") => string
  readonly X509Certificate: new(raw: Uint8Array) => {
    readonly subject: string
    readonly subjectAltName: string | undefined
    readonly issuer: string
  }
}

/** Node's module, without an import of it: undefined in browsers and most workers. */
export const nodeCrypto = (): NodeCrypto | undefined =>
  (globalThis as {
    readonly process?: { readonly getBuiltinModule?: (name: string) => NodeCrypto | undefined }
  }).process?.getBuiltinModule?.("node:crypto")

/** The hash of a text in base64url, as a function where the platform has one. Undefined elsewhere. */
export const sha256Function = (): ((text: string) => string) | undefined => {
  const crypto = nodeCrypto()
  if (crypto === undefined) return undefined
  const { createHash, hash } = crypto
  return hash === undefined
    ? (text) => createHash("sha256").update(text).digest("base64url")
    : (text) => hash("sha256", text, "base64url")
}
