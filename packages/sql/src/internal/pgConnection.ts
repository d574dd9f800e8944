import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import type { ClientBase, CustomTypesConfig, QueryArrayResult, QueryResult } from "pg"
import { pgError } from "./pgError.ts"

/** How results are read: as numbers where they fit, or each `int8` as a `bigint`. */
export interface Types {
  readonly numbers: CustomTypesConfig
  readonly bigints: CustomTypesConfig
}

type Result = QueryResult<Record<string, unknown>> | QueryArrayResult<Array<unknown>>

type Transform = (<A extends object>(rows: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined

/**
 * One client of `pg` as a connection. Statements take turns: a client has one conversation with the server, and who
 * runs several at once in a transaction has only one client. `cancel` asks the server to end the statement that runs.
 */
export const makeConnection = (
  client: ClientBase,
  types: Types,
  cancel: (client: ClientBase) => Effect.Effect<void>
): Connection => {
  const turn = Semaphore.makeUnsafe(1)

  const query = <A>(
    sql: string,
    params: ReadonlyArray<unknown>,
    rowMode: "array" | undefined,
    read: (result: Result | ReadonlyArray<Result>) => A
  ): Effect.Effect<A, SqlError> =>
    turn.withPermit(Effect.withFiber((fiber) => {
      const config = {
        text: sql,
        // Without values it is sent as a simple query, which may hold several statements.
        ...(params.length > 0 ? { values: params as Array<unknown> } : undefined),
        types: fiber.getRef(SqlClient.SafeIntegers) ? types.bigints : types.numbers,
        ...(rowMode && { rowMode })
      }
      return Effect.callback<A, SqlError>((resume) => {
        let over = false
        let whenOver: (() => void) | undefined
        client.query(config, (error: unknown, result: Result) => {
          over = true
          whenOver?.()
          resume(error == null ? Effect.sync(() => read(result)) : Effect.fail(pgError(error, "execute")))
        })
        // The connection is free again when the statement is over, and not before.
        return Effect.suspend(() =>
          over ? Effect.void : Effect.andThen(
            cancel(client),
            Effect.callback<void>((resume) => over ? resume(Effect.void) : void (whenOver = () => resume(Effect.void)))
          )
        )
      })
    }))

  const execute = (sql: string, params: ReadonlyArray<unknown>, transform: Transform) =>
    query(sql, params, undefined, transform ? (result) => transform(rows(result)) : rows)
  const executeValues = (sql: string, params: ReadonlyArray<unknown>) => query(sql, params, "array", values)

  return {
    execute,
    executeUnprepared: execute,
    executeValues,
    executeValuesUnprepared: executeValues,
    executeRaw: (sql, params) => query(sql, params, undefined, (result): unknown => result),
    executeStream: (sql, params, transform) => Stream.fromIterableEffect(execute(sql, params, transform))
  }
}

// Of several statements that were sent as one, the last one's.
const last = (result: Result | ReadonlyArray<Result>): Result | undefined =>
  Array.isArray(result) ? result.at(-1) : result as Result

const rows = (result: Result | ReadonlyArray<Result>) => (last(result)?.rows ?? []) as ReadonlyArray<object>

const values = (result: Result | ReadonlyArray<Result>) =>
  (last(result)?.rows ?? []) as ReadonlyArray<ReadonlyArray<unknown>>
