/**
 * The part that the answers of the web and the router adapter share: further headers, and the wait for a slow client.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Headers } from "../adapter.ts"

/** How many unread bytes of a stream make its reader slow. */
export const highWaterMark = 16 * 1024

export const encoder = /* @__PURE__ */ new TextEncoder()

export abstract class StreamingAnswer {
  isClosed = false
  protected closeListener: (() => void) | undefined = undefined
  #headers: Headers | undefined = undefined
  /** Opened when the client takes more; set while a caller waits for that. */
  #drained: Latch.Latch | undefined = undefined

  abstract readonly slow: boolean

  addHeaders(headers: Headers): void {
    this.#headers = headers
  }

  protected withAdded(headers: Headers): Headers {
    return this.#headers === undefined ? headers : { ...this.#headers, ...headers }
  }

  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => this.slow ? (this.#drained ??= Latch.makeUnsafe(false)).await : Effect.void)
  }

  protected wake(): void {
    this.#drained?.openUnsafe()
    this.#drained = undefined
  }
}
