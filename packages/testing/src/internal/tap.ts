/**
 * A connection whose bytes can be held up: `node:http` writes to it as to a socket.
 */
import type { Socket } from "node:net"
import { Duplex } from "node:stream"

/** What happens to the bytes of one response. */
export interface Plan {
  /** How many bytes go out before the connection is cut. */
  readonly cut?: { readonly after: number; readonly reset: boolean } | undefined
  /** Whether each byte goes out by itself. */
  readonly drip: boolean
}

/** See the module's text. */
export class Tap extends Duplex {
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
    // Whoever is on the other side of a rude server may be rude as well.
    socket.on("error", () => this.destroy())
  }

  /** From here on, until the next plan. */
  plan({ cut, drip }: Plan): void {
    this.#drip = drip
    this.#left = cut?.after ?? Infinity
    this.#reset = cut?.reset ?? false
    if (this.#left === 0) this.sever(this.#reset)
  }

  /** Ends the connection now. */
  sever(reset: boolean): void {
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
    // Nothing more is taken once the connection is about to be cut, not even its end.
    const after = this.#left === 0 ? () => this.sever(this.#reset) : done
    if (this.#drip) return this.#byBytes(part, after)
    this.#socket.write(part, () => after())
  }

  #byBytes(chunk: Uint8Array, done: () => void): void {
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
