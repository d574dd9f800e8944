/**
 * A fleet on PostgreSQL: the sessions of a server that any of its processes serves, on one machine or many.
 *
 * The processes, called nodes, find each other through the database, and open no port. A session is a row, so a request
 * of it may go to any node: a load balancer needs no rule. A message that another node waits for is a notification of
 * the database. The event bus of the server uses the same notifications.
 *
 * **Details**
 *
 * - A change of a session, and its end, are answered when the row is written and each running node that has the session
 *   has received it. A node that does not confirm that within 1 second is not waited for: it reads the rows again when it
 *   can.
 * - A session in use is written once in a tenth of `idleTimeout`. So its record remains for up to a tenth longer.
 * - While the database is down, requests of sessions that a node has in memory go on. The endpoint answers new sessions,
 *   changes, and sessions of other nodes with 503 and `Retry-After`. Messages between nodes wait, up to 16 Mi characters.
 * - After a lost connection a node reads the rows again, and notifies its clients of all lists once.
 * - A node that the others took for gone continues with its own number: no other node ever gets it.
 * - The ids of sessions are signed with a key in the database, so invented ones cost no query.
 * - The principal and the client of a session are stored as digests; the name, the version and the capabilities of the
 *   client are not encrypted.
 *
 * **Gotchas**
 *
 * - Each node needs the same secret for sealed state: `RequestState.layer`.
 * - A pooler needs session mode (PgBouncer: `pool_mode = session`); in transaction mode notifications do not arrive, and
 *   the layer fails.
 *
 * @example
 * const fleet = PostgresFleet.layer({ url: process.env.DATABASE_URL })
 * const node = NodeHttp.layer({ port: 8080 }).pipe(Layer.provide(server), Layer.provide(fleet))
 */
import { resolve } from "@skein/runtime/Options"
import type { EventBus } from "@skein/server/EventBus"
import type { Fleet, FleetError } from "@skein/server/Fleet"
import * as PgClient from "@skein/sql/PgClient"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { Lease } from "./internal/events/sharedEventStore.ts"
import { makeNode } from "./internal/node/node.ts"
import { makeCarrier } from "./internal/postgres/carrier.ts"
import { channelOf, fleetError, pointQueries } from "./internal/postgres/database.ts"
import * as migrations from "./internal/postgres/migrations.ts"
import { join, makeNodes } from "./internal/postgres/nodes.ts"
import { makeRecords } from "./internal/postgres/records.ts"

/** The name of the fleet, and its lease. */
export interface NodeOptions {
  /**
   * The server whose sessions these are: `default` by default. Two servers that share a database need two namespaces.
   */
  readonly namespace?: string | undefined
  /**
   * How long the lease of a node is: 5 seconds by default, and at least 1 second. A node renews it three times in this
   * time. The others take a node that does not for gone. Raise it for a slow database, or code that blocks the event loop
   * for long.
   */
  readonly leaseTimeout?: Duration.Input | undefined
  /**
   * Whether this process creates the tables and migrates them. `false`: it fails to start unless they have the version of
   * this program, and needs no right to change tables: see {@link migrate}. Default `true`.
   */
  readonly migrate?: boolean | undefined
}

/** The connection to the database, and the node. */
export interface Options extends PgClient.Options, NodeOptions {}

/**
 * Creates the tables (`skein_fleet_…`), or brings them to the version of this program. `layer` does this. If they have
 * this version, nothing is locked or changed. Fails with `FleetError` if a later version has created them.
 *
 * @example
 * const migrations = Effect.andThen(applicationMigrations, PostgresFleet.migrate)
 */
export const migrate: Effect.Effect<void, FleetError, SqlClient.SqlClient> = migrations.migrate

/**
 * Provides the fleet and the event bus with a client of the application. `layer` makes a client of its own.
 *
 * @example
 * const fleet = PostgresFleet.layerClient().pipe(Layer.provideMerge(PgClient.layerListening({ url })))
 */
export const layerClient = (options: NodeOptions = {}): Layer.Layer<Fleet | EventBus, FleetError, PgClient.PgClient> =>
  Layer.effectContext(Effect.gen(function*() {
    const { leaseTimeout, migrate: creates, namespace } = resolve<NodeOptions>(
      options,
      { migrate: true, namespace: "default" },
      { leaseTimeout: "5 seconds" }
    )
    const leaseMillis = Math.max(1_000, Math.ceil(leaseTimeout))
    const client = yield* PgClient.PgClient
    yield* Effect.provideService(creates ? migrate : migrations.check, SqlClient.SqlClient, client)
    const sql = client.withoutTransforms()
    const { key, node } = yield* join(sql, namespace, leaseMillis)
    const channel = channelOf(namespace)
    const backend = {
      node,
      key,
      ...makeRecords(sql, namespace, node, channel),
      ...makeCarrier(client, channel, node),
      ...makeNodes(sql, namespace, node, leaseMillis)
    }
    return Context.add(yield* makeNode(backend, leaseMillis), Lease, leaseMillis)
  }))

/**
 * Provides the fleet, the event bus, and the client of the database for other stores. On its connections PostgreSQL reads
 * whole tables only where it has no index (`enable_seqscan = off`), unless `settings` says otherwise.
 *
 * Fails with `FleetError` if it cannot connect within `connectTimeout`, if a pooler gives each transaction another
 * connection, or if a node would get a number above `Fleet.maxNode`.
 *
 * @example
 * const fleet = PostgresFleet.layer({ url: process.env.DATABASE_URL, namespace: "shop" })
 * const listening = NodeHttp.layer({ port: 8080 }).pipe(Layer.provide(server), Layer.provide(fleet))
 */
export const layer = (
  options: Options
): Layer.Layer<Fleet | EventBus | PgClient.PgClient | SqlClient.SqlClient, FleetError> =>
  Layer.provideMerge(
    layerClient(options),
    Layer.effectContext(Effect.mapError(
      Layer.build(PgClient.layerListening({ ...options, settings: { ...pointQueries, ...options.settings } })),
      fleetError
    ))
  )
