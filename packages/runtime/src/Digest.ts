/**
 * SHA-256 digests by WebCrypto, which every platform has.
 */
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Hex from "effect/encoding/Hex"

const utf8 = new TextEncoder()

/** The SHA-256 digest of bytes, or of a text in UTF-8: 32 bytes. */
export const sha256 = (data: string | Uint8Array): Effect.Effect<Uint8Array<ArrayBuffer>> =>
  Effect.map(
    Effect.promise(() =>
      // The types of WebCrypto exclude shared memory, whose bytes it refuses.
      globalThis.crypto.subtle.digest(
        "SHA-256",
        typeof data === "string" ? utf8.encode(data) : data as Uint8Array<ArrayBuffer>
      )
    ),
    (digest) => new Uint8Array(digest)
  )

/** The SHA-256 digest in Base64url, without padding: 43 characters. */
export const sha256Base64Url = (data: string | Uint8Array): Effect.Effect<string> =>
  Effect.map(sha256(data), Base64Url.encode)

/** The SHA-256 digest in lower-case hexadecimal: 64 characters. */
export const sha256Hex = (data: string | Uint8Array): Effect.Effect<string> => Effect.map(sha256(data), Hex.encode)
