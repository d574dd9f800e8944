/**
 * Moves a task with its log from one store to another: reads its questions, and inserts all of it as it was.
 */
import * as Effect from "effect/Effect"
import type { ExportedQuestion, ExportedTask } from "../../TaskExport.ts"
import type { TaskError } from "../../TaskError.ts"
import { maxNameChars, maxTime, numberOf, optionalTextOf, type Row, textOf, toStoredMillis } from "./database.ts"
import * as quotas from "./quotas.ts"
import { associatedData, errorKinds, ownerToRow, queued, type StoreContext } from "./rows.ts"
import type { LabelStore, LogEntry, TransferStore } from "./store.ts"
import { escape, fromJson, permanentError, toJson, unescape } from "./storedText.ts"

/** The states of a question, by the number that a row has. */
const questionStates = ["open", "answered", "withdrawn", "lost"] as const

/** Makes the operations. */
export const make = ({ database, signals, texts }: StoreContext, labels: LabelStore): TransferStore => {
  const counted = quotas.make(database)
  const selectQuestions = database.prepare(
    "SELECT name, state, method, params, answer FROM skein_task_questions WHERE task_id = ? ORDER BY place, name"
  )
  const insertTask = database.prepare(
    `INSERT INTO skein_tasks (id, tool, pool, owner, status, is_error, open_questions, created_at, updated_at, expires_at,
       ttl, poll_interval, caller, args, counter, message, outcome)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING id`
  )
  const insertQuestion = database.prepare(
    `INSERT INTO skein_task_questions (task_id, name, place, state, method, params, answer)
     VALUES (?, ?, ?, ?, ?, ?, ?)`
  )
  const insertEvent = database.prepare(
    `INSERT INTO skein_task_log (task_id, seq, kind, name, attempt, value, started_at, at, beside)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
  )
  // The first run of a task does not read its log.
  const queueTask = database.prepare(
    `INSERT INTO skein_task_queue (task_id, pool, tool, state, wake_at, runs, gate)
     SELECT new.id, new.pool, new.tool, ${queued.ready}, new.at, 1, CASE WHEN gates.tool IS NULL THEN 0 ELSE 1 END
     FROM (SELECT CAST(? AS TEXT) AS id, CAST(? AS TEXT) AS pool, CAST(? AS TEXT) AS tool, CAST(? AS BIGINT) AS at) AS new
     LEFT JOIN skein_task_tools AS gates ON gates.tool = new.tool RETURNING pool, state, gate`
  )

  const encrypted = (value: unknown, data: string): Effect.Effect<string | null, TaskError> =>
    value === undefined
      ? Effect.succeed(null)
      : Effect.flatMap(toJson(value), (text) => texts.encrypt(text, data))

  const decrypted = (row: Row, column: string, data: string) => {
    const text = optionalTextOf(row, column)
    return text === undefined
      ? Effect.undefined
      : Effect.flatMap(texts.decrypt(text, data), fromJson<NonNullable<ExportedQuestion["params"]>>)
  }

  const readQuestions: TransferStore["readQuestions"] = (id) =>
    Effect.flatMap(selectQuestions(id), (rows) =>
      Effect.forEach(rows, (row) => {
        const name = textOf(row, "name")
        const common = {
          key: unescape(name),
          method: unescape(textOf(row, "method")),
          state: questionStates[numberOf(row, "state")]!
        }
        return Effect.map(
          Effect.all([
            decrypted(row, "params", associatedData.question(id, name)),
            decrypted(row, "answer", associatedData.answer(id, name))
          ]),
          ([params, answer]): ExportedQuestion => ({ ...common, params, answer })
        )
      }))

  const insertQuestions = (id: string, questions: ExportedTask["questions"]) =>
    Effect.forEach(questions, ({ answer, key, method, params, state }, index) => {
      const name = escape(key)
      return Effect.flatMap(
        Effect.all([
          encrypted(params, associatedData.question(id, name)),
          encrypted(answer, associatedData.answer(id, name))
        ]),
        ([params, answer]) =>
          insertQuestion(id, name, index + 1, questionStates.indexOf(state), escape(method), params, answer)
      )
    }, { discard: true })

  const insertLog = (id: string, log: ReadonlyArray<LogEntry>) =>
    Effect.forEach(
      log,
      ({ at, attempt, beside, kind, name, seq, startedAt, value }) =>
        insertEvent(
          ...[id, seq, kind, escape(name), attempt, value, startedAt ?? null, toStoredMillis(at)],
          beside === undefined ? null : JSON.stringify(beside)
        ),
      { discard: true }
    )

  const insert: TransferStore["insert"] = Effect.fnUntraced(function*({ questions, task }, { id, log, start }) {
    const { isError, outcome, ttlMs } = task
    const [tool, pool, owner] = [escape(task.tool), escape(task.pool), ownerToRow(task.owner)]
    for (const name of [tool, pool, owner, ...questions.map(({ key }) => escape(key))]) {
      if (name.length > maxNameChars) {
        return yield* Effect.fail(permanentError(`a name of the task exceeds ${maxNameChars} characters`))
      }
    }
    yield* labels.check(task.labels)
    const now = yield* database.now
    const createdAt = toStoredMillis(task.createdAt)
    // The time to live begins again: the task may be older than that.
    const expiresAt = ttlMs === null ? maxTime : toStoredMillis(now + ttlMs)
    const row = [
      ...[tool, pool, owner, task.status],
      isError ? errorKinds.failed : errorKinds.none,
      questions.filter(({ state }) => state === "open").length,
      ...[createdAt, toStoredMillis(task.updatedAt), expiresAt, ttlMs === null ? null : expiresAt - createdAt],
      ...[toStoredMillis(task.pollIntervalMs), yield* toJson(task.caller)],
      ...[yield* encrypted(task.args, associatedData.args(id)), owner],
      task.statusMessage === undefined
        ? null
        : yield* texts.encrypt(escape(task.statusMessage), associatedData.message(id)),
      yield* encrypted(outcome, associatedData.outcome(id))
    ]
    if ((yield* insertTask(id, ...row)).length === 0) return false
    yield* insertQuestions(id, questions)
    const queuedRows = start ? yield* queueTask(id, pool, tool, now) : []
    yield* insertLog(id, log)
    yield* labels.setAll(id, task.labels)
    yield* signals.announce(queuedRows)
    yield* counted.add({ tool, counter: owner }, start && task.status !== "cancelled")
    return true
  })

  return { readQuestions, insert: (exported, options) => database.transaction(insert(exported, options)) }
}
