/**
 * The adapter of an endpoint to `node:http`.
 */
import type { Principal } from "@skein/runtime/Connection"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { isUtf8 } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { forwardedAddress } from "../../base/client.ts"
import type {
  AnswerWatcher,
  Body,
  BodyCounter,
  Headers,
  HeadFault,
  HttpAnswer,
  HttpRequest
} from "../messages/adapter.ts"
import * as head from "../messages/head.ts"
import { BodyCollector, givenBody, readBefore } from "./bodyCollector.ts"
import { highWaterMark, largeAnswer } from "./streamingAnswer.ts"

/** The state that all requests of one handler share. */
export interface Shared {
  /** The server shuts down: each connection is closed after its answer. */
  closing: boolean
  /** How many entries of `X-Forwarded-For` are trusted. */
  readonly trustedProxies: number
  /** `Expect: 100-continue` is answered when the body is read, and not before. */
  readonly expects: boolean
}

/** The values that the application supplies with a request. */
export interface RequestInput {
  /** The authenticated sender. */
  readonly principal?: Principal | undefined
  /** The body, if a parser has read it: JSON, text or bytes. Otherwise `request.body` is used, if the body was read. */
  readonly body?: unknown
}

/** The certificates of connections. Node makes a new object for each call, and parses the certificate again. */
const certificates = /* @__PURE__ */ new WeakMap<object, Uint8Array>()

/** An `IncomingMessage` as an endpoint reads it. It is the origin of the messages in it. */
export class NodeRequest implements HttpRequest {
  size = 0
  principal: Principal | undefined
  context: Context.Context<never> | undefined
  readonly path: string
  readonly headFault: HeadFault | undefined
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  readonly #shared: Shared
  readonly #given: unknown
  readonly #host: string | undefined = undefined

  constructor(message: IncomingMessage, response: ServerResponse, shared: Shared, given: RequestInput | undefined) {
    this.#message = message
    this.#response = response
    this.#shared = shared
    this.#given = given?.body
    this.principal = given?.principal
    // Routers that mount a handler below a path remove that path from `url`.
    const target = (message as { readonly originalUrl?: string | undefined }).originalUrl ?? message.url ?? "/"
    this.headFault = head.faultOf(message)
    if (target.charCodeAt(0) === 47) {
      const query = target.indexOf("?")
      this.path = query === -1 ? target : target.slice(0, query)
    } else {
      // "An origin server MUST ignore the received Host header field (if any) and instead use the host information of
      // the request-target" (RFC 9112, 3.2.2).
      const parts = head.absolute.exec(target)
      this.#host = parts?.[1]
      this.path = parts === null ? target : parts[2] === "" ? "/" : parts[2]!
    }
  }

