/**
 * SHA-256 of a text. Node, Bun, Deno and workers with Node's modules have it as a function. Elsewhere only WebCrypto has
 * it, as a promise.
 */
import * as Effect from "effect/Effect"
import { encode } from "jose/base64url"

/** What is used of `node:crypto`, where the platform has it. */
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

/** The hash of a text in base64url, on every platform. */
export const sha256 = (text: string): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))),
    (digest) => encode(new Uint8Array(digest))
  )
