import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { Socket } from "node:net"
import type { ClientBase, CustomTypesConfig, QueryArrayResult, QueryConfig, QueryResult } from "pg"
import { isConnectionError, pgError, sqlState } from "./pgError.ts"

/** The parsers of results: an `int8` as a number if it is a safe integer, or always as a `bigint`. */
export interface Types {
  readonly numbers: CustomTypesConfig
  readonly bigints: CustomTypesConfig
}

type StatementResult = QueryResult<Record<string, unknown>> | QueryArrayResult<Array<unknown>>
type Result = StatementResult | ReadonlyArray<StatementResult>

/** The parts that the connections of a pool share. */
export interface Shared {
  readonly types: Types
  /** Returns the name under which to prepare a statement, or `undefined` if it should not be prepared. */
  readonly nameOf: (sql: string) => string | undefined
  /** Asks the server to cancel the running statement of a client. */
  readonly cancel: (client: ClientBase) => Effect.Effect<void>
  /** Milliseconds in which the server must end a cancelled statement; 0 for no bound. */
  readonly maxCancelMillis: number
  /**
   * Milliseconds for which the server may send nothing while a statement runs; 0 for no bound. The server itself ends a
   * statement earlier, unless its process for the connection is stopped or its machine has disappeared.
   */
  readonly maxSilenceMillis: number
}

/** Milliseconds in which bytes that have arrived are read. */
const readMillis = 100

/** The socket of a client, which the types of `pg` do not declare. */
const socketOf = (client: ClientBase): Socket =>
  (client as ClientBase & { readonly connection: { readonly stream: Socket } }).connection.stream

/**
 * Makes a connection of one client of `pg`. A semaphore runs one statement at a time: in a transaction, concurrent
 * statements share one client.
 */
export const makeConnection = (client: ClientBase, shared: Shared): Connection => {
  const turn = Semaphore.makeUnsafe(1)
  const socket = socketOf(client)
  const { maxCancelMillis, maxSilenceMillis } = shared
  let namesAreValid = true
  let isRunning = false
  // The socket restarts this time with each byte. `pg` fails the statement when the connection is closed.
  socket.setTimeout(maxSilenceMillis, () => {
    if (!isRunning) return
    const { bytesRead } = socket
    // If this process was stopped meanwhile, the answer may be there, but is read after this timer.
    setTimeout(() => {
      if (!isRunning || socket.bytesRead !== bytesRead) return
      socket.destroy(new Error(`the server has not answered a statement for ${maxSilenceMillis} ms`))
    }, readMillis)
  })

  const send = (config: QueryConfig): Effect.Effect<Result, SqlError> =>
    Effect.callback((resume) => {
      let isDone = false
      let onDone: (() => void) | undefined
      isRunning = true
      client.query(config, (error: unknown, result: Result) => {
        isDone = true
        isRunning = false
        onDone?.()
        resume(error == null ? Effect.succeed(result) : Effect.fail(pgError(error, "execute")))
      })
      // After a cancellation the connection is free only when the server has ended the statement.
      const done = Effect.callback<void>((resume) => {
        if (isDone) resume(Effect.void)
        else onDone = () => resume(Effect.void)
      })
      const ended = maxCancelMillis === 0
        ? done
        : Effect.timeoutOrElse(done, {
          duration: maxCancelMillis,
          orElse: () => {
            socket.destroy(new Error(`the server has not ended a cancelled statement within ${maxCancelMillis} ms`))
            return done
          }
        })
      return Effect.suspend(() => isDone ? Effect.void : Effect.andThen(shared.cancel(client), ended))
    })

  const run = <A>(
    sql: string,
    params: ReadonlyArray<unknown>,
    options: { readonly named: boolean; readonly rowMode?: "array" },
    read: (result: Result) => A
  ): Effect.Effect<A, SqlError> =>
    turn.withPermit(Effect.withFiber((fiber) => {
      const types = fiber.getRef(SqlClient.SafeIntegers) ? shared.types.bigints : shared.types.numbers
      const config = {
        text: sql,
        types,
        // Without values `pg` sends a simple query, which may contain several statements.
        ...(params.length > 0 && { values: params as Array<unknown> }),
        ...(options.rowMode && { rowMode: options.rowMode })
      }
      const name = options.named && namesAreValid && params.length > 0 ? shared.nameOf(sql) : undefined
      if (name === undefined) return Effect.map(send(config), read)
      const inTransaction = client.getTransactionStatus() !== "I"
      return Effect.map(
        Effect.catch(send({ ...config, name }), (error) => {
          if (!isOutdated(error)) return Effect.fail(error)
          // The server refused the statement before executing it. A transaction cannot continue after the refusal.
          namesAreValid = false
          return inTransaction ? Effect.fail(error) : send(config)
        }),
        read
      )
    }))

  const executeWith = (named: boolean): Connection["execute"] => (sql, params, transform) =>
    run(sql, params, { named }, transform ? (result) => transform(rows(result)) : rows)
  const executeValuesWith = (named: boolean): Connection["executeValues"] => (sql, params) =>
    run(sql, params, { named, rowMode: "array" }, values)

  const execute = executeWith(true)
  const unprepared = executeWith(false)
  return {
    execute,
    // A rollback on a lost connection succeeds: the server rolls back when it notices the loss.
    executeUnprepared: (sql, params, transform) => {
      const executed = unprepared(sql, params, transform)
      return isCleanup(sql) ? Effect.catchIf(executed, isConnectionError, () => Effect.succeed([])) : executed
    },
    executeValues: executeValuesWith(true),
    executeValuesUnprepared: executeValuesWith(false),
    executeRaw: (sql, params) => run(sql, params, { named: true }, (result): unknown => result),
    executeStream: (sql, params, transform) => Stream.fromIterableEffect(execute(sql, params, transform))
  }
}

/**
 * Makes the function that names prepared statements: the first `capacity` statements that occur a second time get a
 * name. So the server stores at most `capacity` plans per connection.
 */
export const makeNames = (capacity: number): Shared["nameOf"] => {
  const names = new Map<string, string>()
  const once = new Set<string>()
  return (sql) => {
    const name = names.get(sql)
    if (name !== undefined || names.size >= capacity) return name
    if (!once.delete(sql)) {
      if (once.size >= capacity) once.clear()
      once.add(sql)
      return undefined
    }
    names.set(sql, `skein_${names.size}`)
    return names.get(sql)
  }
}

/** Whether the statement ends a failed transaction or a savepoint. */
const isCleanup = (sql: string): boolean => /^(ROLLBACK|RELEASE SAVEPOINT)\b/.test(sql)

/** Whether a prepared statement is outdated: a table has changed, or another client has deallocated the statement. */
const isOutdated = (error: SqlError): boolean => {
  const state = sqlState(error.reason.cause)
  return state === "26000" || (state === "0A000" && error.message.includes("cached plan"))
}

/** The result of the last statement, if several were sent as one query. */
const last = (result: Result): StatementResult | undefined => "rows" in result ? result : result.at(-1)

const rows = (result: Result) => (last(result)?.rows ?? []) as ReadonlyArray<object>

const values = (result: Result) => (last(result)?.rows ?? []) as ReadonlyArray<ReadonlyArray<unknown>>
