/**
 * A session over HTTP: its id and revision, which are headers of each request, and its end.
 */
import { keys, names } from "@skein/protocol/Header"
import type { Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import { connectionLost, notDelivered } from "../base/errors.ts"
import { isSessionId, isVersion, posted } from "./requestHeaders.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

const notFound = "The server no longer has the session"

// The error texts of restarted servers on an official SDK: of its transport, and of its first examples.
const unknown = /\b(?:server not initialized|(?:in)?valid.*session id)\b/i

// The headers before a session is open. All clients share them.
const none: Headers = {}

/** The state of the session of one connection. */
export class Session {
  readonly #url: URL
  #id: string | undefined
  // The headers of all requests in a session (2025-11-25, transports: session management, protocol version header).
  #headers = none
  #posted = posted
  /** Whether the server has reported that the session does not exist. */
  gone = false

  constructor(url: URL) {
    this.#url = url
  }

  /** Resets the state before `initialize` is sent. */
  begin(): void {
    this.gone = false
    this.#id = undefined
    this.#headers = none
    this.#posted = posted
  }

  /** Reads the id from the response to `initialize`. Returns whether it is valid or absent. */
  readId(reply: HttpResponse): boolean {
    const id = reply.header(keys.sessionId)
    if (id === undefined) return true
    if (!isSessionId(id)) return false
    this.#set(id, undefined)
    return true
  }

  /** Sets the negotiated revision. */
  setRevision(version: unknown): void {
    this.#set(this.#id, isVersion(version) ? version : undefined)
  }

  #set(id: string | undefined, version: string | undefined): void {
    this.#id = id
    this.#headers = {
      ...(id === undefined ? undefined : { [names.sessionId]: id }),
      ...(version === undefined ? undefined : { [names.protocolVersion]: version })
    }
    this.#posted = { ...posted, ...this.#headers }
  }

  /** Whether the status of a response means that the session does not exist. */
  isNotFound(status: number | undefined): boolean {
    return status === 404 && this.#id !== undefined
  }

  /**
   * Whether a refusal means that the session does not exist. The specification requires 404 for an unknown session, but
   * many servers respond 400, and would respond 400 to every further request.
   */
  isUnknownSession(status: number, message: string): boolean {
    return status === 400 && this.#id !== undefined && unknown.test(message)
  }

  /** The error of a request that the server may have handled. */
  get lostError(): TransportError {
    return connectionLost(notFound, undefined, 404)
  }

  /** The error of a request that the server did not accept. */
  refusedError(status = 404): TransportError {
    return notDelivered(notFound, status)
  }

  /** The request that sends a message. */
  postRequest(body: string): HttpRequest {
    return { method: "POST", url: this.#url, headers: this.#posted, body }
  }

  /** The request for a stream. */
  getRequest(lastId: string | undefined): HttpRequest {
    const resumed = lastId === undefined ? undefined : { [names.lastEventId]: lastId }
    return { method: "GET", url: this.#url, headers: { Accept: "text/event-stream", ...this.#headers, ...resumed } }
  }

  /** The request that ends the session, if there is one. */
  get deleteRequest(): HttpRequest | undefined {
    return this.#id === undefined || this.gone
      ? undefined
      : { method: "DELETE", url: this.#url, headers: this.#headers }
  }
}
