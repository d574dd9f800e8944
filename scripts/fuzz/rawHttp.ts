/** HTTP over plain sockets: a server that reads requests and writes bytes, and a client that does the opposite. */
import type * as Net from "node:net"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"

/** A message as it was read: its first line, its headers by their names in lower case, and its body. */
export interface Message {
  readonly start: string
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

/** Reads messages with `Content-Length` or in chunks. Enough for the messages of Node's own client and server. */
export class MessageReader {
  #bytes = Buffer.alloc(0)
  readonly #onMessage: (message: Message) => void

  constructor(onMessage: (message: Message) => void) {
    this.#onMessage = onMessage
  }

  push(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    while (this.#next());
  }

  #next(): boolean {
    const end = this.#bytes.indexOf("\r\n\r\n")
    if (end === -1) return false
    const [start = "", ...lines] = this.#bytes.subarray(0, end).toString("latin1").split("\r\n")
    const headers = new Map(lines.map((line) => {
      const at = line.indexOf(":")
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()]
    }))
    const body = headers.get("transfer-encoding") === "chunked"
      ? this.#chunked(end + 4)
      : this.#sized(end + 4, Number(headers.get("content-length") ?? 0))
    if (body === undefined) return false
    this.#onMessage({ start, headers, body })
    return true
  }

  #sized(from: number, length: number): Buffer | undefined {
    if (this.#bytes.length < from + length) return undefined
    const body = this.#bytes.subarray(from, from + length)
    this.#bytes = this.#bytes.subarray(from + length)
    return body
  }

  #chunked(from: number): Buffer | undefined {
    const chunks: Array<Buffer> = []
    let at = from
    while (true) {
      const line = this.#bytes.indexOf("\r\n", at)
      if (line === -1) return undefined
      const size = Number.parseInt(this.#bytes.subarray(at, line).toString("latin1"), 16)
      if (this.#bytes.length < line + 2 + size + 2) return undefined
      chunks.push(this.#bytes.subarray(line + 2, line + 2 + size))
      at = line + 2 + size + 2
      if (size === 0) break
    }
    this.#bytes = this.#bytes.subarray(at)
    return Buffer.concat(chunks)
  }
}

/** The state of a connection after a message. */
export type Afterwards = "keep" | "end" | "destroy" | "reset"

/** Writes bytes in pieces, in several turns of the event loop. */
export const writeSplit = (
  socket: Net.Socket,
  pieces: ReadonlyArray<Buffer>,
  end: Afterwards
): void => {
  let at = 0
  const next = (): void => {
    if (socket.destroyed) return
    // Several at once, so that long messages in small pieces take a bounded time.
    for (let count = 0; count < 50 && at < pieces.length; count++) socket.write(pieces[at++]!)
    if (at < pieces.length) return void setImmediate(next)
    if (end === "end") socket.end()
    if (end === "destroy") setImmediate(() => socket.destroy())
    if (end === "reset") socket.resetAndDestroy()
  }
  next()
}

/** Values of headers that a parser may misread. */
export const oddValues: ReadonlyArray<string> = [
  "",
  " ",
  "a\tb",
  "\u0080ÿ",
  "é",
  "\u0001",
  "\u0000",
  "x".repeat(5_000),
  "\"",
  ",",
  ";",
  "0x10",
  "-1",
  "1e9",
  "99999999999999999999"
]

/** Picks one of the usual values most of the time, and an odd one otherwise. */
export const oddly = (random: Random.Random, usual: ReadonlyArray<string>): string =>
  random.chance(0.85) ? random.pick(usual) : random.pick(oddValues)
