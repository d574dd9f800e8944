/**
 * A session of a faulty server, up to 2025-11-25: its event streams, and the requests that the client has not answered
 * yet.
 */
import { ClientRequests } from "./protocolHandler.ts"
import type { Event, SseResponse } from "./sseResponse.ts"

/** The events of one stream, and the HTTP response that carries it now, if there is one. */
export class EventStream {
  readonly name: string
  readonly #events: Array<Event> = []
  readonly #withIds: boolean
  #response: SseResponse | undefined = undefined
  /** Whether the stream has ended. */
  ended = false

  constructor(name: string, withIds: boolean) {
    this.name = name
    this.#withIds = withIds
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
    if (this.ended) response.end()
  }

  end(): void {
    this.ended = true
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
  readonly requests = new ClientRequests()

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
}
