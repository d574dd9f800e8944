/**
 * Alerts about tasks, for an engine that they are provided to: a function of yours is called when an operator should look.
 *
 * - `Failed`, `GivenUp`: in the process that has ended the task, once for each task; not for a cancelled task, one whose user
 *   has declined a question, or one that an operator has settled.
 * - `NeedsAttention`: once for each task and reason. It waits for code that reaches its log (`TaskAdmin.settle`).
 * - `QueueOld`: a task of a pool and tool has been ready for longer than `queueOlderThan`, and no worker takes it. It is
 *   repeated after an hour, and when the queue was shorter in between. Each process that has the option reads the queue every 15
 *   seconds: set it in one or two.
 *
 * Alerts are sent one after the other, beside the tasks, which never wait for them. 1,000 may wait; further ones are dropped, with
 * a warning. An alert may be lost with its process. A function that fails, or takes more than 30 seconds, is logged once until it
 * succeeds again, and not repeated.
 *
 * @example
 * const Engine = PostgresTasks.layer({ url }).pipe(Layer.provide(TaskAlerts.layer({
 *   notify: (alert) => Effect.logError("a task needs you", alert),
 *   queueOlderThan: "5 minutes"
 * })))
 */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { toLimitMillis } from "./internal/base/bounds.ts"
import { CurrentTaskAlerts, type TaskAlert } from "./internal/telemetry/alertSink.ts"
import { InvalidOption, TaskError } from "./TaskError.ts"

export type { AlertedTask, TaskAlert } from "./internal/telemetry/alertSink.ts"

/** Options of the alerts. */
export interface Options<E = never, R = never> {
  /** Receives each alert. */
  readonly notify: (alert: TaskAlert) => Effect.Effect<unknown, E, R>
  /** How long a task may be ready before `QueueOld`: more than 0. By default the queue is not read. */
  readonly queueOlderThan?: Duration.Input | undefined
}

/** How many alerts may wait, and how long one may take, in milliseconds. */
const maxWaiting = 1_000
const notifyTimeout = 30_000

/** How long the alerts that wait are sent when the process stops, in milliseconds. */
const flushTimeout = 5_000

/**
 * Sends the alerts of the engines that it is provided to. Fails with `InvalidOption` for a time out of bounds.
 *
 * @example
 * const Alerts = TaskAlerts.layer({ notify: (alert) => alert._tag === "GivenUp" ? page(alert.task.tool) : Effect.void })
 */
export const layer = <E = never, R = never>(
  options: Options<E, R>
): Layer.Layer<never, TaskError, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    CurrentTaskAlerts,
    Effect.gen(function*() {
      const queueOlderThan = yield* millisOf(options.queueOlderThan)
      const waiting = yield* Queue.dropping<TaskAlert, Cause.Done>(maxWaiting)
      const context = yield* Effect.context<Exclude<R, Scope.Scope>>()
      let hasDropped = false
      let hasFailed = false
      const failed = (cause: Cause.Cause<unknown>) => {
        if (hasFailed) return Effect.void
        hasFailed = true
        return Effect.logWarning(
          "failed to send an alert about tasks: further failures are not logged until one is sent",
          cause
        )
      }
      const notify = (alert: TaskAlert) =>
        Effect.suspend(() => options.notify(alert)).pipe(
          Effect.timeout(notifyTimeout),
          Effect.matchCauseEffect({
            onFailure: failed,
            onSuccess: () => Effect.sync(() => void (hasFailed = false))
          })
        )
      const sending = yield* Effect.forkScoped(
        Effect.ignore(Effect.forever(Effect.flatMap(Queue.take(waiting), notify)))
      )
      yield* Effect.addFinalizer(() =>
        Effect.andThen(
          Queue.end(waiting),
          Effect.timeoutOption(Effect.interruptible(Fiber.await(sending)), flushTimeout)
        )
      )
      const runFork = Effect.runForkWith(context)
      return {
        queueOlderThan,
        report: (alert: TaskAlert): void => {
          if (Queue.offerUnsafe(waiting, alert)) hasDropped = false
          else if (!hasDropped) {
            hasDropped = true
            runFork(Effect.logWarning(`more than ${maxWaiting} alerts about tasks wait: further ones are dropped`))
          }
        }
      }
    })
  )

const millisOf = (input: Duration.Input | undefined): Effect.Effect<number | undefined, TaskError> => {
  if (input === undefined) return Effect.undefined
  return Result.match(toLimitMillis(input), {
    onFailure: (problem) =>
      Effect.fail(new TaskError({ reason: new InvalidOption({ message: `queueOlderThan ${problem}` }) })),
    onSuccess: (milliseconds) => Effect.succeed(milliseconds)
  })
}
