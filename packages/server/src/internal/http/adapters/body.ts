/**
 * What came of a body. Its pieces are copied together as they come: a client may send each byte as a chunk of its own, and as they are
 * they would take 200 times the room.
 */
export class Pieces {
  #bytes: Uint8Array<ArrayBuffer> | undefined = undefined
  #size = 0

  /** How many bytes there are. */
  get size(): number {
    return this.#size
  }

  /** Most bodies are one piece, which is not copied: it must not change any more. */
  add(piece: Uint8Array<ArrayBuffer>): void {
    const size = this.#size
    this.#size += piece.length
    if (this.#bytes === undefined) {
      this.#bytes = piece
      return
    }
    if (this.#bytes.length < this.#size) {
      const larger = new Uint8Array(Math.max(this.#size, 2 * this.#bytes.length, 1024))
      larger.set(this.#bytes.subarray(0, size))
      this.#bytes = larger
    }
    this.#bytes.set(piece, size)
  }

  /** All of them, while nothing is added. */
  get bytes(): Uint8Array<ArrayBuffer> {
    const bytes = this.#bytes ?? new Uint8Array()
    return bytes.length === this.#size ? bytes : bytes.subarray(0, this.#size)
  }
}
