/**
 * Encrypts and authenticates the `requestState` that clients store between two rounds.
 */
import * as Sealer from "@skein/runtime/Sealer"

// The characters of the hint of a sealed text: four bytes in Base64url.
const hintChars = 6

/** Encrypts and decrypts. A text that was encrypted for one server is not decrypted for a server of another name. */
export class RequestStateCodec {
  readonly #secrets: ReadonlyArray<Uint8Array>
  readonly #serverName: string
  #made: Promise<Sealer.Sealer> | undefined = undefined

  /** Without secrets it generates one, when it is first needed. */
  constructor(server: string, secrets: ReadonlyArray<Uint8Array> = []) {
    this.#secrets = secrets
    this.#serverName = server
  }

  get #sealer(): Promise<Sealer.Sealer> {
    if (this.#made !== undefined) return this.#made
    const secrets = this.#secrets.length > 0 ? this.#secrets : [globalThis.crypto.getRandomValues(new Uint8Array(32))]
    return this.#made = Sealer.make(secrets, "requestState")
  }

  /**
   * Encrypts with the first key. The text starts with a letter, because a dash would look like an option to a command
   * line, and has characters of Base64url only.
   */
  async seal(plain: string): Promise<string> {
    const sealed = await (await this.#sealer).seal(plain, this.#serverName)
    return `s${sealed.replace(".", "")}`
  }

  /** Decrypts a text that was encrypted with one of the keys; `undefined` for any other text. */
  async open(sealed: string): Promise<string | undefined> {
    if (!sealed.startsWith("s")) return undefined
    const [hint, data] = [sealed.slice(1, 1 + hintChars), sealed.slice(1 + hintChars)]
    return (await this.#sealer).open(`${hint}.${data}`, this.#serverName)
  }
}
