/**
 * Reads rows of `skein_tasks`: their columns, and the states and tasks that they are decoded to.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { TaskStatus } from "@skein/protocol/Task"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { NewTask, Outcome, Owner, Question, State, StoredCaller } from "../../TaskState.ts"
import type { AlertSink } from "../telemetry/alertSink.ts"
import type { TaskMetrics } from "../telemetry/taskMetrics.ts"
import { redactTaskIds } from "../base/text.ts"
import type { StoredTask, SweepRow } from "./store.ts"
import type { ChangeNotifier } from "./changeNotifier.ts"
import type { RunSignals } from "./runSignals.ts"
import { type Database, numberOf, optionalNumberOf, optionalTextOf, type Row, textOf } from "./database.ts"
import { encryptedPrefix, escape, permanentError, type StoredTexts, unescape } from "./storedText.ts"

/** The states of a row of the queue. */
export const queued = {
  /** A worker may claim it. `wake_at` is the time since when. */
  ready: 0,
  /** It waits for an event, at most until `wake_at`. */
  waiting: 1,
  /** `worker` runs it. */
  running: 2
} as const

/** The columns of a row that was claimed. */
export const claimedColumns = "task_id, signals, runs, attempts, gate"

/** The state that the modules of the store share. */
export interface StoreContext {
  readonly database: Database
  readonly changes: ChangeNotifier
  readonly signals: RunSignals
  readonly texts: StoredTexts
  readonly metrics: TaskMetrics | undefined
  readonly alerts: AlertSink | undefined
}

/** The values of `is_error`: a result with `isError` is a failure, or that of a person who declined. */
export const errorKinds = { none: 0, failed: 1, declined: 2 } as const

/** The values of `waits`. */
export const waitKinds = { no: 0, tool: 1, code: 2 } as const

/** The condition for failed tasks: that of an index, as it stands. */
export const hasFailed = `(status = 'failed' OR is_error = ${errorKinds.failed})`

/** The condition for ended tasks that are not completed without an error. It is that of an index, too. */
export const isException = "(status = 'failed' OR status = 'cancelled' OR is_error <> 0)"

/** The columns of a listing. */
export const listColumns = `id, tool, pool, owner, status, version, created_at, updated_at, ttl, poll_interval,
  progress, progress_total, progress_message, message, waits, is_error, caller`

/** The columns of a state, read in one statement, so that all of them are of one moment. */
export const stateColumns = (pg: boolean): string => {
  const open = "FROM skein_task_questions WHERE task_id = skein_tasks.id AND state = 0"
  const questions = pg
    ? `SELECT CAST(json_agg(json_build_array(name, method, params, addressee) ORDER BY place) AS TEXT) ${open}`
    : `SELECT json_group_array(json_array(name, method, params, addressee))
       FROM (SELECT name, method, params, addressee ${open} ORDER BY place)`
  return `${listColumns}, outcome, CASE WHEN status = 'input_required' THEN (${questions}) END AS questions`
}

/** Whether a task waits for the code that it has run with, as opposed to its tool. */
export const isWaitingForCode = (row: Row): boolean => numberOf(row, "waits") === waitKinds.code

/** The condition for tasks without a final status. */
export const live = "status IN ('working', 'input_required')"

/** The same of a row. */
export const isLive = ({ status }: Row): boolean => status === "working" || status === "input_required"

/** An owner as it is stored: `""` for `null`, and any other after a `=`. */
export const ownerToRow = (owner: Owner): string => owner === null ? "" : `=${escape(owner)}`
/**
 * The name of the counter of a task that counts for its owner, or for the client that has submitted it without one.
 * `""`: of a task without either.
 */
export const counterOf = ({ client, owner }: NewTask): string =>
  owner === null && client !== undefined ? `${clientPrefix}${client}` : ownerToRow(owner)
export const clientPrefix = "~"
const ownerOf = (stored: string): Owner => stored === "" ? null : unescape(stored.slice(1))

/** The associated data of the texts of a task. See `Cipher`. */
export const associatedData = {
  args: (id: string) => `args ${id}`,
  message: (id: string) => `message ${id}`,
  progress: (id: string) => `progress ${id}`,
  outcome: (id: string) => `outcome ${id}`,
  question: (id: string, name: string) => `question ${id} ${name}`,
  answer: (id: string, name: string) => `answer ${id} ${name}`,
  event: (id: string, name: string) => `event ${id} ${name}`,
  topic: (event: string) => `topic ${event}`,
  output: (id: string) => `output ${id}`,
  other: (name: string) => `other ${name}`
}

const invalidRow = (row: Row, cause: unknown) =>
  permanentError(`invalid row of the task "${redactTaskIds(textOf(row, "id"))}": ${String(cause)}`, cause)

const read = <A>(row: Row, make: (row: Row) => A): Effect.Effect<A, TaskError> =>
  Effect.try({ try: () => make(row), catch: (cause) => invalidRow(row, cause) })

type OpenQuestion = [name: string, method: string, params: string | null, addressee: string | null]

const encryptedColumns = [
  ["message", associatedData.message],
  ["progress_message", associatedData.progress],
  ["outcome", associatedData.outcome]
] as const

/** The row with its texts decrypted. A row without encrypted texts is returned as it is. */
const decrypted = (row: Row, texts: StoredTexts): Effect.Effect<Row, TaskError> => {
  const id = textOf(row, "id")
  const values = encryptedColumns.flatMap(([column, dataOf]) => {
    const stored = optionalTextOf(row, column)
    return stored === undefined || (texts.isPlain && !stored.startsWith(encryptedPrefix))
      ? []
      : [Effect.map(texts.decrypt(stored, dataOf(id)), (value) => [column, value] as const)]
  })
  return values.length === 0
    ? Effect.succeed(row)
    : Effect.map(Effect.all(values), (entries) => ({ ...row, ...Object.fromEntries(entries) }))
}

