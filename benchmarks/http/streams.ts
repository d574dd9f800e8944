/**
 * Streams that are opened and then kept, each on a socket of its own.
 */
import { connect, type Socket } from "node:net"
import { type Request, textOf } from "./client.ts"

/** How many are being opened at a time. */
const atOnce = 64

/** How long one may take to open, in milliseconds. */
const patience = 30_000

export class Streams {
  readonly #port: number
  /** What must have come before a stream counts as open, beside the head. */
  readonly #mark: string
  readonly #sockets = new Set<Socket>()

  constructor(port: number, mark: string) {
    this.#port = port
    this.#mark = mark
  }

  /** Opens one more for each request; answers how long that took, in seconds. */
  async open(requests: ReadonlyArray<Request>): Promise<number> {
    const begin = performance.now()
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < requests.length) await this.#one(requests[next++]!)
    }
    await Promise.all(Array.from({ length: atOnce }, worker))
    return (performance.now() - begin) / 1_000
  }

  #one(request: Request): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port: this.#port, noDelay: true })
      this.#sockets.add(socket)
      let head = ""
      socket.setEncoding("latin1")
      socket.setTimeout(patience, () => socket.destroy(new Error(`a stream did not open within ${patience} ms`)))
      socket.on("data", (chunk: string) => {
        head += chunk
        const end = head.indexOf("\r\n\r\n")
        if (end < 0 || (head.startsWith("HTTP/1.1 200 ") && !head.includes(this.#mark, end))) return
        if (!head.startsWith("HTTP/1.1 200 ") || !/^content-type: text\/event-stream/im.test(head)) {
          return socket.destroy(new Error(`no stream, but ${head.split("\r\n")[0]!}`))
        }
        // From here on it is only held: what else comes is read and forgotten.
        socket.removeAllListeners("data")
        socket.setTimeout(0)
        socket.resume()
        resolve()
      })
      socket.once("error", reject)
      socket.once("close", () => {
        this.#sockets.delete(socket)
        reject(new Error("a stream was closed before it was open"))
      })
      socket.write(textOf(this.#port, request))
    })
  }

  /** How many are open. */
  get size(): number {
    return this.#sockets.size
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
