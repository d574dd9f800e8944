/**
 * Collects bytes that arrive in chunks, in one buffer: a line, an event, the body of a request or of a response.
 *
 * A peer may send each byte as a chunk of its own. A list of chunks would then take several hundred bytes of memory for
 * each byte, and a chunk of Node can keep the memory of a whole read alive. This buffer takes at most three times the
 * memory of its bytes while it grows, and twice after that.
 */

interface Utf8 {
  readonly toString: (encoding: "utf8", start: number, end: number) => string
}

const isBuffer = (globalThis as { readonly Buffer?: { readonly isBuffer?: (value: unknown) => boolean } }).Buffer
  ?.isBuffer

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true })

/**
 * Decodes a part of a chunk. Bytes that are not UTF-8 become U+FFFD, and a byte order mark stays. The text does not
 * keep the chunk alive.
 */
export const decodeUtf8 = (bytes: Uint8Array, start = 0, end = bytes.length): string =>
  isBuffer?.(bytes) === true
    ? (bytes as unknown as Utf8).toString("utf8", start, end)
    : decoder.decode(bytes.subarray(start, end))

/** The smallest buffer that chunks are copied to. */
const minCapacity = 1_024

/** Collects chunks. */
export class ByteBuffer {
  #bytes: Uint8Array | undefined = undefined
  #size = 0
  // Whether `#bytes` is the first chunk itself, and not a copy.
  #isShared = false

  /** How many bytes there are. */
  get size(): number {
    return this.#size
  }

  /** Adds a copy of a chunk. A stable chunk never changes: it is not copied if it remains the only one. */
  add(chunk: Uint8Array, isStable = false): void {
    if (chunk.length === 0) return
    const size = this.#size
    this.#size += chunk.length
    if (isStable && size === 0) {
      this.#bytes = chunk
      this.#isShared = true
      return
    }
    const bytes = this.#bytes
    if (bytes === undefined || this.#isShared || bytes.length < this.#size) {
      const larger = new Uint8Array(Math.max(this.#size, 2 * size, minCapacity))
      if (size > 0) larger.set(bytes!.subarray(0, size))
      this.#bytes = larger
      this.#isShared = false
    }
    this.#bytes!.set(chunk, size)
  }

  /** All bytes, valid until the next chunk is added. */
  get bytes(): Uint8Array {
    const bytes = this.#bytes ?? new Uint8Array()
    return bytes.length === this.#size ? bytes : bytes.subarray(0, this.#size)
  }

  /** All bytes as text, decoded by `decodeUtf8`. */
  get text(): string {
    return this.#bytes === undefined ? "" : decodeUtf8(this.#bytes, 0, this.#size)
  }

  /** Removes all bytes, and keeps the memory for the next ones if it is at most `keptBytes`: 64 KiB by default. */
  clear(keptBytes = 65_536): void {
    this.#size = 0
    if (this.#isShared || (this.#bytes?.length ?? 0) > keptBytes) this.#bytes = undefined
    this.#isShared = false
  }
}
