/**
 * The questions of tasks. Each transaction that changes a question changes its task first, so that transactions do not
 * deadlock, and so that the task counts its open questions.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { Lost, Store } from "./store.ts"
import { conflict, maxNameChars, numberOf, type Row, type Statement, textOf } from "./database.ts"
import { lastSeqOf } from "./queue.ts"
import { associatedData, live, type StoreContext } from "./rows.ts"
import { escape, fromJson, permanentError, toJson, unescape } from "./storedText.ts"

const tooLong = (key: string) =>
  permanentError(`the key of a question has ${key.length} characters, and may have at most ${maxNameChars}`)

/** The condition that a log has an event at a position, or that the position is 0. */
const hasEvent = (id: string): string => `${lastSeqOf(id)} >= CAST(? AS INTEGER)`

/** The operations of `TaskStore` on questions. `get` reads a state. */
export const make = ({ changes, database, signals, texts }: StoreContext, get: Store["get"]) => {
  const { greatest } = database
  const selectQuestion = database.prepare(
    "SELECT state, answer FROM skein_task_questions WHERE task_id = ? AND name = ?"
  )
  const selectAll = database.prepare("SELECT name, state, answer FROM skein_task_questions WHERE task_id = ?")
  const deleteOpen = database.prepare(
    "DELETE FROM skein_task_questions WHERE task_id = ? AND name = ? AND state = 0 RETURNING name"
  )
  const selectClosed = database.prepare(
    "SELECT name, state, answer FROM skein_task_questions WHERE task_id = ? AND state <> 0"
  )
  const selectForCopy = database.prepare(
    `SELECT name, place, state, method, params, answer FROM skein_task_questions 
     WHERE task_id = ? AND state <> 0 AND name IN (${database.textsOfJson})`
  )
  // The first run of a task does not read its log.
  const markAsRun = database.prepare("UPDATE skein_task_queue SET runs = 1 WHERE task_id = ?")
  const insertClosed = database.prepare(
    `INSERT INTO skein_task_questions (task_id, name, place, state, method, params, answer)
     VALUES (?, ?, ?, ?, ?, ?, ?)`
  )
  const addOpenQuestion = changes.prepare(
    `UPDATE skein_tasks SET status = 'input_required', open_questions = open_questions + 1, version = version + 1,
       updated_at = ${greatest}(updated_at, ?)
     WHERE id = ? AND ${live} AND ${hasEvent("skein_tasks.id")} RETURNING id, version`
  )
  const insertQuestion = database.prepare(
    `INSERT INTO skein_task_questions (task_id, name, place, method, params, addressee) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (task_id, name) DO NOTHING RETURNING name`
  )
  const removeOpenQuestion = changes.prepare(
    `UPDATE skein_tasks SET status = CASE WHEN open_questions <= 1 THEN 'working' ELSE status END,
       open_questions = open_questions - 1, version = version + 1, updated_at = ${greatest}(updated_at, ?)
     WHERE id = ? AND status = 'input_required' AND expires_at > ?
       AND EXISTS (SELECT 1 FROM skein_task_questions WHERE task_id = ? AND name = ? AND state = 0)
       AND ${hasEvent("skein_tasks.id")}
     RETURNING id`
  )
  // The state: 1 answered, 2 withdrawn, 3 lost.
  const closeQuestion = database.prepare(
    `UPDATE skein_task_questions SET state = ?, answer = ? WHERE task_id = ? AND name = ? AND state = 0 RETURNING name`
  )

  const loseAnswer = database.prepare(
    `UPDATE skein_task_questions SET state = 3, answer = NULL
     WHERE task_id = ? AND name = ? AND state = 1 AND ${hasEvent("skein_task_questions.task_id")}`
  )

  const answerOf = (
    id: string,
    name: string,
    { answer, state }: Row
  ): Effect.Effect<JsonObject | Lost | undefined, TaskError> => {
    if (answer != null) {
      return Effect.flatMap(texts.decrypt(answer as string, associatedData.answer(id, name)), fromJson<JsonObject>)
    }
    return Number(state) === 3 ? Effect.succeed("lost") : Effect.undefined
  }

  const selectAddressed = database.prepare(
    `SELECT question.task_id, question.name FROM skein_task_questions AS question
     JOIN skein_tasks AS task ON task.id = question.task_id
     WHERE question.state = 0 AND question.addressee IN (${database.textsOfJson}) AND task.expires_at > ?
     ORDER BY task.created_at, task.id, question.place LIMIT ?`
  )

  const findAddressed: Store["findAddressed"] = (addresses, limit) =>
    Effect.flatMap(
      Effect.flatMap(database.now, (now) => selectAddressed(JSON.stringify(addresses.map(escape)), now, limit)),
      (rows) =>
        Effect.map(
          Effect.forEach([...new Set(rows.map((row) => textOf(row, "task_id")))], get),
          (states) =>
            states.flatMap((state) =>
              state?.questions.flatMap((question) =>
                question.to !== undefined && addresses.includes(question.to) ? [{ task: state, question }] : []
              ) ?? []
            )
        )
    )

  const ask: Store["ask"] = (id, { key, method, params, to }, lastSeq = 0) => {
    const name = escape(key)
    if (name.length > maxNameChars) return Effect.fail(tooLong(key))
    const addressee = to === undefined ? null : escape(to)
    if ((addressee ?? "").length > maxNameChars) {
      return Effect.fail(permanentError(`\`to\` of a question exceeds ${maxNameChars} characters`))
    }
    const answered = Effect.flatMap(
      selectQuestion(id, name),
      ([row]) => row === undefined ? Effect.undefined : answerOf(id, name, row)
    )
    return Effect.gen(function*() {
      const [row] = yield* selectQuestion(id, name)
      if (row !== undefined) return yield* answerOf(id, name, row)
      const stored = params === undefined
        ? null
        : yield* Effect.flatMap(toJson(params), (text) => texts.encrypt(text, associatedData.question(id, name)))
      const time = yield* database.now
      const inserted = Effect.gen(function*() {
        const task = yield* addOpenQuestion(time, id, lastSeq)
        if (task === undefined) return undefined
        const rows = yield* insertQuestion(id, name, numberOf(task, "version"), escape(method), stored, addressee)
        return rows.length === 0 ? yield* Effect.fail(conflict) : undefined
      })
      // Otherwise another worker has asked it meanwhile.
      return yield* database.attempt(inserted, answered)
    })
  }

  /**
   * Closes an open question by a statement that changes or deletes its row, in one transaction with `then`. A run that
   * closes it knows the event at `lastSeq`; without that, a client does, unless the task has expired.
   */
  const close = (
    id: string,
    name: string,
    lastSeq: number | undefined,
    statement: ReturnType<Statement>,
    then: (now: number) => Effect.Effect<void, TaskError> = () => Effect.void
  ): Effect.Effect<boolean, TaskError> =>
    Effect.flatMap(database.now, (now) => {
      const closed = Effect.gen(function*() {
        const task = yield* removeOpenQuestion(now, id, lastSeq === undefined ? now : -1, id, name, lastSeq ?? 0)
        if (task === undefined) return false
        const rows = yield* statement
        if (rows.length === 0) return yield* Effect.fail(conflict)
        yield* then(now)
        return true
      })
      return database.attempt(closed, Effect.succeed(false))
    })

  const withdraw: Store["withdraw"] = (id, key, lastSeq = 0) =>
    Effect.asVoid(close(id, escape(key), lastSeq, closeQuestion(2, null, id, escape(key))))

  const markLost: Store["markLost"] = (id, key, answered, lastSeq = 0) => {
    const name = escape(key)
    const closed = close(id, name, lastSeq, closeQuestion(3, null, id, name))
    return Effect.flatMap(
      closed,
      (done) => done || !answered ? Effect.void : Effect.asVoid(loseAnswer(id, name, lastSeq))
    )
  }

  const answer: Store["answer"] = (id, key, given) => {
    const name = escape(key)
    if (name.length > maxNameChars) return Effect.succeed(false)
    const encrypted = Effect.flatMap(toJson(given), (text) => texts.encrypt(text, associatedData.answer(id, name)))
    return Effect.flatMap(
      encrypted,
      (answer) => close(id, name, undefined, closeQuestion(1, answer, id, name), (now) => signals.signal(id, now))
    )
  }

  const toClosed = (id: string, rows: ReadonlyArray<Row>) =>
    Effect.forEach(rows, (row) => {
      const name = textOf(row, "name")
      return Effect.map(answerOf(id, name, row), (answer) => ({ key: unescape(name), answer }))
    })

  const readAnswers: Store["readAnswers"] = (id) => Effect.flatMap(selectClosed(id), (rows) => toClosed(id, rows))

  const readQuestions: Store["readQuestions"] = (id) =>
    Effect.flatMap(selectAll(id), (rows) => {
      const isOpen = (row: Row) => numberOf(row, "state") === 0
      return Effect.map(toClosed(id, rows.filter((row) => !isOpen(row))), (closed) => ({
        answers: new Map(closed.map(({ answer, key }) => [key, answer])),
        openQuestions: rows.filter(isOpen).map((row) => unescape(textOf(row, "name")))
      }))
    })

  const removeQuestion: Store["removeQuestion"] = (id, key, lastSeq = 0) => {
    const name = escape(key)
    return Effect.asVoid(close(id, name, lastSeq, deleteOpen(id, name)))
  }

  const copyAnswers: Store["copyAnswers"] = (id, to, keys) => {
    const moved = (text: unknown, data: (id: string, name: string) => string, name: string) =>
      text == null
        ? Effect.succeed(null)
        : Effect.flatMap(
          texts.decrypt(text as string, data(id, name)),
          (plain) => texts.encrypt(plain, data(to, name))
        )
    const copy = (row: Row) => {
      const name = textOf(row, "name")
      return Effect.flatMap(
        Effect.all([
          moved(row["params"], associatedData.question, name),
          moved(row["answer"], associatedData.answer, name)
        ]),
        ([params, answer]) =>
          insertClosed(to, name, numberOf(row, "place"), numberOf(row, "state"), textOf(row, "method"), params, answer)
      )
    }
    const copied = Effect.flatMap(
      selectForCopy(id, JSON.stringify(keys.map(escape))),
      (rows) => Effect.forEach(rows, copy, { discard: true })
    )
    return Effect.andThen(markAsRun(to), copied)
  }

  return { ask, findAddressed, copyAnswers, withdraw, markLost, answer, readAnswers, readQuestions, removeQuestion }
}
