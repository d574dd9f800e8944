/**
 * The table that leads the engine, over SQL: SQLite and PostgreSQL.
 *
 * Order of locks, for PostgreSQL: the task, its questions, what the engine does in the same transaction, the counters.
 */
import type { Progress } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { Encryption } from "../Encryption.ts"
import { TaskError } from "../TaskError.ts"
import type { NewTask, Position, State } from "../TaskState.ts"
import { Changes, type Signals } from "./changes.ts"
import * as counters from "./counters.ts"
import { Database, type Row } from "./database.ts"
import { migrate, never } from "./migrations.ts"
import * as questions from "./questions.ts"
import { about, listed, live, ownerToRow, sweptColumns, toState, toSwept, toWork, whole, workColumns } from "./rows.ts"
import { type End, type Swept, TaskStore, type Work } from "./store.ts"
import { escape, json, openVault, sealedVault } from "./stored.ts"

/** What a store is made with. */
export interface Options {
  /** How this process hears of what other processes change. */
  readonly signals?: Signals | undefined
}

/** Tools, pools and owners are in indexes, which take no long texts. */
const longest = 512

const idSize = 24
const idPattern = /^[\w-]{32}$/
/** Only what is one of our ids is looked for: what clients send is anything. */
const isId = (id: string): boolean => idPattern.test(id)
const newId = (): string => Base64Url.encode(globalThis.crypto.getRandomValues(new Uint8Array(idSize)))

const now = /* @__PURE__ */ Effect.clockWith((clock) => Effect.succeed(clock.currentTimeMillisUnsafe()))
const nobody = /* @__PURE__ */ Effect.succeed(false)
const none: Effect.Effect<ReadonlyArray<never>> = /* @__PURE__ */ Effect.succeed([])

/** Milliseconds as they are kept: whole, and no later than the clock's end. */
const millis = (time: number): number => Math.min(Math.max(Math.ceil(time), 0), never)

const tooLong = (what: string, text: string) =>
  new TaskError({
    reason: "Store",
    message: `The ${what} of a task has ${text.length} characters, at most ${longest} are kept`
  })

