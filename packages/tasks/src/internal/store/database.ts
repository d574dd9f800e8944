/**
 * Statements for SQLite and PostgreSQL, and the numbers that both store.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { FileLocked, InvalidOption, StoreError, TaskError } from "../../TaskError.ts"
import { DatabaseClock } from "./databaseClock.ts"

/** A parameter of a statement. */
export type Parameter = string | number | null

/** A row, by column. A `BIGINT` may be a text. */
export type Row = Readonly<Record<string, unknown>>

/** Reads a column that has a number. */
export const numberOf = (row: Row, column: string): number => Number(row[column])

/** Reads a column that has a number or `NULL`. */
export const optionalNumberOf = (row: Row, column: string): number | undefined =>
  row[column] == null ? undefined : numberOf(row, column)

/** Reads a column that has a text. */
export const textOf = (row: Row, column: string): string => row[column] as string

/** Reads a column that has a text or `NULL`. */
export const optionalTextOf = (row: Row, column: string): string | undefined =>
  row[column] == null ? undefined : textOf(row, column)

/** Runs a statement. */
export type Statement = (...parameters: ReadonlyArray<Parameter>) => Effect.Effect<ReadonlyArray<Row>, TaskError>

/** A time after all others, in milliseconds. It means "never". */
export const maxTime = Number.MAX_SAFE_INTEGER

/** Milliseconds as they are stored: whole, from 0 to `maxTime`. */
export const toStoredMillis = (time: number): number => Math.min(Math.max(Math.ceil(time), 0), maxTime)

/** Characters (UTF-16 units) of a name in an index: of a tool, a pool, an owner, and of the key of a question. */
export const maxNameChars = 512

/** A `TaskError` with the reason `StoreError`. */
export const storeFailure = (message: string, cause?: unknown): TaskError =>
  new TaskError({ reason: new StoreError({ message, cause }) })

/** The `TaskError` of an error of the driver. */
export const storeError = (cause: SqlError): TaskError => storeFailure(cause.message, cause)

/** The `TaskError` of an error of the driver of SQLite when it opens a file. */
export const openError = (cause: SqlError): TaskError => {
  const { message, reason } = cause
  const isLocked = reason._tag === "LockTimeoutError" && reason.operation === "open"
  return isLocked ? new TaskError({ reason: new FileLocked({ message, cause }) }) : storeError(cause)
}

/** A `TaskError` with the reason `InvalidOption`. */
export const invalidOption = (message: string): TaskError => new TaskError({ reason: new InvalidOption({ message }) })

/** Whether the connection to the database is lost, or could not be opened. */
export const isUnreachable = ({ reason }: TaskError): boolean =>
  reason._tag === "StoreError" && isSqlError(reason.cause) && reason.cause.reason._tag === "ConnectionError"

/** The failure of a transaction whose rows have changed meanwhile: see `Database.attempt`. */
export const conflict = { _tag: "Conflict" } as const
export type Conflict = typeof conflict

/** The error of the driver behind a failure. */
const driverErrorOf = ({ reason }: TaskError): { readonly code?: unknown; readonly message?: unknown } | undefined => {
  const { cause } = reason as { readonly cause?: unknown }
  return isSqlError(cause) ? cause.reason.cause as object | undefined : undefined
}

/** Whether a statement of PostgreSQL has divided by zero. */
export const isDivisionByZero = (error: TaskError): boolean => driverErrorOf(error)?.code === "22012"

/** Whether a row was refused because of the unique index of a column. Its name is in the message of either database. */
export const isTaken = (error: TaskError, column: string): boolean =>
  String(driverErrorOf(error)?.message).includes(column)

/** A database, for statements in the SQL that both dialects have. */
export class Database {
  readonly sql: SqlClient.SqlClient
  /** Whether the database is PostgreSQL; otherwise it is SQLite. */
  readonly isPostgres: boolean
  /** Its clock, which all tasks use. */
  readonly clock: DatabaseClock

  constructor(sql: SqlClient.SqlClient) {
    this.sql = sql.withoutTransforms()
    this.isPostgres = sql.onDialectOrElse({ pg: () => true, orElse: () => false })
    const select = this.prepare(`SELECT ${this.currentTime} AS now`)
    this.clock = new DatabaseClock(
      this.isPostgres ? Effect.map(Effect.suspend(() => select()), ([row]) => numberOf(row!, "now")) : undefined
    )
  }

  /** The current time, in milliseconds of Unix time. */
  get now(): Effect.Effect<number> {
    return this.clock.now
  }

  /** The current time within a statement: an expression. */
  get currentTime(): string {
    return this.isPostgres
      ? "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
      : "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
  }

  /** Prepares a statement with a `?` for each parameter. */
  prepare(text: string): Statement {
    const { sql } = this
    let number = 0
    const compiled = this.isPostgres ? text.replaceAll("?", () => `$${++number}`) : text
    return (...parameters) =>
      Effect.mapError(Effect.withTracerEnabled(sql.unsafe<Row>(compiled, parameters), false), storeError)
  }

  /** The query for the texts in a parameter, which is a JSON array. */
  get textsOfJson(): string {
    return this.isPostgres ? "SELECT json_array_elements_text(CAST(? AS JSON))" : "SELECT value FROM json_each(?)"
  }

  /** The name of the function that returns the larger of two values. */
  get greatest(): "GREATEST" | "MAX" {
    return this.isPostgres ? "GREATEST" : "MAX"
  }

  /** Runs an effect in a savepoint, if it runs in a transaction. */
  inSavepoint<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | TaskError, R> {
    return Effect.withFiber((fiber): Effect.Effect<A, E | TaskError, R> =>
      Context.getOption(fiber.context, this.sql.transactionService)._tag === "None" ? effect : this.transaction(effect)
    )
  }

  /** Runs an effect in a transaction; within another transaction, in a savepoint. */
  transaction<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | TaskError, R> {
    return Effect.suspend(() => {
      let failure: Cause.Cause<E> | undefined
      const noted = Effect.onError(effect, (cause) => Effect.sync(() => void (failure = cause)))
      return Effect.catchCause(
        Effect.withTracerEnabled(this.sql.withTransaction(noted), false),
        (cause): Effect.Effect<never, E | TaskError> =>
          failure !== undefined && hasLostRollback(cause)
            ? Effect.failCause(failure)
            : Effect.failCause(Cause.map(cause, toError<E>))
      )
    })
  }

  /** Runs an effect in a transaction. If it fails with `conflict`, the transaction is rolled back, and `instead` follows. */
  attempt<A, B>(
    effect: Effect.Effect<A, TaskError | Conflict>,
    instead: Effect.Effect<B, TaskError>
  ): Effect.Effect<A | B, TaskError> {
    return Effect.catchIf(this.transaction(effect), (error): error is Conflict => error === conflict, () => instead)
  }
}

const toError = <E>(error: E | SqlError): E | TaskError => isSqlError(error) ? storeError(error) : error

/**
 * Whether the rollback of a transaction has failed. The clients of applications report that as a defect, and all failures
 * before it as defects too. If the connection is lost, the server rolls back when it notices the loss.
 */
const hasLostRollback = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) =>
    reason._tag === "Die" && isSqlError(reason.defect) && reason.defect.reason._tag === "ConnectionError"
  )

/** Runs statements without parameters, one after the other. */
export const runAll = (database: Database, statements: ReadonlyArray<string>): Effect.Effect<void, TaskError> =>
  Effect.forEach(statements, (statement) => database.prepare(statement)(), { discard: true })
