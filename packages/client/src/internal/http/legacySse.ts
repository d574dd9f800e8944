/**
 * HTTP+SSE, the transport of 2024-11-05 with two endpoints: all messages of the server arrive on one stream, and all
 * messages of the client are sent to one address.
 *
 * 2024-11-05, transports: "the server MUST send an `endpoint` event containing a URI for the client to use for sending
 * messages. All subsequent client messages MUST be sent as HTTP POST requests to this endpoint." The session ends with
 * its stream, and nothing can be resumed.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Headers } from "@skein/runtime/Connection"
import { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { connectionLost } from "../base/errors.ts"
import type { HttpChannel, HttpProtocol } from "./protocol.ts"
import { SendQueue } from "./sendQueue.ts"
import { errorText, failureIn, is2xx, mediaType, readRefusal, refusal, unusable } from "./refusal.ts"
import { isVersion } from "./requestHeaders.ts"
import { Reader } from "./sse.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

const posted: Headers = { "content-type": "application/json" }

// The first revision with the header `MCP-Protocol-Version`. A server with older revisions only may not allow browsers
// to send it.
const firstRevisionWithHeader = "2025-06-18"

// How long the server may take to accept a request that was cancelled, in milliseconds.
const cancelTimeout = 1_000

// The response for the errors about an event: the stream that it arrived on had status 200.
const ok = { status: 200 }

/**
 * The address in an `endpoint` event. An address at another origin is refused, since it would receive the credentials
 * and all messages to the server.
 */
const endpointOf = (data: string, stream: URL): URL | TransportError => {
  const url = URL.parse(data, stream.href)
  if (url === null) return unusable(ok, "an endpoint that is not a URL", data)
  // The origin of a `blob:` URL is that of the URL in it, so the schemes are compared as well.
  if (url.origin !== stream.origin || url.protocol !== stream.protocol) {
    return unusable(ok, "an endpoint at another origin", url.origin)
  }
  if (url.username !== "" || url.password !== "") return unusable(ok, "an endpoint with a user name or a password")
  url.hash = ""
  return url
}

/** Sends messages to the endpoint. */
class LegacySse implements HttpProtocol {
  readonly #channel: HttpChannel
  readonly #endpoint: URL
  readonly queue: SendQueue
  /** The requests that the server has not accepted yet. */
  readonly #unaccepted = new Map<JsonRpc.Id, Fiber.Fiber<void>>()
  #headers = posted
  // The id of `initialize`, until its response arrives.
  #initializeId: JsonRpc.Id | undefined

  constructor(channel: HttpChannel, endpoint: URL) {
    this.#channel = channel
    this.#endpoint = endpoint
    this.queue = new SendQueue(channel)
  }

  /** Waits for the messages in flight. The connection then closes the stream, which ends the session. */
  get close(): Effect.Effect<void> {
    return this.queue.idle
  }

