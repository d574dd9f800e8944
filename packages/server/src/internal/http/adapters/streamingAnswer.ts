/**
 * The part that the answers of the web and the router adapter share: further headers, and the wait for a slow client.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { AnswerWatcher, Headers, HttpAnswer, HttpRequest } from "../messages/adapter.ts"

/** How many unread bytes of a stream make its reader slow. */
export const highWaterMark = 16 * 1024

/** The length of an answer that is sent in parts, so that its unsent part is known. */
export const largeAnswer = 64 * 1024

const encoder = /* @__PURE__ */ new TextEncoder()

export abstract class StreamingAnswer {
  isClosed = false
  protected closeListener: (() => void) | undefined = undefined
  #headers: Headers | undefined = undefined
  #watcher: AnswerWatcher | undefined = undefined
  #request: HttpRequest | undefined = undefined
  #written = 0
  #isReported = false
  /** Opened when the client takes more; set while a caller waits for that. */
  #drained: Latch.Latch | undefined = undefined

  abstract readonly slow: boolean
  abstract readonly unsent: number
  abstract open(status: number, headers: Headers): void
  abstract end(): void
  /** Adds bytes to the stream, once it is open. */
  protected abstract enqueue(bytes: Uint8Array): void

  get taken(): number {
    return this.#written - this.unsent
  }

  watch(watcher: AnswerWatcher, request: HttpRequest): void {
    this.#watcher = watcher
    this.#request = request
  }

  write(this: this & HttpAnswer, chunk: string): boolean {
    if (this.isClosed) return true
    const bytes = encoder.encode(chunk)
    this.enqueue(bytes)
    return this.#wrote(bytes.byteLength)
  }

  /** Sends a large answer as a stream, so that its unsent part is known. */
  protected replyInParts(this: this & HttpAnswer, status: number, headers: Headers, text: string): void {
    const body = encoder.encode(text)
    this.open(status, { ...headers, "content-length": String(body.byteLength) })
    for (let at = 0; at < body.byteLength; at += largeAnswer) this.enqueue(body.subarray(at, at + largeAnswer))
    this.#wrote(body.byteLength)
    this.end()
  }

  /** Counts bytes that were written, and returns whether the client keeps up. */
  #wrote(this: this & HttpAnswer, bytes: number): boolean {
    this.#written += bytes
    if (this.unsent < highWaterMark) return true
    this.#isReported = true
    this.#watcher?.unsent(this, this.#request!)
    return !this.slow
  }

  /** The client has taken a part of the stream, or has disconnected. */
  protected took(this: this & HttpAnswer): void {
    if (this.#isReported) {
      if (this.unsent > 0) this.#watcher?.unsent(this, this.#request!)
      else this.#watcher?.sent(this)
    }
    this.#drained?.openUnsafe()
    this.#drained = undefined
  }

  addHeaders(headers: Headers): void {
    this.#headers = this.#headers === undefined ? headers : { ...this.#headers, ...headers }
  }

  protected withAdded(headers: Headers): Headers {
    return this.#headers === undefined ? headers : { ...this.#headers, ...headers }
  }

  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => this.slow ? (this.#drained ??= Latch.makeUnsafe(false)).await : Effect.void)
  }
}
