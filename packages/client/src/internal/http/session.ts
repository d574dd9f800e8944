/**
 * The session of the session era, as far as HTTP is concerned: its id and its revision, which go with everything, and its end.
 */
import { keys } from "@skein/protocol/Header"
import type { Headers } from "@skein/runtime/Connection"
import { ConnectionLost, MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type { HttpChannel } from "./protocol.ts"
import { isSessionId, isVersion, SessionHeaders } from "./requestHeaders.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

const gone = "The session is gone: the server does not know it any more"

// What servers say that are built on an official SDK and have just been started: by its transport, and by the hosts of its first examples.
const unknown = /\b(?:server not initialized|(?:in)?valid.*session id)\b/i

// Those of what belongs to no session.
const unopened = new SessionHeaders(undefined, undefined)

/** Who has the requests of a session. */
export interface SessionRequests {
  /** Waits for the requests that the server has not taken yet, where there are any. */
  readonly unaccepted: Effect.Effect<void> | undefined
}

/** See the module's text. */
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

  /** Whether the server has forgotten it. */
  get gone(): boolean {
    return this.#gone
  }

  /** The headers of what is sent by POST. */
  get headers(): Headers {
    return this.#headers.posted
  }

  /** `initialize` is sent, which belongs to no session yet. */
  begin(): void {
    this.#gone = false
    this.#id = undefined
    this.#headers = unopened
  }

  /** Takes the id from the response to `initialize`; `false` if it is none. */
  readId(reply: HttpResponse): boolean {
    const id = reply.header(keys.sessionId)
    if (id === undefined) return true
    if (!isSessionId(id)) return false
    this.#id = id
    this.#headers = new SessionHeaders(id, undefined)
    return true
  }

  /** `initialize` was answered with this revision. */
  setRevision(version: unknown): void {
    this.#headers = new SessionHeaders(this.#id, isVersion(version) ? version : undefined)
  }

  /** Whether a status of a response to a request of the session says that it is gone. */
  isNotFound(status: number | undefined): boolean {
    return status === 404 && this.#id !== undefined
  }

  /**
   * Whether a refusal says so in other words. A session that is not known has to be answered with 404, but many servers answer with
   * 400, and would do so for ever.
   */
  isUnknownSession(status: number, said: string): boolean {
    return status === 400 && this.#id !== undefined && unknown.test(said)
  }

  /**
   * Ends the connection: "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST start a new
   * session." The request itself, if it waits for an answer, is refused before. The others that are on their way will hear the same,
   * and may be made again then: a grace is what they have for that.
   */
  onNotFound(): void {
    if (this.#gone) return
    this.#gone = true
    const end = () => this.#channel.end({ _tag: "Lost", cause: this.lostError })
    const others = this.#owner.unaccepted
    if (others === undefined) end()
    else this.#channel.fork(Effect.map(others, end))
  }

  /** Why a request is not answered that the server may have handled before. */
  get lostError(): TransportError {
    return new TransportError({ reason: new ConnectionLost({ message: gone, status: 404 }) })
  }

  /** Why a request is not answered that the server did not take. */
  refusedError(status = 404): TransportError {
    return new TransportError({ reason: new MessageRejected({ message: gone, status }), undelivered: true })
  }

  /** Asks for a stream. */
  getRequest(lastId: string | undefined): HttpRequest {
    return { method: "GET", url: this.#channel.url, headers: this.#headers.got(lastId) }
  }

  /** Ends it, where there is one. */
  get deleteRequest(): HttpRequest | undefined {
    return this.#id === undefined || this.#gone
      ? undefined
      : { method: "DELETE", url: this.#channel.url, headers: this.#headers.deleted }
  }
}
