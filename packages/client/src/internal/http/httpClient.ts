/**
 * HTTP as the transports need it: one request, and a reply that is read as text. Made by `fetch` anywhere, by `node:http` on Node.
 */
import type { Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"

/** One HTTP request. */
export interface WireRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly url: URL
  readonly headers: Headers
  readonly body?: string | undefined
}

/** What came back. The body is read once, by one of the two, or not at all. */
export interface WireReply {
  readonly status: number
  /** What it was asked with, where headers of the host's are among that: none of it is quoted. The exchange sets it. */
  sent?: Headers | undefined
  /** A header, by its name in lower case. */
  readonly header: (name: string) => string | undefined
  /** The whole body. One of more bytes than that fails with `Lost`. */
  readonly text: (maxBytes: number) => Effect.Effect<string, TransportError>
  /**
   * Hands the body over piece by piece as it comes, decoded as UTF-8, until it ends. A body that breaks off fails with `Lost`; what
   * `onText` answers is an error of its own, with which it fails at once.
   */
  readonly pieces: (onText: (text: string) => TransportError | undefined) => Effect.Effect<void, TransportError>
}

/** See the module's text. */
export interface Wire {
  /**
   * Sends a request and hands the reply over. What is left of the exchange when `use` ends, or is interrupted, is aborted, and its
   * connection is not used again. Where no connection could be made the error is `OpenFailed` and `undelivered`, where one broke it is
   * `ConnectionLost`. A page is not told which: `OpenFailed`.
   */
  readonly exchange: <A, E>(
    request: WireRequest,
    use: (reply: WireReply) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | TransportError>
  /** Closes the connections that wait for a next request. */
  readonly close: Effect.Effect<void>
}
