/**
 * The adapter of an endpoint to Effect's `HttpRouter`.
 */
import * as Header from "@skein/protocol/Header"
import { ByteBuffer } from "@skein/runtime/ByteBuffer"
import type { Principal } from "@skein/runtime/Connection"
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type { HttpServerError } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Body, decodeBody, type Headers, type HeadFault, type HttpAnswer, type HttpRequest } from "../adapter.ts"
import * as head from "./head.ts"
import { encoder, highWaterMark, StreamingAnswer } from "./streamingAnswer.ts"

const services = /* @__PURE__ */ Context.omit(Scope.Scope, Layer.CurrentMemoMap)

const isTooLarge = (error: HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

/**
 * Reads a body without a `Content-Length`: `arrayBuffer` would store its chunks separately until the end. Bytes beyond
 * the limit are dropped, until the connection is closed. It calls back once, however the reading ends.
 */
const collect = (
  stream: HttpServerRequest["stream"],
  limit: number,
  done: (body: Body) => void
): Effect.Effect<void, HttpServerError> => {
  let buffer: ByteBuffer | undefined = new ByteBuffer()
  const take = (chunk: Uint8Array): void => {
    if (buffer === undefined) return
    if (buffer.size + chunk.byteLength <= limit) return buffer.add(chunk, true)
    buffer = undefined
    done({ fault: "TooLarge" })
  }
  return Effect.onExit(
    Stream.runForEachArray(stream, (chunks) => Effect.sync(() => chunks.forEach(take))),
    (exit) =>
      Effect.sync(() => {
        if (buffer !== undefined) done(Exit.isSuccess(exit) ? decodeBody(buffer.bytes) : { fault: "Aborted" })
      })
  )
}

/** The outcome of reading a body. A body whose connection broke fails as one that cannot be parsed. */
const bodyOf = (exit: Exit.Exit<ArrayBuffer, HttpServerError>): Body => {
  if (exit._tag === "Success") return decodeBody(exit.value)
  const failed = exit.cause.reasons.find(Cause.isFailReason)
  return { fault: failed !== undefined && isTooLarge(failed.error) ? "TooLarge" : "Aborted" }
}

/** The request of `node:http` behind a request of the router. On another platform the source is a `Request`. */
const messageOf = ({ source }: HttpServerRequest): head.Message | undefined =>
  "rawHeaders" in source ? source as head.Message : undefined

/** The request of a route, as an endpoint reads it. */
export class RouterRequest implements HttpRequest {
  size = 0
  readonly principal: Principal | undefined
  readonly #request: HttpServerRequest
  readonly #headers: HttpServerRequest["headers"]
  readonly #answer: RouterAnswer
  readonly #all: Context.Context<never>
  #services: Context.Context<never> | undefined

  constructor(
    request: HttpServerRequest,
    answer: RouterAnswer,
    context: Context.Context<never>,
    principal: Principal | undefined
  ) {
    this.principal = principal
    this.#request = request
    this.#headers = request.headers
    this.#answer = answer
    this.#all = context
  }

  get headFault(): HeadFault | undefined {
    const message = messageOf(this.#request)
    if (message === undefined) return undefined
    // The router still answers requests after `Connection: close`. This one must not reach a handler.
    return head.isAfterEnd(message) ? "Framing" : head.faultOf(message)
  }

  get urlHost(): string | undefined {
    const { source } = this.#request
    return "rawHeaders" in source ? undefined : head.urlHostOf(source, head.url.exec((source as Request).url))
  }

  get method(): string {
    return this.#request.method
  }

  get path(): string {
    const { url } = this.#request
    const query = url.indexOf("?")
    return query < 0 ? url : url.slice(0, query)
  }

  get query(): string | undefined {
    const { url } = this.#request
    const query = url.indexOf("?")
    return query < 0 ? undefined : url.slice(query + 1)
  }

  /**
   * The services without the scope of the route, which closes with the response: handlers of a session may continue
   * after that.
   */
  get context(): Context.Context<never> {
    return this.#services ??= services(this.#all)
  }

  header(name: string): string | undefined {
    return this.#headers[name] ?? (name === "host" ? this.urlHost : undefined)
  }

  get params(): ReadonlyArray<string> | undefined {
    const message = messageOf(this.#request)
    if (message !== undefined) return head.paramsOf(message.rawHeaders)
    let params: Array<string> | undefined
    for (const name in this.#headers) if (name.startsWith(Header.paramKeyPrefix)) (params ??= []).push(name)
    return params
  }

  read(limit: number, done: (body: Body) => void): void {
    if (Number(this.header("content-length")) > limit) return done({ fault: "TooLarge" })
    if (this.header("transfer-encoding") !== undefined) {
      const reading = Effect.runForkWith(this.#all)(collect(this.#request.stream, limit, done))
      this.#answer.reading = reading
      reading.addObserver(() => {
        this.#answer.reading = undefined
      })
      return
    }
    const context = Context.add(this.#all, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limit))
    const reading = Effect.runForkWith(context)(this.#request.arrayBuffer)
    this.#answer.reading = reading
    reading.addObserver((exit) => {
      this.#answer.reading = undefined
      done(bodyOf(exit))
    })
  }
}

// The head of a stream is sent with its first chunk, and the first message may come much later.
const primer: readonly [Uint8Array] = [new Uint8Array(0)]

/** The answer to a request. The response of the route is made when its head is known. */
export class RouterAnswer extends StreamingAnswer implements HttpAnswer {
  /** The fiber that reads the body, while it does. */
  reading: Fiber.Fiber<unknown, HttpServerError> | undefined = undefined
  readonly #request: HttpServerRequest
  readonly #scope: Scope.Scope
  readonly #settle: (response: Effect.Effect<HttpServerResponse.HttpServerResponse>) => void
  #chunks: Array<Uint8Array> = []
  #size = 0
  #primed = false
  #aborted = false
  /** Takes the next chunks, while the stream waits for them. */
  #taker: ((chunks: Pulled) => void) | undefined = undefined

  constructor(
    request: HttpServerRequest,
    scope: Scope.Scope,
    settle: (response: Effect.Effect<HttpServerResponse.HttpServerResponse>) => void
  ) {
    super()
    this.#request = request
    this.#scope = scope
    this.#settle = settle
  }

  get slow(): boolean {
    return !this.isClosed && this.#size >= highWaterMark
  }

  reply(status: number, headers: Headers, body: string): void {
    if (this.isClosed) return
    this.isClosed = true
    const message = headers["connection"] === "close" ? messageOf(this.#request) : undefined
    if (message !== undefined) head.endConnection(message)
    const all = this.withAdded(headers)
    // Without a length Node writes chunks, or closes the connection of a client of HTTP/1.0.
    const response = body !== ""
      ? HttpServerResponse.text(body, { status, headers: all })
      : HttpServerResponse.empty({ status, headers: status === 204 ? all : { ...all, "content-length": "0" } })
    this.#settle(Effect.succeed(response))
  }

  open(status: number, headers: Headers): void {
    if (this.isClosed) return
    const all = this.withAdded(headers)
    const response = HttpServerResponse.stream(Stream.fromPull(Effect.sync(() => this.#pull())), {
      status,
      headers: all,
      contentType: all["content-type"]!
    })
    // The stream of the response is never started if the client disconnects early; the scope of the route is closed in
    // any case.
    const watched = Scope.addFinalizer(this.#scope, Effect.sync(() => this.left()))
    this.#settle(Effect.as(watched, response))
  }

  write(chunk: string): boolean {
    if (this.isClosed) return true
    const bytes = encoder.encode(chunk)
    this.#chunks.push(bytes)
    this.#size += bytes.byteLength
    this.#give()
    return !this.slow
  }

  end(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.closeListener = undefined
    this.#give()
    this.wake()
  }

  abort(): void {
    if (this.isClosed) return
    this.#aborted = true
    this.#chunks = []
    // Before the head is sent, the route has no connection of its own to close.
    this.#settle(Effect.succeed(HttpServerResponse.empty({ status: 503 })))
    this.end()
  }

  onClose(left: () => void): void {
    if (!this.isClosed) this.closeListener = left
  }

  /** The client has disconnected. */
  left(): void {
    this.reading?.interruptUnsafe()
    if (this.isClosed) return
    const onClose = this.closeListener
    this.#chunks = []
    this.end()
    onClose?.()
  }

  #pull(): Pulled {
    const wait: Pulled = Effect.callback((resume) => {
      this.#taker = resume
      return Effect.sync(() => {
        this.#taker = undefined
      })
    })
    return Effect.suspend((): Pulled => {
      if (this.#primed) return this.#take() ?? wait
      this.#primed = true
      return Effect.succeed(primer)
    })
  }

  /** The next chunks or the end of the stream; undefined if there is nothing yet. */
  #take(): Pulled | undefined {
    if (this.#aborted) return Effect.interrupt
    const chunks = this.#chunks
    if (chunks.length === 0) return this.isClosed ? Cause.done() : undefined
    this.#chunks = []
    this.#size = 0
    this.wake()
    return Effect.succeed(chunks as [Uint8Array, ...Array<Uint8Array>])
  }

  #give(): void {
    const taker = this.#taker
    if (taker === undefined) return
    this.#taker = undefined
    taker(this.#take()!)
  }
}

/** One or more chunks, or the end. */
type Pulled = Effect.Effect<readonly [Uint8Array, ...ReadonlyArray<Uint8Array>], Cause.Done>
