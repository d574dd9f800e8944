/**
 * An event store on a table that the nodes share: any node resumes the streams of all.
 */
import * as Backoff from "@skein/runtime/Backoff"
import * as Options from "@skein/runtime/Options"
import type { Store } from "@skein/server/EventStore"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { eventsAfter, type EventTable } from "./eventTable.ts"
import { EventWriter } from "./eventWriter.ts"
import { StoredStreams } from "./storedStreams.ts"

/** The bounds of the events of one node. */
export interface Bounds {
  /** Bytes of the events of one client (its principal or its network), with 256 more for each event: 4 MiB by default. */
  readonly maxBytesPerClient?: number | undefined
  /** Bytes of the events of all clients: 64 MiB by default. */
  readonly maxBytes?: number | undefined
  /** How long the events of a stream that is not complete are stored: 1 hour by default. */
  readonly lifetime?: Duration.Input | undefined
}

const resolveBounds = (bounds: Bounds) =>
  Options.resolve<Bounds>(
    bounds,
    { maxBytesPerClient: 4 * 1024 * 1024, maxBytes: 64 * 1024 * 1024 },
    { lifetime: "1 hour" }
  )

/** The lease of the node of this process, in milliseconds: a service that a fleet provides beside its own. */
export class Lease extends Context.Service<Lease, number>()("@skein/fleet/internal/Lease") {}

/** The times of the store, in milliseconds. */
export const storeBounds = {
  /** How long the events of a complete stream are stored. */
  completeLifetime: 300_000,
  /** How long a reader waits for the table, and for an event that another node may be writing. */
  readTimeout: 5_000,
  lateEventTimeout: 1_000,
  /** How often expired events are removed. */
  sweepInterval: 30_000,
  /** How many streams of other nodes are remembered that clients have resumed here. */
  maxResumed: 10_000
}

const retries: Backoff.Backoff = { initialDelay: 20, maxDelay: 500 }

const keyOf = (session: string, stream: number): string => `${stream} ${session}`

const forever = Number.MAX_SAFE_INTEGER

class SharedEventStore implements Store {
  readonly #table: EventTable
  readonly #lifetime: number
  readonly #clock: Clock.Clock
  readonly #streams: StoredStreams
  readonly writer: EventWriter
  // The streams of other nodes that clients have resumed here.
  readonly #resumed = new Set<string>()

