/**
 * Statements of PostgreSQL, their errors, and the digests in rows and names.
 */
import { FleetError } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { createHash } from "node:crypto"

/** A parameter of a statement. */
export type Parameter = string | number | boolean | null

export type Row = Readonly<Record<string, unknown>>

/** Runs a statement. */
export type Statement = (...parameters: ReadonlyArray<Parameter>) => Effect.Effect<ReadonlyArray<Row>, FleetError>

export const fleetError = (cause: SqlError): FleetError =>
  new FleetError({ message: `the database failed: ${cause.message}`, cause })

/** Prepares a statement, with `$1` for its first parameter. It has no span of its own. */
export const prepare = (sql: SqlClient.SqlClient, text: string): Statement => (...parameters) =>
  Effect.mapError(Effect.withTracerEnabled(sql.unsafe<Row>(text, parameters), false), fleetError)

/**
 * The settings of connections whose statements read few rows each. A plan that was made for a small table is used until
 * PostgreSQL knows that the table has grown, a minute later: such a plan must not read the whole table.
 */
export const pointQueries = { enable_seqscan: "off", jit: "off" }

/** The current time of the database, in milliseconds of Unix time. */
export const now = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"

/**
 * The time at which the statement began, for conditions on an index. With `now`, which changes within a statement, PostgreSQL
 * reads the whole index.
 */
export const statementTime = "CAST(extract(epoch FROM statement_timestamp()) * 1000 AS BIGINT)"

/**
 * When a record expires that is used now. It is a tenth of its idle time later than it must, so that it is written only once
 * in this time.
 */
export const expiry = (idleMillis: string): string => `${now} + ${idleMillis} + ${idleMillis} / 10`

/** The channel of a namespace: its messages to all nodes. A name has 63 bytes at most. */
export const channelOf = (namespace: string): string =>
  `skein_fleet_${createHash("sha256").update(namespace).digest().subarray(0, 8).toString("hex")}`
