/**
 * The HTTP client that the transports use: one request, and a response whose body is read as text. `fetchClient` works
 * everywhere, `nodeClient` on Node.
 */
import type { Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"

/** One HTTP request. */
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly url: URL
  readonly headers: Headers
  readonly body?: string | undefined
}

/** A response. Its body is read at most once, by `text` or by `pieces`. */
export interface HttpResponse {
  readonly status: number
  /**
   * The headers of the request, if some came from options or credentials: error messages redact their values. Set by
   * the exchange.
   */
  sentHeaders?: Headers | undefined
  /** A header, by its name in lower case. */
  readonly header: (name: string) => string | undefined
  /** Reads the whole body. A body of more than `maxBytes` fails with `ConnectionLost`. */
  readonly text: (maxBytes: number) => Effect.Effect<string, TransportError>
  /**
   * Passes the body on in pieces as it arrives, decoded as UTF-8. A body that breaks off fails with `ConnectionLost`.
   * If `onText` returns an error, reading fails with it at once.
   */
  readonly pieces: (onText: (text: string) => TransportError | undefined) => Effect.Effect<void, TransportError>
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
