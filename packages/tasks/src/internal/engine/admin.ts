/**
 * The service of an operator on a store.
 */
import * as Effect from "effect/Effect"
import { clip } from "@skein/protocol/Text"
import type { ListedTask, LoggedEvent, TaskAdmin, TaskPlace } from "../../TaskAdmin.ts"
import { NotEnded, TaskError, UnknownTool } from "../../TaskError.ts"
import { isFinal } from "../../TaskState.ts"
import { defaults, toPageSize } from "../base/bounds.ts"
import type { LogEntry, Note, TaskStore } from "../store/store.ts"
import { makeBulk, type RerunOptions } from "./bulk.ts"
import { checkCode } from "./codeCheck.ts"
import type { EngineContext } from "./engineContext.ts"
import { replayExported } from "./codeReplay.ts"
import { makeExports } from "./exports.ts"
import { heartbeatData } from "./heartbeats.ts"
import { followOutput, readOutput, recordOf } from "./output.ts"
import { recordData } from "./taskLog.ts"

/** The unsettled tasks that a check reads, by default. */
const checkedTasks = 1000

/** How often the decision of an operator is appended to a log that grows meanwhile. */
const maxAppends = 10

/** The events of the end of a task, which a new task does not have. */
const ofEnd: ReadonlySet<LogEntry["kind"]> = new Set(["undo", "giveUp", "stopped", "settled"])

/** An operator without the key sees a task without its records. */
const readable = <A>(record: Effect.Effect<A, TaskError>): Effect.Effect<A | undefined, TaskError> =>
  Effect.catchIf(record, ({ reason }) => reason._tag === "KeyError", () => Effect.undefined)

/** Fails unless a task can run again. */
const checkEnded = ({ place, state }: ListedTask): Effect.Effect<void, TaskError> => {
  if (isFinal(state) && place._tag === "Settled") return Effect.void
  const message = isFinal(state)
    ? "the compensations of the task have not ended: run it again when they have"
    : `the task has not ended, its status is ${state.status}: cancel it, or wait for its end`
  return Effect.fail(new TaskError({ reason: new NotEnded({ message }) }))
}

const unknownTool = (tool: string) =>
  new TaskError({
    reason: new UnknownTool({ message: `the store has no task, limit or schedule of the tool "${clip(tool)}"` })
  })

