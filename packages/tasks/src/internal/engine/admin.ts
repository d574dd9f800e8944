/**
 * The service of an operator on a store.
 */
import * as Effect from "effect/Effect"
import type { LoggedEvent, TaskAdmin } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import { toPageSize } from "../base/bounds.ts"
import type { LogEntry, TaskStore } from "../store/store.ts"
import { checkCode } from "./codeCheck.ts"
import type { EngineContext } from "./engineContext.ts"

/** The unsettled tasks that a check reads, by default. */
const checkedTasks = 1000

/** The associated data of the record of a step. */
const associatedData = (id: string, { attempt, kind, name }: LogEntry): string =>
  kind === "once" ? `${id}/once/${name}` : `${id}/step/${attempt}/${name}`

/** Makes the service. A check compares the tasks of `pools` with the handlers of `engine`, in a process that has one. */
export const makeAdmin = (
  store: TaskStore["Service"],
  engine?: EngineContext,
  pools?: ReadonlyArray<string>
): TaskAdmin["Service"] => {
  const toEvent = (id: string, entry: LogEntry, withValues: boolean): Effect.Effect<LoggedEvent, TaskError> => {
    const { at, attempt, kind, name, seq, startedAt, value } = entry
    const hasRecord = (kind === "step" || kind === "once") && value !== null
    const record = hasRecord ? store.decrypt(value, associatedData(id, entry)) : Effect.undefined
    // An operator without the key sees the log without its records.
    const readable = Effect.catchIf(record, ({ reason }) => reason._tag === "KeyError", () => Effect.undefined)
    return Effect.map(readable, (text) => ({
      seq,
      kind,
      name,
      attempt,
      startedAt,
      at,
      failed: kind === "step" && text !== undefined ? !text.startsWith("{\"v\"") : undefined,
      value: withValues ? text : undefined
    }))
  }
  return {
    list: (filter, { after, limit } = {}) => store.admin.list(filter, after, toPageSize(limit)),
    inspect: (id, { values = false } = {}) =>
      Effect.flatMap(store.admin.find(id), (found) =>
        found === undefined ? Effect.undefined : Effect.gen(function*() {
          const entries = yield* store.readLog(id)
          const log = yield* Effect.forEach(entries, (entry) => toEvent(id, entry, values))
          // Another query, so that a task that expires in between has no questions.
          const questions = (yield* store.get(id))?.questions ?? []
          return { ...found, questions, log }
        })),
    cancel: (id, statusMessage) => store.finish(id, { status: "cancelled", statusMessage }),
    rerun: Effect.fnUntraced(function*(id, { from } = {}) {
      const found = yield* store.admin.find(id)
      const task = yield* store.load(id)
      if (found === undefined || task === undefined) return undefined
      const entries = yield* store.readLog(id)
      const end = from === undefined ? 0 : entries.findIndex(({ kind, name }) => kind === "step" && name === from)
      if (end < 0) return undefined
      const { args, caller, owner, pool, tool } = task
      const { pollIntervalMs, ttlMs } = found.state
      const limits = { all: {}, client: {}, tool: {} }
      const copied = Effect.gen(function*() {
        const state = yield* store.insert({ args, caller, owner, pool, tool, pollIntervalMs, ttlMs, limits })
        const events = entries.slice(0, end).filter(({ kind }) => kind !== "undo" && kind !== "giveUp")
        const observed = events.filter(({ kind }) => kind === "answer" || kind === "timeout").map(({ name }) => name)
        yield* store.copyAnswers(id, state.id, observed)
        for (const [index, entry] of events.entries()) {
          const value = entry.value === null
            ? null
            : yield* Effect.flatMap(
              store.decrypt(entry.value, associatedData(id, entry)),
              (text) => store.encrypt(text, associatedData(state.id, entry))
            )
          yield* store.append(state.id, { ...entry, seq: index + 1, value })
        }
        return state
      })
      return yield* store.transaction(copied)
    }),
    wake: (id) => Effect.map(store.wakeTasks([id]), (count) => count > 0),
    pause: store.tools.pause,
    resume: store.tools.resume,
    tools: store.tools.list,
    check: ({ limit = checkedTasks, tool } = {}) =>
      checkCode(store, engine, { pools, tool, maxTasks: limit, maxTasksPerTool: Infinity }),
    statistics: store.admin.statistics,
    workers: store.admin.workers
  }
}