  get params(): ReadonlyArray<string> | undefined {
    return head.paramsOf(this.#message.rawHeaders)
  }

  get query(): string | undefined {
    const target = this.#message.url ?? ""
    const at = target.indexOf("?")
    return at === -1 ? undefined : target.slice(at + 1)
  }

  get method(): string {
    return this.#message.method ?? ""
  }

  header(name: string): string | undefined {
    if (name === "host" && this.#host !== undefined) return this.#host
    const { headers } = this.#message
    const value = headers[name] ?? (name === "host" ? headers[":authority"] : undefined)
    return typeof value === "object" ? value.join(", ") : value
  }

  get headers(): Headers {
    const names = Object.keys(this.#message.headers)
    return Object.fromEntries(names.flatMap((name) => {
      const value = this.header(name)
      return value === undefined ? [] : [[name, value]]
    }))
  }

  get address(): string | undefined {
    const { headers, socket } = this.#message
    const forwarded = headers["x-forwarded-for"] as string | undefined
    return forwardedAddress(forwarded, this.#shared.trustedProxies, socket.remoteAddress)
  }

  get peerAddress(): string | undefined {
    return this.#message.socket.remoteAddress
  }

  get clientCertificate(): Uint8Array | undefined {
    const socket = this.#message.socket as TLSSocket
    if (socket.authorized !== true) return undefined
    const known = certificates.get(socket)
    if (known !== undefined) return known
    const { raw } = socket.getPeerCertificate()
    if (raw !== undefined) certificates.set(socket, raw)
    return raw
  }

  read(limit: number, done: (body: Body) => void, counter: BodyCounter): void {
    const message = this.#message
    if (this.#given !== undefined || message.readableDidRead) {
      const given = this.#given ?? (message as { readonly body?: unknown }).body
      if (given !== undefined) return done(givenBody(given, limit))
      throw new Error(readBefore)
    }
    const length = Number(message.headers["content-length"])
    if (length > limit) return done({ fault: "TooLarge" })
    // A client of HTTP/1.0 does not know this status.
    const isExpected = message.headers.expect !== undefined && message.httpVersionMinor > 0
    if (this.#shared.expects && isExpected) this.#response.writeContinue()
    const body = new BodyCollector(this, limit, done, counter, () => message.pause())
    message.on("data", (chunk: Buffer) => body.add(chunk, length))
    message.on("end", () => body.complete(decode))
    message.on("close", () => body.end({ fault: "Aborted" }))
  }
}

export const decode = (bytes: Uint8Array): Body => {
  if (!isUtf8(bytes)) return { fault: "Encoding" }
  return { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8") }
}

// The most bytes of the rest of a body that are read after the answer, so that the connection can be used again.
const short = 64 * 1024

// The most bytes of a longer body that are read before the connection is closed: a client that is still sending has not
// read the answer yet.
const lingered = 1024 * 1024

/** Whether the unread rest of a body is, or may be, too long to read. */
const isLong = ({ headers }: IncomingMessage): boolean =>
  headers.expect !== undefined || headers["transfer-encoding"] !== undefined ||
  Number(headers["content-length"]) > short

/**
 * Answers a request whose body is still arriving. The connection cannot be used again. If it were closed now, it would
 * be reset, and a client that is still sending would lose the answer. So more of the body is read and dropped.
 */
const linger = (response: ServerResponse, body: string | Uint8Array): void => {
  const { req: message } = response
  let left = lingered
  response.on("error", ignore)
  message.on("error", ignore)
  message.on("end", () => response.end())
  message.on("data", (chunk: Buffer<ArrayBuffer>) => {
    left -= chunk.length
    if (left < 0) response.destroy()
  })
  response.write(body)
  message.socket.setTimeout(2_000, () => message.socket.destroy())
  message.resume()
}

const ignore = (): void => {}

/**
 * The handle of a socket. `socket.writableLength` counts a large write as a whole until all of it is sent. Node's own
 * timeouts read these fields to find out whether a client reads; there is no public API.
 */
interface WriteQueue {
  readonly bytesWritten: number
  readonly writeQueueSize?: number | undefined
}

/** Text as it is sent: a long one as bytes, because Node reserves four times the memory of a text that waits. */
const bytesOf = (text: string): string | Uint8Array => text.length > largeAnswer ? Buffer.from(text) : text

const uncork = (socket: Socket): void => socket.uncork()

/**
 * The emitter of the `close` event of an answer's connection. An answer that is queued behind others on its connection
 * has no socket yet, and does not emit it; any number of them may be queued.
 */
const closes = (response: ServerResponse): ServerResponse | Socket =>
  response.socket === null ? response.req.socket.setMaxListeners(0) : response

/** A `ServerResponse`. */
export class NodeAnswer implements HttpAnswer {
  readonly #response: ServerResponse
  readonly #shared: Shared
  #added: Headers | undefined = undefined
  #watcher: AnswerWatcher | undefined = undefined
  #request: HttpRequest | undefined = undefined
  #isReported = false

  constructor(response: ServerResponse, shared: Shared) {
    this.#response = response
    this.#shared = shared
  }

  get isClosed(): boolean {
    const response = this.#response
    return response.writableEnded || response.destroyed || (response.socket === null && response.req.socket.destroyed)
  }

  get slow(): boolean {
    return this.#response.writableNeedDrain
  }

  watch(watcher: AnswerWatcher, request: HttpRequest): void {
    this.#watcher = watcher
    this.#request = request
  }

  /** An answer that is queued behind others on its connection waits outside of the socket. */
  get unsent(): number {
    const response = this.#response
    const { socket } = response
    if (response.writableFinished || response.destroyed) return 0
    if (socket === null) return response.req.socket.destroyed ? 0 : response.writableLength
    return socket.writableLength
  }

  get taken(): number {
    const { socket } = this.#response.req
    const handle = (socket as unknown as { readonly _handle?: WriteQueue | null | undefined })._handle
    if (handle?.writeQueueSize === undefined) return socket.bytesWritten - socket.writableLength
    return handle.bytesWritten - handle.writeQueueSize
  }

  addHeaders(headers: Headers): void {
    this.#added = this.#added === undefined ? headers : { ...this.#added, ...headers }
  }

  reply(status: number, headers: Headers, body: string): void {
    const response = this.#response
    if (this.isClosed || response.headersSent) return
    const unread = !response.req.complete && isLong(response.req)
    const isLast = unread || this.#shared.closing || headers["connection"] === "close"
    const last = isLast ? { connection: "close" } : undefined
    if (isLast) head.endConnection(response.req)
    const sent = bytesOf(body)
    const length = status === 204 ? undefined : { "content-length": Buffer.byteLength(sent) }
    response.writeHead(status, { ...this.#added, ...headers, ...length, ...last })
    // A client that sent `Expect: 100-continue` receives the status before it sends its body.
    if (unread && response.req.headers.expect === undefined) linger(response, sent)
    else this.#finish(sent)
  }

  open(status: number, headers: Headers): void {
    const response = this.#response
    if (this.isClosed || response.headersSent) return
    response.on("error", ignore)
    // Any number of fibers may wait for `drain`.
    response.setMaxListeners(0)
    if (this.#added !== undefined) headers = { ...this.#added, ...headers }
    if (this.#shared.closing) {
      head.endConnection(response.req)
      headers = { ...headers, connection: "close" }
    }
    response.writeHead(status, headers)
    // Sent in one packet with the data that is written in the same turn of the event loop.
    const { socket } = response
    if (socket !== null && socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(uncork, socket)
    }
    response.flushHeaders()
  }

  write(chunk: string): boolean {
    if (this.isClosed) return true
    const hasRoom = this.#response.write(bytesOf(chunk))
    // Many connections of one client may stay below the mark of Node, 64 KiB.
    if (!hasRoom || this.unsent > highWaterMark) this.#report()
    return hasRoom
  }

  get drained(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const response = this.#response
      if (this.isClosed || !response.writableNeedDrain) return resume(Effect.void)
      const closing = closes(response)
      const stop = (): void => {
        response.off("drain", done)
        closing.off("close", done)
      }
      const done = (): void => {
        stop()
        resume(Effect.void)
      }
      response.on("drain", done)
      closing.on("close", done)
      return Effect.sync(stop)
    })
  }

  end(): void {
    if (this.isClosed) return
    const response = this.#response
    const { req, socket } = response
    // The head has allowed keep-alive. During a shutdown, the server would wait for a next request on the connection.
    if (this.#shared.closing && socket !== null && req.httpVersionMajor === 1) {
      response.once("finish", () => socket.destroySoon())
    }
    this.#finish()
  }

  /** The unsent rest is watched. Otherwise it would be stored forever for a client that never reads. */
  #finish(body?: string | Uint8Array): void {
    const response = this.#response.end(body)
    const { socket } = response
    // Node stops reading a connection on which many short answers are queued.
    if (socket === null ? response.writableLength > short : socket.writableLength > 0) this.#report()
  }

  /** Reports the unsent part of the answer, until it was sent or the connection is closed. */
  #report(): void {
    const response = this.#response
    const watcher = this.#watcher
    if (watcher === undefined) return
    if (!this.#isReported) {
      this.#isReported = true
      const closing = closes(response)
      const sent = (): void => {
        closing.off("close", sent)
        response.off("close", sent)
        watcher.sent(this)
      }
      closing.on("close", sent)
      if (closing !== response) response.on("close", sent)
    }
    watcher.unsent(this, this.#request!)
  }

  abort(): void {
    const response = this.#response
    // An answer that is queued behind others has no socket to destroy.
    if (response.socket === null) response.req.socket.destroy()
    response.destroy()
  }

  onClose(left: () => void): void {
    const response = this.#response
    response.on("error", ignore)
    const closed = (): void => {
      if (!response.writableEnded) left()
    }
    const closing = closes(response)
    if (closing !== response) closing.once("close", closed)
    response.once("close", closed)
  }
}

/**
 * Passes a message to `handle` as a request and its answer, unless it follows an answer with `Connection: close`.
 */
export const receive = (
  message: IncomingMessage,
  response: ServerResponse,
  shared: Shared,
  given: RequestInput | undefined,
  handle: (request: NodeRequest, answer: NodeAnswer, message: IncomingMessage, response: ServerResponse) => void
): void => {
  if (head.isAfterEnd(message)) return
  const answer = new NodeAnswer(response, shared)
  const request = new NodeRequest(message, response, shared, given)
  if (request.headFault !== "Framing") return handle(request, answer, message, response)
  // Requests after this one would be a part of its body to another server.
  head.endConnection(message)
  // Node's parser may refuse the body next. Its answer would be lost after the first bytes of another.
  setImmediate(() => handle(request, answer, message, response))
}
