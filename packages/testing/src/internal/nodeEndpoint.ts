/**
 * The port of a rude server: it opens, closes with every connection that it has, and opens again.
 */
import * as Effect from "effect/Effect"
import { createServer, type RequestListener, type Server } from "node:http"
import { type AddressInfo, createServer as createPort, type Server as Port } from "node:net"
import { Tap } from "./tap.ts"

/** See the module's text. */
export class Endpoint {
  readonly #http: Server
  readonly #port: Port
  readonly #taps = new Set<Tap>()
  #connections = 0

  constructor(listener: RequestListener) {
    this.#http = createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, listener)
    this.#http.on("clientError", (_, socket) => socket.destroy())
    this.#port = createPort({ allowHalfOpen: true }, (socket) => {
      const tap = new Tap(socket)
      this.#connections++
      this.#taps.add(tap)
      tap.once("close", () => this.#taps.delete(tap))
      this.#http.emit("connection", tap)
    })
  }

  /** How many connections there are now. */
  get open(): number {
    return this.#taps.size
  }

  /** How many there have been. */
  get connections(): number {
    return this.#connections
  }

  /** Opens the port, 0 for one that is free; gives its number. */
  listen(port: number): Effect.Effect<number> {
    return Effect.callback<number>((resume) => {
      const failed = (error: Error): void => resume(Effect.die(error))
      this.#port.once("error", failed)
      this.#port.listen(port, "127.0.0.1", () => {
        this.#port.off("error", failed)
        resume(Effect.succeed((this.#port.address() as AddressInfo).port))
      })
    })
  }

  /** Cuts each connection. */
  cut(reset: boolean): void {
    for (const tap of this.#taps) tap.sever(reset)
  }

  /** Closes the port and each connection, and waits until they are gone. */
  readonly close: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const over = (): void => void (this.#taps.size === 0 ? resume(Effect.void) : setImmediate(over))
    this.#port.close(over)
    this.cut(true)
  })
}
