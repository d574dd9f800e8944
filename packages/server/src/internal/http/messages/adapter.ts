/**
 * The requests and answers that the adapters of an endpoint provide.
 *
 * An adapter makes one of each per HTTP request. Both are classes with methods on their prototypes, since they are
 * created for every request.
 */
import type { Origin, Principal } from "@skein/runtime/Connection"
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/** Headers by their names. */
export interface Headers {
  readonly [name: string]: string
}

/**
 * Why a body was not read: it is too large, its client disconnected, it is not valid UTF-8, or it was dropped, because
 * the endpoint retains too much for its client.
 */
export type BodyFault = "TooLarge" | "Aborted" | "Encoding" | "Dropped"

/** The outcome of reading a body. */
export type Body = { readonly text: string } | { readonly fault: BodyFault }

/**
 * Why the head of a request is not valid HTTP (RFC 9110 and 9112):
 *
 * - `"Host"`: HTTP/1.1 without a `Host`, several, or one that differs from `:authority`.
 * - `"Repeated"`: several lines of a header that has one value.
 * - `"Mirrored"`: the same for a header that repeats a part of the body.
 * - `"TooManyHeaders"`: the HTTP server may have dropped the last headers.
 * - `"Framing"`: the end of the body is ambiguous.
 * - `"Coding"`: a transfer coding other than `chunked`.
 * - `"RequestLine"`: the target has none of the forms of its method, or there is no version.
 * - `"Expectation"`: an expectation other than `100-continue`.
 */
export type HeadFault =
  | "Host"
  | "Repeated"
  | "Mirrored"
  | "TooManyHeaders"
  | "Framing"
  | "Coding"
  | "RequestLine"
  | "Expectation"

/** Counts the bodies that are being read. */
export interface BodyCounter {
  /**
   * Called when a part of a body has arrived, and more of it is expected. The counter may call `drop`, also later: it
   * stops the reading, releases the parts that have arrived, and ends with the fault `Dropped`.
   */
  readonly arrived: (request: HttpRequest, bytes: number, drop: () => void) => void
}

/** Receives the answers of which a part is unsent. */
export interface AnswerWatcher {
  /** Called after each write of which a part waits in memory for the client. */
  readonly unsent: (answer: HttpAnswer, request: HttpRequest) => void
  /** Called when all of it was sent, or its client has disconnected. */
  readonly sent: (answer: HttpAnswer) => void
}

/** An HTTP request whose body was not read yet. It is the origin of the messages in it. */
export interface HttpRequest extends Origin {
  /** Why the request is refused, if its head is not valid HTTP. An adapter without access to the lines has none. */
  readonly headFault?: HeadFault | undefined
  /**
   * The host of the URL, if the platform supplies one apart from the `Host` header, which it may differ from. Then both
   * must be allowed.
   */
  readonly urlHost?: string | undefined
  /** The authenticated sender. If it must be found first, the endpoint sets it before it routes the request. */
  principal?: Principal | undefined
  readonly method: string
  /** The path without the query, not decoded. */
  readonly path: string
  /** The query without its question mark, if there is one. */
  readonly query?: string | undefined
  /** Reads a header by its name in lower case. Repeated headers are joined by a comma, as HTTP servers do. */
  readonly header: (name: string) => string | undefined
  /** All headers, by their names in lower case, if the adapter has them. A node needs them to pass the request on. */
  readonly headers?: Headers | undefined
  /** Whether another node has received the request from the client, and has passed it on. */
  readonly isPassed?: boolean | undefined
  /** The number of characters of the body, once it was read. */
  size: number
  /** The network address of the client: behind proxies, that of the client of the outermost trusted one. */
  readonly address?: string | undefined
  /**
   * The network address of the other end of the connection: the last proxy, or the client. Unlike `address` it does not
   * depend on headers, so it shows whether a header was written by a proxy.
   */
  readonly peerAddress?: string | undefined
  /**
   * The certificate of the client in DER form, if TLS ends in this process and the certificate was verified. Behind a
   * proxy that ends TLS there is none.
   */
  readonly clientCertificate?: Uint8Array | undefined
  /**
   * The services of the fiber that received the request, if there was one. Handlers get them. Without them, the endpoint
   * sets those of `Trace.Around`.
   */
  context?: Context.Context<never> | undefined
  /**
   * Reads the whole body as UTF-8; called once. Bytes are counted while they are read, regardless of `Content-Length`:
   * after `limit` bytes reading stops with the fault `TooLarge`. Calls `done` once, synchronously if the body has arrived
   * already. Unless the whole body arrives at once, its parts are reported to `counter` as they arrive.
   */
  readonly read: (limit: number, done: (body: Body) => void, counter: BodyCounter) => void
  /**
   * The names of the `Mcp-Param-*` headers in lower case, one for each line if the adapter has the lines; undefined if
   * there are none.
   */
  readonly params: ReadonlyArray<string> | undefined
}

