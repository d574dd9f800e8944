/**
 * Submissions of tasks: one with a key that is known returns the task of the key, one of a singleton depends on the task that
 * has not ended, and one that is debounced changes the task that has not begun.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import { NotStarted, TaskError } from "../../TaskError.ts"
import type { Debounce, NewTask, State } from "../../TaskState.ts"
import { type Database, isTaken, maxNameChars, numberOf, type Row, textOf } from "./database.ts"
import { beginOf, debounceKeyOf, expiryOf, type Lifecycle, tooLong } from "./lifecycle.ts"
import { associatedData, live, ownerToRow, queued, type StoreContext } from "./rows.ts"
import type { Store } from "./store.ts"
import { escape, fromJson, toJson } from "./storedText.ts"

const notStarted = ({ singleton, tool }: NewTask): TaskError => {
  const of = singleton?.key === ""
    ? "another task of the tool"
    : `another task with the singleton key "${singleton?.key}"`
  return new TaskError({
    reason: new NotStarted({ message: `the task "${tool}" was not started: ${of} has not ended` })
  })
}

/** Makes the submissions of `TaskStore`. */
export const make = (
  { database, texts }: StoreContext,
  { finish, insert: insertNew, limitError }: Lifecycle,
  get: Store["get"]
): Pick<Store, "insert" | "insertChild" | "findKey"> => {
  const selectByKey = database.prepare(
    "SELECT id FROM skein_tasks WHERE owner = ? AND tool = ? AND submission_key = ? AND expires_at > ?"
  )
  const freeKey = database.prepare(
    `UPDATE skein_tasks SET submission_key = NULL
     WHERE owner = ? AND tool = ? AND submission_key = ? AND expires_at <= ?`
  )
  const selectSingleton = database.prepare("SELECT id, owner FROM skein_tasks WHERE tool = ? AND singleton_key = ?")
  // A process of an earlier version has ended it, or it has expired.
  const freeSingleton = database.prepare(
    `UPDATE skein_tasks SET singleton_key = NULL WHERE tool = ? AND singleton_key = ? AND (expires_at <= ? OR NOT (${live}))`
  )

  /** Inserts a task. If its singleton key is taken, its option decides. */
  const insertSingleton = (task: NewTask, insert: Effect.Effect<State | undefined, TaskError>) => {
    const { singleton } = task
    if (singleton === undefined) return insert
    const key = escape(singleton.key)
    if (key.length > maxNameChars) return Effect.fail(tooLong("singleton key"))
    const named = [escape(task.tool), key] as const
    /** The task in place of a new one; `undefined`: nothing is in its way now. */
    const resolve = Effect.fnUntraced(function*() {
      yield* freeSingleton(...named, yield* database.now)
      const [holder] = yield* selectSingleton(...named)
      if (holder === undefined) return undefined
      const id = textOf(holder, "id")
      if (singleton.onConflict === "cancelExisting") {
        yield* finish(id, { status: "cancelled", statusMessage: "Another task has replaced this one" })
        return undefined
      }
      const isOwn = holder["owner"] === ownerToRow(task.owner)
      return singleton.onConflict === "useExisting" && isOwn ? yield* get(id) : yield* Effect.fail(notStarted(task))
    })
    const attempt = (left: number): Effect.Effect<State | undefined, TaskError> =>
      Effect.catchIf(insert, (error) => isTaken(error, "singleton_key"), () =>
        left === 0
          ? Effect.fail(notStarted(task))
          : Effect.flatMap(resolve(), (state) => state === undefined ? attempt(left - 1) : Effect.succeed(state)))
    return attempt(maxAttempts)
  }

  const findKey: Store["findKey"] = ({ key = "", owner, tool }) =>
    Effect.map(
      Effect.flatMap(database.now, (now) => selectByKey(ownerToRow(owner), escape(tool), escape(key), now)),
      ([row]) => row && textOf(row, "id")
    )

  /** Inserts a task, or returns the one that has its key. */
  const insertKeyed: Store["insert"] = (task, worker, then) => {
    const created = Effect.map(insertSingleton(task, insertNew(task, worker, then)), (state) => state!)
    if (task.key === undefined) return created
    const key = escape(task.key)
    if (key.length > maxNameChars) return Effect.fail(tooLong("key"))
    const named = [ownerToRow(task.owner), escape(task.tool), key] as const
    const found = Effect.flatMap(
      findKey({ ...task, key: task.key }),
      (id) => id === undefined ? Effect.undefined : get(id)
    )
    const inserted = Effect.andThen(
      Effect.flatMap(database.now, (now) => freeKey(...named, now)),
      // A concurrent submission may have taken the key.
      Effect.catchIf(
        created,
        ({ reason }) => reason._tag === "LimitExceeded",
        (error) => Effect.flatMap(found, (state) => state === undefined ? Effect.fail(error) : Effect.succeed(state))
      )
    )
    return Effect.flatMap(found, (state) => state === undefined ? inserted : Effect.succeed(state))
  }

  const changeDebounced = makeDebounced(database, texts)

  const insert: Store["insert"] = (task, worker, then) => {
    const { debounce } = task
    if (debounce === undefined) return insertKeyed(task, worker, then)
    if ((debounceKeyOf(task) ?? "").length > maxNameChars) return Effect.fail(tooLong("debounce key"))
    const changed = Effect.flatMap(
      changeDebounced(task, debounce),
      (id) => id === undefined ? Effect.undefined : get(id)
    )
    const attempt = (left: number): Effect.Effect<State, TaskError> =>
      Effect.flatMap(changed, (state) =>
        state !== undefined
          ? Effect.succeed(state)
          : Effect.catchIf(
            insertKeyed(task, worker, then),
            (error) => left > 0 && isTaken(error, "debounce_key"),
            () => attempt(left - 1)
          ))
    return attempt(maxAttempts)
  }

  const selectChild = database.prepare(
    "SELECT child FROM skein_task_children WHERE parent = ? AND name = ? AND item = ?"
  )
  const selectLive = database.prepare(`SELECT 1 FROM skein_tasks WHERE id = ? AND ${live}`)

  const insertChild: Store["insertChild"] = (link, task, worker, then) => {
    if (escape(link.name).length > maxNameChars) return Effect.fail(tooLong("name"))
    // A child has its place in its parent: another submission neither finds nor changes it.
    const { singleton } = task
    const child: NewTask = {
      ...task,
      limits: { ...task.limits, client: {} },
      key: undefined,
      debounce: undefined,
      singleton: singleton?.onConflict === "useExisting" ? { ...singleton, onConflict: "fail" } : singleton
    }
    return Effect.gen(function*() {
      const state = yield* insertSingleton(child, insertNew(child, worker, then, link))
      if (state !== undefined) return state.id
      const [row] = yield* selectChild(link.parent, escape(link.name), link.item)
      if (row !== undefined) return textOf(row, "child")
      if ((yield* selectLive(link.parent)).length === 0) return undefined
      return yield* limitError(child)
    })
  }

  return { insert, insertChild, findKey }
}

