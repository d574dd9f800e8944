/**
 * The storage of events that the nodes share: the part of an event store that differs between databases.
 */
import type * as Effect from "effect/Effect"

/** An event of a stream. */
export interface StreamEvent {
  readonly session: string
  readonly stream: number
  readonly event: number
  readonly data: string
}

/** The events of a stream from one number to another, both included. */
export interface EventRange {
  readonly session: string
  readonly stream: number
  readonly first: number
  readonly last: number
}

/** Changes of the table, in this order. */
export interface EventBatch {
  /** Events to remove. */
  readonly ranges: ReadonlyArray<EventRange>
  /** Events to add, in the order of each stream. */
  readonly events: ReadonlyArray<StreamEvent>
}

export interface EventTable {
  /**
   * Writes a batch. Readers see the events of a stream in order. After a failure it is called with the same events again,
   * and ignores those that are stored already.
   */
  readonly write: (batch: EventBatch) => Effect.Effect<void, unknown>
  /** The stored events of a stream from `first` on, in order. */
  readonly read: (
    session: string,
    stream: number,
    first: number
  ) => Effect.Effect<ReadonlyArray<{ readonly event: number; readonly data: string }>, unknown>
  /** Removes a bounded number of expired events. Returns whether there may be more. */
  readonly removeExpired: Effect.Effect<boolean, unknown>
}

/** The ranges to remove next: at most two of each stream. */
export class NextRanges {
  #ranges = new Map<string, EventRange>()

  get isEmpty(): boolean {
    return this.#ranges.size === 0
  }

  /** Adds the events up to `last`, or from `first` on. */
  add(range: EventRange): void {
    const { first, last, session, stream } = range
    const key = `${first === 0 ? "<" : ">"}${stream} ${session}`
    const known = this.#ranges.get(key)
    this.#ranges.set(
      key,
      known === undefined
        ? range
        : { session, stream, first: Math.min(first, known.first), last: Math.max(last, known.last) }
    )
  }

  take(): ReadonlyArray<EventRange> {
    const ranges = [...this.#ranges.values()]
    this.#ranges = new Map()
    return ranges
  }
}

/**
 * The data of the events after one, of the stored ones from it on; undefined if there is a gap, or if none of them shows that
 * there was such an event.
 */
export const eventsAfter = (
  stored: ReadonlyArray<{ readonly event: number; readonly data: string }>,
  after: number
): ReadonlyArray<string> | undefined => {
  const rest = stored[0]?.event === after ? stored.slice(1) : stored
  if (rest === stored && rest[0]?.event !== after + 1) return undefined
  return rest.every(({ event }, index) => event === after + 1 + index) ? rest.map(({ data }) => data) : undefined
}
