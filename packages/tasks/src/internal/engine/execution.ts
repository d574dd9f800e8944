/**
 * The body of the workflow: from a task's row to its end.
 *
 * The row leads. A run that finds it completed or failed has nothing to do. One that finds it cancelled runs a durable handler up to
 * where it was, since only that knows what there is to undo: the engine, which has been told as well, runs no step anew; and then
 * undoes it.
 */
import * as McpError from "@skein/protocol/McpError"
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as RpcSchema from "effect/rpc/RpcSchema"
import type * as Scope from "effect/Scope"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { Undoing } from "../../CurrentTask.ts"
import type { Outcome } from "../../TaskState.ts"
import { currentOf, exchangeOf } from "./currentTask.ts"
import { isError } from "../diagnosis.ts"
import { type Host, moving, patiently } from "./engineContext.ts"
import { shortened } from "../text.ts"
import { between } from "./suspension.ts"
import { Run, type Within } from "./run.ts"
import { clockOf } from "./sleep.ts"
import type { End, Work } from "../store/store.ts"
import { isUnfit } from "../store/stored.ts"
import type { Found } from "./workers.ts"
import { abandoned, interruption } from "./workflow.ts"

type Body<A> = Effect.Effect<A, never, Within | Scope.Scope>

/** Milliseconds that a task waits in memory for a handler: those of a program that starts are not there at once. */
const starting = { idle: 30_000, busy: 500 }

/** Milliseconds between two looks whether it has taken that long. */
const glance = 100

/** Milliseconds between two looks for a handler that nobody has: they grow, up to this. */
const patience = { first: 1000, longest: 15_000 }

/** Whether there is nothing to do with it any more, nor to undo. */
const isOver = ({ settled, status }: Work): boolean =>
  status === "completed" || status === "failed" || (status === "cancelled" && settled)

/** Runs a task, as far as it gets. */
export const body = (host: Host, taskId: string, executionId: string): Body<void> =>
  Effect.flatMap(patiently(host.store.work(taskId)), (work) => {
    if (work === undefined || isOver(work)) return Effect.void
    const begun = Effect.flatMap(WorkflowInstance, (instance) => attempt(host, work, executionId, instance))
    return Effect.annotateLogs(
      work.status === "cancelled" ? Effect.andThen(DurableDeferred.await(interruption), begun) : begun,
      about(work)
    )
  })

/** What each line of the log says that comes of a task, those of its handler too. */
const about = ({ id, owner, tool }: Work): Record<string, unknown> => ({
  task: shortened(id),
  tool,
  ...(owner === null ? undefined : { owner })
})

const attempt = (
  host: Host,
  work: Work,
  executionId: string,
  instance: WorkflowInstance["Service"]
): Body<void> =>
  Effect.gen(function*() {
    const context = yield* Effect.context<Within>()
    const scope = yield* Effect.scope
    const cancelled = work.status === "cancelled"
    while (true) {
      const found = host.workers.find(work.tool) ?? (yield* handlerOf(host, work, executionId, instance, cancelled))
      const waited = host.workers.leave(executionId)
      if (found === undefined) return
      if (cancelled && !found.handler.durable) return yield* patiently(host.store.settle(work.id))
      if (waited || work.waits) yield* patiently(host.store.waits(work.id, false))
      const { handler: { durable }, owner } = found
      const run = new Run({ host, work, executionId, instance, context, scope, owner, durable })
      host.workers.tenants.add(run)
      const released = yield* Effect.ensuring(
        cancelled ? rebuild(run, found) : forward(run, found),
        Effect.sync(() => host.workers.tenants.delete(run))
      )
      if (!released) return
    }
  })

/**
 * Waits for a handler: a while in memory, then suspended, with looks that become rarer, and one as soon as somebody joins here. One
 * that is cancelled must not be suspended, since the engine would take it for done, and nothing would be undone: it waits in memory,
 * until it is forgotten.
 */
