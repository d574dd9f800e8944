/**
 * What only this server can read and write, though others keep it: AES-256-GCM, with keys derived by HKDF. WebCrypto alone, so that it
 * runs wherever a server does.
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"

const nonceSize = 12
const utf8 = new TextEncoder()
const text = new TextDecoder("utf-8", { fatal: true })

type Bytes = Uint8Array<ArrayBuffer>
type Key = Awaited<ReturnType<typeof globalThis.crypto.subtle.importKey>>

/** A copy that is certainly no shared memory, as WebCrypto's types ask for. */
const own = (bytes: Uint8Array): Bytes => new Uint8Array(bytes)

const derive = async (secret: Uint8Array): Promise<Key> => {
  const { subtle } = globalThis.crypto
  const material = await subtle.importKey("raw", own(secret), "HKDF", false, ["deriveKey"])
  const parameters = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: utf8.encode("skein requestState") }
  return subtle.deriveKey(parameters, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"])
}

/** Seals and opens. What one of a server seals, one of another name does not open, whatever their keys. */
export class RequestStateCodec {
  readonly #secrets: ReadonlyArray<Uint8Array>
  readonly #about: Bytes
  #keys: ReadonlyArray<Promise<Key>> | undefined = undefined

  /** Without secrets it makes one, when it first needs one. */
  constructor(server: string, secrets: ReadonlyArray<Uint8Array> = []) {
    this.#secrets = secrets
    this.#about = utf8.encode(server)
  }

  get #derived(): ReadonlyArray<Promise<Key>> {
    if (this.#keys !== undefined) return this.#keys
    const secrets = this.#secrets.length > 0 ? this.#secrets : [globalThis.crypto.getRandomValues(new Uint8Array(32))]
    return this.#keys = secrets.map(derive)
  }

  /** Seals with the first key. The nonce is random: 2^32 seals per key are safe. */
  async seal(plain: string): Promise<string> {
    const { crypto } = globalThis
    const iv = crypto.getRandomValues(new Uint8Array(nonceSize))
    const key = await this.#derived[0]!
    const sealed = await crypto.subtle.encrypt(
      { name: "AES-GCM", iv, additionalData: this.#about },
      key,
      utf8.encode(plain)
    )
    const whole = new Uint8Array(nonceSize + sealed.byteLength)
    whole.set(iv)
    whole.set(new Uint8Array(sealed), nonceSize)
    return Base64Url.encode(whole)
  }

  /** What was sealed with one of the keys, or `undefined`. */
  async open(sealed: string): Promise<string | undefined> {
    const decoded = Base64Url.decode(sealed)
    if (Result.isFailure(decoded)) return undefined
    const { subtle } = globalThis.crypto
    const parameters = {
      name: "AES-GCM",
      iv: own(decoded.success.subarray(0, nonceSize)),
      additionalData: this.#about
    }
    const data = own(decoded.success.subarray(nonceSize))
    for (const key of this.#derived) {
      try {
        return text.decode(await subtle.decrypt(parameters, await key, data))
      } catch {
        // Another key's, or nobody's.
      }
    }
    return undefined
  }
}