/** Runs the migrations and makes the store. */
export const make = (
  options: Options = {}
): Effect.Effect<TaskStore["Service"], TaskError, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function*() {
    const database = new Database(yield* SqlClient.SqlClient)
    const sealer = yield* Encryption
    const vault = sealer === undefined ? openVault : sealedVault(sealer)
    yield* migrate(database)
    const changes = yield* Changes.make(database, options.signals)
    const counted = counters.make(database)
    const asked = questions.make(database, changes, vault, now)
    const { pg } = database
    const latest = pg ? "GREATEST" : "MAX"

    const inserts = database.prepare(
      `INSERT INTO skein_tasks
         (id, tool, pool, owner, status, created_at, updated_at, expires_at, ttl, poll_interval, caller, args)
       SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), 'working', CAST(? AS BIGINT),
         CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT)
       WHERE NOT ${counters.full} RETURNING id`
    )
    const reads = database.prepare(`SELECT ${whole(pg)} FROM skein_tasks WHERE id = ? AND expires_at > ?`)
    const works = database.prepare(`SELECT ${workColumns} FROM skein_tasks WHERE id = ?`)
    const says = changes.prepare(
      `UPDATE skein_tasks SET message = ?, version = version + 1, updated_at = ${latest}(updated_at, ?)
       WHERE id = ? AND ${live} RETURNING id`
    )
    const saysNumber = changes.prepare(
      `UPDATE skein_tasks SET message = ?, said = ?, version = version + 1, updated_at = ${latest}(updated_at, ?)
       WHERE id = ? AND ${live} AND said < ? RETURNING id`
    )
    const progresses = changes.prepare(
      `UPDATE skein_tasks SET progress = ?, progress_total = ?, progress_message = ?, version = version + 1,
         updated_at = ${latest}(updated_at, ?)
       WHERE id = ? AND ${live} AND (progress IS NULL OR progress < ?) RETURNING id`
    )
    const finishes = changes.prepare(
      `UPDATE skein_tasks SET status = ?, outcome = ?, message = COALESCE(?, message), version = version + 1,
         updated_at = ${latest}(updated_at, ?)
       WHERE id = ? AND ${live} RETURNING id, tool, owner`,
      `, counted AS (
         INSERT INTO skein_task_counts (kind, name, live, retained)
         SELECT kinds.kind, CASE kinds.kind WHEN 0 THEN '' WHEN 1 THEN changed.tool ELSE changed.owner END, -1, 0
         FROM changed CROSS JOIN (VALUES (0), (1), (2)) AS kinds(kind) ORDER BY kinds.kind ${counters.added})`
    )
    const removes = changes.prepare("DELETE FROM skein_tasks WHERE id = ? RETURNING id, tool, owner, status")
    const removesQuestions = database.prepare("DELETE FROM skein_task_questions WHERE task_id = ?")
    const unsettled = database.prepare(
      `SELECT ${sweptColumns} FROM skein_tasks WHERE settled = 0 AND id > ? AND updated_at <= ? ORDER BY id LIMIT ?`
    )
    const ids = pg ? "SELECT json_array_elements_text(CAST(? AS JSON))" : "SELECT value FROM json_each(?)"
    const settles = database.prepare(`UPDATE skein_tasks SET settled = 1 WHERE id IN (${ids}) AND NOT (${live})`)
    const expired = database.prepare(
      `SELECT ${sweptColumns} FROM skein_tasks
       WHERE expires_at < ${never} AND expires_at <= ? AND (expires_at, id) > (?, ?) ORDER BY expires_at, id LIMIT ?`
    )
    const nextExpiry = database.prepare(`SELECT MIN(expires_at) AS next FROM skein_tasks WHERE expires_at < ${never}`)

    const lists = (owners: number) => {
      const page = `SELECT ${listed} FROM skein_tasks
        WHERE owner = ? AND expires_at > ? AND (created_at, id) < (?, ?) ORDER BY created_at DESC, id DESC LIMIT ?`
      const pages = Array.from({ length: owners }, (_, index) => `SELECT * FROM (${page}) AS page${index}`)
      return database.prepare(`${pages.join(" UNION ALL ")} ORDER BY created_at DESC, id DESC LIMIT ?`)
    }
    const listsOne = lists(1)

    const finishRow = (id: string, end: End, outcome: string | null, message: string | null, time: number) => {
      const changed = finishes(end.status, outcome, message, time, id)
      if (pg) return Effect.map(changed, (row) => row !== undefined)
      return database.transaction(
        Effect.flatMap(changed, (row) =>
          row === undefined ? nobody : Effect.as(counted.change(countsOf(row), -1, 0), true))
      )
    }

    const seal = (text: string | undefined, what: string) =>
      text === undefined ? Effect.succeed(null) : vault.seal(escape(text), what)

    const insert = <E, R>(task: NewTask, then: (state: State) => Effect.Effect<void, E, R>) => {
      const counts = { tool: escape(task.tool), owner: ownerToRow(task.owner) }
      const pool = escape(task.pool)
      if (counts.tool.length > longest) {
        return Effect.fail(tooLong("tool", task.tool))
      }
      if (counts.owner.length > longest) {
        return Effect.fail(tooLong("owner", counts.owner))
      }
      if (pool.length > longest) {
        return Effect.fail(tooLong("pool", task.pool))
      }
      const id = newId()
      const args = Effect.flatMap(json(task.args), (text) =>
        vault.seal(text, about.args(id)))
      return Effect.flatMap(Effect.all([now, args, json(task.caller)]), ([time, args, caller]) => {
        const state = newState(id, task, time)
        const { createdAt, pollInterval, ttl } = state
        const expiresAt = ttl === null ? never : millis(createdAt + ttl)
        const bounds = counters.bounds(task.limits, counts)
        const inserted = inserts(
          ...[id, counts.tool, pool, counts.owner, createdAt, createdAt, expiresAt, ttl, pollInterval, caller, args],
          ...bounds
        )
        return Effect.as(
          database.transaction(
            Effect.flatMap(inserted, (rows) =>
              rows.length === 0
                ? Effect.flatMap(counted.reached(counts, task.limits), Effect.fail)
                : Effect.andThen(then(state), counted.enter(counts, task.limits)))
          ),
          state
        )
      })
    }

    return TaskStore.of({
      insert,
      state: (id) =>
        isId(id)
          ? Effect.flatMap(
            Effect.flatMap(now, (time) => reads(id, time)),
            ([row]) => row === undefined ? Effect.undefined : toState(row, vault)
          )
          : Effect.undefined,
      work: (id): Effect.Effect<Work | undefined, TaskError> =>
        isId(id)
          ? Effect.flatMap(works(id), ([row]) => row === undefined ? Effect.undefined : toWork(row, vault))
          : Effect.undefined,
      list: (owners, after, limit) => {
        const names = [...new Set(owners.map(ownerToRow))].filter((name) => name.length <= longest)
        const from = start(after)
        const count = Math.min(Math.max(Math.floor(limit), 0), 10_000)
        if (names.length === 0 || from === undefined || !(count > 0)) return none
        return Effect.flatMap(now, (time) => {
          const run = names.length === 1 ? listsOne : lists(names.length)
          const parameters = names.flatMap((name) => [name, time, from.createdAt, from.id, count])
          return Effect.flatMap(run(...parameters, count), (rows) => Effect.forEach(rows, (row) => toState(row, vault)))
        })
      },
      finish: (id, end) => {
        if (!isId(id)) return nobody
        const outcome = end.status === "cancelled"
          ? Effect.succeed(null)
          : Effect.flatMap(json(end.outcome), (text) => vault.seal(text, about.outcome(id)))
        return Effect.flatMap(
          Effect.all([now, outcome, seal(end.message, about.message(id))]),
          ([time, outcome, message]) => finishRow(id, end, outcome, message, time)
        )
      },
      say: (id, message, number) =>
        Effect.asVoid(Effect.flatMap(Effect.all([now, seal(message, about.message(id))]), ([time, text]) =>
          number === undefined ? says(text, time, id) : saysNumber(text, number, time, id, number))),
      progress: (id, progress) => {
        const told = checked(progress)
        if (told === undefined) {
          return Effect.void
        }
        return Effect.asVoid(
          Effect.flatMap(Effect.all([now, seal(told.message, about.progress(id))]), ([time, text]) =>
            progresses(told.progress, told.total ?? null, text, time, id, told.progress))
        )
      },
      ask: (id, question) =>
        isId(id) ? asked.ask(id, question) : Effect.undefined,
      withdraw: (id, key) =>
        isId(id) ? asked.withdraw(id, key) : Effect.void,
      answer: (id, key, answer, then) =>
        isId(id) ? asked.answer(id, key, answer, then) : nobody,
      listen: (id, listener) =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() =>
            changes.notices.listen(id, listener)
          ),
          (stop) => Effect.sync(stop)
        )),
      unsettled: (quiet, limit, after) =>
        Effect.flatMap(now, (time) =>
          Effect.map(unsettled(after?.id ?? "", time - millis(quiet), Math.floor(limit)), (rows) =>
            rows.map(toSwept))),
      settle: (ids) =>
        Effect.asVoid(settles(JSON.stringify(typeof ids === "string" ? [ids] : ids))),
      expired: (limit, after) =>
        Effect.flatMap(now, (time) =>
          Effect.map(
            expired(time, after?.expiresAt ?? -1, after?.id ?? "", Math.floor(limit)),
            (rows): ReadonlyArray<Swept> => rows.map(toSwept)
          )),
      nextExpiry: Effect.map(nextExpiry(), ([row]) => row?.["next"] == null ? undefined : Number(row["next"])),
      remove: (id, then) =>
        database.transaction(
          Effect.flatMap(removes(id), (row) => {
            if (row === undefined) return then
            const leave = counted.leave(
              countsOf(row),
              row["status"] === "working" || row["status"] === "input_required"
            )
            return Effect.andThen(Effect.andThen(removesQuestions(id), then), leave)
          })
        ),
      seal: (text, what) => vault.seal(text, about.other(what)),
      open: (sealed, what) => vault.open(sealed, about.other(what))
    })
  })