const handlerOf = (
  host: Host,
  work: Work,
  executionId: string,
  instance: WorkflowInstance["Service"],
  cancelled: boolean
): Body<Found | undefined> =>
  Effect.gen(function*() {
    while (true) {
      const milliseconds = cancelled ? patience.longest : host.workers.idle ? starting.idle : starting.busy
      const changed = yield* Effect.raceFirst(
        Effect.as(host.workers.changed, true),
        Effect.raceFirst(host.closing, Effect.as(Effect.sleep(milliseconds), false))
      )
      const found = host.workers.find(work.tool)
      if (found !== undefined) return found
      if (changed) continue
      if (cancelled) {
        const now = yield* patiently(host.store.work(work.id))
        if (now === undefined || isOver(now)) return undefined
        continue
      }
      const looks = host.workers.inVain(executionId)
      if (looks === 0) yield* patiently(host.store.waits(work.id, true))
      const now = yield* Clock.currentTimeMillis
      const pause = Math.min(patience.longest, patience.first * 2 ** looks)
      const clock = clockOf({ host, instance, executionId }, `handler/${now}`, pause)
      instance.awaitedDeferreds.set(clock.name, 1)
      yield* clock.set
      return yield* suspend(instance)
    }
  })

const suspend = (instance: WorkflowInstance["Service"]): Effect.Effect<never> =>
  Effect.suspend(() => {
    instance.suspended = true
    return Effect.interrupt
  })

/** Suspends a run that has come to where it waits. */
const rest = (run: Run): Effect.Effect<never> => {
  run.whole = true
  return suspend(run.instance)
}

/** Runs the handler to its end, and says so in the row; `true` when it has to be run again, by another worker. */
const forward = (run: Run, { handler }: Found): Body<boolean> =>
  Effect.gen(function*() {
    const { instance } = run
    yield* undoWhenCancelled(run)
    const exit = yield* run.supervise(handled(run, handler))
    if (instance.suspended && Exit.isFailure(exit)) return yield* rest(run)
    if (Exit.isSuccess(exit)) return yield* conclude(run, handler, exit.value)
    if (run.moved) return yield* abandoned
    if (run.released) return true
    return yield* conclude(run, handler, yield* defect(run, exit.cause))
  })

/** Undoes what has failed, and says in the row how the task has ended. */
const conclude = (run: Run, handler: Found["handler"], outcome: Outcome): Body<boolean> =>
  Effect.gen(function*() {
    const { host, instance, work } = run
    if (failed(outcome) && run.undos.length > 0 && run.undoing === undefined) {
      const undone = yield* run.supervise(undo(run, "failed"))
      if (Exit.isFailure(undone)) {
        if (run.moved) return yield* abandoned
        return run.released ? true : yield* suspend(instance)
      }
    }
    yield* run.progressing.flush
    const finished = yield* Effect.catchDefect(
      patiently(host.store.finish(work.id, endOf(outcome))),
      (defect) => isUnfit(defect) ? Effect.succeed(defect) : Effect.die(defect)
    )
    // A handler that ends with what is no JSON is wrong, as one that dies.
    if (finished !== true && finished !== false) {
      return yield* conclude(run, handler, yield* defect(run, Cause.die(finished)))
    }
    if (finished) {
      host.settle(work.id)
      // "Log task creation, completion, and retrieval events": the other two are requests, for an audit log.
      yield* Effect.logDebug("The task is over:", outcome._tag === "Error" ? "failed" : "completed")
      return false
    }
    const now = yield* patiently(host.store.work(work.id))
    if (now?.status !== "cancelled") return false
    if (!handler.durable) {
      yield* patiently(host.store.settle(work.id))
      return false
    }
    // It was cancelled at the last moment: all is undone.
    yield* DurableDeferred.await(interruption)
    return yield* rest(run)
  })

/**
 * Runs the handler of a cancelled task up to where it was. The engine, which knows of the cancellation, does the rest. It runs no
 * step anew; and what stands between two steps gets no longer than `between`.
 */
