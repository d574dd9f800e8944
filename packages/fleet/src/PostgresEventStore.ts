/**
 * An event store in a PostgreSQL database, for the nodes of a fleet: a client that reconnects with `Last-Event-ID` gets the
 * messages that it has missed from any node. It creates its table, `skein_fleet_events`, when the layer is built.
 *
 * - **Batches**: the events of a few milliseconds are written in one statement. A node that is killed loses the events that
 *   it has not written yet.
 * - **Failures**: an event that is not stored within 2 seconds, or half of the `leaseTimeout` of the fleet if that is less, is
 *   lost. Its stream then cannot be resumed from before that event: a client is never sent the later events without the lost
 *   one. Provide the fleet to the store, too, as below, so that it knows the lease. A reader waits 5 seconds for the database.
 * - **Bounds**: each node bounds the events that it has written, so there are at most `maxBytes` for each node. At a bound
 *   the oldest events are removed, those of complete streams first: at `maxBytesPerClient` those of the client, and at
 *   `maxBytes` those of the client with the most. A larger event is not stored.
 * - **Expiry**: the events of a complete stream are removed after 5 minutes, and those of all others after `lifetime`, also
 *   if their node has gone.
 *
 * The table is `UNLOGGED`: when the database crashes, it is empty, and clients cannot resume the streams before the crash.
 * The events are not encrypted.
 *
 * @example
 * const listening = NodeHttp.layer({ port: 8080 }).pipe(
 *   Layer.provide(server),
 *   Layer.provide(PostgresEventStore.layer()),
 *   Layer.provide(PostgresFleet.layer()),
 *   Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL }))
 * )
 */
import * as EventStore from "@skein/server/EventStore"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { EventBatch, EventTable } from "./internal/events/eventTable.ts"
import { type Bounds, makeSharedEventStore } from "./internal/events/sharedEventStore.ts"

export type { Bounds } from "./internal/events/sharedEventStore.ts"

/** How many rows one statement deletes. */
const maxExpired = 5_000

const createTable = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> =>
  sql.withTransaction(Effect.gen(function*() {
    // Of two nodes that start at once, one would fail: IF NOT EXISTS does not wait for the other.
    yield* sql`SELECT pg_advisory_xact_lock(7061826311411)`
    yield* sql`CREATE UNLOGGED TABLE IF NOT EXISTS skein_fleet_events (session TEXT COLLATE "C" NOT NULL,
      stream BIGINT NOT NULL, event BIGINT NOT NULL, data TEXT NOT NULL,
      stored_at TIMESTAMPTZ NOT NULL DEFAULT now(), PRIMARY KEY (session, stream, event))`
    yield* sql`CREATE INDEX IF NOT EXISTS skein_fleet_events_stored_at ON skein_fleet_events (stored_at)`
  }))

const makeTable = (sql: SqlClient.SqlClient, lifetime: number): EventTable => {
  const removeRanges = (ranges: EventBatch["ranges"]) =>
    sql`DELETE FROM skein_fleet_events e
      USING unnest(${ranges.map(({ session }) => session)}::text[], ${ranges.map(({ stream }) => stream)}::bigint[],
        ${ranges.map(({ first }) => first)}::bigint[], ${ranges.map(({ last }) => last)}::bigint[])
        AS r (session, stream, first, last)
      WHERE e.session = r.session AND e.stream = r.stream AND e.event BETWEEN r.first AND r.last`
  const add = (events: EventBatch["events"]) =>
    sql`INSERT INTO skein_fleet_events (session, stream, event, data)
      SELECT * FROM unnest(${events.map(({ session }) => session)}::text[],
        ${events.map(({ stream }) => stream)}::bigint[], ${events.map(({ event }) => event)}::bigint[],
        ${events.map(({ data }) => data)}::text[])
      ON CONFLICT DO NOTHING`
  return {
    write: ({ events, ranges }) =>
      Effect.andThen(
        ranges.length > 0 ? Effect.asVoid(removeRanges(ranges)) : Effect.void,
        events.length > 0 ? Effect.asVoid(add(events)) : Effect.void
      ),
    read: (session, stream, first) =>
      sql<{ readonly event: number; readonly data: string }>`SELECT event, data FROM skein_fleet_events
        WHERE session = ${session} AND stream = ${stream} AND event >= ${first} ORDER BY event`,
    // Nodes delete different rows: none waits for another.
    removeExpired: Effect.map(
      sql`DELETE FROM skein_fleet_events WHERE ctid = ANY(ARRAY(SELECT ctid FROM skein_fleet_events
          WHERE stored_at < now() - make_interval(secs => ${lifetime / 1_000}) ORDER BY stored_at LIMIT ${maxExpired}
          FOR UPDATE SKIP LOCKED)) RETURNING 1`,
      ({ length }) => length === maxExpired
    )
  }
}

/**
 * Makes a store, and creates its table. It stops with the scope.
 *
 * @example
 * const store = yield* PostgresEventStore.make({ lifetime: "10 minutes" })
 */
export const make = Effect.fnUntraced(function*(
  bounds: Bounds = {}
): Effect.fn.Return<EventStore.Store, SqlError, SqlClient.SqlClient | Scope.Scope> {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* createTable(sql)
  return yield* makeSharedEventStore(bounds, (lifetime) => makeTable(sql, lifetime))
})

/**
 * Provides a store in the database of an `SqlClient`.
 *
 * @example
 * const events = PostgresEventStore.layer().pipe(Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL })))
 */
export const layer = (bounds?: Bounds): Layer.Layer<EventStore.EventStore, SqlError, SqlClient.SqlClient> =>
  Layer.effect(EventStore.EventStore, make(bounds))
