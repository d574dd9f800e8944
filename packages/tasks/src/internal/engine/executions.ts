/**
 * Where executions stand, as the tables of the cluster say: of many in one look, since the engine can be asked about one at a time.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { TaskError } from "../../TaskError.ts"
import { Database } from "../store/database.ts"
import { entityType, interruption } from "./workflow.ts"

/** An execution that was begun. */
export interface Execution {
  /** The message that began it. */
  readonly request: string
  /** `open`: it runs, or waits for somebody who runs it. */
  readonly state: "open" | "suspended" | "complete"
  /** Whether it is to be interrupted. */
  readonly signalled: boolean
  /** Whether something is to come that it may wait for, such as the time at which a clock rings; other than an answer. */
  readonly expects: boolean
}

/** Those of these that were begun, by their ids. */
export type Executions = (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Execution>, TaskError>

/** `prefix` is that of the cluster's tables. */
export const make = (sql: SqlClient.SqlClient, prefix = "cluster"): Executions => {
  const database = new Database(sql)
  const { pg } = database
  const ids = pg ? "SELECT json_array_elements_text(CAST(? AS JSON))" : "SELECT value FROM json_each(?)"
  const result = database.resultOf("replies.payload")
  const find = database.prepare(
    `SELECT runs.entity_id AS id, CAST(runs.id AS TEXT) AS request,
       CASE WHEN replies.id IS NULL THEN 'open' WHEN ${result} = 'Suspended' THEN 'suspended' ELSE 'complete' END AS state,
       EXISTS (
         SELECT 1 FROM ${prefix}_messages AS signals
         WHERE signals.message_id = '${entityType}/' || runs.entity_id || '/deferred/${interruption.name}'
       ) AS signalled,
       EXISTS (
         SELECT 1 FROM ${prefix}_messages AS others WHERE others.entity_id = runs.entity_id AND NOT others.processed
       ) AS expects
     FROM ${prefix}_messages AS runs
     LEFT JOIN ${prefix}_replies AS replies ON replies.request_id = runs.id AND replies.kind = 0
     WHERE runs.message_id IN (${ids})`
  )
  return (ids) =>
    ids.length === 0
      ? none
      : Effect.map(
        find(JSON.stringify(ids.map((id) => `${entityType}/${id}/run/`))),
        (rows) =>
          new Map(rows.map(({ expects, id, request, signalled, state }) => [
            id as string,
            {
              request: request as string,
              state: state as Execution["state"],
              signalled: Boolean(signalled),
              expects: Boolean(expects)
            }
          ]))
      )
}

const none = Effect.succeed<ReadonlyMap<string, Execution>>(new Map())
