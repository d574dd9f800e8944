/**
 * Answers queries of a task with functions of its body (`Task.query`), which see its state.
 *
 * The state of a body is in a run. If none is in this process, the log is replayed here, without effects, to the place that it has
 * come to. So any process with the code of the task answers, also while the task waits, runs elsewhere or has ended.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as JsonForm from "@skein/protocol/JsonForm"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { QueryError, TaskError, UnknownTask } from "../../TaskError.ts"
import { messageOf } from "../base/text.ts"
import { invalidOption } from "../store/database.ts"
import { maxReplayMs, replay, withoutHandler } from "./codeReplay.ts"
import type { EngineContext } from "./engineContext.ts"
import type { Run } from "./run.ts"
import { TaskLog } from "./taskLog.ts"

/** Milliseconds without progress after which a replay has come to the place of the task. */
const patienceMs = 100

const queryError = (message: string) => new TaskError({ reason: new QueryError({ message }) })

/** Implements `TaskEngine.query`. */
export const queryTask = Effect.fnUntraced(function*(
  engine: EngineContext,
  id: string,
  name: string,
  args: JsonObject = {}
): Effect.fn.Return<unknown, TaskError> {
  if (!isObject(args)) return yield* Effect.fail(invalidOption("the arguments of a query must be an object"))
  const queries = yield* queriesOf(engine, id, name)
  const answer = queries.get(name)
  if (answer === undefined) {
    const known = [...queries.keys()].map((name) => `"${name}"`).join(", ")
    return yield* Effect.fail(
      queryError(`the task has no query "${name}" at its place${known === "" ? "" : `: it has ${known}`}`)
    )
  }
  const value = yield* Effect.try({
    try: () => answer(args),
    catch: (error) => queryError(`the query "${name}" has failed: ${messageOf(error)}`)
  })
  if (value === undefined) return undefined
  const form = JsonForm.make(value, "its answer")
  return Result.isSuccess(form)
    ? form.success
    : yield* Effect.fail(queryError(`the query "${name}" has failed: ${form.failure}`))
})

/** The queries of a task: of its run in this process if that has come to the one that is asked for, or of a replay. */
const queriesOf = Effect.fnUntraced(function*(
  engine: EngineContext,
  id: string,
  name: string
): Effect.fn.Return<Run["queries"], TaskError> {
  const { handlers, store } = engine
  for (const run of handlers.activeRuns) {
    if (run.task.id === id && !run.isCollecting && run.queries.has(name)) return new Map(run.queries)
  }
  const task = yield* store.load(id)
  if (task === undefined) {
    return yield* Effect.fail(new TaskError({ reason: new UnknownTask({ message: "no task has this id" }) }))
  }
  const found = handlers.find(task.tool)
  if (found === undefined) return yield* Effect.fail(withoutHandler(task.tool))
  if (!found.handler.durable) return new Map()
  const log = new TaskLog(yield* store.readLog(id))
  const { answers } = yield* store.readQuestions(id)
  const { exit, run } = yield* replay(engine, task, log, answers, found, patienceMs)
  return Option.isSome(exit)
    ? run.queries
    : yield* Effect.fail(
      queryError(`the code of the task takes more than ${maxReplayMs / 1000} seconds to come to its place`)
    )
})
