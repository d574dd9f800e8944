/**
 * Sections that a cancellation waits for (`Task.nonCancellable`), and branches that are cancelled alone
 * (`Task.branch`).
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Compensation, TaskBranch } from "../../CurrentTask.ts"
import { Cancelled, TaskError } from "../../TaskError.ts"
import { noteFailed } from "./undoAll.ts"
import { claimName, CurrentBranches, CurrentSection, CurrentUndo, misplacedInStep } from "./placement.ts"
import type { Run } from "./run.ts"
import type { EventKey } from "./taskLog.ts"

/**
 * Implements `Task.nonCancellable`. The log has the beginning of the section, so that a run which replays the handler of a
 * cancelled task goes on in it. Its end needs no event: what comes behind it does not start.
 */
export const nonCancellable = <A, E, R>(
  run: Run,
  name: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, `Task.nonCancellable("${name}")`) ?? claimName(run, "section", name, fiber)
    if (problem !== undefined) return problem
    // Nothing cancels a compensation, and the outer section is the longer one.
    if (run.undoReason !== undefined || fiber.getRef(CurrentSection)) return effect
    run.noteFiber(fiber)
    const begin: EventKey = { kind: "section", name, attempt: 1 }
    const entered = Effect.provideService(run.sections.run(effect), CurrentSection, true)
    if (run.log.find(begin) !== undefined) return entered
    // The code has it around recorded parts since a deployment.
    if (run.isCollecting && run.log.hasPending && !run.hasBranches) return effect
    const begun = Effect.flatMap(run.now, (at) => run.storeUnobserved(begin, at))
    return run.startNew(begin, Effect.andThen(run.preventSuspension(begun), entered))
  })

/**
 * Implements `Task.branch`: its effect, which the caller runs, and its cancellation. This is a section, so that each of the
 * compensations of the branch runs once, whatever happens to the task meanwhile.
 */
export const branch = <A, E, R>(
  run: Run,
  name: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<TaskBranch<A, E, R>> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, `Task.branch("${name}")`) ?? claimName(run, "branch", name)
    if (problem !== undefined) return problem
    if (run.undoReason !== undefined) {
      return Effect.die(new Error(`Task.branch("${name}") is not allowed in a compensation`))
    }
    const compensations: Array<Compensation> = []
    const isCancelled = Latch.makeUnsafe()
    const hasEnded = Deferred.makeUnsafe<void>()
    const message = `the branch "${name}" was cancelled`
    const cancelled = Effect.andThen(
      isCancelled.await,
      Effect.fail(new TaskError({ reason: new Cancelled({ message }) }))
    )
    const body = Effect.ensuring(
      Effect.raceFirst(
        Effect.provideService(effect, CurrentBranches, [...fiber.getRef(CurrentBranches), compensations]),
        cancelled
      ),
      Deferred.succeed(hasEnded, undefined)
    )
    const cancel = Effect.andThen(
      isCancelled.open,
      Effect.andThen(Deferred.await(hasEnded), undoBranch(run, compensations))
    )
    // A later run must not get ahead of what this branch has recorded.
    run.hasBranches = true
    return Effect.map(
      Effect.cached(nonCancellable(run, `cancellation of ${name}`, cancel)),
      (cancel): TaskBranch<A, E, R> => ({ body, cancel })
    )
  })

/**
 * Runs the compensations of a branch, the last one first, and takes each of them from those of the task when it has run. Those
 * of a branch inside of it may have run before.
 */
const undoBranch = (run: Run, compensations: ReadonlyArray<Compensation>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const compensation = compensations.findLast((each) => run.compensations.includes(each))
    if (compensation === undefined) return Effect.void
    const names = new Set<string>()
    run.begunUndos.set(compensation, names)
    const undone = Effect.provideService(compensation("cancelled"), CurrentUndo, names)
    const noted = Effect.catchCause(Effect.asVoid(undone), (cause) =>
      Cause.hasInterruptsOnly(cause) && run.isEnding
        ? Effect.interrupt
        : noteFailed(run, run.compensations.indexOf(compensation) + 1, cause))
    return Effect.andThen(
      noted,
      Effect.suspend(() => {
        run.compensations.splice(run.compensations.indexOf(compensation), 1)
        run.begunUndos.delete(compensation)
        return undoBranch(run, compensations)
      })
    )
  })