/** A request with the members of another one, which handlers cannot reach. */
export class DelegatedRequest implements HttpRequest {
  readonly #request: HttpRequest

  constructor(request: HttpRequest) {
    this.#request = request
  }

  get headFault(): HeadFault | undefined {
    return this.#request.headFault
  }

  get urlHost(): string | undefined {
    return this.#request.urlHost
  }

  get principal(): Principal | undefined {
    return this.#request.principal
  }

  get method(): string {
    return this.#request.method
  }

  get path(): string {
    return this.#request.path
  }

  get query(): string | undefined {
    return this.#request.query
  }

  get size(): number {
    return this.#request.size
  }

  get address(): string | undefined {
    return this.#request.address
  }

  get peerAddress(): string | undefined {
    return this.#request.peerAddress
  }

  get clientCertificate(): Uint8Array | undefined {
    return this.#request.clientCertificate
  }

  get context(): Context.Context<never> | undefined {
    return this.#request.context
  }

  get params(): ReadonlyArray<string> | undefined {
    return this.#request.params
  }

  get headers(): Headers | undefined {
    return this.#request.headers
  }

  get isPassed(): boolean | undefined {
    return this.#request.isPassed
  }

  header(name: string): string | undefined {
    return this.#request.header(name)
  }

  read(limit: number, done: (body: Body) => void, counter: BodyCounter): void {
    this.#request.read(limit, done, counter)
  }
}

/**
 * The answer to an HTTP request: `reply` once, or `open`, any number of `write`s and `end`. After that, calls do
 * nothing.
 */
export interface HttpAnswer {
  /** Whether the client has disconnected or the answer is complete. */
  readonly isClosed: boolean
  /** Whether the client is slow: further writes wait in memory. */
  readonly slow: boolean
  /** How many bytes wait in memory for the client, as far as the adapter can find out. */
  readonly unsent?: number | undefined
  /** How many bytes the connection has taken so far. Only differences matter. */
  readonly taken?: number | undefined
  /** Called once, before anything is sent. An adapter that has `unsent` and `taken` reports to the watcher. */
  readonly watch?: ((watcher: AnswerWatcher, request: HttpRequest) => void) | undefined
  /** Adds headers to the answer. May be called several times before anything is sent. */
  readonly addHeaders: (headers: Headers) => void
  /** Sends the whole answer. */
  readonly reply: (status: number, headers: Headers, body: string) => void
  /** Sends the head of a stream immediately. */
  readonly open: (status: number, headers: Headers) => void
  /**
   * Sends a part of the stream. Returns `false` while the client is slow: the text was accepted all the same, and
   * callers that can wait should wait for `drained`.
   */
  readonly write: (chunk: string) => boolean
  /** Succeeds as soon as the client takes more, or has disconnected. */
  readonly drained: Effect.Effect<void>
  /** Completes the stream. */
  readonly end: () => void
  /** Closes the connection without completing the answer: unsent data is lost. */
  readonly abort: () => void
  /**
   * Calls back once if the client disconnects before the answer is complete. Only requests that suspend use it; one
   * callback at a time.
   */
  readonly onClose: (left: () => void) => void
}

// A byte order mark stays, and is not valid JSON.
const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Decodes a body that has arrived as a whole. */
export const decodeBody = (bytes: ArrayBuffer | Uint8Array): Body => {
  try {
    return { text: decoder.decode(bytes) }
  } catch {
    return { fault: "Encoding" }
  }
}
