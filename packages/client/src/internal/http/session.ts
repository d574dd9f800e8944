/**
 * A session over HTTP: its id and revision, which are headers of each request, and its end.
 */
import { keys } from "@skein/protocol/Header"
import type { Headers } from "@skein/runtime/Connection"
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { HttpChannel } from "./protocol.ts"
import { isSessionId, isVersion, SessionHeaders } from "./requestHeaders.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

const gone = "The server no longer has the session"

// The error texts of restarted servers on an official SDK: of its transport, and of its first examples.
const unknown = /\b(?:server not initialized|(?:in)?valid.*session id)\b/i

// The headers before a session is open.
const unopened = new SessionHeaders(undefined, undefined)

/** The requests of a session. */
export interface SessionRequests {
  /** Waits for the requests that the server has not accepted yet. `undefined` without such requests. */
  readonly unaccepted: Effect.Effect<void> | undefined
}

/** The state of the session of one connection. */
export class Session {
  readonly #channel: HttpChannel
  readonly #owner: SessionRequests
  #id: string | undefined
  #headers = unopened
  #gone = false

  constructor(channel: HttpChannel, owner: SessionRequests) {
    this.#channel = channel
    this.#owner = owner
  }

  /** Whether the server has reported that the session does not exist. */
  get gone(): boolean {
    return this.#gone
  }

  /** The headers of POST requests. */
  get headers(): Headers {
    return this.#headers.posted
  }

  /** Resets the state before `initialize` is sent. */
  begin(): void {
    this.#gone = false
    this.#id = undefined
    this.#headers = unopened
  }

  /** Reads the id from the response to `initialize`. Returns whether it is valid or absent. */
  readId(reply: HttpResponse): boolean {
    const id = reply.header(keys.sessionId)
    if (id === undefined) return true
    if (!isSessionId(id)) return false
    this.#id = id
    this.#headers = new SessionHeaders(id, undefined)
    return true
  }

  /** Sets the negotiated revision. */
  setRevision(version: unknown): void {
    this.#headers = new SessionHeaders(this.#id, isVersion(version) ? version : undefined)
  }

  /** Whether the status of a response means that the session does not exist. */
  isNotFound(status: number | undefined): boolean {
    return status === 404 && this.#id !== undefined
  }

  /**
   * Whether a refusal means that the session does not exist. The specification requires 404 for an unknown session, but
   * many servers respond 400, and would respond 400 to every further request.
   */
  isUnknownSession(status: number, said: string): boolean {
    return status === 400 && this.#id !== undefined && unknown.test(said)
  }

  /**
   * Ends the connection: "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it
   * MUST start a new session." The caller has already failed its own request. The other requests in flight will get the
   * same response, and can then be retried on the new connection, so they have `closeTimeout` for that.
   */
  onNotFound(): void {
    if (this.#gone) return
    this.#gone = true
    const end = () => this.#channel.end({ _tag: "Lost", cause: this.lostError })
    const others = this.#owner.unaccepted
    if (others === undefined) end()
    else this.#channel.fork(Effect.map(others, end))
  }

  /** The error of a request that the server may have handled. */
  get lostError(): TransportError {
    return new TransportError({ reason: new ConnectionLost({ message: gone, status: 404 }) })
  }

  /** The error of a request that the server did not accept. */
  refusedError(status = 404): TransportError {
    return new TransportError({ reason: new MessageRejected({ message: gone, status }), undelivered: true })
  }

  /** The request for a stream. */
  getRequest(lastId: string | undefined): HttpRequest {
    return { method: "GET", url: this.#channel.url, headers: this.#headers.got(lastId) }
  }

  /** The request that ends the session, if there is one. */
  get deleteRequest(): HttpRequest | undefined {
    return this.#id === undefined || this.#gone
      ? undefined
      : { method: "DELETE", url: this.#channel.url, headers: this.#headers.deleted }
  }
}
