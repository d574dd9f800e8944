/**
 * HTTP+SSE, the pair of endpoints of 2024-11-05: a stream that brings everything, and an address that takes everything.
 *
 * 2024-11-05, transports: "the server MUST send an `endpoint` event containing a URI for the client to use for sending messages.
 * All subsequent client messages MUST be sent as HTTP POST requests to this endpoint." A stream that ends takes its session with
 * it: nothing can be resumed.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { TransportError } from "@skein/runtime/Connection"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Lane, Road } from "./lane.ts"
import { errorText, failureIn, mediaType, refusal, unusable } from "./refusal.ts"
import { Reader } from "./sse.ts"
import type { WireReply } from "./wire.ts"

const lost = (message: string, cause?: unknown) => new TransportError({ reason: "Lost", message, cause })

/**
 * The address that an `endpoint` event names. One at another origin would be given the credentials of the host, and whatever it
 * says to the server.
 */
const endpointOf = (data: string, stream: URL): URL | TransportError => {
  const url = URL.parse(data, stream.href)
  if (url === null) return unusable(200, "an endpoint that is no URL", data)
  if (url.origin !== stream.origin) {
    return unusable(200, "an endpoint of another origin, which is not spoken to", url.origin)
  }
  if (url.username !== "" || url.password !== "") return unusable(200, "an endpoint with a user and a password")
  url.hash = ""
  return url
}

const is2xx = ({ status }: WireReply): boolean => status >= 200 && status < 300

/** Where messages go. */
class LegacySse implements Lane {
  readonly #road: Road
  readonly #endpoint: URL
  readonly #posts = new Map<JsonRpc.Id, Fiber.Fiber<void>>()
  /** The last notification that has not been taken yet. */
  #notice: Fiber.Fiber<void> | undefined

  constructor(road: Road, endpoint: URL) {
    this.#road = road
    this.#endpoint = endpoint
  }

  /** The stream goes with the scope, and the session with the stream. */
  readonly close: Effect.Effect<void> = Effect.void

  send(message: JsonRpc.Outbound): void {
    const body = JsonRpc.encode(message)
    const id = message._tag === "Request" ? message.id : undefined
    const before = this.#before(message)
    const post = this.#post(body, id)
    const fiber = this.#road.fork(before === undefined ? post : Effect.andThen(Fiber.await(before), post))
    if (fiber.pollUnsafe() !== undefined) return
    if (id !== undefined) {
      this.#posts.set(id, fiber)
      fiber.addObserver(() => this.#posts.delete(id))
    } else if (message._tag === "Notification") {
      this.#notice = fiber
      fiber.addObserver(() => {
        if (this.#notice === fiber) this.#notice = undefined
      })
    }
  }

  /**
   * What the server has to take first. Requests may overtake each other, but not `notifications/initialized` and its like, and a
   * request must not be overtaken by its own cancellation.
   */
  #before(message: JsonRpc.Outbound): Fiber.Fiber<void> | undefined {
    const cancelled = message._tag === "Notification" && message.method === "notifications/cancelled"
    return (cancelled ? this.#posts.get(message.params?.["requestId"] as JsonRpc.Id) : undefined) ?? this.#notice
  }

  #post(body: string, id: JsonRpc.Id | undefined): Effect.Effect<void> {
    const headers = { "content-type": "application/json" }
    return Effect.catch(
      this.#road.exchange(
        { method: "POST", url: this.#endpoint, headers, body },
        (reply) => is2xx(reply) ? Effect.void : this.#refusal(reply, id)
      ),
      (error) =>
        id === undefined
          ? Effect.logDebug(`A message did not reach the server: ${error.message}`)
          : Effect.sync(() => this.#road.refused(id, error))
    )
  }

  /** An error of the protocol may stand in the response, though it should come on the stream. */
  #refusal(reply: WireReply, id: JsonRpc.Id | undefined): Effect.Effect<void, TransportError> {
    return Effect.flatMap(errorText(reply, this.#road.maxMessage), (text) => {
      const failure = failureIn(text)
      if (failure === undefined || id === undefined || reply.status === 401 || reply.status === 403) {
        return Effect.flatMap(refusal(reply, text, failure), Effect.fail)
      }
      return Effect.sync(() => this.#road.deliver(JsonRpc.failure(id, failure.error)))
    })
  }
}

/** Asks for the stream, and hands over what comes until it ends. */
const listen = (
  road: Road,
  onText: (text: string) => TransportError | undefined
): Effect.Effect<void, TransportError> =>
  road.exchange({ method: "GET", url: road.url, headers: { accept: "text/event-stream" } }, (reply) => {
    if (!is2xx(reply)) {
      return Effect.flatMap(
        errorText(reply, road.maxMessage),
        (text) => Effect.flatMap(refusal(reply, text, failureIn(text)), Effect.fail)
      )
    }
    const type = mediaType(reply)
    return type === "text/event-stream"
      ? reply.pieces(onText)
      : Effect.fail(unusable(reply.status, `${type === "" ? "no media type" : type} instead of a stream of events`))
  })

/**
 * Asks the server for the stream, and waits for its `endpoint` event: 10 seconds by default. What comes before that is ignored.
 *
 * Fails with `Refused` where the server answers with something else, or names an endpoint at another origin; with `Lost` where the
 * stream ends first, or the event does not come in time.
 */
export const open = (road: Road, endpointTimeout: Duration.Input = "10 seconds"): Effect.Effect<Lane, TransportError> =>
  Effect.suspend(() => {
    let stream: Fiber.Fiber<void> | undefined
    const opened = Effect.callback<Lane, TransportError>((resume) => {
      let isOpen = false
      let isOver = false
      const over = (cause: TransportError): void => {
        if (isOver) return
        isOver = true
        if (isOpen) road.end({ _tag: "Lost", cause })
        else resume(Effect.fail(cause))
      }
      const event = (type: string, data: string): void => {
        if (isOver) return
        if (isOpen) {
          if (type === "message") road.deliver(JsonRpc.parseText(data))
          return
        }
        if (type !== "endpoint") return
        const endpoint = endpointOf(data, road.url)
        if (endpoint instanceof TransportError) return over(endpoint)
        isOpen = true
        resume(Effect.succeed(new LegacySse(road, endpoint)))
      }
      const reader = new Reader({ event, retry: () => {} }, road.maxMessage)
      const take = (text: string): TransportError | undefined =>
        isOver || reader.feed(text)
          ? undefined
          : lost(`An event of the stream has more than ${road.maxMessage} bytes (maxMessage)`)
      stream = road.fork(Effect.match(listen(road, take), {
        onFailure: over,
        onSuccess: () => over(lost("The server ended the stream"))
      }))
    })
    return opened.pipe(
      Effect.timeoutOrElse({
        duration: endpointTimeout,
        orElse: () => Effect.fail(lost("The server named no endpoint in time"))
      }),
      Effect.onError(() => stream === undefined ? Effect.void : Fiber.interrupt(stream))
    )
  })
