/**
 * A tool that reports the tasks that clients cannot know.
 */
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"

/**
 * Tasks that have not ended, whose id no client may have received, and cancelled tasks that may have compensations to
 * run.
 */
export const census = Tool.layer(
  Tool.make("census", { output: { live: Schema.Array(Schema.Struct({ id: Schema.String, status: Schema.String })) } }),
  () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient
      const live = yield* Effect.orDie(sql<{ readonly id: string; readonly status: string }>`
        SELECT id, status FROM skein_tasks WHERE id IN (SELECT task_id FROM skein_task_queue)`)
      return { live }
    })
)
