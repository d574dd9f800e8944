/**
 * UTF-8 that comes in chunks, as a `TextDecoder` reads a stream of it.
 *
 * One that reads a stream is dear: Node makes a converter of ICU for each. Nearly every chunk of JSON or of events ends where a
 * character does, and such a one is read by itself, with a decoder that all bodies share.
 */

// Only what begins a body may begin with a byte order mark, which is no text.
const first = new TextDecoder()
const later = new TextDecoder("utf-8", { ignoreBOM: true })

/** Reads the chunks of one body. */
export class Utf8 {
  #begun = false
  // From the first chunk that ends within a character, or may.
  #stream: typeof later | undefined = undefined

  /** The text that a chunk completes. */
  read(chunk: Uint8Array): string {
    const { length } = chunk
    if (length === 0) return ""
    const begun = this.#begun
    this.#begun = true
    if (this.#stream === undefined) {
      // After ASCII nothing is left over.
      if (chunk[length - 1]! < 0x80) return (begun ? later : first).decode(chunk)
      this.#stream = new TextDecoder("utf-8", { ignoreBOM: begun })
    }
    return this.#stream.decode(chunk, { stream: true })
  }

  /** What is left over when the body ends: U+FFFD for a character that is not whole. */
  end(): string {
    return this.#stream === undefined ? "" : this.#stream.decode()
  }
}
