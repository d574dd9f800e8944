/** A table of events in memory, which several stores share and which can fail. */
import { FleetError } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import type { EventBatch, EventTable } from "../../src/internal/events/eventTable.ts"

export class MemoryTable implements EventTable {
  readonly streams = new Map<string, Map<number, string>>()
  readonly batches: Array<EventBatch> = []
  /** Whether the next operations fail: before they have an effect, or after it. */
  failure: "before" | "after" | undefined = undefined
  /** Milliseconds that a write takes. */
  delay = 0

  #operation<A>(run: () => A): Effect.Effect<A, FleetError> {
    return Effect.suspend(() => {
      if (this.failure === "before") return Effect.fail(new FleetError({ message: "the database is down" }))
      const result = run()
      return this.failure === "after"
        ? Effect.fail(new FleetError({ message: "the connection is lost" }))
        : Effect.succeed(result)
    })
  }

  write(batch: EventBatch): Effect.Effect<void, FleetError> {
    return Effect.delay(this.#operation(() => this.#write(batch)), this.delay)
  }

  #write(batch: EventBatch): void {
    this.batches.push(batch)
    const { events, ranges } = batch
    for (const { first, last, session, stream } of ranges) {
      const rows = this.streams.get(`${session}/${stream}`)
      for (const event of [...rows?.keys() ?? []]) if (event >= first && event <= last) rows!.delete(event)
    }
    for (const { data, event, session, stream } of events) {
      const key = `${session}/${stream}`
      const rows = this.streams.get(key) ?? new Map<number, string>()
      this.streams.set(key, rows)
      if (!rows.has(event)) rows.set(event, data)
    }
  }

  read(session: string, stream: number, first: number) {
    return this.#operation(() =>
      Array.from(this.streams.get(`${session}/${stream}`) ?? [], ([event, data]) => ({ event, data }))
        .filter(({ event }) => event >= first)
        .toSorted((a, b) => a.event - b.event)
    )
  }

  readonly removeExpired = Effect.succeed(false)

  /** The numbers of the stored events of a stream. */
  numbers(session: string, stream: number): ReadonlyArray<number> {
    return [...this.streams.get(`${session}/${stream}`)?.keys() ?? []].toSorted((a, b) => a - b)
  }
}
