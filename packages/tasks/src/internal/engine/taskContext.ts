/**
 * Makes the context of an async handler of a task: the context of any async handler, with the parts of a task.
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import type { HandlerContext } from "@skein/server/HandlerContext"
import { VisibleError } from "@skein/server/HandlerError"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { CurrentTask, type StepOptions as EffectStepOptions, type UndoReason } from "../../CurrentTask.ts"
import { messageOf } from "../base/text.ts"
import type { ForEachOptions } from "../base/child.ts"
import * as childTasks from "./childTasks.ts"
import type { Definition } from "./definitionCodec.ts"
import { callInStep, emit } from "./nodeStepFunction.ts"
import { isLostTransaction, UnrecordedValue } from "./steps.ts"
import { StepTimeout } from "../../TaskError.ts"
import {
  type RunningStep,
  type Sql,
  type SqlValue,
  StepError,
  type StepOptions,
  type TaskContext
} from "../../TaskContext.ts"

/** The context of a task, from that of its handler or of a compensation. */
export const taskContext = <R>(
  context: HandlerContext<R | CurrentTask>,
  task: CurrentTask["Service"]
): TaskContext<R> => {
  const { run } = context
  const forEach = async (
    child: Definition<object, unknown>,
    items: ReadonlyArray<object>,
    options?: ForEachOptions
  ) => {
    const values = await run(childTasks.forEach(child, items, options))
    return options?.onFailure === "collect"
      ? (values as ReadonlyArray<Result.Result<unknown, unknown>>).map(toSettled)
      : values
  }
  return {
    ...context,
    taskId: task.id,
    setStatusMessage: (message) => run(task.setStatusMessage(message)),
    label: (name, value) => run(task.label(name, value)),
    emit: (value) => run(emit(task, value)),
    step: (name, execute, options) => run(step(task, name, execute, options)),
    transaction: (name, execute, options) => run(transaction(task, name, execute, options)),
    sleep: (name, duration) => run(task.sleep(name, duration)),
    awaitEvent: (name, options) => run(task.awaitEvent(name, options)),
    compensate: (undo) => run(task.compensate((reason) => compensation(task, undo, reason))),
    patched: (name) => run(task.patched(name)),
    continueWith: (args) => run(task.continueWith(args)),
    nonCancellable: (name, execute) => run(task.nonCancellable(name, nested(task, execute))),
    branch: async (name, execute) => {
      const { body, cancel } = await run(task.branch(name, nested(task, execute)))
      const result = run(body)
      // A branch without an await must not end the process.
      result.catch(() => {})
      return { result, cancel: () => run(cancel) }
    },
    query: (name, answer) => run(task.query(name, answer)),
    start: (child, args, options) => run(childTasks.start(child, args, options)),
    join: (child) => run(childTasks.join(child)),
    forEach: forEach as TaskContext["forEach"]
  }
}

/** The result of an item, as that of a promise. */
const toSettled = <A>(result: Result.Result<A, unknown>): PromiseSettledResult<A> =>
  Result.isSuccess(result)
    ? { status: "fulfilled", value: result.success }
    : { status: "rejected", reason: result.failure }

/** Runs a part of an async handler with a context of its own. */
const nested = <A, R>(task: CurrentTask["Service"], execute: (context: TaskContext<R>) => A | Promise<A>) =>
  AsyncHandler.toEffect((_: void, context: HandlerContext<R | CurrentTask>) => execute(taskContext(context, task)))()

/** Runs a compensation with a context of its own. */
const compensation = <R>(
  task: CurrentTask["Service"],
  undo: (context: TaskContext<R>, reason: UndoReason) => unknown,
  reason: UndoReason
) =>
  nested<unknown, R>(task, (context) => undo(context, reason)) as Effect.Effect<
    unknown,
    { readonly message: string },
    R
  >

/** A list of the result of a step, or of none for `undefined`. */
const Recorded = Schema.Array(Schema.Unknown)

/** The error that a step has thrown, as it is recorded. */
const Thrown = Schema.Struct({
  message: Schema.String,
  /** Whether a client may see the message. */
  isVisible: Schema.Boolean
})

type Thrown = typeof Thrown.Type

const step = <A, R>(
  task: CurrentTask["Service"],
  name: string,
  execute: (step: RunningStep) => A | Promise<A>,
  options?: StepOptions<A, R>
) =>
  recordedStep(
    task,
    name,
    (key) =>
      Effect.contextWith((context: Context.Context<never>) =>
        AsyncHandler.attempt((signal) =>
          callInStep({ name, isTransaction: false }, () => execute(runningStep(task, context, key, signal)))
        )
      ),
    options
  )

/** The argument of the function of a step, in whose context its heartbeats run. */
const runningStep = (
  task: CurrentTask["Service"],
  context: Context.Context<never>,
  key: string,
  signal: AbortSignal
): RunningStep => {
  const run = Effect.runPromiseWith(context)
  return {
    key,
    signal,
    heartbeat: async (details) => {
      // A function that ignores its signal must not report for the next attempt.
      signal.throwIfAborted()
      await run(task.heartbeat(details))
    },
    lastHeartbeat: () => run(task.lastHeartbeat)
  }
}

