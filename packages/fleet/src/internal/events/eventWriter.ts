/**
 * Writes the events of one node to the table that the nodes share.
 *
 * Events are gathered for some milliseconds and written together, one batch after the other, so that other nodes see the
 * events of a stream in order. A batch that fails is repeated for a short time. Then its events are lost, and the earlier
 * events of their streams are removed before a later one is written: such a stream is unknown up to that event, so that no
 * client resumes it with a gap. The time is at most half of the lease of a node, because another node may continue a stream
 * when the lease has ended.
 */
import * as Backoff from "@skein/runtime/Backoff"
import type * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import { type EventRange, type EventTable, NextRanges, type StreamEvent } from "./eventTable.ts"
import type { StoredStream, StoredStreams } from "./storedStreams.ts"

/** The times of the writer, in milliseconds, and the sizes of its batches. */
export const writerBounds = {
  /** How long events are gathered before they are written. */
  gatherTime: 3,
  /** Events of a batch, and characters of their data. */
  maxBatchEvents: 1_000,
  maxBatchChars: 1024 * 1024,
  /** How long an event may take to be written, or half of a shorter lease. Then it is lost. */
  writeTimeout: 2_000,
  /** Characters of the events that wait. At the bound those of the client with the most are lost. */
  maxPendingChars: 8 * 1024 * 1024
}

const retries: Backoff.Backoff = { initialDelay: 20, maxDelay: 500 }

interface PendingEvent extends StreamEvent {
  readonly stored: StoredStream
  readonly sequence: number
  readonly at: number
}

/** A caller that waits until the events up to one are written, in a batch that begins afterwards. */
interface Waiter {
  readonly sequence: number
  readonly batch: number
  readonly done: Deferred.Deferred<void>
}

export class EventWriter {
  readonly #table: EventTable
  readonly #streams: StoredStreams
  readonly #clock: Clock.Clock
  readonly writeTimeout: number
  readonly #ranges = new NextRanges()
  readonly #hasWork = Latch.makeUnsafe(false)
  #pending: Array<PendingEvent> = []
  // Characters of the events that are not written yet.
  #chars = 0
  #sequence = 0
  // The number of the batch that is written now, or next.
  #batch = 0
  #isWriting = false
  #waiters: Array<Waiter> = []
  #lostStreams = 0

  /** `leaseMillis` is the lease of the node. */
  constructor(table: EventTable, streams: StoredStreams, clock: Clock.Clock, leaseMillis: number) {
    this.writeTimeout = Math.min(writerBounds.writeTimeout, leaseMillis / 2)
    this.#table = table
    this.#streams = streams
    this.#clock = clock
  }

  /** Characters of the events that are not written yet. */
  get chars(): number {
    return this.#chars
  }

  /** Writes an event after those that were added before. */
  add(stored: StoredStream, event: number, data: string): void {
    const { number: stream, session } = stored
    const at = this.#clock.currentTimeMillisUnsafe()
    this.#pending.push({ session, stream, event, data, stored, sequence: ++this.#sequence, at })
    this.#chars += data.length
    const { maxPendingChars } = writerBounds
    if (this.#chars > maxPendingChars) this.trim(maxPendingChars * 7 / 8)
    this.#hasWork.openUnsafe()
  }

  /** Removes events of a stream, before those that are added afterwards are written. */
  remove({ isWritten, number: stream, session }: StoredStream, first: number, last: number): void {
    if (!isWritten) return
    this.#ranges.add({ session, stream, first, last })
    this.#hasWork.openUnsafe()
  }

  /** Loses events that wait, those of the client with the most first. */
  trim(maxChars: number): void {
    while (this.#pending.length > 0 && this.#chars > maxChars) {
      const chars = new Map<object, number>()
      for (const { data, stored: { client } } of this.#pending) {
        chars.set(client, (chars.get(client) ?? 0) + data.length)
      }
      const [largest] = [...chars].reduce((most, one) => one[1] > most[1] ? one : most)
      this.#lose(({ stored }) => stored.client === largest)
    }
  }

  /** Succeeds when all that was added and removed before is written. It waits as long as the table fails. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#isIdle) return Effect.void
    const done = Deferred.makeUnsafe<void>()
    this.#waiters.push({ sequence: this.#sequence, batch: this.#isWriting ? this.#batch + 1 : this.#batch, done })
    return Deferred.await(done)
  })

  /** Writes until it is interrupted. */
  readonly run: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(
      this.#hasWork.await.pipe(Effect.andThen(Effect.sleep(writerBounds.gatherTime)), Effect.andThen(this.#writeAll))
    )
  )

