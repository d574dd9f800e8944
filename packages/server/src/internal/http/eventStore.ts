/**
 * The events of streams, in memory.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/**
 * The events of all streams of all sessions.
 *
 * A session numbers its streams, and each stream its events, from 1 and without gaps; the two numbers are the event's id ("the
 * ID MUST be globally unique across all streams within that session", "Event IDs SHOULD encode sufficient information to
 * identify the originating stream": 2025-11-25, transports, resumability). So nobody waits for the store to learn an id, and a
 * store that is elsewhere writes in its own time: `read` is what waits.
 */
export interface Store {
  /** Keeps an event. Called in the order of the events of a stream. It neither throws nor blocks; what it cannot keep is lost. */
  readonly append: (session: string, stream: number, event: number, data: string) => void
  /** Nothing will be appended to a stream any more. Its events should be kept for a while. */
  readonly complete: (session: string, stream: number) => void
  /** Nothing of a session is needed any more. */
  readonly forget: (session: string) => void
  /**
   * The data of all events of a stream after one of its events, 0 for all of them, in order; `undefined` where they are not all
   * there any more, or there never was such an event. What was appended before is among them, so that an event is either read or
   * still to come. The session has been checked to be the reader's.
   */
  readonly read: (
    session: string,
    stream: number,
    after: number
  ) => Effect.Effect<ReadonlyArray<string> | undefined>
  /**
   * What is too old may go; `now` in milliseconds of the monotonic clock. Called every 10 seconds after a stream was completed, for as
   * long as the answer is `true`: there is more that will be too old one day.
   */
  readonly sweep?: ((now: number) => boolean) | undefined
}

/**
 * What is kept in memory. At each bound the oldest events go first, those of streams that are complete before others; a client
 * that asks for what follows one of them is answered with 400 and can read no more of that stream.
 */
export interface Bounds {
  /** Events of one stream: 1,000 by default. */
  readonly maxEventsPerStream?: number | undefined
  /** Characters of all events of one session: 1 Mi by default. A larger event is not kept. */
  readonly maxCharsPerSession?: number | undefined
  /** Characters of all events of all sessions: 32 Mi by default. */
  readonly maxTotalChars?: number | undefined
  /**
   * How long the events of a stream that is complete are kept: 5 minutes by default, and up to 20 seconds more. A client that is told
   * to come back later than that comes too late.
   */
  readonly retention?: Duration.Input | undefined
}

/** The events of one stream that are kept: the last ones, without a gap. */
class Kept {
  readonly session: Shelf
  readonly number: number
  events: Array<string> = []
  /** The number of the last event that was not kept, or not any more. */
  lost = 0
  complete = false

  constructor(session: Shelf, number: number) {
    this.session = session
    this.number = number
  }

  get last(): number {
    return this.lost + this.events.length
  }
}

/** The streams of one session, oldest first. */
class Shelf {
  readonly id: string
  readonly streams = new Map<number, Kept>()
  size = 0

  constructor(id: string) {
    this.id = id
  }
}

// Those of which there are no events left to count are bounded as well.
const maxComplete = 10_000

const orElse = (value: number | undefined, fallback: number): number => Math.max(0, value ?? fallback)

export class MemoryEventStore implements Store {
  readonly #maxEvents: number
  readonly #maxPerSession: number
  readonly #maxTotal: number
  readonly #retention: number
  readonly #shelves = new Map<string, Shelf>()
  // Those that are complete, in the order in which they became so. The first sweep after that says when that was.
  readonly #complete = new Map<Kept, number | undefined>()
  #size = 0

  constructor(bounds: Bounds = {}) {
    this.#maxEvents = orElse(bounds.maxEventsPerStream, 1_000)
    this.#maxPerSession = orElse(bounds.maxCharsPerSession, 1024 * 1024)
    this.#maxTotal = orElse(bounds.maxTotalChars, 32 * 1024 * 1024)
    this.#retention = Duration.toMillis(bounds.retention ?? 300_000)
  }

  /** Characters of all events that are kept. */
  get size(): number {
    return this.#size
  }

  append(session: string, stream: number, event: number, data: string): void {
    const kept = this.#kept(session, stream)
    const shelf = kept.session
    if (data.length > this.#maxPerSession || data.length > this.#maxTotal || this.#maxEvents === 0) {
      this.#lose(kept, kept.events.length)
      kept.lost = event
      return
    }
    if (kept.events.length === 0) kept.lost = event - 1
    kept.events.push(data)
    shelf.size += data.length
    this.#size += data.length
    if (kept.events.length > this.#maxEvents) this.#lose(kept, 1)
    while (shelf.size > this.#maxPerSession) this.#lose(oldest(shelf), 1)
    while (this.#size > this.#maxTotal) this.#lose(this.#oldest(), 1)
  }

  complete(session: string, stream: number): void {
    const kept = this.#kept(session, stream)
    kept.complete = true
    this.#complete.set(kept, undefined)
    if (this.#complete.size > maxComplete) { for (const [first] of this.#complete) return this.#drop(first) }
  }

  forget(session: string): void {
    const shelf = this.#shelves.get(session)
    if (shelf === undefined) return
    this.#shelves.delete(session)
    this.#size -= shelf.size
    for (const kept of shelf.streams.values()) this.#complete.delete(kept)
  }

  read(session: string, stream: number, after: number): Effect.Effect<ReadonlyArray<string> | undefined> {
    return Effect.sync(() => {
      const kept = this.#shelves.get(session)?.streams.get(stream)
      if (kept === undefined || after < kept.lost || after > kept.last) return undefined
      return kept.events.slice(after - kept.lost)
    })
  }

  sweep(now: number): boolean {
    for (const [kept, since] of this.#complete) {
      if (since === undefined) this.#complete.set(kept, now)
      else if (now - since >= this.#retention) this.#drop(kept)
    }
    return this.#complete.size > 0
  }

  #kept(session: string, number: number): Kept {
    let shelf = this.#shelves.get(session)
    if (shelf === undefined) this.#shelves.set(session, shelf = new Shelf(session))
    let kept = shelf.streams.get(number)
    if (kept === undefined) shelf.streams.set(number, kept = new Kept(shelf, number))
    return kept
  }

  /** Forgets the first events of a stream. */
  #lose(kept: Kept, count: number): void {
    let size = 0
    for (const data of kept.events.splice(0, count)) size += data.length
    kept.lost += count
    kept.session.size -= size
    this.#size -= size
    if (kept.events.length === 0) this.#drop(kept)
  }

  /** Forgets a stream. */
  #drop(kept: Kept): void {
    this.#complete.delete(kept)
    const shelf = kept.session
    if (!shelf.streams.delete(kept.number)) return
    for (const data of kept.events) {
      shelf.size -= data.length
      this.#size -= data.length
    }
    kept.events = []
    if (shelf.streams.size === 0) this.#shelves.delete(shelf.id)
  }

  #oldest(): Kept {
    for (const kept of this.#complete.keys()) {
      if (kept.events.length > 0) return kept
      this.#drop(kept)
    }
    for (const shelf of this.#shelves.values()) if (shelf.size > 0) return oldest(shelf)
    throw new Error("Nothing is kept")
  }
}

const oldest = (shelf: Shelf): Kept => {
  let found: Kept | undefined
  for (const kept of shelf.streams.values()) {
    if (kept.events.length === 0) continue
    if (kept.complete) return kept
    found ??= kept
  }
  return found!
}
