/**
 * Makes the context of an async handler of a task: the context of any async handler, with the parts of a task.
 */
import * as JsonForm from "@skein/protocol/JsonForm"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import type { HandlerContext } from "@skein/server/HandlerContext"
import { VisibleError } from "@skein/server/HandlerError"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { CurrentTask, type StepOptions as EffectStepOptions, type UndoReason } from "../../CurrentTask.ts"
import { messageOf } from "../base/text.ts"
import { UnrecordedValue } from "./steps.ts"
import { type Retry, type RunningStep, StepError, type StepOptions, type TaskContext } from "../../TaskContext.ts"

/** The context of a task, from that of its handler or of a compensation. */
export const taskContext = <R>(
  context: HandlerContext<R | CurrentTask>,
  task: CurrentTask["Service"]
): TaskContext<R> => {
  const { run } = context
  return {
    ...context,
    taskId: task.id,
    setStatusMessage: (message) => run(task.setStatusMessage(message)),
    step: (name, execute, options) => run(step(task, name, execute, options)),
    sleep: (name, duration) => run(task.sleep(name, duration)),
    compensate: (undo) => run(task.compensate((reason) => compensation(task, undo, reason))),
    continueWith: (args) => run(task.continueWith(args))
  }
}

/** Runs a compensation with a context of its own. */
const compensation = <R>(
  task: CurrentTask["Service"],
  undo: (context: TaskContext<R>, reason: UndoReason) => unknown,
  reason: UndoReason
) =>
  AsyncHandler.toEffect((_: void, context: HandlerContext<R | CurrentTask>) =>
    undo(taskContext(context, task), reason)
  )() as Effect.Effect<unknown, { readonly message: string }, R>

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
  { compensate, retry }: StepOptions<A, R> = {}
): Effect.Effect<JsonForm.JsonForm<A>, VisibleError | StepError, R> => {
  /** The error that the step has thrown in this process. */
  let cause: unknown
  const options: EffectStepOptions<ReadonlyArray<unknown>, Thrown> = {
    success: Recorded,
    error: Thrown,
    retry: retry === undefined ? undefined : scheduleOf(retry)
  }
  const attempted = (key: string): Effect.Effect<A, Thrown> =>
    Effect.catchCause(
      AsyncHandler.attempt((signal) => execute({ key, signal })),
      (failed) => {
        if (Cause.hasInterruptsOnly(failed)) return Effect.failCause(failed as Cause.Cause<never>)
        cause = Cause.squash(failed)
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
    onFailure: ({ isVisible, message }) =>
      isVisible ? new VisibleError(message, { cause }) : new StepError(name, message, { cause })
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

const scheduleOf = ({ initialDelay = "1 second", factor = 2, maxDelay = "1 hour", times }: Retry) => {
  const longest = Duration.fromInputUnsafe(maxDelay)
  return Schedule.exponential(initialDelay, factor).pipe(
    Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, longest))),
    Schedule.upTo({ times })
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
