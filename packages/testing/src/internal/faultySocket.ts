/**
 * A duplex between `node:http` and a socket that can cut the connection after a number of bytes and write byte by byte.
 */
import type { Socket } from "node:net"
import { Duplex } from "node:stream"

/** The faults of the bytes of one response. */
export interface ByteFaults {
  /** Cuts the connection after that many bytes. */
  readonly cut?: { readonly afterBytes: number; readonly reset: boolean } | undefined
  /** Whether each byte is written separately. */
  readonly drip: boolean
}

/** Passes bytes between `node:http` and a socket, and applies the faults of the current response. */
export class FaultySocket extends Duplex {
  readonly #socket: Socket
  #left = Infinity
  #reset = false
  #drip = false

  constructor(socket: Socket) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on("data", (chunk) => {
      if (!this.push(chunk)) socket.pause()
    })
    socket.on("end", () => this.push(null))
    socket.on("close", () => this.destroy())
    // The client may reset the connection as well.
    socket.on("error", () => this.destroy())
  }

  /** Sets the faults of the bytes that are written from now on. */
  setFaults({ cut, drip }: ByteFaults): void {
    this.#drip = drip
    this.#left = cut?.afterBytes ?? Infinity
    this.#reset = cut?.reset ?? false
    if (this.#left === 0) this.cut(this.#reset)
  }

  /** Closes the connection now. */
  cut(reset: boolean): void {
    if (reset && !this.#socket.destroyed) this.#socket.resetAndDestroy()
    else this.#socket.end()
    this.destroy()
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    const part = chunk.subarray(0, Math.min(chunk.length, this.#left))
    this.#left -= part.length
    // Once the connection is about to be cut, `node:http` can write nothing more and cannot end it: `done` is never
    // called.
    const written = this.#left === 0 ? () => this.cut(this.#reset) : done
    if (this.#drip) return this.#writeByteByByte(part, written)
    this.#socket.write(part, () => written())
  }

  #writeByteByByte(chunk: Uint8Array, done: () => void): void {
    let at = 0
    const next = (): void => {
      if (at === chunk.length || this.#socket.destroyed) return done()
      this.#socket.write(chunk.subarray(at, ++at))
      setImmediate(next)
    }
    next()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (!this.#socket.writableEnded) this.#socket.destroy()
    else this.#socket.destroySoon()
    done(error)
  }
}
