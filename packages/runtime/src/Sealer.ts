/**
 * Encrypts and authenticates texts that leave the process: the state of a request that its client returns, stored tokens,
 * stored tasks. AES-256-GCM with keys that HKDF-SHA256 derives from secrets, by WebCrypto, so that it runs on every
 * platform.
 *
 * A sealed text has the form `hint.data` in Base64url. The hint of four bytes names the key, so that opening a text tries
 * one key only. The data are a random nonce of 12 bytes, the ciphertext and the tag. Random nonces are safe for 2^32 texts
 * of one secret.
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"

/** Seals with the first secret, and opens with all of them. */
export interface Sealer {
  /** Seals a text. `associatedData` binds it to its use: it is authenticated, and not secret. */
  readonly seal: (text: string, associatedData: string) => Promise<string>
  /** Opens a text. `undefined` if it was not sealed with the same associated data and one of the secrets. */
  readonly open: (sealed: string, associatedData: string) => Promise<string | undefined>
  /** Whether the hint of a text is that of the first secret. Other texts must be sealed again before theirs is removed. */
  readonly isCurrent: (sealed: string) => boolean
  /** Whether the hint of a text is that of one of the secrets. */
  readonly isKnown: (sealed: string) => boolean
}

const nonceBytes = 12
const utf8Encoder = new TextEncoder()
const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

interface DerivedKey {
  readonly hint: string
  readonly key: Awaited<ReturnType<typeof globalThis.crypto.subtle.importKey>>
}

const derive = async (secret: Uint8Array, purpose: string): Promise<DerivedKey> => {
  const { subtle } = globalThis.crypto
  const material = await subtle.importKey("raw", new Uint8Array(secret), "HKDF", false, ["deriveKey", "deriveBits"])
  const parameters = (info: string) => ({
    name: "HKDF",
    hash: "SHA-256",
    salt: new Uint8Array(),
    info: utf8Encoder.encode(`skein ${purpose} ${info}`)
  })
  const [key, hint] = await Promise.all([
    subtle.deriveKey(parameters("key"), material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]),
    subtle.deriveBits(parameters("hint"), material, 32)
  ])
  return { hint: Base64Url.encode(new Uint8Array(hint)), key }
}

const parametersOf = (iv: Uint8Array<ArrayBuffer>, associatedData: string) => ({
  name: "AES-GCM",
  iv,
  additionalData: utf8Encoder.encode(associatedData)
})

const seal = async ({ hint, key }: DerivedKey, text: string, associatedData: string): Promise<string> => {
  const { crypto } = globalThis
  const nonce = crypto.getRandomValues(new Uint8Array(nonceBytes))
  const ciphertext = await crypto.subtle.encrypt(parametersOf(nonce, associatedData), key, utf8Encoder.encode(text))
  const bytes = new Uint8Array(nonceBytes + ciphertext.byteLength)
  bytes.set(nonce)
  bytes.set(new Uint8Array(ciphertext), nonceBytes)
  return `${hint}.${Base64Url.encode(bytes)}`
}

const open = async (
  keys: ReadonlyArray<DerivedKey>,
  sealed: string,
  associatedData: string
): Promise<string | undefined> => {
  const dot = sealed.indexOf(".")
  const key = keys.find(({ hint }) => hint === sealed.slice(0, dot))
  const decoded = Base64Url.decode(sealed.slice(dot + 1))
  if (key === undefined || Result.isFailure(decoded)) return undefined
  const bytes = new Uint8Array(decoded.success)
  try {
    const parameters = parametersOf(bytes.subarray(0, nonceBytes), associatedData)
    return utf8Decoder.decode(
      await globalThis.crypto.subtle.decrypt(parameters, key.key, bytes.subarray(nonceBytes))
    )
  } catch {
    // The text was changed, or belongs to another use.
    return undefined
  }
}

/**
 * Makes a sealer. Each secret has at least 32 bytes from a random source; there is at least one. `purpose` separates the
 * keys of one secret: texts of one purpose cannot be opened for another one.
 *
 * A text must be well-formed Unicode: UTF-8 has no lone surrogates. Seal `JSON.stringify(text)` if it may contain them.
 *
 * @example
 * const sealer = await Sealer.make([secret, previousSecret], "tokens")
 * const sealed = await sealer.seal(token, "https://example.com")
 */
export const make = async (secrets: ReadonlyArray<Uint8Array>, purpose: string): Promise<Sealer> => {
  const keys = await Promise.all(secrets.map((secret) => derive(secret, purpose)))
  const first = keys[0]!
  return {
    seal: (text, associatedData) => seal(first, text, associatedData),
    open: (sealed, associatedData) => open(keys, sealed, associatedData),
    isCurrent: (sealed) => sealed.startsWith(`${first.hint}.`),
    isKnown: (sealed) => keys.some(({ hint }) => sealed.startsWith(`${hint}.`))
  }
}