const transaction = <A, R>(
  task: CurrentTask["Service"],
  name: string,
  execute: (sql: Sql, step: RunningStep) => A | Promise<A>,
  options?: StepOptions<A, R>
) =>
  recordedStep(
    task,
    name,
    (key) =>
      Effect.contextWith((context: Context.Context<never>) => {
        const { end, sql } = statementsOf(context)
        const attempt = AsyncHandler.attempt((signal) =>
          callInStep({ name, isTransaction: true }, () => execute(sql, runningStep(task, context, key, signal)))
        )
        return Effect.ensuring(attempt, end)
      }),
    options,
    true
  )

/**
 * The function that runs the statements of a transaction, in whose context it is made, and the effect that ends it: it
 * waits for running statements, so that none runs outside of the transaction.
 */
const statementsOf = (context: Context.Context<never>): { readonly sql: Sql; readonly end: Effect.Effect<void> } => {
  const client = Context.getOrUndefined(context, SqlClient)
  const running = new Set<Promise<unknown>>()
  let isOver = false
  const sql = async (text: TemplateStringsArray, ...values: ReadonlyArray<SqlValue>) => {
    if (client === undefined) throw new Error("the store of the tasks has no client for SQL")
    if (isOver) throw new Error("the transaction is over: await each statement")
    const rows = Effect.runPromiseWith(context)(client(text, ...values))
    running.add(rows)
    try {
      return await rows
    } catch (cause) {
      // The message of a tagged error would be one that clients may see.
      throw new Error(messageOf(cause), { cause })
    } finally {
      running.delete(rows)
    }
  }
  const end = Effect.promise(async () => {
    isOver = true
    await Promise.allSettled(running)
  })
  return { sql: sql as Sql, end }
}

/** The error with which the database has ended the transaction of a step, which then starts again. */
const lostTransaction = (error: unknown): SqlError | undefined => {
  const { cause } = error as { readonly cause?: unknown }
  return isSqlError(cause) && isLostTransaction(cause) ? cause : undefined
}

const recordedStep = <A, R>(
  task: CurrentTask["Service"],
  name: string,
  attempt: (key: string) => Effect.Effect<A, unknown>,
  { compensate, heartbeatTimeout, retry, timeout }: StepOptions<A, R> = {},
  transactional = false
): Effect.Effect<JsonForm.JsonForm<A>, VisibleError | StepError | StepTimeout, R> => {
  /** The error that the step has thrown in this process. */
  let cause: unknown
  const isRetried = retry?.while
  const options: EffectStepOptions<ReadonlyArray<unknown>, Thrown, Thrown | StepTimeout> = {
    success: Recorded,
    error: Thrown,
    retry: isRetried === undefined
      ? retry
      : { ...retry!, while: (error) => isRetried(error instanceof StepTimeout ? error : cause) },
    timeout,
    heartbeatTimeout,
    transactional
  }
  const attempted = (key: string): Effect.Effect<A, Thrown> =>
    Effect.catchCause(
      attempt(key),
      (failed) => {
        if (Cause.hasInterruptsOnly(failed)) return Effect.failCause(failed as Cause.Cause<never>)
        cause = Cause.squash(failed)
        const lost = transactional ? lostTransaction(cause) : undefined
        if (lost !== undefined) return Effect.die(lost)
        return Effect.fail({ message: messageOf(cause), isVisible: failed.reasons.some(Cause.isFailReason) })
      }
    )
  const executed = (key: string) => Effect.flatMap(attempted(key), (value) => toRecord(name, value))
  const undo = compensate && ((recorded: unknown, reason: UndoReason) => {
    const [value] = recorded as readonly [JsonForm.JsonForm<A>]
    return compensation<R>(task, (context, reason) => compensate(value, context, reason), reason)
  })
  return Effect.mapBoth(task.step(name, options, executed, undo), {
    onSuccess: ([value]) => value as JsonForm.JsonForm<A>,
    onFailure: (error) => {
      if (error instanceof StepTimeout) return error
      const { isVisible, message } = error
      return isVisible ? new VisibleError(message, { cause }) : new StepError(name, message, { cause })
    }
  })
}

const toRecord = (name: string, value: unknown): Effect.Effect<ReadonlyArray<unknown>> => {
  if (value === undefined) return Effect.succeed([])
  const form = JsonForm.make(value, "its result")
  return Result.isSuccess(form)
    ? Effect.succeed([form.success])
    : Effect.die(
      new UnrecordedValue(`the step ${JSON.stringify(name)} has no result to record: ${form.failure}`, [value])
    )
}

/** Converts an async handler of a task. */
export const toEffect = <Input, A, R>(
  handler: (input: Input, context: TaskContext<R>) => A | Promise<A>
) => {
  const run = AsyncHandler.toEffect(
    ([input, task]: readonly [Input, CurrentTask["Service"]], context: HandlerContext<R | CurrentTask>) =>
      handler(input, taskContext(context, task))
  )
  return (input: Input) => Effect.flatMap(CurrentTask, (task) => run([input, task]))
}
