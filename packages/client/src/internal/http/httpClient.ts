/**
 * The HTTP client that the transports use: one request, and a response whose body is read as text or in chunks. `fetchClient` works
 * everywhere, `nodeClient` on Node.
 */
import type { Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"
import { connectionLost } from "../base/errors.ts"

/** Removes a byte order mark at the start of a body. JSON does not have one. */
export const withoutBom = (text: string): string => text.charCodeAt(0) === 0xfeff ? text.slice(1) : text

/** The error for a body of more than `maxBytes`. */
export const bodyTooLong = (maxBytes: number): TransportError =>
  connectionLost(`The response body exceeds maxMessageBytes (${maxBytes})`)

/** One HTTP request. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly url: URL
  readonly headers: Headers
  readonly body?: string | undefined
}

/** A response. Its body is read at most once, by `text` or by `chunks`. */
export interface HttpResponse {
  readonly status: number
  /**
   * The headers of the request, if some came from options or credentials: error messages redact their values. Set by
   * the exchange.
   */
  sentHeaders?: Headers | undefined
  /** The failure of the credentials, if the response is a refusal that they failed to handle. Set by the exchange. */
  credentialsFailure?: { readonly cause: unknown } | undefined
  /** A header, by its name in lower case. */
  readonly header: (name: string) => string | undefined
  /** Reads the whole body. A body of more than `maxBytes` fails with `ConnectionLost`. */
  readonly text: (maxBytes: number) => Effect.Effect<string, TransportError>
  /**
   * Passes the chunks of the body on as they arrive. A body that breaks off fails with `ConnectionLost`. If `onChunk`
   * returns an error, reading fails with it at once.
   */
  readonly chunks: (onChunk: (chunk: Uint8Array) => TransportError | undefined) => Effect.Effect<void, TransportError>
}

/** Makes HTTP requests. */
export interface HttpClient {
  /**
   * Sends a request and passes the response to `use`. An exchange that is not complete when `use` ends or is
   * interrupted is aborted, and its connection is not reused. The error is `OpenFailed` and `undelivered` if no
   * connection could be made, and `ConnectionLost` if it broke. A web page cannot distinguish the two, and gets
   * `OpenFailed` for both.
   */
  readonly exchange: <A, E>(
    request: HttpRequest,
    use: (reply: HttpResponse) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | TransportError>
  /** Closes the idle connections. */
  readonly close: Effect.Effect<void>
}