const questionsOf = (row: Row, texts: StoredTexts): Effect.Effect<ReadonlyArray<Question>, TaskError> => {
  const stored = optionalTextOf(row, "questions")
  if (stored === undefined) return Effect.succeed([])
  const id = textOf(row, "id")
  return Effect.flatMap(
    read(row, () => JSON.parse(stored) as ReadonlyArray<OpenQuestion>),
    (questions) =>
      Effect.forEach(questions, ([name, method, params, addressee]) =>
        Effect.flatMap(
          params === null ? Effect.succeed("null") : texts.decrypt(params, associatedData.question(id, name)),
          (json) =>
            read(row, () => ({
              key: unescape(name),
              method: unescape(method),
              params: params === null ? undefined : JSON.parse(json) as JsonObject,
              ...addressee === null ? {} : { to: unescape(addressee) }
            }))
        ))
  )
}

/** Decodes a caller. JSON leaves out `undefined` members, and this adds them again. */
const callerOf = (json: string): StoredCaller => {
  const { capabilities, info, principal, revision, traceparent } = JSON.parse(json) as StoredCaller
  return {
    revision,
    capabilities,
    info: info ?? undefined,
    principal: principal ?? undefined,
    ...(traceparent === undefined ? undefined : { traceparent })
  }
}

const progressOf = (row: Row): Progress | undefined => {
  if (row["progress"] == null) return undefined
  const total = row["progress_total"]
  const message = optionalTextOf(row, "progress_message")
  return {
    progress: numberOf(row, "progress"),
    ...(total == null ? {} : { total: Number(total) }),
    ...(message === undefined ? {} : { message: unescape(message) })
  }
}

/** The members that states and stored tasks have in common. */
const commonOf = (row: Row) => ({
  id: textOf(row, "id"),
  tool: unescape(textOf(row, "tool")),
  pool: unescape(textOf(row, "pool")),
  owner: ownerOf(textOf(row, "owner")),
  status: textOf(row, "status") as TaskStatus,
  caller: callerOf(textOf(row, "caller"))
})

const stateWith = (questions: ReadonlyArray<Question>) => (row: Row): State => {
  const message = optionalTextOf(row, "message")
  const outcome = optionalTextOf(row, "outcome")
  const common = commonOf(row)
  return {
    ...common,
    statusMessage: numberOf(row, "waits") !== waitKinds.no && isLive(row)
      ? isWaitingForCode(row)
        ? `Waiting for a worker whose code of the tool ${common.tool} can continue this task`
        : `Waiting for a worker that has the tool ${common.tool}`
      : message === undefined
      ? undefined
      : unescape(message),
    progress: progressOf(row),
    createdAt: numberOf(row, "created_at"),
    updatedAt: numberOf(row, "updated_at"),
    ttlMs: optionalNumberOf(row, "ttl") ?? null,
    pollIntervalMs: numberOf(row, "poll_interval"),
    version: numberOf(row, "version"),
    questions,
    isError: numberOf(row, "is_error") !== errorKinds.none,
    outcome: outcome === undefined ? undefined : JSON.parse(outcome) as Outcome
  }
}

/** Decodes a state, from a row with `listColumns` or `stateColumns`. */
export const toState = (row: Row, texts: StoredTexts): Effect.Effect<State, TaskError> =>
  Effect.flatMap(decrypted(row, texts), (row) =>
    row["questions"] == null
      ? read(row, stateWith([]))
      : Effect.flatMap(questionsOf(row, texts), (questions) => read(row, stateWith(questions))))

const missingKeyMessage = "The status message is encrypted with a key that is not configured here"

/**
 * Decodes a state of a listing. A task whose texts cannot be decrypted is listed without them, and does not fail the
 * listing.
 */
export const toListed = (row: Row, texts: StoredTexts): Effect.Effect<State, TaskError> =>
  Effect.catch(toState(row, texts), (error) =>
    error.reason._tag === "KeyError"
      ? read({ ...row, message: missingKeyMessage, progress_message: null }, stateWith([]))
      : Effect.fail(error))

/** The columns of `toStoredTask`. */
export const taskColumns = "id, tool, pool, owner, status, said, waits, created_at, caller, args"

/** Decodes a task for a worker. */
export const toStoredTask = (row: Row, texts: StoredTexts): Effect.Effect<StoredTask, TaskError> =>
  Effect.flatMap(
    texts.decrypt(textOf(row, "args"), associatedData.args(textOf(row, "id"))),
    (args) =>
      read(row, (row) => ({
        ...commonOf(row),
        args: JSON.parse(args) as JsonObject,
        createdAt: numberOf(row, "created_at"),
        statusMessageCount: numberOf(row, "said"),
        waitsForWorker: numberOf(row, "waits") > 0
      }))
  )

/** The columns of `toSwept`. */
export const sweptColumns = `id, tool, owner, status, expires_at, waits,
  NOT EXISTS (SELECT 1 FROM skein_task_queue WHERE task_id = skein_tasks.id) AS settled`

/** Decodes a row for the sweeper. */
export const toSwept = (row: Row): SweepRow => ({
  id: textOf(row, "id"),
  tool: unescape(textOf(row, "tool")),
  owner: ownerOf(textOf(row, "owner")),
  status: textOf(row, "status") as TaskStatus,
  settled: Boolean(row["settled"]),
  expiresAt: numberOf(row, "expires_at"),
  waitsForCode: isWaitingForCode(row)
})
