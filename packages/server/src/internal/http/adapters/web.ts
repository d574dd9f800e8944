/**
 * The adapter of an endpoint to web standards: from a `Request`, and to a `Response`. It depends on no platform.
 */
import * as Header from "@skein/protocol/Header"
import type { Principal } from "@skein/runtime/Connection"
import type * as Context from "effect/Context"
import { forwardedAddress } from "../../base/client.ts"
import { type Body, type BodyCounter, type Headers, type HttpAnswer, type HttpRequest } from "../messages/adapter.ts"
import { url, urlHostOf } from "../messages/head.ts"
import { BodyCollector, givenBody, readBefore } from "./bodyCollector.ts"
import { highWaterMark, largeAnswer, StreamingAnswer } from "./streamingAnswer.ts"

/** The values that the application supplies with a request. */
export interface RequestInput {
  /** The authenticated sender. */
  readonly principal?: Principal | undefined
  /**
   * The network address of the other end of the connection: the client, or the last proxy. A `Request` does not have it,
   * and without it all clients without a principal share the bounds, unless `trustedProxies` is set. Take it from the
   * platform, and not from a header that clients can write: `RequestVerifier` of `@skein/auth` decides by it whether a
   * header was written by a proxy.
   */
  readonly address?: string | undefined
  /**
   * The body, if it was read already: JSON, text or bytes. On Node behind Hono's adapter it is twice as fast to supply
   * it, with `await c.req.text()`; but then the application must bound its size.
   */
  readonly body?: unknown
  /** Services for the handlers of this request. */
  readonly context?: Context.Context<never> | undefined
}

/** A `Request` as an endpoint reads it. */
export class WebRequest implements HttpRequest {
  size = 0
  readonly method: string
  readonly path: string
  readonly urlHost: string | undefined
  principal: Principal | undefined
  context: Context.Context<never> | undefined
  readonly #request: Request
  readonly #answer: WebAnswer
  readonly #given: RequestInput | undefined
  readonly #trustedProxies: number

  constructor(request: Request, answer: WebAnswer, given: RequestInput | undefined, trustedProxies: number) {
    this.method = request.method
    const parts = url.exec(request.url)
    this.path = parts?.[2] ?? "/"
    this.urlHost = urlHostOf(request, parts)
    this.principal = given?.principal
    this.context = given?.context
    this.#request = request
    this.#answer = answer
    this.#given = given
    this.#trustedProxies = trustedProxies
  }

