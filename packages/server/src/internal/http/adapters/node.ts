/**
 * The door of `node:http`: requests and answers as the core of HTTP takes them.
 */
import type { Principal } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { isUtf8 } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Body, Headers, HttpAnswer, HttpRequest } from "../adapter.ts"
import { Pieces } from "./body.ts"

/** What the answers of one handler share. */
export interface Shared {
  /** The server ends: each connection is closed after its answer. */
  closing: boolean
  /** A client that asks first whether it may send its body is told so when the body is read, and not before. */
  readonly expects: boolean
  /** How long a client may take nothing of an answer that is complete, in milliseconds. */
  readonly sendTimeout: number
}

/** What a host has found out about a request before it gave it away. */
export interface RequestInput {
  /** Who makes it. */
  readonly principal?: Principal | undefined
  /** Its body, where a parser has read it: JSON, text or bytes. Otherwise `request.body` is used, if the body was read. */
  readonly body?: unknown
}

const absolute = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)([^?#]*)/i

const isHost = (name: string): boolean => name.length === 4 && name.toLowerCase() === "host"

const isParam = (name: string): boolean =>
  name.length > 10 && name.charCodeAt(3) === 45 && name.slice(0, 10).toLowerCase() === "mcp-param-"

/** An `IncomingMessage`. It is the origin of its messages, and found by handlers as such. */
export class NodeRequest implements HttpRequest {
  size = 0
  principal: Principal | undefined
  readonly path: string
  readonly params: ReadonlyArray<string> | undefined
  readonly #message: IncomingMessage
  readonly #response: ServerResponse
  readonly #shared: Shared
  readonly #given: unknown
  readonly #host: string | undefined

  constructor(message: IncomingMessage, response: ServerResponse, shared: Shared, given: RequestInput | undefined) {
    this.#message = message
    this.#response = response
    this.#shared = shared
    this.#given = given?.body
    this.principal = given?.principal
    // Routers that mount a handler below a path cut that from `url`.
    const target = (message as { readonly originalUrl?: string | undefined }).originalUrl ?? message.url ?? "/"
    let host: string | undefined
    if (target.charCodeAt(0) === 47) {
      const query = target.indexOf("?")
      this.path = query === -1 ? target : target.slice(0, query)
    } else {
      // "An origin server MUST ignore the received Host header field and instead use the host information of the request-target"
      const parts = absolute.exec(target)
      host = parts === null ? "" : parts[1]!
      this.path = parts === null ? target : parts[2] === "" ? "/" : parts[2]!
    }
    const { rawHeaders } = message
    let hosts = 0
    let params: Array<string> | undefined
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at]!
      if (isHost(name)) hosts++
      else if (isParam(name)) (params ??= []).push(name.toLowerCase())
    }
    this.params = params
    // Node keeps the first of several: what is between may have used another.
    this.#host = hosts > 1 ? "" : host
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

  read(limit: number, done: (body: Body) => void): void {
    const message = this.#message
    if (this.#given !== undefined || message.readableDidRead) {
      return done(bodyOf(this.#given ?? (message as { readonly body?: unknown }).body, limit))
    }
    if (Number(message.headers["content-length"]) > limit) return done({ fault: "TooLarge" })
    if (this.#shared.expects && message.headers.expect !== undefined) this.#response.writeContinue()
    read(message, limit, done)
  }
}

/** A body that somebody else has read. Throws where they kept it. */
const bodyOf = (body: unknown, limit: number): Body => {
  if (body === undefined) {
    throw new Error("The body was read before, and is not in `request.body`: hand it on as `body`")
  }
  if (body instanceof Uint8Array) return body.length > limit ? { fault: "TooLarge" } : decode(body)
  const text = typeof body === "string" ? body : JSON.stringify(body)
  return Buffer.byteLength(text) > limit ? { fault: "TooLarge" } : { text }
}

const decode = (bytes: Uint8Array): Body => {
  if (!isUtf8(bytes)) return { fault: "Encoding" }
  return { text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8") }
}

/** Reads a body, and counts it. */
const read = (message: IncomingMessage, limit: number, done: (body: Body) => void): void => {
  let pieces: Pieces | undefined = new Pieces()
  const end = (body: Body): void => {
    if (pieces === undefined) return
    pieces = undefined
    done(body)
  }
  message.on("data", (chunk: Buffer<ArrayBuffer>) => {
    if (pieces === undefined) return
    if (pieces.size + chunk.length <= limit) return pieces.add(chunk)
    message.pause()
    end({ fault: "TooLarge" })
  })
  message.on("end", () => pieces !== undefined && end(decode(pieces.bytes)))
  message.on("close", () => end({ fault: "Aborted" }))
}

// What is left of a body after its answer is read all the same up to here, so that the connection can be used again.
const short = 64 * 1024

// And of a longer one this much, until the connection is cut: whoever still sends has not looked for the answer.
const lingered = 1024 * 1024

/** Whether what was not read of a body is too much to read for nothing, or may be. */
const isLong = ({ headers }: IncomingMessage): boolean =>
  headers.expect !== undefined || headers["transfer-encoding"] !== undefined ||
  Number(headers["content-length"]) > short

/**
 * Answers a request whose body is still on its way. The connection cannot be used again; but closed at once it would be reset, and
 * the answer with it, before a client that is still sending has read it. So some more is read, and dropped.
 */
const linger = (response: ServerResponse, body: string): void => {
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

const uncork = (socket: Socket): void => socket.uncork()

/**
 * What tells that an answer's connection was closed. One that waits for those before it on its connection has no socket yet, and does
 * not hear of its end; any number of them may wait.
 */
const closes = (response: ServerResponse): ServerResponse | Socket =>
  response.socket === null ? response.req.socket.setMaxListeners(0) : response

/** A `ServerResponse`. */
export class NodeAnswer implements HttpAnswer {
  readonly #response: ServerResponse
  readonly #shared: Shared
  #also: Headers | undefined = undefined

  constructor(response: ServerResponse, shared: Shared) {
    this.#response = response
    this.#shared = shared
  }

  get over(): boolean {
    const response = this.#response
    return response.writableEnded || response.destroyed || (response.socket === null && response.req.socket.destroyed)
  }

  get slow(): boolean {
    return this.#response.writableNeedDrain
  }

  also(headers: Headers): void {
    this.#also = headers
  }

  reply(status: number, headers: Headers, body: string): void {
    const response = this.#response
    if (this.over || response.headersSent) return
    const unread = !response.req.complete && isLong(response.req)
    const last = unread || this.#shared.closing ? { connection: "close" } : undefined
    const length = status === 204 ? undefined : { "content-length": Buffer.byteLength(body) }
    response.writeHead(status, { ...this.#also, ...headers, ...length, ...last })
    // A client that asked whether it may send its body hears that it may not.
    if (unread && response.req.headers.expect === undefined) linger(response, body)
    else this.#finish(body)
  }

  open(status: number, headers: Headers): void {
    const response = this.#response
    if (this.over || response.headersSent) return
    response.on("error", ignore)
    // Any number of fibers may wait until the client takes more.
    response.setMaxListeners(0)
    response.writeHead(status, this.#also === undefined ? headers : { ...this.#also, ...headers })
    // Leaves at once, but in one piece with what is written in the same turn of the event loop.
    const { socket } = response
    if (socket !== null && socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(uncork, socket)
    }
    response.flushHeaders()
  }

  write(chunk: string): boolean {
    return this.over || this.#response.write(chunk)
  }

  get drained(): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const response = this.#response
      if (this.over || !response.writableNeedDrain) return resume(Effect.void)
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
    if (this.over) return
    const response = this.#response
    const { req, socket } = response
    // Its head has said that the connection may be used again. When this side ends, the host would wait for somebody to do so.
    if (this.#shared.closing && socket !== null && req.httpVersionMajor === 1) {
      response.once("finish", () => socket.destroySoon())
    }
    this.#finish()
  }

  /** Nobody waits for the rest to be sent, and a client that never reads would have it kept for ever. */
  #finish(body?: string): void {
    const response = this.#response.end(body)
    const { socket } = response
    if (socket === null || socket.writableLength === 0) return
    // Node destroys it when that time is up, and tells whether something was taken meanwhile.
    socket.setTimeout(this.#shared.sendTimeout)
    response.prependOnceListener("finish", () => socket.setTimeout(0))
  }

  abort(): void {
    this.#response.destroy()
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
