/**
 * A TCP connection to the server that bypasses Node's HTTP client: it can send any bytes, stop reading, and close at
 * any moment in any way.
 */
import { connect, type Socket } from "node:net"

/** How long the whole use of a connection may take, in milliseconds. */
const connectionTimeout = 20_000

/** How a connection is closed: with an RST, by closing both directions, or by closing the sending direction first. */
export type CloseMode = "reset" | "destroy" | "end"

/** An HTTP response, or the head of one whose body is a stream. */
export interface HttpResponse {
  readonly status: number
  readonly head: string
  readonly body: string
}

export class RawConnection {
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  #text = ""
  #error: Error | undefined
  #wake: (() => void) | undefined

  constructor(port: number) {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }).setEncoding("latin1")
    this.#socket = socket
    this.#timer = setTimeout(
      () => this.#fail(new Error(`no response within ${connectionTimeout} ms`)),
      connectionTimeout
    )
    socket.on("data", (text: string) => {
      this.#text += text
      this.#wake?.()
    })
    socket.on("error", (error) => this.#fail(error))
    socket.on("end", () => this.#fail(new Error("the server closed the connection")))
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#fail(new Error("the connection is closed"))
        resolve()
      })
    })
  }

  #fail(error: Error): void {
    clearTimeout(this.#timer)
    this.#error ??= error
    this.#wake?.()
  }

  write(text: string): void {
    this.#socket.write(text, "latin1")
  }

  /** Resolves when all written bytes have been handed to the system. */
  get flushed(): Promise<void> {
    return new Promise((resolve) => this.#socket.write("", () => resolve()))
  }

  /** Stops reading, so that the server cannot send more than the system buffers. */
  stopReading(): void {
    this.#socket.pause()
  }

  /** Closes the connection and waits until it is closed. */
  async close(mode: CloseMode): Promise<void> {
    if (mode === "end") {
      this.#socket.end()
      // The remaining bytes are read and dropped, so that the server's end of the connection closes.
      this.#socket.resume()
      setTimeout(() => this.#socket.destroy(), 50)
    } else if (mode === "destroy") this.#socket.destroy()
    else this.#socket.resetAndDestroy()
    await this.closed
  }

  /** Waits until `parse` accepts the received text, and removes the part that it has consumed. */
  async #take<A>(parse: (text: string) => readonly [value: A, length: number] | undefined): Promise<A> {
    for (;;) {
      const parsed = parse(this.#text)
      if (parsed !== undefined) {
        this.#text = this.#text.slice(parsed[1])
        return parsed[0]
      }
      if (this.#error !== undefined) throw new Error(`${this.#error.message}; unread: ${JSON.stringify(this.#text)}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Reads the head of a response. */
  readHead(): Promise<HttpResponse> {
    return this.#take((text) => {
      const end = text.indexOf("\r\n\r\n")
      return end === -1
        ? undefined
        : [{ status: Number(text.slice(9, 12)), head: text.slice(0, end), body: "" }, end + 4]
    })
  }

  /** Reads a whole response, with a content length or chunked. */
  async readResponse(): Promise<HttpResponse> {
    const { head, status } = await this.readHead()
    if (/transfer-encoding: chunked/i.test(head)) return { status, head, body: await this.#readChunks() }
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const body = await this.#take((text) => text.length < length ? undefined : [text.slice(0, length), length])
    return { status, head, body }
  }

  async #readChunks(): Promise<string> {
    let body = ""
    for (;;) {
      const chunk = await this.#take((text) => {
        const start = text.indexOf("\r\n") + 2
        const end = start + Number.parseInt(text, 16)
        return start < 2 || text.length < end + 2 ? undefined : [text.slice(start, end), end + 2]
      })
      if (chunk === "") return body
      body += chunk
    }
  }

  /** Reads a stream until `mark` has arrived, and returns the text up to its end. */
  readUntil(mark: string): Promise<string> {
    return this.#take((text) => {
      const at = text.indexOf(mark)
      return at === -1 ? undefined : [text.slice(0, at + mark.length), at + mark.length]
    })
  }
}