  get address(): string | undefined {
    return forwardedAddress(this.header("x-forwarded-for"), this.#trustedProxies, this.#given?.address)
  }

  get peerAddress(): string | undefined {
    return this.#given?.address
  }

  /**
   * Reads a header. A request that was made in this process, or sent over HTTP/2, may have its host in the URL only.
   */
  header(name: string): string | undefined {
    const request = this.#request
    return request.headers.get(name) ?? (name === "host" ? url.exec(request.url)?.[1] : undefined)
  }

  get query(): string | undefined {
    return url.exec(this.#request.url)?.[3]
  }

  get params(): ReadonlyArray<string> | undefined {
    let params: Array<string> | undefined
    for (const name of this.#request.headers.keys()) {
      if (name.startsWith(Header.paramKeyPrefix)) (params ??= []).push(name)
    }
    return params
  }

  read(limit: number, done: (body: Body) => void, counter: BodyCounter): void {
    if (this.#given?.body !== undefined) return done(givenBody(this.#given.body, limit))
    const { body, bodyUsed } = this.#request
    if (bodyUsed) throw new Error(readBefore)
    if (body === null) return done({ text: "" })
    const length = Number(this.header("content-length"))
    if (length > limit) {
      body.cancel().catch(() => {})
      return done({ fault: "TooLarge" })
    }
    void this.#collect(body.getReader(), length, limit, done, counter)
  }

  /** Reads a body to its end, and no further than the limit. Never fails. */
  async #collect(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    length: number,
    ...[limit, done, counter]: Parameters<HttpRequest["read"]>
  ): Promise<void> {
    const stop = (): void => void reader.cancel().catch(() => {})
    const body = new BodyCollector(this, limit, done, counter, stop)
    while (!body.isOver) {
      let chunk: Uint8Array | undefined
      try {
        chunk = (await reader.read()).value
      } catch {
        if (!body.isOver) this.#answer.left()
        return body.end({ fault: "Aborted" })
      }
      if (chunk === undefined) body.complete()
      else body.add(chunk, length)
    }
  }
}

/** The answer to a request. The `Response` is made when its head is known. */
export class WebAnswer extends StreamingAnswer implements HttpAnswer {
  readonly #request: Request
  readonly #settle: (response: Response) => void
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined
  #watched = false

  constructor(request: Request, settle: (response: Response) => void) {
    super()
    this.#request = request
    this.#settle = settle
  }

  get slow(): boolean {
    return !this.isClosed && this.#controller !== undefined && (this.#controller.desiredSize ?? 0) <= 0
  }

  /** A stream that was read or cancelled has a `desiredSize` of 0. */
  get unsent(): number {
    const size = this.#controller?.desiredSize ?? highWaterMark
    return this.isClosed && size === 0 ? 0 : highWaterMark - size
  }

  reply(status: number, headers: Headers, body: string): void {
    if (this.isClosed) return
    if (body.length > largeAnswer) return this.replyInParts(status, headers, body)
    this.#complete()
    const all = this.withAdded(headers)
    // Some statuses allow no body, not even an empty one. A server on Node would write chunks without the length, or
    // close the connection of a client of HTTP/1.0.
    const init = body === "" && status !== 204
      ? { status, headers: { ...all, "content-length": "0" } }
      : { status, headers: all }
    this.#settle(new Response(body === "" ? null : body, init))
  }

  open(status: number, headers: Headers): void {
    if (this.isClosed) return
    const stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: () => this.took(),
        cancel: () => this.left()
      },
      { highWaterMark, size: (chunk) => chunk?.byteLength ?? 0 }
    )
    this.#watch()
    this.#settle(new Response(stream, { status, headers: this.withAdded(headers) }))
  }

  protected enqueue(bytes: Uint8Array): void {
    this.#controller!.enqueue(bytes)
  }

  end(): void {
    if (this.isClosed) return
    this.#complete()
    this.#controller?.close()
    this.took()
  }

  abort(): void {
    // The end of a stream may still be unsent.
    if (this.isClosed && this.unsent === 0) return
    this.#complete()
    if (this.#controller === undefined) this.#settle(new Response(null, { status: 503 }))
    else this.#controller.error(new Error("The server closed the connection"))
    this.took()
  }

  onClose(left: () => void): void {
    if (this.isClosed) return
    this.closeListener = left
    this.#watch()
  }

  /** The client has disconnected. */
  left(): void {
    if (this.isClosed) return
    const onClose = this.closeListener
    this.#complete()
    // The response is not read, but the promise must be settled.
    if (this.#controller === undefined) this.#settle(new Response(null, { status: 499 }))
    else this.#close()
    this.took()
    onClose?.()
  }

  #close(): void {
    try {
      this.#controller?.close()
    } catch {
      // It was cancelled, and so is closed already.
    }
  }

  readonly #left = (): void => this.left()

  // Some platforms create the signal when it is first read, so only requests that suspend read it.
  #watch(): void {
    if (this.#watched) return
    this.#watched = true
    const { signal } = this.#request
    if (signal.aborted) queueMicrotask(this.#left)
    else signal.addEventListener("abort", this.#left, { once: true })
  }

  #complete(): void {
    this.isClosed = true
    this.closeListener = undefined
    if (this.#watched) this.#request.signal.removeEventListener("abort", this.#left)
  }
}
