/**
 * Ids of sessions and tasks. An id must not be guessable, because any client that has it has access.
 *
 * They consist of `A-Z`, `a-z` and `0-9`. A `-` at the start would look like an option to a command line, and other
 * characters would need quoting in URLs, headers or shells.
 */

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Bytes from here on are rejected, so that each character of the alphabet is equally likely.
const bytesUsed = 256 - 256 % alphabet.length

/**
 * Makes an id of `length` characters with 5.95 random bits each: 128 bits in 22 characters, 190 in 32.
 *
 * @example
 * RandomId.make(22) // "q3ZtP0aV8nLrYw2mXk5JdB"
 */
export const make = (length: number): string => {
  const codes: Array<number> = []
  while (codes.length < length) {
    for (const byte of globalThis.crypto.getRandomValues(new Uint8Array(length - codes.length))) {
      if (byte < bytesUsed) codes.push(alphabet.charCodeAt(byte % alphabet.length))
    }
  }
  // Concatenation would retain each intermediate text.
  return String.fromCharCode(...codes)
}