/** How often a submission looks again, when others change the same task at the same moment. */
const maxAttempts = 100

/**
 * Makes the change of a debounced task that has not begun: it begins later, with the new arguments. Returns its id;
 * `undefined` if there is none.
 */
const makeDebounced = (database: Database, texts: StoreContext["texts"]) => {
  const select = database.prepare(
    "SELECT task_id FROM skein_task_queue WHERE tool = ? AND debounce_key = ? AND runs = 0"
  )
  const free = database.prepare("UPDATE skein_task_queue SET debounce_key = NULL WHERE task_id = ?")
  // The task is locked before its row in the queue, as by its end.
  const lockTask = database.prepare(
    `SELECT args, created_at FROM skein_tasks WHERE id = ? AND ${live} ${database.isPostgres ? "FOR UPDATE" : ""}`
  )
  const setBegin = database.prepare(
    `UPDATE skein_task_queue SET state = ${queued.waiting}, wake_at = ? WHERE task_id = ? AND runs = 0 RETURNING task_id`
  )
  const setTask = database.prepare(
    `UPDATE skein_tasks SET args = ?, ttl = ?, expires_at = ?, version = version + 1,
       updated_at = ${database.greatest}(updated_at, ?) WHERE id = ?`
  )
  const merged = ({ merge }: Debounce, args: JsonObject, row: Row, id: string): Effect.Effect<JsonObject, TaskError> =>
    merge === undefined
      ? Effect.succeed(args)
      : Effect.map(
        Effect.flatMap(texts.decrypt(textOf(row, "args"), associatedData.args(id)), fromJson<JsonObject>),
        (stored) => merge(stored, args)
      )
  return (task: NewTask, debounce: Debounce): Effect.Effect<string | undefined, TaskError> =>
    database.transaction(Effect.gen(function*() {
      const [found] = yield* select(escape(task.tool), debounceKeyOf(task))
      if (found === undefined) return undefined
      const id = textOf(found, "task_id")
      const [row] = yield* lockTask(id)
      // It is cancelled.
      if (row === undefined) return yield* Effect.as(free(id), undefined)
      const now = yield* database.now
      const createdAt = numberOf(row, "created_at")
      const begin = beginOf(task, now, createdAt)
      if ((yield* setBegin(begin, id)).length === 0) return undefined
      const args = yield* Effect.flatMap(merged(debounce, task.args, row, id), toJson)
      const { expiresAt, ttlMs } = expiryOf(task, createdAt, begin)
      yield* setTask(yield* texts.encrypt(args, associatedData.args(id)), ttlMs, expiresAt, now, id)
      return id
    }))
}