  readonly #writeAll: Effect.Effect<void> = Effect.suspend(() => this.#write(this.#writeNext))

  readonly #write = Effect.fnUntraced({ self: this as EventWriter }, function*(
    writeNext: Effect.Effect<Exit.Exit<void, unknown>>
  ): Effect.fn.Return<void> {
    for (let attempt = 0; !this.#isIdle;) {
      if (attempt > 0) {
        const since = this.#clock.currentTimeMillisUnsafe() - this.writeTimeout
        this.#lose(({ at }) => at <= since)
      }
      if (this.#lostStreams > 0) {
        yield* Effect.logWarning("events were not stored in time: clients cannot resume their streams before them", {
          streams: this.#lostStreams
        })
        this.#lostStreams = 0
      }
      const exit = yield* writeNext
      if (Exit.isSuccess(exit)) attempt = 0
      else {
        if (attempt === 0) yield* Effect.logWarning("failed to store events of streams", exit.cause)
        yield* Effect.sleep(Backoff.delay(retries, ++attempt))
      }
    }
    this.#hasWork.closeUnsafe()
    // The last events may have been discarded instead.
    this.#settle()
  })

  readonly #writeNext: Effect.Effect<Exit.Exit<void, unknown>> = Effect.suspend(() => {
    const events = this.#takeEvents()
    const ranges = this.#ranges.take()
    this.#isWriting = true
    return this.#table.write({ ranges, events }).pipe(
      Effect.timeout(this.writeTimeout),
      Effect.exit,
      Effect.tap((exit) => Effect.sync(() => this.#written(ranges, events, Exit.isSuccess(exit))))
    )
  })

  #written(ranges: ReadonlyArray<EventRange>, events: ReadonlyArray<PendingEvent>, isStored: boolean): void {
    this.#isWriting = false
    if (!isStored) {
      for (const range of ranges) this.#ranges.add(range)
      this.#pending = [...events, ...this.#pending]
      return
    }
    for (const { data } of events) this.#chars -= data.length
    this.#batch++
    this.#settle()
  }

  #settle(): void {
    const isIdle = this.#isIdle
    const written = this.#pending[0]?.sequence ?? Infinity
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) {
      if (isIdle || (waiter.batch < this.#batch && waiter.sequence < written)) {
        Deferred.doneUnsafe(waiter.done, Effect.void)
      } else this.#waiters.push(waiter)
    }
  }

  #takeEvents(): ReadonlyArray<PendingEvent> {
    this.discardLost()
    const { maxBatchChars, maxBatchEvents } = writerBounds
    let chars = 0
    let count = 0
    for (const { data, stored } of this.#pending) {
      if (count === maxBatchEvents || (count > 0 && chars + data.length > maxBatchChars)) break
      stored.isWritten = true
      chars += data.length
      count++
    }
    return this.#pending.splice(0, count)
  }

  get #isIdle(): boolean {
    return this.#pending.length === 0 && this.#ranges.isEmpty && !this.#isWriting
  }

  /** Loses events that wait: their streams are unknown up to the last of them. */
  #lose(isLost: (event: PendingEvent) => boolean): void {
    const lost = new Map<StoredStream, number>()
    for (const one of this.#pending) if (isLost(one)) lost.set(one.stored, one.event)
    for (const [stored, last] of lost) {
      this.#streams.lose(stored, last)
      this.remove(stored, 0, last)
    }
    this.#lostStreams += lost.size
    this.discardLost()
  }

  /** Removes the events that are lost, or whose streams were dropped, from those that wait. */
  discardLost(): void {
    this.#pending = this.#pending.filter(({ data, event, stored }) => {
      if (event > stored.lost) return true
      this.#chars -= data.length
      return false
    })
  }
}
