/**
 * Exports a task with its log, and imports one into a store.
 */
import * as Effect from "effect/Effect"
import type { TaskAdmin } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import type { ExportedTask } from "../../TaskExport.ts"
import { isFinal } from "../../TaskState.ts"
import { readExported, redact } from "../base/exported.ts"
import { invalidOption } from "../store/database.ts"
import { isTaskId, newId } from "../store/lifecycle.ts"
import type { LogEntry, TaskStore } from "../store/store.ts"
import { recordData } from "./taskLog.ts"

/** The status message of a task that was imported before its end, and does not go on. */
const stoppedMessage = (status: string): string => `Imported while its status was ${status}: it does not go on here`

/** Converts the record of an event. That of a short sleep is empty, and not encrypted. */
const withRecord = (text: string, convert: (text: string) => Effect.Effect<string, TaskError>) =>
  text === "" ? Effect.succeed(text) : convert(text)

/** The operations on exported tasks. */
export const makeExports = (
  store: TaskStore["Service"]
): Pick<TaskAdmin["Service"], "exportTask" | "importTask"> => {
  const exportTask: TaskAdmin["Service"]["exportTask"] = Effect.fnUntraced(function*(
    id,
    { redact: isRedacted = false } = {}
  ) {
    const found = yield* store.admin.find(id)
    const task = yield* store.load(id)
    if (found === undefined || task === undefined) return undefined
    const { createdAt, isError, pollIntervalMs, status, statusMessage, ttlMs, updatedAt } = found.state
    // A task that needs attention may have expired. It has no outcome then.
    const outcome = (yield* store.get(id))?.outcome
    const { args, caller, owner, pool, tool } = task
    const questions = yield* store.transfer.readQuestions(id)
    const log = yield* Effect.forEach(yield* store.readLog(id), ({ value, ...entry }) =>
      Effect.map(
        value === null ? Effect.undefined : withRecord(value, (text) => store.decrypt(text, recordData(id, entry))),
        (value) => ({ ...entry, value })
      ))
    const exported: ExportedTask = {
      format: "skein-task",
      version: 1,
      redacted: false,
      exportedAt: yield* store.clock.now,
      task: {
        ...{ id, tool, pool, owner, status, statusMessage, isError, createdAt, updatedAt },
        ...{ ttlMs, pollIntervalMs, caller, labels: found.labels, args, outcome }
      },
      questions,
      log
    }
    return isRedacted ? redact(exported) : exported
  })

  /** Fails unless the task may go on. */
  const checkStart = ({ log, redacted, task }: ExportedTask): Effect.Effect<void, TaskError> => {
    const problem = redacted
      ? "its values are redacted"
      : task.status === "completed" || task.status === "failed"
      ? `its status is ${task.status}: rerun the imported task`
      : log.some(({ kind }) => kind === "start" || kind === "join")
      ? "it has children, which are not a part of an export"
      : undefined
    return problem === undefined ? Effect.void : Effect.fail(invalidOption(`the task cannot start: ${problem}`))
  }

  /** A task that does not go on: no worker finds it, no client can answer it, and it compensates nothing. */
  const stopped = (exported: ExportedTask): ExportedTask => {
    const { questions, task } = exported
    if (isFinal(task)) return exported
    return {
      ...exported,
      task: { ...task, status: "cancelled", statusMessage: stoppedMessage(task.status) },
      questions: questions.map((question) => question.state === "open" ? { ...question, state: "withdrawn" } : question)
    }
  }

  const importTask: TaskAdmin["Service"]["importTask"] = Effect.fnUntraced(function*(
    value,
    { by, start = false } = {}
  ) {
    const read = yield* readExported(value)
    if (start) yield* checkStart(read)
    const exported = start ? read : stopped(read)
    const insertAs = Effect.fnUntraced(function*(id: string) {
      const log = yield* Effect.forEach(exported.log, (event) => {
        const entry = { ...event, startedAt: event.startedAt, value: null }
        return event.value === undefined
          ? Effect.succeed<LogEntry>(entry)
          : Effect.map(
            withRecord(event.value, (text) => store.encrypt(text, recordData(id, entry))),
            (value): LogEntry => ({ ...entry, value })
          )
      })
      if (!(yield* store.transfer.insert(exported, { id, log, start }))) return false
      yield* store.bulk.note([id], {
        action: "import",
        by,
        detail: isTaskId(exported.task.id) ? exported.task.id : undefined
      })
      return true
    })
    const { id } = exported.task
    const insertion = Effect.gen(function*() {
      // The texts of a task are encrypted for its id.
      if (isTaskId(id) && (yield* insertAs(id))) return id
      const other = newId()
      yield* insertAs(other)
      return other
    })
    return (yield* store.get(yield* store.transaction(insertion)))!
  })

  return { exportTask, importTask }
}
