/**
 * Creates, ends and deletes tasks, and updates the numbers that the limits bound.
 */
import * as RandomId from "@skein/runtime/RandomId"
import * as Effect from "effect/Effect"
import type { NewTask, State } from "../../TaskState.ts"
import { failureMessage, isErrorResult } from "../base/text.ts"
import type { EndOutcome } from "../telemetry/taskMetrics.ts"
import type { TaskError } from "../../TaskError.ts"
import { linkChild, noteChildEnd, parentOf } from "./children.ts"
import type { ChildLink } from "./childStore.ts"
import type { LabelStore, Store, TaskEnd } from "./store.ts"
import { countEnd, countNew } from "./counters.ts"
import * as quotas from "./quotas.ts"
import { isDivisionByZero, maxNameChars, maxTime, type Row, toStoredMillis } from "./database.ts"
import { associatedData, counterOf, errorKinds, isLive, live, ownerToRow, queued, type StoreContext } from "./rows.ts"
import { endParameters, endsAt } from "./queue.ts"
import { recordCancellation } from "./runSignals.ts"
import { escape, permanentError, toJson, unescape } from "./storedText.ts"

/** A task id: 190 random bits, as 32 letters and digits. */
export const newId = (): string => RandomId.make(32)

/** Whether a text can be the id of a task. */
export const isTaskId = (id: string): boolean => /^[\w-]{32}$/.test(id)

/** The failure for a name of a task that is too long for an index. */
export const tooLong = (name: string): TaskError =>
  permanentError(`the ${name} of a task exceeds ${maxNameChars} characters`)

/** The key of a debounced task, among those of its tool. */
export const debounceKeyOf = ({ debounce, owner }: NewTask): string | null =>
  debounce === undefined ? null : escape(JSON.stringify([owner, debounce.key]))

/** When a task that is submitted `now` may begin. A debounced one was created before, if another submission has changed it. */
export const beginOf = ({ debounce, delayMs = 0, startAt }: NewTask, now: number, createdAt = now): number => {
  const latest = createdAt + (debounce?.timeoutMs ?? Infinity)
  const asked = startAt ?? now + delayMs
  return toStoredMillis(Math.max(now, asked, debounce === undefined ? 0 : Math.min(now + debounce.periodMs, latest)))
}

/** When a task expires: its time to live begins when it may begin. */
export const expiryOf = (
  { ttlMs }: NewTask,
  createdAt: number,
  begin: number
): { readonly ttlMs: number | null; readonly expiresAt: number } =>
  ttlMs === null || ttlMs === Infinity
    ? { ttlMs: null, expiresAt: maxTime }
    : { ttlMs: toStoredMillis(begin - createdAt + ttlMs), expiresAt: toStoredMillis(begin + ttlMs) }

const newState = (
  id: string,
  { caller, owner, pollIntervalMs, pool, tool }: NewTask,
  now: number,
  ttlMs: number | null
): State => ({
  id,
  tool,
  pool,
  owner,
  status: "working",
  statusMessage: undefined,
  progress: undefined,
  createdAt: now,
  updatedAt: now,
  ttlMs,
  pollIntervalMs: toStoredMillis(pollIntervalMs),
  version: 1,
  caller,
  questions: [],
  isError: false,
  outcome: undefined
})

/** The highest priority, and the negative of the lowest. */
const maxPriority = 1_000_000

/** A priority as it is stored: the lowest number is claimed first. */
export const rankOf = (priority = 0): number =>
  Number.isNaN(priority) ? 0 : -Math.round(Math.min(Math.max(priority, -maxPriority), maxPriority))

/** Whether a row of the queue is claimed. */
const isClaimed = (row: Row): boolean => Number(row["state"]) === queued.running

const quotaKeyOf = (row: Row): quotas.QuotaKey => ({ tool: row["tool"] as string, counter: row["counter"] as string })

/** The operations of a store that begin and end tasks. */
export type Lifecycle = ReturnType<typeof make>

