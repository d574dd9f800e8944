/**
 * Reads the bodies of requests: bytes to text, in bounded memory.
 */
import type { Body } from "../adapter.ts"

/** How a decoder reads valid UTF-8 only. A byte order mark stays, and is not valid JSON. */
export const strict = { fatal: true, ignoreBOM: true }

const decoder = /* @__PURE__ */ new TextDecoder("utf-8", strict)

/** A body that has arrived as a whole. */
export const decode = (bytes: ArrayBuffer | Uint8Array): Body => {
  try {
    return { text: decoder.decode(bytes) }
  } catch {
    return { fault: "Encoding" }
  }
}

/**
 * Collects the chunks of a body. They are copied together as they arrive: a client may send each byte as a chunk of its
 * own, and separate chunks would take 200 times the memory.
 */
export class BodyBuffer {
  #bytes: Uint8Array<ArrayBuffer> | undefined = undefined
  #size = 0

  /** How many bytes there are. */
  get size(): number {
    return this.#size
  }

  /** Adds a chunk. Most bodies are one chunk, which is not copied: it must not change afterwards. */
  add(chunk: Uint8Array<ArrayBuffer>): void {
    const size = this.#size
    this.#size += chunk.length
    if (this.#bytes === undefined) {
      this.#bytes = chunk
      return
    }
    if (this.#bytes.length < this.#size) {
      const larger = new Uint8Array(Math.max(this.#size, 2 * this.#bytes.length, 1024))
      larger.set(this.#bytes.subarray(0, size))
      this.#bytes = larger
    }
    this.#bytes.set(chunk, size)
  }

  /** All bytes, valid until the next chunk is added. */
  get bytes(): Uint8Array<ArrayBuffer> {
    const bytes = this.#bytes ?? new Uint8Array()
    return bytes.length === this.#size ? bytes : bytes.subarray(0, this.#size)
  }
}
