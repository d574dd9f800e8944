/**
 * The questions of tasks. Who changes one changes its task first, so that two never wait for each other, and so that the task knows
 * which answer is its last.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { Question } from "../../TaskState.ts"
import type { Lost, Swept } from "./store.ts"
import { longest, now, type Table } from "./context.ts"
import type { Row } from "./database.ts"
import { about, live, sweptColumns, toSwept } from "./rows.ts"
import { escape, json, parse, unfit } from "./stored.ts"

const tooLong = (key: string) =>
  unfit(`The key of a question has ${key.length} characters, at most ${longest} are kept`)

/** Takes a transaction back, of which a part found its row changed meanwhile. */
const outrun = { _tag: "Outrun" } as const
type Outrun = typeof outrun
const isOutrun = (error: unknown): error is Outrun => error === outrun

/** How a question is closed: answered (1), withdrawn (2) or lost (3), and whether of a task whose time is over too. */
interface Closing {
  readonly state: 1 | 2 | 3
  readonly answer: string | null
  readonly evenExpired: boolean
}

/** See `TaskStore`. */
export const make = ({ changes, database, vault }: Table) => {
  const { latest } = database
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

  const loses = database.prepare(
    "UPDATE skein_task_questions SET state = 3, answer = NULL WHERE task_id = ? AND name = ? AND state = 1"
  )

  /** What is known of a question: `undefined` where it was not asked. */
  const find = (id: string, name: string) => Effect.map(known(id, name), (rows) => rows[0])

  const answerOf = (
    id: string,
    name: string,
    { answer, state }: Row
  ): Effect.Effect<JsonObject | Lost | undefined, TaskError> => {
    if (answer != null) return Effect.flatMap(vault.open(answer as string, about.answer(id, name)), parse<JsonObject>)
    return Number(state) === 3 ? Effect.succeed("lost") : Effect.undefined
  }

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

  const ask = (
    id: string,
    { key, method, params }: Question
  ): Effect.Effect<JsonObject | Lost | undefined, TaskError> => {
    const name = escape(key)
    if (name.length > longest) return Effect.fail(tooLong(key))
    return Effect.flatMap(find(id, name), (row) => {
      if (row !== undefined) return answerOf(id, name, row)
      const sealed = params === undefined
        ? Effect.succeed(null)
        : Effect.flatMap(json(params), (text) => vault.seal(text, about.question(id, name)))
      return Effect.flatMap(sealed, (params) =>
        Effect.catchIf(
          Effect.as(insert(id, name, method, params), undefined),
          isOutrun,
          () => Effect.flatMap(find(id, name), (row) => row === undefined ? Effect.undefined : answerOf(id, name, row))
        ))
    })
  }

  /** Closes an open question, in one transaction with `then`. */
  const close = <E, R>(
    id: string,
    name: string,
    { answer, evenExpired, state }: Closing,
    then: (work: Swept) => Effect.Effect<void, E, R>
  ): Effect.Effect<boolean, TaskError | E, R> => {
    const closed = (task: Row) =>
      Effect.flatMap(
        settles(state, answer, id, name),
        (rows): Effect.Effect<boolean, E | Outrun, R> =>
          rows.length === 0 ? Effect.fail(outrun) : Effect.as(then(toSwept(task)), true)
      )
    return Effect.flatMap(now, (time) =>
      database.transaction(
        Effect.flatMap(
          closes(time, id, evenExpired ? -1 : time, id, name),
          (task) => task === undefined ? Effect.succeed(false) : closed(task)
        )
      )).pipe(Effect.catchIf(isOutrun, () => Effect.succeed(false)))
  }

  const withdraw = (id: string, key: string): Effect.Effect<void, TaskError> =>
    Effect.asVoid(close(id, escape(key), { state: 2, answer: null, evenExpired: true }, () => Effect.void))

  const lose = (id: string, key: string, answered: boolean): Effect.Effect<void, TaskError> => {
    const name = escape(key)
    const closed = close(id, name, { state: 3, answer: null, evenExpired: true }, () => Effect.void)
    return Effect.flatMap(closed, (done) => done || !answered ? Effect.void : Effect.asVoid(loses(id, name)))
  }

  const answer = <E, R>(
    id: string,
    key: string,
    given: JsonObject,
    then: (work: Swept) => Effect.Effect<void, E, R>
  ): Effect.Effect<boolean, TaskError | E, R> => {
    const name = escape(key)
    if (name.length > longest) return Effect.succeed(false)
    const sealed = Effect.flatMap(json(given), (text) => vault.seal(text, about.answer(id, name)))
    return Effect.flatMap(sealed, (answer) => close(id, name, { state: 1, answer, evenExpired: false }, then))
  }

  return { ask, withdraw, lose, answer }
}
