/**
 * The port of a faulty HTTP server: it closes together with its connections, and can be opened again.
 */
import * as Effect from "effect/Effect"
import { once } from "node:events"
import { createServer, type RequestListener, type Server } from "node:http"
import { type AddressInfo, createServer as createPort, type Server as Port } from "node:net"
import { FaultySocket } from "./faultySocket.ts"

/** Accepts connections for an HTTP request listener, and can cut them. */
export class Listener {
  readonly #http: Server
  readonly #port: Port
  readonly #sockets = new Set<FaultySocket>()
  /** The number of connections that were accepted. */
  connectionCount = 0

  constructor(listener: RequestListener) {
    this.#http = createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, listener)
    this.#http.on("clientError", (_, socket) => socket.destroy())
    this.#port = createPort({ allowHalfOpen: true }, (accepted) => {
      const socket = new FaultySocket(accepted)
      this.connectionCount++
      this.#sockets.add(socket)
      socket.once("close", () => this.#sockets.delete(socket))
      this.#http.emit("connection", socket)
    })
  }

  /** The number of connections that are open. */
  get openConnections(): number {
    return this.#sockets.size
  }

  /** Opens the port and returns its number. With 0 the system chooses a free one. */
  listen(port: number): Effect.Effect<number> {
    return Effect.promise(async () => {
      // Rejects if the port emits an error first.
      await once(this.#port.listen(port, "127.0.0.1"), "listening")
      return (this.#port.address() as AddressInfo).port
    })
  }

  /** Closes each connection, with an RST or with a FIN. */
  closeConnections(reset: boolean): void {
    for (const socket of this.#sockets) socket.cut(reset)
  }

  /** Closes the port and each connection, and waits until they are closed. */
  readonly close: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const check = (): void => void (this.#sockets.size === 0 ? resume(Effect.void) : setImmediate(check))
    this.#port.close(check)
    this.closeConnections(true)
  })
}
