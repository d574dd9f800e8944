/**
 * Rows of the table, as what they mean.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { TaskStatus } from "@skein/protocol/Task"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { KeptCaller, Outcome, Owner, Question, State } from "../../TaskState.ts"
import { curt } from "../text.ts"
import type { Swept, Work } from "./store.ts"
import { never, type Row } from "./database.ts"
import { escape, unescape, unfit, type Vault } from "./stored.ts"

/** What a listing reads. */
export const listed = `id, tool, pool, owner, status, version, created_at, updated_at, ttl, poll_interval,
  progress, progress_total, progress_message, message, waits, is_error, caller`

/** What a state is made of: in one statement, so that all of it is of one moment. */
export const whole = (pg: boolean): string => {
  const open = "FROM skein_task_questions WHERE task_id = skein_tasks.id AND state = 0"
  const questions = pg
    ? `SELECT CAST(json_agg(json_build_array(name, method, params) ORDER BY place) AS TEXT) ${open}`
    : `SELECT json_group_array(json_array(name, method, params))
       FROM (SELECT name, method, params ${open} ORDER BY place)`
  return `${listed}, outcome, CASE WHEN status = 'input_required' THEN (${questions}) END AS questions`
}

/** What a task that no final status has is, as a condition. */
export const live = "status IN ('working', 'input_required')"

/** The same of a row. */
export const isLive = ({ status }: Row): boolean => status === "working" || status === "input_required"

/** `""` for nobody; everybody else has a `=` before. */
export const ownerToRow = (owner: Owner): string => owner === null ? "" : `=${escape(owner)}`
const ownerOf = (stored: string): Owner => stored === "" ? null : unescape(stored.slice(1))

/** What the texts of a task are sealed about. */
export const about = {
  args: (id: string) => `args ${id}`,
  message: (id: string) => `message ${id}`,
  progress: (id: string) => `progress ${id}`,
  outcome: (id: string) => `outcome ${id}`,
  question: (id: string, name: string) => `question ${id} ${name}`,
  answer: (id: string, name: string) => `answer ${id} ${name}`,
  other: (about: string) => `other ${about}`
}

const text = (row: Row, column: string): string => row[column] as string
const maybe = (row: Row, column: string): string | undefined => row[column] == null ? undefined : text(row, column)
const number = (row: Row, column: string): number => Number(row[column])

const broken = (row: Row, cause: unknown) =>
  unfit(`The row of the task "${curt(text(row, "id"))}" is broken: ${String(cause)}`, cause)

const read = <A>(row: Row, make: (row: Row) => A): Effect.Effect<A, TaskError> =>
  Effect.try({ try: () => make(row), catch: (cause) => broken(row, cause) })

type OpenQuestion = [name: string, method: string, params: string | null]

const columns = ["message", "progress_message", "outcome"] as const
const abouts = [about.message, about.progress, about.outcome]

/** The row with its texts opened. Where nothing is sealed it is the same one. */
const opened = (row: Row, vault: Vault): Effect.Effect<Row, TaskError> => {
  const id = text(row, "id")
  const texts = columns.flatMap((column, index) => {
    const stored = maybe(row, column)
    return stored === undefined || (vault.plain && !stored.startsWith("sealed:"))
      ? []
      : [Effect.map(vault.open(stored, abouts[index]!(id)), (value) => [column, value] as const)]
  })
  return texts.length === 0
    ? Effect.succeed(row)
    : Effect.map(Effect.all(texts), (entries) => ({ ...row, ...Object.fromEntries(entries) }))
}

const questionsOf = (row: Row, vault: Vault): Effect.Effect<ReadonlyArray<Question>, TaskError> => {
  const stored = maybe(row, "questions")
  if (stored === undefined) return Effect.succeed([])
  const id = text(row, "id")
  return Effect.flatMap(
    read(row, () => JSON.parse(stored) as ReadonlyArray<OpenQuestion>),
    (questions) =>
      Effect.forEach(questions, ([name, method, params]) =>
        Effect.flatMap(
          params === null ? Effect.succeed("null") : vault.open(params, about.question(id, name)),
          (json) =>
            read(row, () => ({
              key: unescape(name),
              method: unescape(method),
              params: params === null ? undefined : JSON.parse(json) as JsonObject
            }))
        ))
  )
}

