/**
 * Reads the tasks that are not settled, for a comparison with the code of this process: page by page in the order of
 * their ids, which are random, so that a part of the pages is a sample.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import type { Row } from "./database.ts"
import { queued, type StoreContext } from "./rows.ts"
import type { CheckStore, UnsettledTask } from "./store.ts"
import { unescape } from "./storedText.ts"

const toTask = (row: Row): UnsettledTask => {
  const state = Number(row["state"])
  const waits = Number(row["waits"])
  return {
    id: row["task_id"] as string,
    tool: unescape(row["tool"] as string),
    pool: unescape(row["pool"] as string),
    status: row["status"] as TaskStatus,
    createdAt: Number(row["created_at"]),
    isRunning: state === queued.running,
    isWaiting: state === queued.waiting,
    runs: Number(row["runs"]),
    waitsFor: waits === 0 ? undefined : waits === 1 ? "tool" : "code"
  }
}

/** Makes the operations. */
export const make = ({ database }: StoreContext): CheckStore => {
  const columns = `queue.task_id, queue.tool, queue.pool, queue.state, queue.runs, tasks.status, tasks.created_at,
    tasks.waits`
  const selectPage = database.prepare(
    `SELECT ${columns} FROM (SELECT * FROM skein_task_queue WHERE task_id > ? ORDER BY task_id LIMIT ?) AS queue
     JOIN skein_tasks AS tasks ON tasks.id = queue.task_id ORDER BY queue.task_id`
  )
  const selectOne = database.prepare(
    `SELECT ${columns} FROM skein_task_queue AS queue JOIN skein_tasks AS tasks ON tasks.id = queue.task_id
     WHERE queue.task_id = ?`
  )
  return {
    page: (after, limit) => Effect.map(selectPage(after, limit), (rows) => rows.map(toTask)),
    find: (id) => Effect.map(selectOne(id), ([row]) => row === undefined ? undefined : toTask(row))
  }
}
