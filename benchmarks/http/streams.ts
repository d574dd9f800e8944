/**
 * Opens streams and holds them open, each on its own socket.
 */
import { connect, type Socket } from "node:net"
import { type Request, textOf } from "./httpClient.ts"

/** The number of streams that open at the same time. */
const concurrency = 64

/** How long a stream may take to open, in milliseconds. */
const openTimeout = 30_000

export class Streams {
  readonly #port: number
  /** The text after the head that marks a stream as open. */
  readonly #mark: string
  readonly #sockets = new Set<Socket>()

  constructor(port: number, mark: string) {
    this.#port = port
    this.#mark = mark
  }

  /** Opens a stream for each request, and returns the duration in seconds. */
  async open(requests: ReadonlyArray<Request>): Promise<number> {
    const begin = performance.now()
    let next = 0
    const worker = async (): Promise<void> => {
      while (next < requests.length) await this.#one(requests[next++]!)
    }
    await Promise.all(Array.from({ length: concurrency }, worker))
    return (performance.now() - begin) / 1_000
  }

  #one(request: Request): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", port: this.#port, noDelay: true })
      this.#sockets.add(socket)
      let head = ""
      socket.setEncoding("latin1")
      socket.setTimeout(openTimeout, () => socket.destroy(new Error(`a stream did not open within ${openTimeout} ms`)))
      socket.on("data", (chunk: string) => {
        head += chunk
        const end = head.indexOf("\r\n\r\n")
        if (end < 0 || (head.startsWith("HTTP/1.1 200 ") && !head.includes(this.#mark, end))) return
        if (!head.startsWith("HTTP/1.1 200 ") || !/^content-type: text\/event-stream/im.test(head)) {
          return socket.destroy(new Error(`not a stream: ${head.split("\r\n")[0]!}`))
        }
        // The stream is open. Further data is read and dropped.
        socket.removeAllListeners("data")
        socket.setTimeout(0)
        socket.resume()
        resolve()
      })
      socket.once("error", reject)
      socket.once("close", () => {
        this.#sockets.delete(socket)
        reject(new Error("a stream closed before it was open"))
      })
      socket.write(textOf(this.#port, request))
    })
  }

  /** The number of open streams. */
  get size(): number {
    return this.#sockets.size
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
