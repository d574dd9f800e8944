/**
 * The schedules of tasks. A process moves a schedule to its next time only from the time that it has read, so that one
 * of several processes starts the task of a time.
 */
import * as Effect from "effect/Effect"
import {
  type Database,
  maxTime,
  numberOf,
  optionalNumberOf,
  optionalTextOf,
  type Row,
  textOf,
  toStoredMillis
} from "./database.ts"
import { escape, unescape } from "./storedText.ts"

/** A stored schedule. */
export interface ScheduleRow {
  readonly name: string
  readonly tool: string
  /** When it starts tasks, as JSON. */
  readonly rule: string
  /** Its other options, and its task without the arguments, as JSON. */
  readonly definition: string
  /** The arguments, encrypted if there is a key. `undefined` where they were not read. */
  readonly args: string | undefined
  readonly isPaused: boolean
  /** Milliseconds of Unix time; `maxTime`: never. */
  readonly nextAt: number
  readonly lastAt: number | undefined
  readonly lastTask: string | undefined
  /** Grows with each change of the definition. */
  readonly revision: number
}

/** The parts of a schedule that its definition sets. */
export type DefinedSchedule = Pick<ScheduleRow, "name" | "tool" | "rule" | "definition" | "nextAt"> & {
  readonly args: string
}

/** The operations of `TaskStore` on schedules. */
export type ScheduleStore = ReturnType<typeof make>

const columns = "name, tool, rule, definition, paused, next_at, last_at, last_task, revision"

const toRow = (row: Row): ScheduleRow => ({
  name: unescape(textOf(row, "name")),
  tool: unescape(textOf(row, "tool")),
  rule: textOf(row, "rule"),
  definition: textOf(row, "definition"),
  args: optionalTextOf(row, "args"),
  isPaused: numberOf(row, "paused") === 1,
  nextAt: numberOf(row, "next_at"),
  lastAt: optionalNumberOf(row, "last_at"),
  lastTask: optionalTextOf(row, "last_task"),
  revision: numberOf(row, "revision")
})

/** Makes the operations. */
export const make = (database: Database) => {
  const upsert = database.prepare(
    `INSERT INTO skein_task_schedules (name, tool, rule, definition, args, next_at) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET tool = excluded.tool, rule = excluded.rule, definition = excluded.definition,
       args = excluded.args, revision = skein_task_schedules.revision + 1,
       next_at = CASE skein_task_schedules.rule WHEN excluded.rule THEN skein_task_schedules.next_at
         ELSE excluded.next_at END
     RETURNING ${columns}, args`
  )
  const selectOne = database.prepare(`SELECT ${columns}, args FROM skein_task_schedules WHERE name = ?`)
  const selectAll = database.prepare(
    `SELECT ${columns} FROM skein_task_schedules WHERE name > ? ORDER BY name LIMIT ?`
  )
  const selectNext = database.prepare(
    `SELECT ${columns}, CASE WHEN next_at <= ? THEN args END AS args FROM skein_task_schedules
     WHERE paused = 0 AND next_at < ${maxTime} AND (next_at, name) > (CAST(? AS BIGINT), CAST(? AS TEXT))
     ORDER BY next_at, name LIMIT ?`
  )
  const moveNext = database.prepare(
    `UPDATE skein_task_schedules SET next_at = ?
     WHERE name = ? AND revision = ? AND next_at = ? AND paused = 0 RETURNING name`
  )
  const touch = database.prepare("UPDATE skein_task_schedules SET name = name WHERE name = ? RETURNING name")
  const setTask = database.prepare("UPDATE skein_task_schedules SET last_at = ?, last_task = ? WHERE name = ?")
  const setPaused = database.prepare(
    "UPDATE skein_task_schedules SET paused = 1, revision = revision + 1 WHERE name = ? AND paused = 0 RETURNING name"
  )
  const setResumed = database.prepare(
    `UPDATE skein_task_schedules SET paused = 0, next_at = ?, revision = revision + 1
     WHERE name = ? AND revision = ? AND paused = 1 RETURNING name`
  )
  const deleteOne = database.prepare("DELETE FROM skein_task_schedules WHERE name = ? RETURNING name")
  const isFound = (rows: ReadonlyArray<Row>) => rows.length > 0

  return {
    /** Creates or changes a schedule. Without another rule it keeps its next time. */
    save: ({ args, definition, name, nextAt, rule, tool }: DefinedSchedule) =>
      Effect.map(
        upsert(escape(name), escape(tool), rule, definition, args, toStoredMillis(nextAt)),
        ([row]) => toRow(row!)
      ),
    find: (name: string) => Effect.map(selectOne(escape(name)), ([row]) => row && toRow(row)),
    /** Schedules by their names, without arguments. */
    list: (after: string, limit: number) => Effect.map(selectAll(escape(after), limit), (rows) => rows.map(toRow)),
    /** Schedules that are not paused, by their next times, after a position. Only those that are due have arguments. */
    readNext: (now: number, limit: number, after: Pick<ScheduleRow, "nextAt" | "name"> | undefined) =>
      Effect.map(
        selectNext(now, after?.nextAt ?? -1, after === undefined ? "" : escape(after.name), limit),
        (rows) => rows.map(toRow)
      ),
    /** Moves a schedule to another time. Returns `false`, without a change, if it has changed since it was read. */
    move: ({ name, revision }: ScheduleRow, from: number, to: number) =>
      Effect.map(moveNext(toStoredMillis(to), escape(name), revision, from), isFound),
    /** Locks a schedule until the end of the transaction. Returns whether it exists. */
    lock: (name: string) => Effect.map(touch(escape(name)), isFound),
    /** Stores the last task of a schedule, and the time for which it was started. */
    noteTask: (name: string, at: number, task: string) => Effect.asVoid(setTask(at, task, escape(name))),
    pause: (name: string) => Effect.map(setPaused(escape(name)), isFound),
    /** Continues a schedule at a time. Returns `false`, without a change, if it has changed since it was read. */
    resume: ({ name, revision }: ScheduleRow, nextAt: number) =>
      Effect.map(setResumed(toStoredMillis(nextAt), escape(name), revision), isFound),
    remove: (name: string) => Effect.map(deleteOne(escape(name)), isFound)
  }
}