const rebuild = (run: Run, { handler }: Found): Body<boolean> =>
  Effect.gen(function*() {
    yield* undoWhenCancelled(run)
    const stalled = Effect.gen(function*() {
      let known = -1
      for (let still = 0; still < between; still += glance) {
        // A step may take its time, to be found.
        const { activityState: { count } } = run.instance
        if (run.busy || run.parking.due || count > 0 || run.known !== known) still = 0
        known = run.known
        yield* Effect.sleep(glance)
      }
    })
    yield* Effect.raceFirst(run.supervise(handled(run, handler)), stalled)
    return run.released ? true : yield* rest(run)
  })

const handled = (run: Run, handler: Found["handler"]): Effect.Effect<Outcome> =>
  Effect.suspend(() => handler.run(exchangeOf(run, currentOf(run))))

/**
 * The engine runs it when the execution is over. It is really cancelled only when the engine says so: it is interrupted as well
 * when a worker stops, and then goes on elsewhere. Stopped and cancelled, it may not know yet all that there is to undo: that is left
 * to the sweep, which begins it again.
 */
const undoWhenCancelled = (run: Run): Effect.Effect<void, never, Within> =>
  Workflow.addFinalizer((exit) =>
    Exit.isFailure(exit) && run.instance.interrupted && run.whole
      // Before the execution is over: of one that is, and is not settled, the sweep knows that nothing was undone.
      ? Effect.andThen(whileHeld(run, undo(run, "cancelled")), patiently(run.host.store.settle(run.work.id)))
      : Effect.void
  )

/**
 * What the engine runs in the end it does not interrupt: it would wait for a step that is to run in another process, or once more in this
 * one, and that would wait for its end. So this looks whether it is to go: another process, or the next run, begins the rest anew. A
 * client that interrupts says only that the task is cancelled.
 */
const whileHeld = (run: Run, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { executionId, host } = run
    const fiber = yield* Effect.forkChild(Effect.interruptible(effect))
    const over = Effect.interruptible(Effect.as(Fiber.await(fiber), true))
    const pause = Effect.interruptible(Effect.as(Effect.sleep(moving), false))
    while (!(yield* Effect.raceFirst(over, pause))) {
      const told = yield* Effect.exit(Effect.interruptible(Effect.void))
      if (!host.holds(executionId) || (Exit.isFailure(told) && !isOfClient(told.cause))) {
        yield* run.end(fiber)
      }
    }
    return yield* Fiber.join(fiber)
  })

/** Whether nobody but a client interrupts. */
const isOfClient = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.every((reason) => reason.annotations.has(RpcSchema.ClientAbort.key))

const undo = (run: Run, why: Undoing): Effect.Effect<void> =>
  Effect.suspend(() => {
    run.undoing = why
    return Effect.forEach(run.undos.toReversed(), (undo) =>
      Effect.catchCause(Effect.asVoid(undo(why)), (cause) =>
        Cause.hasInterruptsOnly(cause) && (why === "failed" ? run.leaving : leaves(run, cause))
          ? Effect.interrupt
          : Effect.logError(`Task ${run.work.tool}: a compensation has failed`, cause)), { discard: true })
  })

/** Whether somebody else goes on with what a cancelled task undoes: otherwise it has interrupted itself, which is a failure. */
const leaves = ({ instance, released }: Run, cause: Cause.Cause<unknown>): boolean =>
  released || instance.suspended || instance.abandoned ||
  cause.reasons.some((reason) => reason.annotations.has(ClusterSchema.Abandon.key))

const failed = (outcome: Outcome): boolean => outcome._tag === "Error" || isError(outcome)

const endOf = (outcome: Outcome): End => ({ status: outcome._tag === "Result" ? "completed" : "failed", outcome })

/** What is wrong with a handler is said to nobody but the log. */
const defect = (run: Run, cause: Cause.Cause<never>): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    const reference = globalThis.crypto.randomUUID()
    const error = McpError.toErrorObject(McpError.internal(reference), run.work.caller.revision)
    return Effect.logError(`Task ${run.work.tool}: defect ${reference}`, cause).pipe(
      Effect.as<Outcome>({ _tag: "Error", error })
    )
  })