const countsOf = (row: Row) => ({ tool: row["tool"] as string, owner: row["owner"] as string })

const newState = (id: string, { caller, owner, pollInterval, pool, tool, ttl }: NewTask, now: number): State => ({
  id,
  tool,
  pool,
  owner,
  status: "working",
  message: undefined,
  progress: undefined,
  createdAt: now,
  updatedAt: now,
  ttl: ttl === null || ttl === Number.POSITIVE_INFINITY ? null : millis(ttl),
  pollInterval: millis(pollInterval),
  version: 1,
  caller,
  questions: [],
  outcome: undefined
})

/** Where a page begins; `undefined` where nothing can be. */
const start = (after: Position | undefined): Position | undefined => {
  if (after === undefined) return { createdAt: never, id: "" }
  return Number.isSafeInteger(after.createdAt) ? { createdAt: after.createdAt, id: escape(after.id) } : undefined
}

/** Progress that can be kept: numbers that are finite. */
const checked = ({ message, progress, total }: Progress): Progress | undefined =>
  Number.isFinite(progress)
    ? { progress, total: total !== undefined && Number.isFinite(total) ? total : undefined, message }
    : undefined

/** The store as a layer. */
export const layer = (options?: Options): Layer.Layer<TaskStore, TaskError, SqlClient.SqlClient> =>
  Layer.effect(TaskStore, make(options))
