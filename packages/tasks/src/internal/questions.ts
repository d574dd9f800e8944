/**
 * The questions of tasks. Who changes one changes its task first, so that two never wait for each other, and so that the task knows
 * which answer is its last.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import { TaskError } from "../TaskError.ts"
import type { Question } from "../TaskState.ts"
import type { Changes } from "./changes.ts"
import type { Database } from "./database.ts"
import { about, live, sweptColumns, toSwept } from "./rows.ts"
import type { Swept } from "./store.ts"
import { escape, json, type Vault } from "./stored.ts"

/** Keys are in an index, which takes no long ones. */
const longest = 512

const tooLong = (key: string) =>
  new TaskError({
    reason: "Store",
    message: `The key of a question has ${key.length} characters, at most ${longest} are kept`
  })

/** Takes a transaction back, of which a part found its row changed meanwhile. */
const outrun = { _tag: "Outrun" } as const
type Outrun = typeof outrun
const isOutrun = (error: unknown): error is Outrun => error === outrun

/** See `TaskStore`. */
export const make = (database: Database, changes: Changes, vault: Vault, now: Effect.Effect<number>) => {
  const latest = database.pg ? "GREATEST" : "MAX"
  const known = database.prepare("SELECT state, answer FROM skein_task_questions WHERE task_id = ? AND name = ?")
  const opens = changes.prepare(
    `UPDATE skein_tasks SET status = 'input_required', open_questions = open_questions + 1, version = version + 1,
       updated_at = ${latest}(updated_at, ?)
     WHERE id = ? AND ${live} RETURNING id, version`
  )
  const inserts = database.prepare(
    `INSERT INTO skein_task_questions (task_id, name, place, method, params) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (task_id, name) DO NOTHING RETURNING name`
  )
  const closes = changes.prepare(
    `UPDATE skein_tasks SET status = CASE WHEN open_questions <= 1 THEN 'working' ELSE status END,
       open_questions = open_questions - 1, version = version + 1, updated_at = ${latest}(updated_at, ?)
     WHERE id = ? AND status = 'input_required' AND expires_at > ?
       AND EXISTS (SELECT 1 FROM skein_task_questions WHERE task_id = ? AND name = ? AND state = 0)
     RETURNING ${sweptColumns}`
  )
  const settles = database.prepare(
    `UPDATE skein_task_questions SET state = ?, answer = ? WHERE task_id = ? AND name = ? AND state = 0 RETURNING name`
  )

  /** What is known of a question: `undefined` where it was not asked. */
  const find = (id: string, name: string) => Effect.map(known(id, name), (rows) => rows[0])

  const answerOf = (id: string, name: string, answer: unknown): Effect.Effect<JsonObject | undefined, TaskError> =>
    answer == null
      ? Effect.undefined
      : Effect.map(vault.open(answer as string, about.answer(id, name)), (text) => JSON.parse(text) as JsonObject)

  const insert = (
    id: string,
    name: string,
    method: string,
    params: string | null
  ): Effect.Effect<void, TaskError | Outrun> =>
    Effect.flatMap(now, (time) =>
      database.transaction(
        Effect.flatMap(opens(time, id), (task) =>
          task === undefined
            ? Effect.void
            : Effect.flatMap(
              inserts(id, name, Number(task["version"]), escape(method), params),
              (rows) => rows.length === 0 ? Effect.fail(outrun) : Effect.void
            ))
      ))

  const ask = (id: string, { key, method, params }: Question): Effect.Effect<JsonObject | undefined, TaskError> => {
    const name = escape(key)
    if (name.length > longest) return Effect.fail(tooLong(key))
    return Effect.flatMap(find(id, name), (row) => {
      if (row !== undefined) return answerOf(id, name, row["answer"])
      const sealed = params === undefined
        ? Effect.succeed(null)
        : Effect.flatMap(json(params), (text) => vault.seal(text, about.question(id, name)))
      return Effect.flatMap(sealed, (params) =>
        Effect.catchIf(
          Effect.as(insert(id, name, method, params), undefined),
          isOutrun,
          () => Effect.flatMap(find(id, name), (row) => answerOf(id, name, row?.["answer"]))
        ))
    })
  }

  /** Ends an open question, in one transaction with `then`. */
  const close = <E, R>(
    id: string,
    name: string,
    state: 1 | 2,
    answer: string | null,
    atLeast: number,
    then: (work: Swept) => Effect.Effect<void, E, R>
  ): Effect.Effect<boolean, TaskError | E, R> =>
    Effect.flatMap(now, (time) =>
      Effect.catchIf(
        database.transaction(
          Effect.flatMap(closes(time, id, atLeast < 0 ? atLeast : time, id, name), (task) =>
            task === undefined
              ? Effect.succeed(false)
              : Effect.flatMap(
                settles(state, answer, id, name),
                (rows): Effect.Effect<boolean, E | Outrun, R> =>
                  rows.length === 0 ? Effect.fail(outrun) : Effect.as(then(toSwept(task)), true)
              ))
        ),
        isOutrun,
        () => Effect.succeed(false)
      ))

  return {
    ask,
    withdraw: (id: string, key: string): Effect.Effect<void, TaskError> =>
      Effect.asVoid(close(id, escape(key), 2, null, -1, () => Effect.void)),
    answer: <E, R>(
      id: string,
      key: string,
      answer: JsonObject,
      then: (work: Swept) => Effect.Effect<void, E, R>
    ): Effect.Effect<boolean, TaskError | E, R> => {
      const name = escape(key)
      return name.length > longest ? Effect.succeed(false) : Effect.flatMap(
        Effect.flatMap(json(answer), (text) => vault.seal(text, about.answer(id, name))),
        (sealed) => close(id, name, 1, sealed, 0, then)
      )
    }
  }
}
