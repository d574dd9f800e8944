/**
 * The text of Server-Sent Events, and the bound of the text that waits for a slow reader. JSON text has no line breaks,
 * so each message is one line of data.
 */
import type { HttpAnswer } from "./adapter.ts"

/** The headers of a stream. */
export const headers = {
  "content-type": "text/event-stream",
  // Not `no-cache`: browsers would store the stream, and repeat a DELETE to the same address when it is abandoned.
  "cache-control": "no-store, no-transform",
  // "Servers SHOULD include the `X-Accel-Buffering: no` header" (2026-07-28, streamable HTTP, receiving messages).
  "x-accel-buffering": "no"
} as const

/** A message, with the id after which a client can resume. */
export const message = (data: string, id?: string): string =>
  id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`

/** An event with a name. */
export const named = (event: string, data: string): string => `event: ${event}\ndata: ${data}\n\n`

/**
 * An event with an id and no data: a client can resume after it ("prime the client to reconnect", 2025-11-25,
 * transports).
 */
export const prime = (id: string, retry: number): string => `id: ${id}\nretry: ${retry}\ndata:\n\n`

/** How many milliseconds a client should wait before it reconnects. */
export const retry = (millis: number): string => `retry: ${millis}\n\n`

/** A comment, which keeps proxies from closing a quiet connection. */
export const keepAlive = ":\n\n"

/** Counts the text that waits in memory for a client that is slow to read a stream. */
export class SlowReaderBuffer {
  #size = 0
  readonly #max: number

  /** Up to `max` characters may wait. */
  constructor(max: number) {
    this.#max = max
  }

  /** How many characters wait. */
  get size(): number {
    return this.#size
  }

  /**
   * Writes, and returns whether the client keeps up. Returns `undefined` if too much waits already: nothing was
   * written.
   */
  write(answer: HttpAnswer, text: string): boolean | undefined {
    if (!answer.slow) this.#size = 0
    // A single large message does not mean that the client has stopped reading.
    if (this.#size > this.#max) return undefined
    if (answer.write(text)) return true
    this.#size += text.length
    return false
  }
}
