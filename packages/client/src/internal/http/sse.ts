/**
 * Parses an event stream (WHATWG HTML, server-sent events) incrementally and in linear time.
 *
 * No library is used, because the id of an event without data must be reported: a stream is resumed with it
 * (2025-11-25, transports: the server primes the client with "an event ID and an empty data field").
 */
import { ByteBuffer, decodeUtf8 } from "@skein/runtime/ByteBuffer"
import type { TransportError } from "@skein/runtime/TransportError"
import { connectionLost } from "../base/errors.ts"

/** Receives the events of a reader. */
export interface Listener {
  /**
   * An event is complete. `id` is the value of its own id field, if it has one. `data` is empty for an event without
   * data.
   */
  readonly event: (type: string, data: string, id: string | undefined) => void
  /** The server sent a `retry` field: how many milliseconds to wait before the stream is requested again. */
  readonly retry: (millis: number) => void
}

const lineFeed = 10
const carriageReturn = 13

const digits = /^\d+$/

/**
 * Reads one stream. It decodes line by line, and not a whole chunk: a line that is cut out of a decoded chunk keeps that
 * chunk in memory, and one event may have lines in thousands of chunks.
 */
export class Reader {
  readonly #listener: Listener
  readonly #maxMessageBytes: number
  // An incomplete line.
  readonly #partial = new ByteBuffer()
  #data: Array<string> = []
  // The number of bytes of the current event, with the names of its fields.
  #size = 0
  #type = ""
  #id: string | undefined = undefined
  #isStarted = false
  // Whether the last piece ended with CR. An LF that follows belongs to it.
  #afterCr = false

  /** `maxMessageBytes` is the longest event, with the names of its fields. */
  constructor(listener: Listener, maxMessageBytes: number) {
    this.#listener = listener
    this.#maxMessageBytes = maxMessageBytes
  }

  /**
   * Parses the next chunk. Returns an error once an event is longer than the bound. It must not be called after that.
   */
  feed(chunk: Uint8Array): TransportError | undefined {
    if (chunk.length === 0) return undefined
    let at = 0
    if (this.#afterCr) {
      this.#afterCr = false
      if (chunk[0] === lineFeed) at = 1
    }
    // The position of the next LF and of the next CR, so that no part of the chunk is searched twice.
    let lf = chunk.indexOf(lineFeed, at)
    let cr = chunk.indexOf(carriageReturn, at)
    while (lf !== -1 || cr !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr
      const length = this.#partial.size + end - at
      this.#size += end - at + 1
      if (length > 0 && this.#size > this.#maxMessageBytes) return this.#tooLong
      const line = this.#line(chunk, at, end)
      at = end + 1
      if (end === cr) {
        if (at === chunk.length) this.#afterCr = true
        else if (chunk[at] === lineFeed) at++
        cr = chunk.indexOf(carriageReturn, at)
      }
      if (lf !== -1 && lf < at) lf = chunk.indexOf(lineFeed, at)
      if (line === "") this.#dispatch()
      else this.#field(line, length)
    }
    if (at < chunk.length) {
      this.#size += chunk.length - at
      if (this.#size <= this.#maxMessageBytes) this.#partial.add(chunk.subarray(at))
    }
    return this.#size <= this.#maxMessageBytes ? undefined : this.#tooLong
  }

  get #tooLong(): TransportError {
    return connectionLost(`An event of the stream exceeds maxMessageBytes (${this.#maxMessageBytes})`)
  }

  /** The text of a line that ends in this chunk. */
  #line(chunk: Uint8Array, start: number, end: number): string {
    const partial = this.#partial
    let line: string
    if (partial.size === 0) line = start === end ? "" : decodeUtf8(chunk, start, end)
    else {
      partial.add(chunk.subarray(start, end))
      line = partial.text
      partial.clear()
    }
    if (this.#isStarted) return line
    this.#isStarted = true
    return line.charCodeAt(0) === 0xfeff ? line.slice(1) : line
  }

  #field(line: string, length: number): void {
    const colon = line.indexOf(":")
    // A comment does not count as a part of the event.
    if (colon === 0) {
      this.#size -= length + 1
      return
    }
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1)
    switch (name) {
      case "data":
        this.#data.push(value)
        return
      case "event":
        this.#type = value
        return
      case "id":
        if (!value.includes("\0")) this.#id = value
        return
      case "retry":
        if (digits.test(value)) this.#listener.retry(Number(value))
    }
  }

  #dispatch(): void {
    const data = this.#data.length === 1 ? this.#data[0]! : this.#data.join("\n")
    const [type, id, spoken] = [this.#type, this.#id, this.#data.length > 0]
    this.#size = 0
    if (!spoken && type === "" && id === undefined) return
    this.#data = []
    this.#type = ""
    this.#id = undefined
    this.#listener.event(type === "" ? "message" : type, data, id)
  }
}
