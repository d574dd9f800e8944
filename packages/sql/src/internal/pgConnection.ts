import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { ClientBase, CustomTypesConfig, QueryArrayResult, QueryConfig, QueryResult } from "pg"
import { isOfConnection, pgError, sqlState } from "./pgError.ts"

/** How results are read: as numbers where they fit, or each `int8` as a `bigint`. */
export interface Types {
  readonly numbers: CustomTypesConfig
  readonly bigints: CustomTypesConfig
}

type One = QueryResult<Record<string, unknown>> | QueryArrayResult<Array<unknown>>
type Result = One | ReadonlyArray<One>

/** What the connections of a pool have in common. */
export interface Shared {
  readonly types: Types
  /** Under which name the server keeps a statement compiled, for one that is worth it. */
  readonly nameOf: (sql: string) => string | undefined
  /** Asks the server to end the statement that a client waits for. */
  readonly cancel: (client: ClientBase) => Effect.Effect<void>
}

/**
 * One client of `pg` as a connection. Statements take turns: a client has one conversation with the server, and who
 * runs several at once in a transaction has only one client.
 */
export const makeConnection = (client: ClientBase, shared: Shared): Connection => {
  const turn = Semaphore.makeUnsafe(1)
  let namesHold = true

  const send = (config: QueryConfig): Effect.Effect<Result, SqlError> =>
    Effect.callback((resume) => {
      let over = false
      let whenOver: (() => void) | undefined
      client.query(config, (error: unknown, result: Result) => {
        over = true
        whenOver?.()
        resume(error == null ? Effect.succeed(result) : Effect.fail(pgError(error, "execute")))
      })
      // The connection is free again when the statement is over, and not before.
      const ended = Effect.callback<void>((resume) => {
        if (over) resume(Effect.void)
        else whenOver = () => resume(Effect.void)
      })
      return Effect.suspend(() => over ? Effect.void : Effect.andThen(shared.cancel(client), ended))
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
        // Without values it is sent as a simple query, which may hold several statements.
        ...(params.length > 0 && { values: params as Array<unknown> }),
        ...(options.rowMode && { rowMode: options.rowMode })
      }
      const name = options.named && namesHold && params.length > 0 ? shared.nameOf(sql) : undefined
      if (name === undefined) return Effect.map(send(config), read)
      const inTransaction = client.getTransactionStatus() !== "I"
      return Effect.map(
        Effect.catch(send({ ...config, name }), (error) => {
          if (!isOutdated(error)) return Effect.fail(error)
          // It was refused before it did anything; but a transaction does not go on after that.
          namesHold = false
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
    // Whose connection is gone has nothing left to take back: the server has done so.
    executeUnprepared: (sql, params, transform) => {
      const executed = unprepared(sql, params, transform)
      return isCleanup(sql) ? Effect.catchIf(executed, isOfConnection, () => Effect.succeed([])) : executed
    },
    executeValues: executeValuesWith(true),
    executeValuesUnprepared: executeValuesWith(false),
    executeRaw: (sql, params) => run(sql, params, { named: true }, (result): unknown => result),
    executeStream: (sql, params, transform) => Stream.fromIterableEffect(execute(sql, params, transform))
  }
}

/**
 * Names for statements that come again, the first `capacity` of them. With this many connections each, the server keeps
 * no more plans.
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

/** What a transaction, or a part of one, ends with that has failed, and a part that has not. */
const isCleanup = (sql: string): boolean => /^(ROLLBACK|RELEASE SAVEPOINT)\b/.test(sql)

/** The result of a kept statement would change since a table did, or somebody else made the server forget it. */
const isOutdated = (error: SqlError): boolean => {
  const state = sqlState(error.reason.cause)
  return state === "26000" || (state === "0A000" && error.message.includes("cached plan"))
}

// Of several statements that were sent as one, the last one's.
const last = (result: Result): One | undefined => "rows" in result ? result : result.at(-1)

const rows = (result: Result) => (last(result)?.rows ?? []) as ReadonlyArray<object>

const values = (result: Result) => (last(result)?.rows ?? []) as ReadonlyArray<ReadonlyArray<unknown>>
