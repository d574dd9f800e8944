/**
 * Statements that both SQLite and PostgreSQL know, compiled once.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { TaskError } from "../../TaskError.ts"

/** What a statement is given. */
export type Parameter = string | number | null

/** A row, by column. What is a `BIGINT` may come as text. */
export type Row = Readonly<Record<string, unknown>>

/** Runs a statement. */
export type Run = (...parameters: ReadonlyArray<Parameter>) => Effect.Effect<ReadonlyArray<Row>, TaskError>

/** Later than any time: the clock's end. */
export const never = Number.MAX_SAFE_INTEGER

/** What of the driver's errors is told. */
export const storeError = (cause: SqlError) => new TaskError({ reason: "Store", message: cause.message, cause })

/** See the module's text. */
export class Database {
  readonly sql: SqlClient.SqlClient
  /** PostgreSQL; SQLite otherwise. */
  readonly pg: boolean

  constructor(sql: SqlClient.SqlClient) {
    this.sql = sql.withoutTransforms()
    this.pg = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
  }

  /** A statement with a `?` for each parameter. */
  prepare(text: string): Run {
    const { sql } = this
    let number = 0
    const compiled = this.pg ? text.replaceAll("?", () => `$${++number}`) : text
    return (...parameters) =>
      Effect.mapError(Effect.withTracerEnabled(sql.unsafe<Row>(compiled, parameters), false), storeError)
  }

  /** The name of the function that gives the larger of two values. */
  get latest(): "GREATEST" | "MAX" {
    return this.pg ? "GREATEST" : "MAX"
  }

  /** What a reply of the engine says of a run or a step: `Complete`, or `Suspended`. */
  resultOf(reply: string): string {
    return this.pg ? `CAST(${reply} AS JSON) #>> '{value,_tag}'` : `${reply} ->> '$.value._tag'`
  }

  /** All or nothing; within a transaction that is there already, a part of it. */
  transaction<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | TaskError, R> {
    return Effect.mapError(
      this.sql.withTransaction(effect),
      (error): E | TaskError => isSqlError(error) ? storeError(error) : error
    )
  }
}