/** Makes the service. A check compares the tasks of `pools` with the handlers of `engine`, in a process that has one. */
export const makeAdmin = (
  store: TaskStore["Service"],
  engine?: EngineContext,
  pools?: ReadonlyArray<string>
): TaskAdmin["Service"] => {
  const toEvent = (id: string, entry: LogEntry, withValues: boolean): Effect.Effect<LoggedEvent, TaskError> => {
    const { at, attempt, kind, name, seq, startedAt, value } = entry
    const hasRecord = value !== null
    const record = hasRecord ? store.decrypt(value, recordData(id, entry)) : Effect.undefined
    return Effect.map(readable(record), (text) => ({
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

  const rerun = Effect.fnUntraced(function*(found: ListedTask, { by, from }: RerunOptions) {
    const { id } = found.state
    const task = yield* store.load(id)
    if (task === undefined) return undefined
    yield* checkEnded(found)
    const entries = from === undefined ? [] : yield* store.readLog(id)
    const end = from === undefined ? 0 : entries.findIndex(({ kind, name }) => kind === "step" && name === from)
    if (end < 0) return undefined
    const { args, caller, owner, pool, tool } = task
    const { pollIntervalMs, ttlMs } = found.state
    const limits = { all: {}, client: {}, tool: {} }
    const copied = Effect.gen(function*() {
      const state = yield* store.insert({
        ...{ args, caller, owner, pool, tool, pollIntervalMs, ttlMs, limits },
        labels: found.labels
      })
      const events = entries.slice(0, end).filter(({ kind }) => !ofEnd.has(kind))
      const observed = events.filter(({ kind }) => kind === "answer" || kind === "timeout").map(({ name }) => name)
      yield* store.copyAnswers(id, state.id, observed)
      for (const [index, entry] of events.entries()) {
        const value = entry.value === null || entry.value === ""
          ? entry.value
          : yield* Effect.flatMap(
            store.decrypt(entry.value, recordData(id, entry)),
            (text) => store.encrypt(text, recordData(state.id, entry))
          )
        yield* store.append(state.id, { ...entry, seq: index + 1, value })
      }
      // A timer has the time of its end.
      const until = events.findLast(({ kind }) => kind !== "timer")?.at
      const next = entries.slice(end).find(({ kind }) => kind === "emit")
      const behind = next === undefined ? "{}" : yield* store.decrypt(next.value ?? "", recordData(id, next))
      const { offset = Infinity } = recordOf(behind)
      if (until !== undefined) yield* store.output.copy(id, state.id, offset, until)
      yield* store.bulk.note([id], { action: "rerun", by, detail: state.id })
      return state
    })
    return yield* store.transaction(copied)
  })

  /** Changes a task, and stores who did it, in one transaction. */
  const noted = (
    id: string,
    note: Note,
    change: Effect.Effect<boolean, TaskError>
  ): Effect.Effect<boolean, TaskError> =>
    store.transaction(
      Effect.tap(change, (isChanged) => isChanged ? store.bulk.note([id], note) : Effect.void)
    )

  const cancel: TaskAdmin["Service"]["cancel"] = (id, statusMessage, { by } = {}) =>
    noted(id, { action: "cancel", by, detail: undefined }, store.finish(id, { status: "cancelled", statusMessage }))

  /** The place of a task, with the heartbeats of the steps that run. */
  const withSteps = Effect.fnUntraced(function*(
    { place, state: { id } }: ListedTask,
    values: boolean
  ): Effect.fn.Return<TaskPlace, TaskError> {
    if (place._tag !== "Running" || place.steps.length === 0) return place
    const heartbeats = yield* store.heartbeats.list(id)
    const steps = yield* Effect.forEach(place.steps, (step) =>
      Effect.gen(function*() {
        // The name of a running step is cut.
        const found = heartbeats.find((heartbeat) => heartbeat.step === step.name)
        if (found === undefined) return step
        const details = values
          ? yield* readable(store.decrypt(found.details, heartbeatData(id, found.step)))
          : undefined
        return { ...step, heartbeat: { at: found.at, details } }
      }))
    return { ...place, steps }
  })

  return {
    list: (filter, { after, limit } = {}) => store.admin.list(filter, after, toPageSize(limit)),
    inspect: (id, { values = false } = {}) =>
      Effect.flatMap(store.admin.find(id), (found) =>
        found === undefined ? Effect.undefined : Effect.gen(function*() {
          const entries = yield* store.readLog(id)
          const log = yield* Effect.forEach(entries, (entry) => toEvent(id, entry, values))
          // Other queries, so that a task that expires in between has no questions.
          const state = yield* store.get(id)
          const unreceived = (yield* store.readEvents(id)).map(({ at, name }) => ({ name, at }))
          const stored = values ? yield* readable(store.load(id)) : undefined
          const outcome = values ? state?.outcome : undefined
          const actions = yield* store.bulk.readNotes(id)
          const failedCompensations = yield* store.bulk.readFailedCompensations(id)
          const place = yield* withSteps(found, values)
          const relatives = yield* store.children.relatives(id)
          return {
            ...found,
            ...relatives,
            place,
            questions: state?.questions ?? [],
            unreceived,
            args: stored?.args,
            outcome,
            log,
            actions,
            failedCompensations
          }
        })),
    readOutput: (id, options) => readOutput(store, id, options),
    followOutput: (id, options) =>
      followOutput(store, id, options, engine === undefined ? defaults.outputInterval : undefined),
    cancel,
    rerun: (id, options = {}) =>
      Effect.flatMap(
        store.admin.find(id),
        (found) => found === undefined ? Effect.undefined : rerun(found, options)
      ),
    ...makeBulk(store, cancel, rerun),
    ...makeExports(store),
    replay: (exported) => replayExported(store, engine, exported),
    settle: Effect.fnUntraced(function*(id, { by } = {}) {
      if ((yield* store.admin.find(id))?.needsAttention !== true) return false
      // A worker may append an event in between.
      for (let attempt = 0; attempt < maxAppends; attempt++) {
        const entries = yield* store.readLog(id)
        const { at: lastAt, seq = 0 } = entries.at(-1) ?? {}
        const now = { at: yield* store.clock.now, startedAt: undefined, value: null }
        const entry: LogEntry = { ...now, seq: seq + 1, kind: "settled", name: "", attempt: 1 }
        const isSettled = entries.some(({ kind }) => kind === "settled") ||
          (yield* store.append(id, entry, true, lastAt)) === "appended"
        if (!isSettled) continue
        yield* store.finish(id, { status: "cancelled", statusMessage: "An operator ended the task" })
        yield* store.wakeTasks([id])
        yield* store.bulk.note([id], { action: "settle", by, detail: undefined })
        return true
      }
      return false
    }),
    wake: (id, { by } = {}) =>
      noted(
        id,
        { action: "wake", by, detail: undefined },
        Effect.map(store.wakeTasks([id]), (woken) => woken.length > 0)
      ),
    pause: Effect.fnUntraced(function*(tool, { mustBeKnown = false } = {}) {
      if (mustBeKnown && !(yield* store.admin.hasTool(tool))) return yield* Effect.fail(unknownTool(tool))
      return yield* store.tools.pause(tool)
    }),
    resume: store.tools.resume,
    tools: store.tools.list,
    check: ({ limit = checkedTasks, tool } = {}) =>
      checkCode(store, engine, { pools, tool, maxTasks: limit, maxTasksPerTool: Infinity }),
    statistics: store.admin.statistics,
    workers: store.admin.workers
  }
}