/** A caller as it is kept; what JSON leaves out is there again. */
const callerOf = (json: string): KeptCaller => {
  const { capabilities, info, principal, revision } = JSON.parse(json) as KeptCaller
  return { revision, capabilities, info: info ?? undefined, principal: principal ?? undefined }
}

const progressOf = (row: Row): Progress | undefined => {
  if (row["progress"] == null) return undefined
  const total = row["progress_total"]
  const message = maybe(row, "progress_message")
  return {
    progress: number(row, "progress"),
    ...(total == null ? {} : { total: Number(total) }),
    ...(message === undefined ? {} : { message: unescape(message) })
  }
}

const stateWith = (questions: ReadonlyArray<Question>) => (row: Row): State => {
  const message = maybe(row, "message")
  const outcome = maybe(row, "outcome")
  return {
    id: text(row, "id"),
    tool: unescape(text(row, "tool")),
    pool: unescape(text(row, "pool")),
    owner: ownerOf(text(row, "owner")),
    status: text(row, "status") as TaskStatus,
    message: number(row, "waits") === 1 && isLive(row)
      ? `Waits for a worker that has ${unescape(text(row, "tool"))}`
      : message === undefined
      ? undefined
      : unescape(message),
    progress: progressOf(row),
    createdAt: number(row, "created_at"),
    updatedAt: number(row, "updated_at"),
    ttl: row["ttl"] == null ? null : number(row, "ttl"),
    pollInterval: number(row, "poll_interval"),
    version: number(row, "version"),
    caller: callerOf(text(row, "caller")),
    questions,
    isError: number(row, "is_error") === 1,
    outcome: outcome === undefined ? undefined : JSON.parse(outcome) as Outcome
  }
}

/** A state, of a row with the columns `listed` or `whole`. */
export const toState = (row: Row, vault: Vault): Effect.Effect<State, TaskError> =>
  Effect.flatMap(opened(row, vault), (row) =>
    row["questions"] == null
      ? read(row, stateWith([]))
      : Effect.flatMap(questionsOf(row, vault), (questions) => read(row, stateWith(questions))))

const locked = "What it says is sealed with a key that is not given here"

/** The same for a listing: one whose texts cannot be opened is shown without them, and hides no other one. */
export const toListed = (row: Row, vault: Vault): Effect.Effect<State, TaskError> =>
  Effect.catch(toState(row, vault), (error) =>
    error.reason === "Key"
      ? read({ ...row, message: locked, progress_message: null }, stateWith([]))
      : Effect.fail(error))

/** The columns of `toWork`. */
export const workColumns = "id, tool, pool, owner, status, settled, said, waits, caller, args"

/** What a worker needs. */
export const toWork = (row: Row, vault: Vault): Effect.Effect<Work, TaskError> =>
  Effect.flatMap(vault.open(text(row, "args"), about.args(text(row, "id"))), (args) =>
    read(row, (row) => ({
      id: text(row, "id"),
      tool: unescape(text(row, "tool")),
      pool: unescape(text(row, "pool")),
      owner: ownerOf(text(row, "owner")),
      args: JSON.parse(args) as JsonObject,
      caller: callerOf(text(row, "caller")),
      status: text(row, "status") as TaskStatus,
      said: number(row, "said"),
      settled: number(row, "settled") === 1,
      waits: number(row, "waits") === 1
    })))

/** The columns of `toSwept`. */
export const sweptColumns = "id, pool, status, settled, expires_at"

/** What a sweep looks at. */
export const toSwept = (row: Row): Swept => {
  const expiresAt = number(row, "expires_at")
  return {
    id: text(row, "id"),
    pool: unescape(text(row, "pool")),
    status: text(row, "status") as TaskStatus,
    settled: number(row, "settled") === 1,
    expiresAt: expiresAt >= never ? null : expiresAt
  }
}