  constructor(table: EventTable, bounds: ReturnType<typeof resolveBounds>, clock: Clock.Clock, leaseMillis: number) {
    this.#table = table
    this.#lifetime = bounds.lifetime
    this.#clock = clock
    this.#streams = new StoredStreams(bounds, (stream, last) => this.writer.remove(stream, 0, last))
    this.writer = new EventWriter(table, this.#streams, clock, leaseMillis)
  }

  get size(): number {
    return this.writer.chars
  }

  trim(maxChars: number): void {
    this.writer.trim(maxChars)
  }

  get flush(): Effect.Effect<void> {
    return this.writer.flush
  }

  append(session: string, number: number, event: number, data: string, client = ""): void {
    const now = this.#clock.currentTimeMillisUnsafe()
    const stream = this.#streams.open(session, number, client, now)
    // Another node has stored the earlier events, and may have stored later ones that no client has received.
    if (this.#resumed.delete(keyOf(session, number))) {
      stream.isWritten = true
      this.writer.remove(stream, event, forever)
    }
    if (this.#streams.add(stream, event, data, now)) this.writer.add(stream, event, data)
  }

  complete(session: string, stream: number): void {
    this.#streams.complete(session, stream, this.#clock.currentTimeMillisUnsafe())
  }

  /** All nodes forget a session, and each removes what it has written. */
  forget(session: string): void {
    const streams = this.#streams.forget(session)
    for (const stream of streams) this.writer.remove(stream, 0, forever)
    if (streams.length > 0) this.writer.discardLost()
  }

  read(session: string, number: number, after: number): Effect.Effect<ReadonlyArray<string> | undefined> {
    return Effect.suspend(() => {
      const stream = this.#streams.find(session, number)
      if (stream !== undefined && after < stream.lost) return Effect.undefined
      if (stream === undefined) this.#remember(keyOf(session, number))
      const isOwn = stream !== undefined && after <= (stream.events.at(-1) ?? stream.lost)
      return this.writer.flush.pipe(
        Effect.andThen(this.#readLate(session, number, after, isOwn ? 0 : storeBounds.lateEventTimeout)),
        Effect.timeoutOption(storeBounds.readTimeout),
        Effect.flatMap(Option.match({
          onNone: () => Effect.as(Effect.logWarning("failed to read the events of a stream in time"), undefined),
          onSome: Effect.succeed
        }))
      )
    })
  }

  #remember(key: string): void {
    this.#resumed.add(key)
    if (this.#resumed.size <= storeBounds.maxResumed) return
    for (const oldest of this.#resumed) return void this.#resumed.delete(oldest)
  }

  /** Reads again for some time if the node of the stream may still write the event that the client has received. */
  #readLate(
    session: string,
    stream: number,
    after: number,
    timeout: number
  ): Effect.Effect<ReadonlyArray<string> | undefined> {
    return Effect.gen({ self: this }, function*() {
      const end = this.#clock.currentTimeMillisUnsafe() + timeout
      for (let attempt = 1;; attempt++) {
        const stored = yield* this.#readStored(session, stream, after)
        if (stored.length > 0 || after === 0 || this.#clock.currentTimeMillisUnsafe() >= end) {
          return eventsAfter(stored, after)
        }
        yield* Effect.sleep(Backoff.delay(retries, attempt))
      }
    })
  }

  #readStored(
    session: string,
    stream: number,
    first: number,
    attempt = 1
  ): Effect.Effect<ReadonlyArray<{ readonly event: number; readonly data: string }>> {
    return Effect.catch(this.#table.read(session, stream, first), (error) =>
      Effect.andThen(
        attempt === 1 ? Effect.logWarning("failed to read the events of a stream: reading again", error) : Effect.void,
        Effect.delay(
          Effect.suspend(() => this.#readStored(session, stream, first, attempt + 1)),
          Backoff.delay(retries, attempt)
        )
      ))
  }

  /** Removes the events that have expired: what this node has written, and what nodes have left that have gone. */
  readonly removeExpired: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    const now = this.#clock.currentTimeMillisUnsafe()
    for (const stream of this.#streams.expired(now - storeBounds.completeLifetime, now - this.#lifetime)) {
      this.#streams.drop(stream)
      this.writer.remove(stream, 0, forever)
    }
    const hasMore = yield* Effect.catch(
      this.#table.removeExpired,
      (error) => Effect.as(Effect.logWarning("failed to remove the events that have expired", error), false)
    )
    if (hasMore) yield* Effect.suspend(() => this.removeExpired)
  })
}

/**
 * Makes a store on a table, whose events expire after a number of milliseconds. When the scope closes, the store writes the
 * events that wait, for 2 seconds at most.
 */
export const makeSharedEventStore = (
  bounds: Bounds,
  makeTable: (lifetime: number) => EventTable
): Effect.Effect<Store, never, Scope.Scope> =>
  Effect.gen(function*() {
    const resolved = resolveBounds(bounds)
    const lease = Option.getOrElse(yield* Effect.serviceOption(Lease), () => Infinity)
    const store = new SharedEventStore(makeTable(resolved.lifetime), resolved, yield* Clock.Clock, lease)
    yield* Effect.forkScoped(store.writer.run)
    yield* Effect.forkScoped(Effect.forever(Effect.delay(store.removeExpired, storeBounds.sweepInterval)))
    yield* Effect.addFinalizer(() => Effect.timeoutOption(store.flush, store.writer.writeTimeout))
    return store
  })
