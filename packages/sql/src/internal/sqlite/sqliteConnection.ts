import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Pull from "effect/Pull"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import { sqliteError } from "./sqliteError.ts"

/** A compiled statement and its current modes. Setting a mode is a call into SQLite, so it is done only on a change. */
interface Compiled {
  readonly statement: StatementSync
  bigints: boolean
  arrays: boolean
}

/** The number of rows in a chunk of a stream. */
const chunkSize = 256

/**
 * Statements that change the schema. `node:sqlite` reads the number of columns that a statement had at its last run, so
 * no compiled statement may be reused after a change.
 */
const changesSchema = /^\s*(?:ALTER|CREATE|DROP)\b/i

/** How many compiled statements a connection caches at least. Tests set fewer. */
export const CachedStatements = Context.Reference<number>("@skein/sql/CachedStatements", { defaultValue: () => 200 })

/**
 * Makes the connection of an open database. Statements run synchronously, on the calling fiber. The connection caches
 * at least the last `capacity` compiled statements, and at most twice as many.
 */
export const makeConnection = (database: DatabaseSync, capacity: number): Connection => {
  // Two generations instead of a list in order of use: a hit costs one lookup and moves nothing.
  let recent = new Map<string, Compiled>()
  let older = new Map<string, Compiled>()
  let schemaChanged = false

  const compile = (sql: string): Compiled => {
    if (changesSchema.test(sql)) {
      recent = new Map()
      older = new Map()
      schemaChanged = true
    }
    try {
      return { statement: database.prepare(sql), bigints: false, arrays: false }
    } catch (cause) {
      throw sqliteError(cause, "prepare")
    }
  }

  const compiled = (sql: string): Compiled => {
    const hit = recent.get(sql)
    if (hit !== undefined) return hit
    if (schemaChanged) {
      // The change can be rolled back until the transaction ends.
      if (database.isTransaction) return compile(sql)
      schemaChanged = false
    }
    const statement = older.get(sql) ?? compile(sql)
    if (recent.size >= capacity) {
      older = recent
      recent = new Map()
    }
    recent.set(sql, statement)
    return statement
  }

  const run = <A>(
    prepare: (sql: string) => Compiled,
    sql: string,
    params: ReadonlyArray<unknown>,
    arrays: boolean,
    read: (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) => A
  ) =>
    Effect.withFiber((fiber) => {
      try {
        return Effect.succeed(read(inMode(prepare(sql), fiber, arrays), bindings(params)))
      } catch (cause) {
        return Effect.fail(isSqlError(cause) ? cause : sqliteError(cause, "execute"))
      }
    })

  const execute: Connection["execute"] = (sql, params, transformRows) =>
    run(compiled, sql, params, false, transformRows ? (s, p) => transformRows(all(s, p)) : all)
  const executeValues: Connection["executeValues"] = (sql, params) => run(compiled, sql, params, true, values)

  return {
    execute,
    executeValues,
    // Compiling takes twice as long as running. "Unprepared" statements are often run again, so they are cached as
    // well.
    executeUnprepared: execute,
    executeValuesUnprepared: executeValues,
    executeRaw: (sql, params) => run(compiled, sql, params, false, raw),
    executeStream: (sql, params, transformRows) =>
      Stream.unwrap(Effect.map(
        // A separate compiled statement: it is in use until the stream ends, and the same SQL may run meanwhile.
        Effect.acquireRelease(
          run(compile, sql, params, false, (statement, params) => statement.iterate(...params)),
          (rows) => Effect.sync(() => rows.return?.())
        ),
        (rows) => Stream.fromPull(Effect.succeed(pull(rows, transformRows)))
      ))
  }
}

// The pauses of a statement that waits for another process, in milliseconds: they grow from one to the other.
const minPause = 1
const maxPause = 50

/**
 * A connection whose statements wait for the lock of another process, up to `timeoutMs`, while the event loop goes on. The
 * first statement of a transaction takes the lock, so that those within one do not wait.
 */
export const waiting = (connection: Connection, database: DatabaseSync, timeoutMs: number): Connection => {
  const patient = <A>(statement: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
    Effect.suspend(() => {
      if (database.isTransaction) return statement
      let end: number | undefined
      let pause = minPause
      const run: Effect.Effect<A, SqlError> = Effect.catchIf(
        statement,
        ({ reason }) => {
          const now = performance.now()
          end ??= now + timeoutMs
          return reason._tag === "LockTimeoutError" && now < end
        },
        () => {
          const slept = Effect.sleep(pause * (0.5 + Math.random()))
          pause = Math.min(pause * 2, maxPause)
          return Effect.andThen(slept, run)
        }
      )
      return run
    })
  return {
    execute: (...statement) => patient(connection.execute(...statement)),
    executeRaw: (...statement) => patient(connection.executeRaw(...statement)),
    executeValues: (...statement) => patient(connection.executeValues(...statement)),
    executeUnprepared: (...statement) => patient(connection.executeUnprepared(...statement)),
    executeValuesUnprepared: (...statement) => patient(connection.executeValuesUnprepared(...statement)),
    executeStream: connection.executeStream
  }
}

const all = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>): Array<object> => statement.all(...params)

const values = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) =>
  // In this mode a row is an array. The types of Node do not reflect that.
  statement.all(...params) as unknown as ReadonlyArray<ReadonlyArray<unknown>>

const raw = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>): unknown =>
  statement.columns().length === 0 ? statement.run(...params) : statement.all(...params)

const inMode = (compiled: Compiled, fiber: Fiber.Fiber<unknown, unknown>, arrays: boolean): StatementSync => {
  const bigints = fiber.getRef(SqlClient.SafeIntegers)
  if (compiled.bigints !== bigints) compiled.statement.setReadBigInts(compiled.bigints = bigints)
  if (compiled.arrays !== arrays) compiled.statement.setReturnArrays(compiled.arrays = arrays)
  return compiled.statement
}

const pull = (
  rows: NodeJS.Iterator<unknown>,
  transformRows: (<A extends object>(rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined
): Pull.Pull<Arr.NonEmptyReadonlyArray<object>, SqlError> => {
  // After its end, the iterator would run the statement again.
  let ended = false
  return Effect.suspend((): Pull.Pull<Arr.NonEmptyReadonlyArray<object>, SqlError> => {
    const chunk: Array<object> = []
    try {
      while (!ended && chunk.length < chunkSize) {
        const next = rows.next()
        if (next.done === true) ended = true
        else chunk.push(next.value as object)
      }
    } catch (cause) {
      return Effect.fail(sqliteError(cause, "execute"))
    }
    const transformed = transformRows ? transformRows(chunk) : chunk
    return Arr.isReadonlyArrayNonEmpty(transformed) ? Effect.succeed(transformed) : Cause.done()
  })
}

/**
 * Converts values to those that SQLite accepts. Returns the same array if no value needs it, which is the usual case.
 */
const bindings = (params: ReadonlyArray<unknown>): ReadonlyArray<SQLInputValue> => {
  for (const value of params) {
    if (!isBindable(value)) return params.map(binding)
  }
  return params as ReadonlyArray<SQLInputValue>
}

const isBindable = (value: unknown): boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "bigint" || value === null

const binding = (value: unknown): SQLInputValue => {
  if (value === undefined) return null
  if (typeof value === "boolean") return value ? 1 : 0
  if (value instanceof Date) return value.toISOString()
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  // `node:sqlite` takes an object as the first value for named parameters.
  if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    throw new TypeError("cannot bind an object as a value; convert it to text first")
  }
  return value as SQLInputValue
}