/** Makes them. */
export const make = (
  { alerts, changes, database, metrics, signals, texts }: StoreContext,
  labels: LabelStore
) => {
  const { isPostgres } = database
  const counted = quotas.make(database)
  const queueColumns = "task_id, pool, tool, priority, wake_at, rate_key, debounce_key, state, worker, runs, gate"
  // A worker has to claim a task whose tool has a gate.
  const queuedValues = `CAST(? AS INTEGER), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT),
    CASE WHEN gates.tool IS NULL THEN CAST(? AS INTEGER) ELSE CAST(? AS INTEGER) END,
    CASE WHEN gates.tool IS NULL THEN CAST(? AS TEXT) END,
    CASE WHEN gates.tool IS NULL THEN CAST(? AS INTEGER) ELSE 0 END,
    CASE WHEN gates.tool IS NULL THEN 0 ELSE 1 END`
  const taskColumns =
    "id, tool, pool, owner, status, created_at, updated_at, expires_at, ttl, poll_interval, caller, args, submission_key, counter, singleton_key"
  const taskValues = `CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 'working', CAST(? AS BIGINT),
    CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT),
    CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT)`
  const ignoreTaken = "ON CONFLICT (owner, tool, submission_key) WHERE submission_key IS NOT NULL DO NOTHING"
  // PostgreSQL creates, queues, counts and announces a task in one statement. A division by zero rolls it back.
  const hasRoom = `NOT ${quotas.limitReached(isPostgres)}`
  const createOf = (linked: string, source: string) =>
    database.prepare(
      `WITH bound (kind, name, live, retained) AS (${quotas.bounds}), ${linked}
     created AS (INSERT INTO skein_tasks (${taskColumns}) SELECT ${taskValues} ${source}
       RETURNING id, pool, tool, counter),
     queued AS (
       INSERT INTO skein_task_queue (${queueColumns}) 
       SELECT id, pool, created.tool, ${queuedValues}
       FROM created LEFT JOIN skein_task_tools AS gates ON gates.tool = created.tool
       RETURNING pool, state, gate
     ),
     counted AS (${countNew})
     SELECT 1 / (CASE WHEN counted.live > bound.live OR counted.retained > bound.retained THEN 0 ELSE 1 END) AS fits,
       (${signals.announceQueued}) AS announced, (SELECT state FROM queued) AS state
     FROM created LEFT JOIN counted ON TRUE LEFT JOIN bound ON bound.kind = counted.kind`
    )
  const createTask = createOf("", `WHERE ${hasRoom} ${ignoreTaken}`)
  const createChild = createOf(`linked AS (${linkChild(isPostgres, hasRoom)}),`, "FROM linked")
  const insertLink = database.prepare(linkChild(isPostgres, "TRUE"))
  const insertTask = database.prepare(
    `WITH bound (kind, name, live, retained) AS (${quotas.bounds})
     INSERT INTO skein_tasks (${taskColumns}) SELECT ${taskValues} WHERE ${hasRoom} ${ignoreTaken} RETURNING id`
  )
  const queueTask = database.prepare(
    `INSERT INTO skein_task_queue (${queueColumns}) SELECT ?, ?, new.tool, ${queuedValues}
     FROM (SELECT CAST(? AS TEXT) AS tool) AS new LEFT JOIN skein_task_tools AS gates ON gates.tool = new.tool
     RETURNING pool, state, gate`
  )
  const endTask = (condition: string) =>
    `UPDATE skein_tasks SET status = ?, outcome = ?, is_error = ?, message = COALESCE(?, message),
       singleton_key = NULL, version = version + 1, updated_at = ${database.greatest}(updated_at, ?)
     WHERE id = ? AND ${live} ${condition} RETURNING id, tool, counter, pool, created_at, status, is_error, updated_at,
       (${parentOf("skein_tasks.id")}) AS parent`
  // The values of a row are computed in their order. On SQLite, triggers change the children, the queue and the counters.
  const countedLast = "(SELECT COUNT(*) FROM counted)"
  const finishTask = (condition: string) =>
    changes.prepare(
      endTask(condition),
      `, ${noteChildEnd}, counted AS (${countEnd}),
       dequeued AS (DELETE FROM skein_task_queue USING changed WHERE task_id = changed.id RETURNING task_id)`,
      `, (${signals.sendSignalled("parent_signalled")}), (SELECT task_id FROM dequeued), ${countedLast}`
    )
  const finishAnyhow = finishTask("")
  const finishAt = finishTask(`AND ${endsAt("skein_tasks.id")}`)
  const cancelTask = changes.prepare(
    endTask(""),
    `, ${noteChildEnd}, counted AS (${countEnd}),
     signalled AS (
       UPDATE skein_task_queue SET ${recordCancellation("?")} FROM changed WHERE task_id = changed.id
       RETURNING task_id, state, skein_task_queue.pool, gate
     )`,
    `, (${signals.sendSignalled("parent_signalled")}), (${signals.sendSignalled()}), ${countedLast}`
  )
  const deleteTasks = changes.prepareMany(
    `DELETE FROM skein_tasks WHERE id IN (${
      isPostgres
        ? `SELECT id FROM skein_tasks WHERE id IN (${database.textsOfJson}) ORDER BY id FOR UPDATE SKIP LOCKED`
        : database.textsOfJson
    }) RETURNING id, tool, counter, status`
  )
  // The queue comes before the events and the log: its rows are locked by those who send and append.
  const deleteRows = ["questions", "queue", "events", "topics", "log", "output", "notes", "labels", "heartbeats"].map((
    table
  ) => database.prepare(`DELETE FROM skein_task_${table} WHERE task_id IN (${database.textsOfJson})`)).concat(
    database.prepare(`DELETE FROM skein_task_children WHERE parent IN (${database.textsOfJson})`)
  )

  const afterCommit = (report: () => void): Effect.Effect<void> => database.sql.afterCommit(Effect.sync(report))

  /**
   * Inserts a task. Returns `undefined` for a child whose place in its parent is taken, whose parent has ended, or that a limit
   * refuses.
   */
  const insertNew = (
    task: NewTask,
    worker: string | undefined,
    then: NonNullable<Parameters<Store["insert"]>[2]> = () => Effect.void,
    link?: ChildLink
  ): Effect.Effect<State | undefined, TaskError> => {
    // A child counts for its tool, and not for its owner: the parent does.
    const counts = { tool: escape(task.tool), counter: link === undefined ? counterOf(task) : "" }
    const owner = ownerToRow(task.owner)
    const pool = escape(task.pool)
    if (counts.tool.length > maxNameChars) return Effect.fail(tooLong("tool"))
    if (owner.length > maxNameChars) return Effect.fail(tooLong("owner"))
    if (pool.length > maxNameChars) return Effect.fail(tooLong("pool"))
    const queueKey = escape(task.queueKey ?? "")
    if (queueKey.length > maxNameChars) return Effect.fail(tooLong("queue key"))
    return Effect.suspend(() => {
      const id = newId()
      const args = Effect.flatMap(toJson(task.args), (text) => texts.encrypt(text, associatedData.args(id)))
      return Effect.flatMap(Effect.all([database.now, args, toJson(task.caller)]), ([time, args, caller]) => {
        const begin = beginOf(task, time)
        const { expiresAt, ttlMs } = expiryOf(task, time, begin)
        const state = newState(id, task, time, ttlMs)
        const { createdAt, pollIntervalMs } = state
        const row = [
          id,
          counts.tool,
          pool,
          owner,
          createdAt,
          createdAt,
          expiresAt,
          ttlMs,
          pollIntervalMs,
          caller,
          args,
          task.key === undefined ? null : escape(task.key),
          counts.counter,
          task.singleton === undefined ? null : escape(task.singleton.key)
        ]
        const noted = metrics === undefined ?
          then :
          (state: State, isClaimed: boolean) =>
            Effect.andThen(then(state, isClaimed), afterCommit(() => metrics.submitted(task)))
        const limits = quotas.limitParameters(task.limits, counts)
        const isLater = begin > time
        const isRunning = worker !== undefined && !isLater
        const queue = [
          rankOf(task.priority),
          begin,
          queueKey,
          debounceKeyOf(task),
          isRunning ? queued.running : isLater ? queued.waiting : queued.ready,
          isLater ? queued.waiting : queued.ready,
          isRunning ? worker : null,
          Number(isRunning)
        ]
        const linked = link === undefined
          ? []
          : [escape(link.name), link.item, id, Number(link.isDetached), link.parent]
        const exceeded = Effect.flatMap(counted.limitError(counts, task.limits), Effect.fail)
        if (isPostgres) {
          const create = link === undefined ? createTask : createChild
          const created = Effect.catchIf(
            create(...limits, ...linked, ...row, ...queue),
            isDivisionByZero,
            () => exceeded
          )
          const checked = Effect.flatMap(created, ([row]) => {
            if (row !== undefined) return Effect.as(noted(state, isClaimed(row)), state)
            return link === undefined ? exceeded : Effect.undefined
          })
          // A failed statement must not end the transaction of the caller.
          return Effect.uninterruptible(database.inSavepoint(checked))
        }
        const created = Effect.gen(function*() {
          if (link !== undefined && (yield* insertLink(...linked)).length === 0) return undefined
          const rows = yield* insertTask(...limits, ...row)
          if (rows.length === 0) return yield* exceeded
          const queuedRows = yield* queueTask(id, pool, ...queue, counts.tool)
          const isClaimedNow = isClaimed(queuedRows[0]!)
          if (!isClaimedNow) yield* signals.announce(queuedRows)
          yield* noted(state, isClaimedNow)
          yield* counted.increment(counts)
          return state
        })
        return database.transaction(created)
      })
    })
  }

  /** Inserts a task with its labels. */
  const insertLabelled: typeof insertNew = (task, worker, then, link) => {
    const created = insertNew(task, worker, then, link)
    const given = task.labels
    if (given === undefined || Object.keys(given).length === 0) return created
    const labelled = Effect.tap(created, (state) => state === undefined ? Effect.void : labels.setAll(state.id, given))
    return Effect.andThen(labels.check(given), database.transaction(labelled))
  }

  /** The failure of a task that a limit refuses. */
  const limitError = ({ limits, tool }: NewTask): Effect.Effect<never, TaskError> =>
    Effect.flatMap(counted.limitError({ tool: escape(tool), counter: "" }, limits), Effect.fail)

  /** Reports the end of a task, to the parent of a child too. */
  const noteEnd = (
    { created_at, id, parent, pool, tool }: Row,
    end: TaskEnd,
    message: string | undefined,
    time: number
  ) => {
    const reported = metrics === undefined && alerts === undefined
      ? Effect.void
      : afterCommit(() => {
        const task = { id: id as string, tool: unescape(tool as string), pool: unescape(pool as string) }
        const outcome = outcomeOf(end)
        metrics?.ended(task, outcome, time - Number(created_at))
        if (outcome === "given_up") alerts?.report({ _tag: "GivenUp", task, message })
        if (outcome === "failed" || outcome === "tool_error") alerts?.report({ _tag: "Failed", task, outcome, message })
      })
    return parent == null ? reported : Effect.andThen(signals.send(parent as string), reported)
  }

  const finish: Store["finish"] = (id, end, at) => {
    const isCancelled = end.status === "cancelled"
    const outcome = isCancelled
      ? Effect.succeed(null)
      : Effect.flatMap(toJson(end.outcome), (text) => texts.encrypt(text, associatedData.outcome(id)))
    const statusMessage = end.statusMessage ?? (isCancelled ? undefined : failureMessage(end.outcome))
    const message = statusMessage === undefined
      ? Effect.succeed(null)
      : texts.encrypt(escape(statusMessage), associatedData.message(id))
    const isError = !isCancelled && isErrorResult(end.outcome)
    const failed = !isError ? errorKinds.none : end.isDeclined === true ? errorKinds.declined : errorKinds.failed
    return Effect.flatMap(Effect.all([database.now, outcome, message]), ([time, outcome, message]) => {
      const ended = [end.status, outcome, failed, message, time, id] as const
      const noted = (row: Row | undefined) =>
        row === undefined ? notEnded : Effect.as(noteEnd(row, end, statusMessage, time), true)
      if (!isCancelled) {
        return Effect.flatMap(
          at === undefined ? finishAnyhow(...ended) : finishAt(...ended, ...endParameters(at)),
          noted
        )
      }
      if (isPostgres) return Effect.flatMap(cancelTask(...ended, time), noted)
      return database.transaction(
        Effect.flatMap(
          cancelTask(...ended),
          (row) => row === undefined ? notEnded : Effect.andThen(signals.signal(id, time, "cancellation"), noted(row))
        )
      )
    })
  }

  const remove: Store["remove"] = (ids) => {
    const removed = (rows: ReadonlyArray<Row>) => {
      const json = JSON.stringify(rows.map(({ id }) => id))
      return Effect.andThen(
        Effect.forEach(deleteRows, (deleteOf) => deleteOf(json), { discard: true }),
        counted.decrement(rows.map((row) => ({ ...quotaKeyOf(row), isLive: isLive(row) })))
      )
    }
    return database.transaction(
      Effect.flatMap(deleteTasks(JSON.stringify(ids)), (rows) => rows.length === 0 ? Effect.void : removed(rows))
    )
  }

  return { insert: insertLabelled, limitError, finish, remove }
}

const notEnded = /* @__PURE__ */ Effect.succeed(false)

/** How a task has ended, for metrics. */
const outcomeOf = (end: TaskEnd): EndOutcome =>
  end.status === "cancelled"
    ? "cancelled"
    : end.isGivenUp === true
    ? "given_up"
    : end.status === "failed"
    ? "failed"
    : end.isDeclined === true
    ? "declined"
    : isErrorResult(end.outcome)
    ? "tool_error"
    : "completed"
