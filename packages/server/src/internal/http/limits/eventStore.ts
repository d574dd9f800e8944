/**
 * An in-memory store of the events of streams.
 */
import * as Effect from "effect/Effect"
import { type FixedBounds, fixedBounds } from "../../base/fixedBounds.ts"

/**
 * Stores the events of all streams of all sessions.
 *
 * A session numbers its streams, and each stream numbers its events, from 1 and without gaps; the two numbers are the
 * id of the event ("the ID MUST be globally unique across all streams within that session", "Event IDs SHOULD encode
 * sufficient information to identify the originating stream": 2025-11-25, transports, resumability). So the store does
 * not assign ids, and a remote store may write asynchronously: only `read` waits.
 */
export interface Store {
  /**
   * Stores an event. Called in the order of the events of a stream. It neither throws nor blocks; an event that it
   * cannot store is lost. `client` identifies the principal or the address that the session belongs to, so that a store
   * can share its space fairly.
   */
  readonly append: (session: string, stream: number, event: number, data: string, client?: string) => void
  /** Called when a stream is complete and no further events follow. Its events should be stored for a while. */
  readonly complete: (session: string, stream: number, client?: string) => void
  /** Called when a session has ended. Its events are no longer needed. */
  readonly forget: (session: string) => void
  /**
   * The data of all events of a stream after one of its events, 0 for all of them, in order; `undefined` if some of
   * them are no longer stored, or if there was no such event. It includes all events that were appended before the
   * call. The caller has verified that the session belongs to the reader.
   */
  readonly read: (
    session: string,
    stream: number,
    after: number
  ) => Effect.Effect<ReadonlyArray<string> | undefined>
  /**
   * Removes expired events; `now` in milliseconds of the monotonic clock. Called every 10 seconds after a stream was
   * completed, until it returns `false`: no remaining event will expire.
   */
  readonly sweep?: ((now: number) => boolean) | undefined
  /**
   * Succeeds when the other nodes of a fleet can read the events that were appended before. A shared store that writes them
   * later has it.
   */
  readonly flush?: Effect.Effect<void> | undefined
  /** The characters of all events that are stored in the memory of this process. They count for `maxRetainedBytes`. */
  readonly size?: number | undefined
  /** Removes events from memory until at most this many characters are left. A store with a `size` has it. */
  readonly trim?: ((maxChars: number) => void) | undefined
}

/** The stored events of one stream: the latest ones, without a gap. */
interface StoredStream {
  readonly session: StoredSession
  readonly number: number
  events: Array<string>
  /** The number of the latest event that is not stored. */
  lost: number
  complete: boolean
}

/** The sessions of one client that have events, its complete streams in the order of their completion, and its size. */
interface StoredClient {
  readonly key: string
  readonly sessions: Set<StoredSession>
  readonly complete: Set<StoredStream>
  size: number
}

/** The streams of one session, oldest first. */
interface StoredSession {
  readonly id: string
  readonly client: StoredClient
  readonly streams: Map<number, StoredStream>
  size: number
}

// Complete streams without stored events are bounded as well.
const maxComplete = 10_000

/**
 * The store in memory. At each bound the oldest events are removed, those of complete streams first; a client that
 * resumes before one of them is answered with 400 and cannot resume that stream. At the bound of all sessions, these are
 * the events of the client with the most.
 */
export class MemoryEventStore implements Store {
  readonly #bounds: FixedBounds
  readonly #sessions = new Map<string, StoredSession>()
  readonly #clients = new Map<string, StoredClient>()
  // The complete streams, in the order of their completion, with the time of the first sweep after it.
  readonly #complete = new Map<StoredStream, number | undefined>()
  #size = 0

  constructor(bounds: FixedBounds = fixedBounds) {
    this.#bounds = bounds
  }

  /** Characters of all stored events. */
  get size(): number {
    return this.#size
  }

