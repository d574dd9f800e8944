/**
 * A connection to the server, as a client without manners has it: bytes go out as they are, and it ends when and how one likes.
 */
import { connect, type Socket } from "node:net"

/** How long the server may take for what is waited for, in milliseconds. */
const patience = 20_000

/** How a connection ends: with an RST, by closing both ways, or by saying that nothing more will be said. */
export type Farewell = "reset" | "destroy" | "end"

/** A whole answer, or the head of one that goes on. */
export interface Answer {
  readonly status: number
  readonly head: string
  readonly body: string
}

export class Wire {
  /** Succeeds when the connection is over. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  #text = ""
  #over: Error | undefined
  #wake: (() => void) | undefined

  constructor(port: number) {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }).setEncoding("latin1")
    this.#socket = socket
    this.#timer = setTimeout(() => this.#end(new Error(`Nothing within ${patience} ms`)), patience)
    socket.on("data", (text: string) => {
      this.#text += text
      this.#wake?.()
    })
    socket.on("error", (error) => this.#end(error))
    socket.on("end", () => this.#end(new Error("The server has closed the connection")))
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#end(new Error("The connection is closed"))
        resolve()
      })
    })
  }

  #end(error: Error): void {
    clearTimeout(this.#timer)
    this.#over ??= error
    this.#wake?.()
  }

  write(text: string): void {
    this.#socket.write(text, "latin1")
  }

  /** Succeeds when the bytes that were written are the system's. */
  get flushed(): Promise<void> {
    return new Promise((resolve) => this.#socket.write("", () => resolve()))
  }

  /** Reads nothing more. */
  ignore(): void {
    this.#socket.pause()
  }

  /** Ends it, and waits until it is gone. */
  async leave(farewell: Farewell): Promise<void> {
    if (farewell === "end") {
      this.#socket.end()
      // What is still said to it is read, and nobody cares.
      this.#socket.resume()
      setTimeout(() => this.#socket.destroy(), 50)
    } else if (farewell === "destroy") this.#socket.destroy()
    else this.#socket.resetAndDestroy()
    await this.closed
  }

  /** Waits until the text that has come has a meaning; what it takes is gone. */
  async #take<A>(read: (text: string) => readonly [A, rest: number] | undefined): Promise<A> {
    for (;;) {
      const found = read(this.#text)
      if (found !== undefined) {
        this.#text = this.#text.slice(found[1])
        return found[0]
      }
      if (this.#over !== undefined) throw new Error(`${this.#over.message}, after ${JSON.stringify(this.#text)}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** The head of an answer. */
  head(): Promise<Answer> {
    return this.#take((text) => {
      const end = text.indexOf("\r\n\r\n")
      return end === -1
        ? undefined
        : [{ status: Number(text.slice(9, 12)), head: text.slice(0, end), body: "" }, end + 4]
    })
  }

  /** A whole answer: it says how long it is, or comes in chunks. */
  async answer(): Promise<Answer> {
    const { head, status } = await this.head()
    if (/transfer-encoding: chunked/i.test(head)) return { status, head, body: await this.#chunks() }
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const body = await this.#take((text) => text.length < length ? undefined : [text.slice(0, length), length])
    return { status, head, body }
  }

  async #chunks(): Promise<string> {
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

  /** Waits until a text has come, on a stream, and answers what came with it. */
  until(mark: string): Promise<string> {
    return this.#take((text) => {
      const at = text.indexOf(mark)
      return at === -1 ? undefined : [text.slice(0, at + mark.length), at + mark.length]
    })
  }
}
