import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { Socket } from "node:net"
import { isConnectionError, pgError, toPgError } from "./pgError.ts"
import { isBigint, toParameter, toSafeInteger } from "./pgTypes.ts"

/** The bounds of a pool that have no option. Tests provide other ones. */
export interface PoolBounds {
  /** How many statements of a connection are prepared. */
  readonly maxPreparedStatements: number
  /** The time after which an unused connection is closed. */
  readonly idleTimeout: Duration.Input
}

export const PoolBounds = Context.Reference<PoolBounds>("@skein/sql/PoolBounds", {
  defaultValue: () => ({ maxPreparedStatements: 200, idleTimeout: "30 seconds" })
})

/** Milliseconds in which bytes that have arrived are read. */
const readMillis = 100

/** The socket of a connection, which the types of `@effect/sql-pg` do not declare. */
const socketOf = (connection: PgConnection.PgConnection): Socket =>
  (connection as PgConnection.PgConnection & { readonly session: { readonly socket: Socket } }).session.socket

/** Calls a function when either side closes the connection. */
export const onClose = (connection: PgConnection.PgConnection, listener: () => void): void =>
  void socketOf(connection).once("close", listener)

/** Runs a statement and bounds the silence of the server meanwhile. */
export type Watch = <A, E, R>(statement: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/**
 * Returns a function that runs a statement, and closes the connection when the server has sent nothing for `maxMillis`
 * while one runs; 0 for no bound. `statement_timeout` makes the server end a statement earlier, unless its process for
 * the connection is stopped or its machine has disappeared.
 */
export const makeWatch = (connection: PgConnection.PgConnection, maxMillis: number): Watch => {
  const socket = socketOf(connection)
  let running = 0
  // The socket restarts this time with each byte. The statement fails when the connection is closed.
  socket.setTimeout(maxMillis)
  // A listener that is passed to `setTimeout` would be called once, also while no statement runs.
  socket.on("timeout", () => {
    if (running === 0) return
    const { bytesRead } = socket
    // If this process was stopped meanwhile, the answer may be there, but is read after this timer.
    setTimeout(() => {
      if (running === 0 || socket.bytesRead !== bytesRead) return
      socket.destroy(new Error(`the server has not answered a statement for ${maxMillis} ms`))
    }, readMillis)
  })
  const ended = () => {
    running--
    return undefined
  }
  return (statement) =>
    Effect.suspend(() => {
      running++
      return Effect.onExitPrimitive(statement, ended)
    })
}

/**
 * Returns a function that reports whether a connection without a running statement is in a transaction. The client of
 * `@effect/sql-pg` does not report it. The last byte of the server's answer to a statement is the status.
 */
export const makeInTransaction = (connection: PgConnection.PgConnection): () => boolean => {
  let last: number | undefined
  // Before the client reads the bytes: then the statement ends at once, and its connection may be asked.
  socketOf(connection).prependListener("data", (chunk: Uint8Array) => {
    last = chunk.at(-1)
  })
  return () => last === inTransaction || last === inFailedTransaction
}

const inTransaction = "T".charCodeAt(0)
const inFailedTransaction = "E".charCodeAt(0)

/** Makes the connection that `SqlClient` uses from one of `@effect/sql-pg`. */
export const makeConnection = (connection: PgConnection.PgConnection, watch: Watch): Connection => {
  const socket = socketOf(connection)

  const run = <A>(
    params: ReadonlyArray<unknown>,
    send: (params: ReadonlyArray<unknown>) => Effect.Effect<A, SqlError>,
    withNumbers: (result: A) => A
  ): Effect.Effect<A, SqlError> =>
    Effect.withFiber((fiber) => {
      let sent: Effect.Effect<A, SqlError>
      try {
        sent = watch(send(params.length === 0 ? params : params.map(toParameter)))
      } catch (cause) {
        return Effect.fail(pgError(cause, "execute"))
      }
      const result = fiber.getRef(SqlClient.SafeIntegers) ? sent : Effect.map(sent, withNumbers)
      return Effect.mapError(result, toPgError)
    })
  const query = (sql: string, params: ReadonlyArray<unknown>, isPrepared: boolean) =>
    run(params, (params) => connection.query(sql, params, isPrepared), numbersInRows)
  const queryValues = (sql: string, params: ReadonlyArray<unknown>, isPrepared: boolean) =>
    run(params, (params) => connection.queryValues(sql, params, isPrepared), numbersInValues)

  const executeWith = (isPrepared: boolean): Connection["execute"] => (sql, params, transform) =>
    Effect.map(query(sql, params, isPrepared), ({ rows }) => transform ? transform(rows) : rows)
  const execute = executeWith(true)
  return {
    // A rollback on a lost connection succeeds: the server rolls back when it notices the loss.
    execute: (sql, params, transform) => {
      const executed = execute(sql, params, transform)
      return isCleanup(sql)
        ? Effect.catchIf(executed, (error) => isConnectionError(error) || socket.destroyed, () => Effect.succeed([]))
        : executed
    },
    executeUnprepared: executeWith(false),
    executeValues: (sql, params) => queryValues(sql, params, true),
    executeValuesUnprepared: (sql, params) => queryValues(sql, params, false),
    executeRaw: (sql, params) => query(sql, params, true),
    executeStream: (sql, params, transform) => Stream.fromIterableEffect(execute(sql, params, transform))
  }
}

const numbersInRows = (result: PgConnection.Result): PgConnection.Result => {
  const names = result.fields.filter(({ dataTypeId }) => isBigint(dataTypeId)).map(({ name }) => name)
  if (names.length === 0) return result
  for (const row of result.rows as ReadonlyArray<Record<string, unknown>>) {
    for (const name of names) row[name] = toSafeInteger(row[name])
  }
  return result
}

const numbersInValues = (rows: ReadonlyArray<ReadonlyArray<unknown>>): ReadonlyArray<ReadonlyArray<unknown>> =>
  rows.map((row) => row.map(toSafeInteger))

/** Whether the statement ends a failed transaction or a savepoint. */
const isCleanup = (sql: string): boolean => /^(ROLLBACK|RELEASE SAVEPOINT)\b/.test(sql)
