/**
 * Encrypts and authenticates the `requestState` that clients store between two rounds.
 */
import * as Sealer from "@skein/runtime/Sealer"

// The characters of the hint of a sealed text: four bytes in Base64url.
const hintChars = 6

/** A text that `seal` may have returned: it has a hint, a nonce and a tag. */
const form = /^s[\w-]{44,}$/

/** A text of `seal` in the form of a sealer. */
const separate = (sealed: string): string => `${sealed.slice(1, 1 + hintChars)}.${sealed.slice(1 + hintChars)}`

/**
 * Encrypts and decrypts. A text that was encrypted for one server is not decrypted for a server of another name. Without
 * secrets it generates one, when it is first needed.
 */
export const makeRequestStateCodec = (server: string, secrets: ReadonlyArray<Uint8Array> = []) => {
  let made: Promise<Sealer.Sealer> | undefined
  const sealer = (): Promise<Sealer.Sealer> =>
    made ??= Sealer.make(
      secrets.length > 0 ? secrets : [globalThis.crypto.getRandomValues(new Uint8Array(32))],
      "requestState"
    )
  return {
    /**
     * Encrypts with the first key. The text starts with a letter, because a dash would look like an option to a command
     * line, and has characters of Base64url only.
     */
    seal: async (plain: string): Promise<string> => {
      const sealed = await (await sealer()).seal(plain, server)
      return `s${sealed.replace(".", "")}`
    },
    /** Decrypts a text that was encrypted with one of the keys; `undefined` for any other text. */
    open: async (sealed: string): Promise<string | undefined> => {
      if (!sealed.startsWith("s")) return undefined
      return (await sealer()).open(separate(sealed), server)
    },
    /** Whether a text seems to be encrypted with a key that this server lacks. */
    isForeign: async (sealed: string): Promise<boolean> =>
      form.test(sealed) && !(await sealer()).isKnown(separate(sealed))
  }
}
