/**
 * The events of streams that one node has stored: their numbers and sizes, without their data. Each node removes its own
 * events at a bound, so that it need not read those of the others.
 */

/** The bounds of the stored events of one node. */
export interface StreamBounds {
  /** Bytes of the events of one client. */
  readonly maxBytesPerClient: number
  /** Bytes of the events of all clients. */
  readonly maxBytes: number
}

/** The bytes that an event takes beside its data, in the store and its index, and those of the first one of a stream. */
const eventBytes = 256
const firstEventBytes = 768

/** The events of one stream that this node has stored. */
export interface StoredStream {
  readonly session: string
  readonly number: number
  readonly client: StoredClient
  /** The numbers of the events and their sizes, oldest first. */
  readonly events: Array<number>
  readonly sizes: Array<number>
  /** The number of the latest event that is not stored. */
  lost: number
  /** Whether the store has, or may have, events of it: those of another node included. */
  isWritten: boolean
  /** When its latest event was stored, and when it was completed, in milliseconds. */
  usedAt: number
  completedAt: number | undefined
}

interface StoredClient {
  readonly key: string
  /** Its streams with events, in the order of their first ones, and those that are complete. */
  readonly streams: Set<StoredStream>
  readonly complete: Set<StoredStream>
  bytes: number
}

/** The streams of one node. `onRemove` is called with a stream and the last event that is removed, at a bound. */
export class StoredStreams {
  readonly #bounds: StreamBounds
  readonly #onRemove: (stream: StoredStream, last: number) => void
  readonly #sessions = new Map<string, Map<number, StoredStream>>()
  readonly #clients = new Map<string, StoredClient>()
  #bytes = 0

  constructor(bounds: StreamBounds, onRemove: (stream: StoredStream, last: number) => void) {
    this.#bounds = bounds
    this.#onRemove = onRemove
  }

  /** Bytes of all stored events. */
  get bytes(): number {
    return this.#bytes
  }

  find(session: string, number: number): StoredStream | undefined {
    return this.#sessions.get(session)?.get(number)
  }

  open(session: string, number: number, client: string, now: number): StoredStream {
    let streams = this.#sessions.get(session)
    if (streams === undefined) this.#sessions.set(session, streams = new Map())
    let stream = streams.get(number)
    if (stream === undefined) {
      let owner = this.#clients.get(client)
      if (owner === undefined) {
        this.#clients.set(client, owner = { key: client, streams: new Set(), complete: new Set(), bytes: 0 })
      }
      stream = {
        session,
        number,
        client: owner,
        events: [],
        sizes: [],
        lost: 0,
        isWritten: false,
        usedAt: now,
        completedAt: undefined
      }
      streams.set(number, stream)
      owner.streams.add(stream)
    }
    return stream
  }

  /** Counts an event, and removes older ones at a bound. Returns whether the event itself can be stored. */
  add(stream: StoredStream, event: number, data: string, now: number): boolean {
    const { maxBytes, maxBytesPerClient } = this.#bounds
    const bytes = Buffer.byteLength(data) + (stream.events.length === 0 ? firstEventBytes : eventBytes)
    if (bytes > maxBytesPerClient || bytes > maxBytes) {
      this.#remove(stream, event)
      return false
    }
    stream.events.push(event)
    stream.sizes.push(bytes)
    stream.usedAt = now
    this.#resize(stream, bytes)
    while (stream.client.bytes > maxBytesPerClient) this.#removeOldest(stream.client)
    // A part of the room is freed at once, because each search for the largest client takes time.
    if (this.#bytes > maxBytes) this.#reduce(maxBytes * 7 / 8)
    return stream.lost < event
  }

  /** Removes the events up to one of a stream. */
  lose(stream: StoredStream, last: number): void {
    let bytes = 0
    while (stream.events.length > 0 && stream.events[0]! <= last) {
      stream.events.shift()
      bytes += stream.sizes.shift()!
    }
    stream.lost = Math.max(stream.lost, last)
    this.#resize(stream, -bytes)
  }

  complete(session: string, number: number, now: number): void {
    const stream = this.find(session, number)
    if (stream === undefined) return
    stream.completedAt = now
    stream.client.complete.add(stream)
  }

  /** Forgets the streams of a session, and returns them. */
  forget(session: string): ReadonlyArray<StoredStream> {
    const streams = [...this.#sessions.get(session)?.values() ?? []]
    for (const stream of streams) this.drop(stream)
    return streams
  }

  drop(stream: StoredStream): void {
    this.lose(stream, Number.MAX_SAFE_INTEGER)
    const { client, number, session } = stream
    client.complete.delete(stream)
    client.streams.delete(stream)
    if (client.streams.size === 0) this.#clients.delete(client.key)
    const streams = this.#sessions.get(session)
    if (streams?.get(number) === stream) streams.delete(number)
    if (streams?.size === 0) this.#sessions.delete(session)
  }

  /** The streams that were completed before a time, or used last before another one. */
  expired(completedBefore: number, usedBefore: number): ReadonlyArray<StoredStream> {
    const expired: Array<StoredStream> = []
    for (const streams of this.#sessions.values()) {
      for (const stream of streams.values()) {
        const { completedAt = Infinity, usedAt } = stream
        if (completedAt < completedBefore || usedAt < usedBefore) expired.push(stream)
      }
    }
    return expired
  }

  /** Removes events of the client with the most, again and again. */
  #reduce(maxBytes: number): void {
    while (this.#bytes > maxBytes) {
      let most: StoredClient | undefined
      let second = 0
      for (const client of this.#clients.values()) {
        if (most === undefined || client.bytes > most.bytes) {
          second = most?.bytes ?? 0
          most = client
        } else second = Math.max(second, client.bytes)
      }
      do this.#removeOldest(most!)
      while (this.#bytes > maxBytes && most!.bytes > second)
    }
  }

  /** Removes the oldest complete stream of a client, or the older half of the events of its oldest stream. */
  #removeOldest(client: StoredClient): void {
    for (const streams of [client.complete, client.streams]) {
      for (const stream of streams) {
        const { events } = stream
        const isComplete = stream.completedAt !== undefined
        const last = events[isComplete ? events.length - 1 : Math.floor((events.length - 1) / 2)]
        if (last !== undefined) this.#remove(stream, last)
        if (isComplete) this.drop(stream)
        if (last !== undefined) return
      }
    }
    throw new Error("no event is stored")
  }

  #remove(stream: StoredStream, last: number): void {
    this.lose(stream, last)
    this.#onRemove(stream, last)
  }

  #resize(stream: StoredStream, by: number): void {
    stream.client.bytes += by
    this.#bytes += by
  }
}
