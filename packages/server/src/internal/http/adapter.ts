/**
 * What the core of HTTP needs of its doors: the requests that they bring, and the answers that they take.
 *
 * A door makes one of each per HTTP request. Both are plain objects with methods on their prototypes, since they are on every
 * request's path.
 */
import type { Origin, Principal } from "@skein/runtime/Connection"
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/** Headers by their names. */
export interface Headers {
  readonly [name: string]: string
}

/** Why a body was not read: it is larger than it may be, its client left, or it is no UTF-8. */
export type BodyFault = "TooLarge" | "Aborted" | "Encoding"

/** What came of reading a body. */
export type Body = { readonly text: string } | { readonly fault: BodyFault }

/** An HTTP request, before anything of its body is read. It is the origin of the messages in it. */
export interface HttpRequest extends Origin {
  /** Who makes it. Where that has to be found out, it is known from the time that it was. */
  readonly principal?: Principal | undefined
  readonly method: string
  /** The path without the query, as it came. */
  readonly path: string
  /** The query, without its question mark, where there is one. */
  readonly query?: string | undefined
  /** Reads a header by its name in lower case. Repeated ones are joined by a comma, as HTTP servers do. */
  readonly header: (name: string) => string | undefined
  /** How many characters its body has, once it was read. */
  size: number
  /** The services of the fiber that brought it, where it came by one: handlers find them. */
  readonly context?: Context.Context<never> | undefined
  /**
   * Reads the whole body as UTF-8, called once. It is counted while it is read, whatever its `Content-Length` says: at more than
   * `limit` bytes reading stops and the fault is `TooLarge`. Calls back once, at once where the body is there already.
   */
  readonly read: (limit: number, done: (body: Body) => void) => void
  /** The names of the `Mcp-Param-*` headers that came, in lower case, where there are any. */
  readonly params: ReadonlyArray<string> | undefined
}

/** The answer to an HTTP request: `reply` once, or `open`, any number of `write`s and `end`. After the end nothing happens. */
export interface HttpAnswer {
  /** Whether the client is gone or the answer is complete. */
  readonly over: boolean
  /** Whether the client is slow: what is written now waits in memory. */
  readonly slow: boolean
  /** Headers that the answer will have beside its own. Said once at most, before anything is sent. */
  readonly also: (headers: Headers) => void
  /** The whole answer at once. */
  readonly reply: (status: number, headers: Headers, body: string) => void
  /** Sends the head of a stream at once. */
  readonly open: (status: number, headers: Headers) => void
  /** Sends a part of the stream; `false` when the client is slow: it is taken all the same, and who can wait should. */
  readonly write: (chunk: string) => boolean
  /** Succeeds as soon as the client takes more, or is gone. */
  readonly drained: Effect.Effect<void>
  /** Completes the stream. */
  readonly end: () => void
  /** Ends the connection without an end of the stream: what was not sent is lost. */
  readonly abort: () => void
  /** Calls back once, when the client left before the answer was complete. Asked for only by what suspends; one at a time. */
  readonly onClose: (left: () => void) => void
}
