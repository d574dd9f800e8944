/**
 * Collects the body of a request from its parts, for all adapters.
 */
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import { type Body, type BodyCounter, type BodyFault, decodeBody, type HttpRequest } from "../messages/adapter.ts"

const encoder = /* @__PURE__ */ new TextEncoder()

/** The problem of a request whose body the application has read without passing it on. */
export const readBefore = "the body of the request was already read: pass it as `body`"

/** A body that was read by the application: JSON, text or bytes. */
export const givenBody = (body: unknown, limit: number): Body => {
  if (body instanceof Uint8Array || body instanceof ArrayBuffer) {
    return body.byteLength > limit ? { fault: "TooLarge" } : decodeBody(body)
  }
  const text = typeof body === "string" ? body : JSON.stringify(body)
  // A character has at most three bytes.
  const isTooLarge = 3 * text.length > limit && encoder.encode(text).byteLength > limit
  return isTooLarge ? { fault: "TooLarge" } : { text }
}

/** The reading of one body, which ends once: with its text, at the limit, or when the counter drops it. */
export class BodyCollector {
  readonly #request: HttpRequest
  readonly #limit: number
  readonly #done: (body: Body) => void
  readonly #counter: BodyCounter
  readonly #stop: (() => void) | undefined
  /** The parts that have arrived; undefined when it has ended. */
  #buffer: ByteBuffer | undefined = new ByteBuffer()

  /** `stop` is called if the rest of the body is not needed. */
  constructor(
    request: HttpRequest,
    limit: number,
    done: (body: Body) => void,
    counter: BodyCounter,
    stop?: (() => void) | undefined
  ) {
    this.#request = request
    this.#limit = limit
    this.#done = done
    this.#counter = counter
    this.#stop = stop
  }

  /** Whether no further part is needed. */
  get isOver(): boolean {
    return this.#buffer === undefined
  }

  /** Adds a part. `length` is the announced length of the body, not a number if it is chunked. */
  add(chunk: Uint8Array, length: number): void {
    const buffer = this.#buffer
    if (buffer === undefined) return
    if (buffer.size + chunk.byteLength > this.#limit) return this.fail("TooLarge")
    buffer.add(chunk, true)
    if (buffer.size !== length) this.arrived(chunk.byteLength)
  }

  /** Counts a part, after which more is expected. */
  arrived(bytes: number): void {
    this.#counter.arrived(this.#request, bytes, () => this.fail("Dropped"))
  }

  /** Ends the reading with the parts. */
  complete(decode: (bytes: Uint8Array) => Body = decodeBody): void {
    if (this.#buffer !== undefined) this.end(decode(this.#buffer.bytes))
  }

  /** Ends the reading, and stops the parts that would follow. */
  fail(fault: BodyFault): void {
    this.#stop?.()
    this.end({ fault })
  }

  end(body: Body): void {
    if (this.#buffer === undefined) return
    this.#buffer = undefined
    this.#done(body)
  }
}
