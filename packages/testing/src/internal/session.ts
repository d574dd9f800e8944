/**
 * A session of a faulty server, up to 2025-11-25: its event streams, and the requests that the client has not answered
 * yet.
 */
import * as Effect from "effect/Effect"
import type { Json } from "./faultyTexts.ts"
import type { Event, SseResponse } from "./sseResponse.ts"

/** The events of one stream, and the HTTP response that carries it now, if there is one. */
export class EventStream {
  readonly name: string
  readonly #events: Array<Event> = []
  readonly #withIds: boolean
  #response: SseResponse | undefined = undefined
  #ended = false

  constructor(name: string, withIds: boolean) {
    this.name = name
    this.#withIds = withIds
  }

  /** Whether the stream has ended. */
  get ended(): boolean {
    return this.#ended
  }

  add(text: string, event?: string): void {
    const id = this.#withIds ? `${this.name}_${this.#events.length}` : undefined
    const added = { id, text, event }
    if (this.#withIds) this.#events.push(added)
    this.#response?.send(added)
  }

  /** Continues the stream on that response. With `after`, the events that follow that one are sent first. */
  attach(response: SseResponse, after?: number): void {
    this.#response = response
    if (after !== undefined) { for (const event of this.#events.slice(after + 1)) response.send(event) }
    if (this.#ended) response.end()
  }

  end(): void {
    this.#ended = true
    this.#response?.end()
  }
}

/** The streams of one session, and the requests that its client must answer. */
export class Session {
  readonly id: string
  /** The standalone SSE stream (GET). */
  readonly standalone: EventStream
  readonly #resumable: boolean
  readonly #streams = new Map<string, EventStream>()
  readonly #pending = new Map<unknown, (response: Effect.Effect<Json>) => void>()
  #requestCount = 0

  constructor(id: string, resumable: boolean) {
    this.id = id
    this.#resumable = resumable
    this.standalone = this.stream()
  }

  stream(): EventStream {
    const stream = new EventStream(`s${this.#streams.size}`, this.#resumable)
    this.#streams.set(stream.name, stream)
    return stream
  }

  /** The stream that an event belongs to, and the position of the event in it. */
  find(eventId: string): readonly [EventStream, number] | undefined {
    const [name = "", at = ""] = eventId.split("_")
    const stream = this.#streams.get(name)
    return stream === undefined || !/^\d+$/.test(at) ? undefined : [stream, Number(at)]
  }

  /** Sends a request to the client on a stream and waits for the response. */
  request(stream: EventStream, method: string, params: Json): Effect.Effect<Json> {
    return Effect.callback<Json>((resume) => {
      const id = `faulty-${this.#requestCount++}`
      this.#pending.set(id, resume)
      stream.add(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
      return Effect.sync(() => void this.#pending.delete(id))
    })
  }

  /** Completes the pending request that a response of the client belongs to. */
  complete(response: Json): void {
    const resume = this.#pending.get(response["id"])
    this.#pending.delete(response["id"])
    resume?.(Effect.succeed(response))
  }
}
