/**
 * Encrypts and authenticates the `requestState` that clients store between two rounds: AES-256-GCM, with keys derived
 * by HKDF. It uses WebCrypto only, so that it runs on every platform.
 */
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"

const nonceSize = 12

/**
 * A random nonce. The encrypted text starts with it and never with `-`, which would look like an option to a command
 * line: one first byte in 64 is rejected.
 */
const makeNonce = (): Bytes => {
  const nonce = globalThis.crypto.getRandomValues(new Uint8Array(nonceSize))
  return Base64Url.encode(nonce).startsWith("-") ? makeNonce() : nonce
}
const utf8 = new TextEncoder()
const text = new TextDecoder("utf-8", { fatal: true })

type Bytes = Uint8Array<ArrayBuffer>
type Key = Awaited<ReturnType<typeof globalThis.crypto.subtle.importKey>>

/** Copies bytes out of shared memory, as the types of WebCrypto require. */
const own = (bytes: Uint8Array): Bytes => new Uint8Array(bytes)

const derive = async (secret: Uint8Array): Promise<Key> => {
  const { subtle } = globalThis.crypto
  const material = await subtle.importKey("raw", own(secret), "HKDF", false, ["deriveKey"])
  const parameters = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info: utf8.encode("skein requestState") }
  return subtle.deriveKey(parameters, material, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"])
}

/** Encrypts and decrypts. A text that was encrypted for one server is not decrypted for a server of another name. */
export class RequestStateCodec {
  readonly #secrets: ReadonlyArray<Uint8Array>
  readonly #serverName: Bytes
  #keys: ReadonlyArray<Promise<Key>> | undefined = undefined

  /** Without secrets it generates one, when it is first needed. */
  constructor(server: string, secrets: ReadonlyArray<Uint8Array> = []) {
    this.#secrets = secrets
    this.#serverName = utf8.encode(server)
  }

  get #derived(): ReadonlyArray<Promise<Key>> {
    if (this.#keys !== undefined) return this.#keys
    const secrets = this.#secrets.length > 0 ? this.#secrets : [globalThis.crypto.getRandomValues(new Uint8Array(32))]
    return this.#keys = secrets.map(derive)
  }

  /** Encrypts with the first key. The nonce is random, which is safe for 2^32 texts per key. */
  async seal(plain: string): Promise<string> {
    const { crypto } = globalThis
    const iv = makeNonce()
    const key = await this.#derived[0]!
    const sealed = await crypto.subtle.encrypt(
      { name: "AES-GCM", iv, additionalData: this.#serverName },
      key,
      utf8.encode(plain)
    )
    const whole = new Uint8Array(nonceSize + sealed.byteLength)
    whole.set(iv)
    whole.set(new Uint8Array(sealed), nonceSize)
    return Base64Url.encode(whole)
  }

  /** Decrypts a text that was encrypted with one of the keys; `undefined` for any other text. */
  async open(sealed: string): Promise<string | undefined> {
    const decoded = Base64Url.decode(sealed)
    if (Result.isFailure(decoded)) return undefined
    const { subtle } = globalThis.crypto
    const parameters = {
      name: "AES-GCM",
      iv: own(decoded.success.subarray(0, nonceSize)),
      additionalData: this.#serverName
    }
    const data = own(decoded.success.subarray(nonceSize))
    for (const key of this.#derived) {
      try {
        return text.decode(await subtle.decrypt(parameters, await key, data))
      } catch {
        // It was encrypted with another key, or is not valid.
      }
    }
    return undefined
  }
}
