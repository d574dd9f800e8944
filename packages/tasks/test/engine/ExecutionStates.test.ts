import { expect, it } from "@effect/vitest"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as executions from "../../src/internal/engine/executionStates.ts"
import { all, each, fresh } from "../store/kit.ts"

const complete = { _tag: "Success", value: { _tag: "Complete", exit: { _tag: "Success", value: null } } }
const replies = {
  open: undefined,
  suspended: { _tag: "Success", value: { _tag: "Suspended" } },
  complete,
  died: { _tag: "Failure", cause: [{ _tag: "Die", defect: "no" }] }
}

each(all, (backend) => {
  it.effect("reads the states of executions in one statement, and leaves out those that were not started", () =>
    Effect.gen(function*() {
      const { sql } = yield* fresh(backend)
      const client = Layer.succeed(SqlClient.SqlClient, sql)
      const prefix = "standing"
      yield* Effect.scoped(Layer.build(Layer.provide(SqlMessageStorage.layerMigrations({ prefix }), client)))
      yield* sql.unsafe(`DELETE FROM ${prefix}_messages`)
      yield* sql.unsafe(`DELETE FROM ${prefix}_replies`)
      let id = 249571305053896704n
      const message = (execution: string, what: string) =>
        sql.unsafe(
          `INSERT INTO ${prefix}_messages (id, message_id, shard_id, entity_type, entity_id, kind, request_id)
           VALUES (${++id}, 'Workflow/skein/Task/${execution}/${what}', '0:1', 'Workflow/skein/Task', '${execution}', 0, ${id})`
        )
      const all: Array<string> = []
      const expected = new Map<string, executions.ExecutionState>()
      for (const [state, reply] of Object.entries(replies)) {
        for (const signalled of [false, true]) {
          const execution = `${signalled ? "0001/" : ""}${state}`
          yield* message(execution, "activity/step/a/1")
          yield* message(execution, "run/")
          const request = String(id)
          if (reply !== undefined) {
            yield* sql.unsafe(
              `INSERT INTO ${prefix}_replies (id, kind, request_id, payload) VALUES (${++id}, 0, ${request}, '${
                JSON.stringify(reply)
              }')`
            )
          }
          if (signalled) {
            yield* message(execution, "deferred/Workflow/InterruptSignal")
            // A processed message is not an expected event.
            yield* sql.unsafe(`UPDATE ${prefix}_messages SET processed = TRUE WHERE entity_id = '${execution}'`)
          }
          all.push(execution)
          expected.set(execution, {
            request,
            state: state === "died" ? "complete" : state as executions.ExecutionState["state"],
            interruptRequested: signalled,
            expectsEvent: !signalled
          })
        }
      }
      yield* sql.unsafe(
        `INSERT INTO ${prefix}_messages (id, message_id, shard_id, entity_type, entity_id, kind, request_id)
         VALUES (${++id}, 'a clock', '0:1', 'Workflow/-/DurableClock', '0001/suspended', 0, ${id})`
      )
      expected.set("0001/suspended", { ...expected.get("0001/suspended")!, expectsEvent: true })
      const find = executions.makeFindExecutions(sql, prefix)
      expect(yield* find([...all, "never", "it's"])).toEqual(expected)
      expect(yield* find([])).toEqual(new Map())
    }))
})
