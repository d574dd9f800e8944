/**
 * The tasks that an operator selects, as a part of a statement: a table `skein_tasks`, and beside it the row `queue` of
 * each task that is not settled.
 */
import type { TaskFilter } from "../../TaskAdmin.ts"
import type { ListPosition } from "../../TaskState.ts"
import { type Database, type Parameter, toStoredMillis } from "./database.ts"
import { hasLabel } from "./labels.ts"
import { hasFailed as failedCondition, isLive, live, ownerToRow, queued, waitKinds } from "./rows.ts"
import { escape } from "./storedText.ts"

/** The tables and the conditions of a statement, with its parameters. */
export interface Selection {
  readonly from: string
  readonly parameters: ReadonlyArray<Parameter>
}

const fromTasks = "FROM skein_tasks LEFT JOIN skein_task_queue AS queue ON queue.task_id = skein_tasks.id"

/** The same for tasks with a row in the queue, which is read first: the limit keeps PostgreSQL from joining otherwise. */
const fromQueue = (isPostgres: boolean): string =>
  isPostgres
    ? `FROM skein_task_queue AS queue
       CROSS JOIN LATERAL (SELECT * FROM skein_tasks AS found WHERE found.id = queue.task_id LIMIT 1) AS skein_tasks`
    : "FROM skein_task_queue AS queue CROSS JOIN skein_tasks ON skein_tasks.id = queue.task_id"

/** Whether each task of a filter has a row in the queue. */
export const isInQueue = ({ needsAttention, status, worker }: TaskFilter): boolean =>
  needsAttention === true || worker !== undefined ||
  (status !== undefined && status.every((one) => isLive({ status: one })))

/**
 * The tasks of a filter; `undefined`: there can be none. `after`: only those behind it in a listing. `readsQueue`: the
 * queue is read, and not the tasks from the newest on.
 */
export const select = (
  filter: TaskFilter,
  { after, database, readsQueue }: {
    readonly after?: ListPosition | undefined
    readonly database: Pick<Database, "isPostgres" | "textsOfJson">
    readonly readsQueue: boolean
  }
): Selection | undefined => {
  const conditions: Array<string> = []
  const parameters: Array<Parameter> = []
  const add = (condition: string, ...values: ReadonlyArray<Parameter>) => {
    conditions.push(condition)
    parameters.push(...values)
  }
  const {
    createdAfter,
    createdBefore,
    endedAfter,
    endedBefore,
    hasFailedCompensation,
    ids,
    labels,
    owner,
    parent,
    pool,
    status,
    tool,
    worker
  } = filter
  if (status?.length === 0) return undefined
  if (ids !== undefined) add(`skein_tasks.id IN (${database.textsOfJson})`, JSON.stringify(ids))
  if (tool !== undefined) add("skein_tasks.tool = ?", escape(tool))
  if (pool !== undefined) add("skein_tasks.pool = ?", escape(pool))
  if (owner !== undefined) add("skein_tasks.owner = ?", ownerToRow(owner))
  if (parent !== undefined) add("skein_tasks.id IN (SELECT child FROM skein_task_children WHERE parent = ?)", parent)
  if (worker !== undefined) add(`queue.state = ${queued.running} AND queue.worker = ?`, worker)
  if (filter.hasFailed === true) add(failedCondition)
  if (filter.needsAttention === true) add(`skein_tasks.waits = ${waitKinds.code} AND queue.task_id IS NOT NULL`)
  for (const [name, value] of Object.entries(labels ?? {})) add(hasLabel, escape(name), escape(value))
  if (hasFailedCompensation === true) {
    add("skein_tasks.id IN (SELECT task_id FROM skein_task_notes WHERE action = 'undo')")
  }
  if (status !== undefined) add(`skein_tasks.status IN (${status.map(() => "?").join()})`, ...status)
  if (createdAfter !== undefined) add("skein_tasks.created_at >= ?", toStoredMillis(createdAfter))
  if (endedAfter !== undefined || endedBefore !== undefined) add(`NOT (skein_tasks.${live})`)
  if (endedAfter !== undefined) add("skein_tasks.updated_at >= ?", toStoredMillis(endedAfter))
  if (endedBefore !== undefined) add("skein_tasks.updated_at < ?", toStoredMillis(endedBefore))
  // A task ends after it was created.
  const before = Math.min(createdBefore ?? Infinity, endedBefore ?? Infinity)
  if (before < Infinity) add("skein_tasks.created_at < ?", toStoredMillis(before))
  if (after !== undefined) {
    add("(skein_tasks.created_at, skein_tasks.id) < (?, ?)", toStoredMillis(after.createdAt), escape(after.id))
  }
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`
  return { from: `${readsQueue ? fromQueue(database.isPostgres) : fromTasks} ${where}`, parameters }
}