  /**
   * Reads the negotiated revision from the response to `initialize`. 2025-06-18, transports: "If using HTTP, the client
   * MUST include the `MCP-Protocol-Version` HTTP header on all subsequent requests to the MCP server".
   */
  readRevision(message: JsonRpc.Inbound): void {
    if (this.#initializeId === undefined || message._tag !== "Success" || message.id !== this.#initializeId) return
    this.#initializeId = undefined
    const version = (message.result as JsonRpc.JsonObject)["protocolVersion"]
    if (isVersion(version) && version >= firstRevisionWithHeader) {
      this.#headers = { ...posted, [Header.names.protocolVersion]: version }
    }
  }

  send(message: JsonRpc.Outbound): void {
    if (message._tag === "Request" && message.method === "initialize") {
      this.#initializeId = message.id
      this.#headers = posted
    }
    const request: HttpRequest = {
      method: "POST",
      url: this.#endpoint,
      headers: this.#headers,
      body: JsonRpc.encode(message)
    }
    if (message._tag === "Request") return this.queue.whenReleased(() => this.#sendRequest(message.id, request))
    const onDone = (error: TransportError | undefined): void => {
      if (error === undefined) return
      this.#channel.fork(Effect.logDebug(`A message was not accepted by the server: ${error.message}`))
    }
    // Notifications stay in order. Responses to the server may arrive in any order.
    const isResponse = message._tag !== "Notification"
    const post = () => this.queue.send(request, { retry: isResponse, ordered: !isResponse, onDone })
    if (isResponse) return post()
    switch (message.method) {
      case "notifications/initialized":
        return this.queue.initialized(request, (error) => {
          onDone(error)
          this.queue.release()
        })
      case "notifications/cancelled":
        return this.queue.whenReleased(() => {
          const asking = this.#unaccepted.get(message.params?.["requestId"] as JsonRpc.Id)
          if (asking === undefined) return post()
          // The cancellation must not overtake its request, and a server that has not accepted the request yet may
          // never do so.
          asking.addObserver(post)
          const orElse = () => Fiber.interrupt(asking)
          this.#channel.fork(
            Effect.asVoid(Effect.timeoutOrElse(Fiber.await(asking), { duration: cancelTimeout, orElse }))
          )
        })
      default:
        post()
    }
  }

  #sendRequest(id: JsonRpc.Id, request: HttpRequest): void {
    const taken = this.#channel.exchanger.exchange(
      request,
      (reply) => is2xx(reply) ? Effect.void : this.#refusal(reply, id)
    )
    const fiber = this.#channel.fork(
      Effect.catch(taken, (error) => Effect.sync(() => this.#channel.refused(id, error)))
    )
    if (fiber.pollUnsafe() !== undefined) return
    this.#unaccepted.set(id, fiber)
    fiber.addObserver(() => this.#unaccepted.delete(id))
  }

  /** Delivers a JSON-RPC error in the body of the response, although it should arrive on the stream. */
  #refusal(reply: HttpResponse, id: JsonRpc.Id): Effect.Effect<void, TransportError> {
    return Effect.flatMap(errorText(reply, this.#channel), (text) => {
      const failure = failureIn(text)
      if (failure === undefined || reply.status === 401 || reply.status === 403) {
        return Effect.flip(refusal(reply, text, failure))
      }
      return Effect.sync(() => this.#channel.deliver(JsonRpc.failure(id, failure.error)))
    })
  }
}

/** Requests the stream, and passes its chunks on until it ends. */
const readStream = (
  channel: HttpChannel,
  onChunk: (chunk: Uint8Array) => TransportError | undefined
): Effect.Effect<void, TransportError> =>
  channel.exchanger.exchange(
    { method: "GET", url: channel.settings.url, headers: { accept: "text/event-stream" } },
    (reply) => {
      if (!is2xx(reply)) return Effect.flip(readRefusal(reply, channel))
      const type = mediaType(reply)
      return type === "text/event-stream"
        ? reply.chunks(onChunk)
        : Effect.fail(unusable(reply, `${type === "" ? "no media type" : type} instead of text/event-stream`))
    }
  )

/**
 * Opens HTTP+SSE, after a server has refused `initialize` as a server of 2024-11-05 does (2025-11-25, transports,
 * backwards compatibility), or if the server is known to need it. If it fails, the refusal of `initialize` is the
 * result. The caller sends `initialize` next.
 *
 * Requests the stream, and waits for its `endpoint` event up to `endpointTimeout`. Earlier events are ignored.
 *
 * Fails with `MessageRejected` if the server returns something else, or names an endpoint at another origin. Fails with
 * `ConnectionLost` if the stream ends first, or the event does not arrive in time.
 */
export const open = (channel: HttpChannel): Effect.Effect<HttpProtocol, TransportError> =>
  Effect.suspend(() => {
    const { endpointTimeout, maxMessageBytes } = channel.settings
    let stream: Fiber.Fiber<void> | undefined
    let protocol: LegacySse | undefined
    const opened = Effect.callback<HttpProtocol, TransportError>((resume) => {
      let isOver = false
      const over = (cause: TransportError): void => {
        if (isOver) return
        isOver = true
        if (protocol !== undefined) channel.end({ _tag: "Lost", cause })
        else resume(Effect.fail(cause))
      }
      const event = (type: string, data: string): void => {
        if (isOver) return
        if (protocol !== undefined) {
          if (type !== "message") return
          const message = JsonRpc.parseText(data)
          protocol.readRevision(message)
          return channel.deliver(message)
        }
        if (type !== "endpoint") return
        const endpoint = endpointOf(data, channel.settings.url)
        if (endpoint instanceof TransportError) return over(endpoint)
        protocol = new LegacySse(channel, endpoint)
        resume(Effect.succeed(protocol))
      }
      const reader = new Reader({ event, retry: () => {} }, maxMessageBytes)
      const take = (chunk: Uint8Array): TransportError | undefined => isOver ? undefined : reader.feed(chunk)
      stream = channel.fork(Effect.match(readStream(channel, take), {
        onFailure: over,
        onSuccess: () => over(connectionLost("The server ended the stream"))
      }))
    })
    const tooSlow = () => Effect.fail(connectionLost(`The server sent no endpoint event within ${endpointTimeout} ms`))
    return channel.callClock.timeoutOrElse(opened, endpointTimeout, tooSlow).pipe(
      Effect.onError(() => stream === undefined ? Effect.void : Fiber.interrupt(stream))
    )
  })
