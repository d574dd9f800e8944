/**
 * The door of an endpoint to Effect's `HttpRouter`: a request as the core takes it, and an answer that becomes a response.
 */
import * as Header from "@skein/protocol/Header"
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
import type { Body, Headers, HttpAnswer, HttpRequest } from "../adapter.ts"
import { Pieces } from "./body.ts"
import { decode } from "./utf8.ts"
import { Waiters } from "../waiters.ts"

const services = /* @__PURE__ */ Context.omit(Scope.Scope, Layer.CurrentMemoMap)

const isTooLarge = (error: HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

/**
 * Reads a body whose length nobody has said: `arrayBuffer` would keep its chunks apart until the end. What is beyond the limit is
 * dropped, until the connection is closed. However that ends, it has called back once.
 */
const collect = (
  stream: HttpServerRequest["stream"],
  limit: number,
  done: (body: Body) => void
): Effect.Effect<void, HttpServerError> => {
  let pieces: Pieces | undefined = new Pieces()
  const take = (piece: Uint8Array): void => {
    if (pieces === undefined) return
    if (pieces.size + piece.byteLength <= limit) return pieces.add(piece as Uint8Array<ArrayBuffer>)
    pieces = undefined
    done({ fault: "TooLarge" })
  }
  return Effect.onExit(
    Stream.runForEachArray(stream, (some) => Effect.sync(() => some.forEach(take))),
    (exit) =>
      Effect.sync(() => {
        if (pieces !== undefined) done(Exit.isSuccess(exit) ? decode(pieces.bytes) : { fault: "Aborted" })
      })
  )
}

/** What came of reading a body. One that the connection broke in the middle of fails as one that cannot be parsed. */
const bodyOf = (exit: Exit.Exit<ArrayBuffer, HttpServerError>): Body => {
  if (exit._tag === "Success") return decode(exit.value)
  const failed = exit.cause.reasons.find(Cause.isFailReason)
  return { fault: failed !== undefined && isTooLarge(failed.error) ? "TooLarge" : "Aborted" }
}

/** The request of a route, as the core takes it. */
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

  /** The scope of the route ends with the response, and in the session era what handles a message may go on after that. */
  get context(): Context.Context<never> {
    return this.#services ??= services(this.#all)
  }

  header(name: string): string | undefined {
    return this.#headers[name]
  }

  get params(): ReadonlyArray<string> | undefined {
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

/** How many bytes of a stream wait until its reader counts as slow. */
const room = 16 * 1024

const encoder = /* @__PURE__ */ new TextEncoder()

// The head of a stream goes out with its first chunk, and there may be nothing to say for long.
const head: readonly [Uint8Array] = [new Uint8Array(0)]

/** An answer that becomes the response of a route, as soon as its head is known. */
export class RouterAnswer implements HttpAnswer {
  over = false
  /** The fiber that reads the body, while it does. */
  reading: Fiber.Fiber<unknown, HttpServerError> | undefined = undefined
  readonly #scope: Scope.Scope
  readonly #settle: (response: Effect.Effect<HttpServerResponse.HttpServerResponse>) => void
  #also: Headers | undefined = undefined
  #onClose: (() => void) | undefined = undefined
  #chunks: Array<Uint8Array> = []
  #size = 0
  #primed = false
  #aborted = false
  /** Who waits for chunks, and who for there to be room again. */
  #taker: ((chunks: Pulled) => void) | undefined = undefined
  #waiting: Waiters | undefined = undefined

  constructor(
    scope: Scope.Scope,
    settle: (response: Effect.Effect<HttpServerResponse.HttpServerResponse>) => void
  ) {
    this.#scope = scope
    this.#settle = settle
  }

  get slow(): boolean {
    return !this.over && this.#size >= room
  }

  also(headers: Headers): void {
    this.#also = headers
  }

  reply(status: number, headers: Headers, body: string): void {
    if (this.over) return
    this.over = true
    const options = { status, headers: this.#headers(headers) }
    const response = body === "" ? HttpServerResponse.empty(options) : HttpServerResponse.text(body, options)
    this.#settle(Effect.succeed(response))
  }

  open(status: number, headers: Headers): void {
    if (this.over) return
    const all = this.#headers(headers)
    const response = HttpServerResponse.stream(Stream.fromPull(Effect.sync(() => this.#pull())), {
      status,
      headers: all,
      contentType: all["content-type"]!
    })
    // The response's stream may never be started, where the client leaves early; the scope of the route is closed in any case.
    const watched = Scope.addFinalizer(this.#scope, Effect.sync(() => this.left()))
    this.#settle(Effect.as(watched, response))
  }

  write(chunk: string): boolean {
    if (this.over) return true
    const bytes = encoder.encode(chunk)
    this.#chunks.push(bytes)
    this.#size += bytes.byteLength
    this.#give()
    return !this.slow
  }

  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => (this.#waiting ??= new Waiters()).until(() => !this.slow))
  }

  end(): void {
    if (this.over) return
    this.over = true
    this.#onClose = undefined
    this.#give()
    this.#waiting?.wake()
  }

  abort(): void {
    if (this.over) return
    this.#aborted = true
    this.#chunks = []
    // Before the head there is no connection to break that is the route's own.
    this.#settle(Effect.succeed(HttpServerResponse.empty({ status: 503 })))
    this.end()
  }

  onClose(left: () => void): void {
    if (!this.over) this.#onClose = left
  }

  /** The client is gone. */
  left(): void {
    this.reading?.interruptUnsafe()
    if (this.over) return
    const onClose = this.#onClose
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
      return Effect.succeed(head)
    })
  }

  /** What the stream says next, unless that is nothing yet. */
  #take(): Pulled | undefined {
    if (this.#aborted) return Effect.interrupt
    const chunks = this.#chunks
    if (chunks.length === 0) return this.over ? Cause.done() : undefined
    this.#chunks = []
    this.#size = 0
    this.#waiting?.wake()
    return Effect.succeed(chunks as [Uint8Array, ...Array<Uint8Array>])
  }

  #give(): void {
    const taker = this.#taker
    if (taker === undefined) return
    this.#taker = undefined
    taker(this.#take()!)
  }

  #headers(headers: Headers): Headers {
    return this.#also === undefined ? headers : { ...this.#also, ...headers }
  }
}

/** One or more chunks, or the end. */
type Pulled = Effect.Effect<readonly [Uint8Array, ...ReadonlyArray<Uint8Array>], Cause.Done>