  append(session: string, stream: number, event: number, data: string, client = ""): void {
    const entry = this.#entry(session, stream, client)
    const stored = entry.session
    const { maxEventChars, maxEventCharsPerSession, maxEventsPerStream } = this.#bounds
    if (data.length > maxEventCharsPerSession || data.length > maxEventChars || maxEventsPerStream === 0) {
      this.#lose(entry, entry.events.length)
      entry.lost = event
      return
    }
    if (entry.events.length === 0) entry.lost = event - 1
    entry.events.push(data)
    this.#resize(stored, data.length)
    if (entry.events.length > maxEventsPerStream) this.#lose(entry, 1)
    while (stored.size > maxEventCharsPerSession) this.#lose(oldest(stored), 1)
    if (this.#size > maxEventChars) this.trim(maxEventChars)
  }

  /** Removes events of the client with the most, again and again. */
  trim(maxChars: number): void {
    while (this.#size > maxChars) {
      let most: StoredClient | undefined
      let second = 0
      for (const client of this.#clients.values()) {
        if (most === undefined || client.size > most.size) {
          second = most?.size ?? 0
          most = client
        } else if (client.size > second) second = client.size
      }
      do this.#lose(this.#oldestOf(most!), 1)
      while (this.#size > maxChars && most!.size > second)
    }
  }

  complete(session: string, stream: number, client = ""): void {
    const entry = this.#entry(session, stream, client)
    entry.complete = true
    this.#complete.set(entry, undefined)
    entry.session.client.complete.add(entry)
    if (this.#complete.size <= maxComplete) return
    let most = entry.session.client
    for (const one of this.#clients.values()) if (one.complete.size > most.complete.size) most = one
    for (const first of most.complete) return this.#drop(first)
  }

  forget(session: string): void {
    for (const entry of [...this.#sessions.get(session)?.streams.values() ?? []]) this.#drop(entry)
  }

  read(session: string, stream: number, after: number): Effect.Effect<ReadonlyArray<string> | undefined> {
    return Effect.sync(() => {
      const entry = this.#sessions.get(session)?.streams.get(stream)
      if (entry === undefined || after < entry.lost || after > entry.lost + entry.events.length) return undefined
      return entry.events.slice(after - entry.lost)
    })
  }

  sweep(now: number): boolean {
    for (const [entry, since] of this.#complete) {
      if (since === undefined) this.#complete.set(entry, now)
      else if (now - since >= this.#bounds.eventLifetime) this.#drop(entry)
    }
    return this.#complete.size > 0
  }

  #entry(session: string, number: number, key: string): StoredStream {
    let stored = this.#sessions.get(session)
    if (stored === undefined) {
      let client = this.#clients.get(key)
      if (client === undefined) {
        this.#clients.set(key, client = { key, sessions: new Set(), complete: new Set(), size: 0 })
      }
      this.#sessions.set(session, stored = { id: session, client, streams: new Map(), size: 0 })
      client.sessions.add(stored)
    }
    let entry = stored.streams.get(number)
    if (entry === undefined) {
      entry = { session: stored, number, events: [], lost: 0, complete: false }
      stored.streams.set(number, entry)
    }
    return entry
  }

  /** Removes the first events of a stream. */
  #lose(entry: StoredStream, count: number): void {
    let size = 0
    for (const data of entry.events.splice(0, count)) size += data.length
    entry.lost += count
    this.#resize(entry.session, -size)
    if (entry.events.length === 0) this.#drop(entry)
  }

  /** Removes a stream, and its session with the last one. */
  #drop(entry: StoredStream): void {
    const stored = entry.session
    const { client } = stored
    this.#complete.delete(entry)
    client.complete.delete(entry)
    if (!stored.streams.delete(entry.number)) return
    this.#resize(stored, -entry.events.reduce((size, data) => size + data.length, 0))
    entry.events = []
    if (stored.streams.size > 0) return
    this.#sessions.delete(stored.id)
    client.sessions.delete(stored)
    if (client.sessions.size === 0) this.#clients.delete(client.key)
  }

  #oldestOf(client: StoredClient): StoredStream {
    for (const entry of client.complete) {
      if (entry.events.length > 0) return entry
      this.#drop(entry)
    }
    for (const stored of client.sessions) if (stored.size > 0) return oldest(stored)
    throw new Error("No event is stored")
  }

  #resize(stored: StoredSession, by: number): void {
    stored.size += by
    stored.client.size += by
    this.#size += by
  }
}

const oldest = (stored: StoredSession): StoredStream => {
  let found: StoredStream | undefined
  for (const entry of stored.streams.values()) {
    if (entry.events.length === 0) continue
    if (entry.complete) return entry
    found ??= entry
  }
  return found!
}
