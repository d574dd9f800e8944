/**
 * The states of executions, read from the tables of the cluster: many in one statement, since the workflow engine
 * reports one at a time.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { TaskError } from "../../TaskError.ts"
import { Database } from "../store/database.ts"
import { entityType, interruptSignal } from "./workflow.ts"

/** The state of an execution that was started. */
export interface ExecutionState {
  /** The id of the message that started it. */
  readonly request: string
  /** `open`: it runs, or waits for a runner. */
  readonly state: "open" | "suspended" | "complete"
  /** Whether its interruption is requested. */
  readonly interruptRequested: boolean
  /** Whether an event other than an answer is pending, such as the end of a timer. */
  readonly expectsEvent: boolean
}

/** Finds executions by their ids. Executions that were not started are left out. */
export type FindExecutions = (
  ids: ReadonlyArray<string>
) => Effect.Effect<ReadonlyMap<string, ExecutionState>, TaskError>

/** Reads the tables of a cluster. `prefix` is that of its tables. */
export const makeFindExecutions = (sql: SqlClient.SqlClient, prefix = "cluster"): FindExecutions => {
  const database = new Database(sql)
  const result = database.resultTagOf("replies.payload")
  const find = database.prepare(
    `SELECT runs.entity_id AS id, CAST(runs.id AS TEXT) AS request,
       CASE WHEN replies.id IS NULL THEN 'open' WHEN ${result} = 'Suspended' THEN 'suspended' ELSE 'complete' END AS state,
       EXISTS (
         SELECT 1 FROM ${prefix}_messages AS signals
         WHERE signals.message_id = '${entityType}/' || runs.entity_id || '/deferred/${interruptSignal.name}'
       ) AS signalled,
       EXISTS (
         SELECT 1 FROM ${prefix}_messages AS others WHERE others.entity_id = runs.entity_id AND NOT others.processed
       ) AS expects
     FROM ${prefix}_messages AS runs
     LEFT JOIN ${prefix}_replies AS replies ON replies.request_id = runs.id AND replies.kind = 0
     WHERE runs.message_id IN (${database.textsOfJson})`
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
              state: state as ExecutionState["state"],
              interruptRequested: Boolean(signalled),
              expectsEvent: Boolean(expects)
            }
          ]))
      )
}

const none = Effect.succeed<ReadonlyMap<string, ExecutionState>>(new Map())
