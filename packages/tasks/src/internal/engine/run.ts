/**
 * One run of a task's handler, from its beginning: the names it has claimed, the parts it has reached, and how it is
 * suspended.
 */
import * as Clock from "effect/Clock"
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Activity from "effect/workflow/Activity"
import * as Workflow from "effect/workflow/Workflow"
import { type WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { UndoReason } from "../../CurrentTask.ts"
import type { Handlers } from "../../TaskEngine.ts"
import type { StoredTask } from "../store/store.ts"
import { escape } from "../store/storedText.ts"
import { EngineCalls } from "./engineCalls.ts"
import { awaitStore, type EngineContext } from "./engineContext.ts"
import { History, lastRank } from "./history.ts"
import { ProgressWriter } from "./progressWriter.ts"
import { makeSuspension, type Suspension, type Wait, yieldToResumed } from "./suspension.ts"
import type { ActiveRun } from "./workers.ts"

/** The name of the step that a fiber runs in; `undefined` between steps. */
export const CurrentStep = Context.Reference<string | undefined>("@skein/tasks/CurrentStep", {
  defaultValue: () => undefined
})

/** The services in the context of every fiber of a run. */
export type EngineServices = WorkflowEngine | WorkflowInstance

/** The parts of a run. */
export interface RunOptions {
  readonly engine: EngineContext
  readonly task: StoredTask
  readonly executionId: string
  readonly instance: WorkflowInstance["Service"]
  /** The context in which the run started: outside of transactions and steps. */
  readonly context: Context.Context<EngineServices>
  /** Closes when the run ends or is suspended. */
  readonly scope: Scope.Scope
  readonly handlers: Handlers
  readonly durable: boolean
}

/** One run of a task's handler. */
export class Run extends Data.Class<RunOptions> implements ActiveRun {
  /** The claimed names of steps, sleeps and questions. */
  readonly names = new Set<string>()
  /** How often each question was asked, and each `once` was tried. */
  readonly counts = new Map<string, number>()
  readonly compensations: Array<(reason: UndoReason) => Effect.Effect<unknown, unknown>> = []
  /** The steps that execute now. */
  readonly executingSteps = new Set<Fiber.Fiber<unknown, unknown>>()
  readonly #engineCalls = new EngineCalls()
  /** How many results of steps the run has received. */
  knownResults = 0
  #recording = 0
  readonly history = new History(awaitStore(this.engine.readHistory(this.executionId)))
  readonly suspension: Suspension = makeSuspension(this)
  readonly progress = new ProgressWriter(this)
  /** Why the run compensates, once it does. */
  undoReason: UndoReason | undefined = undefined
  /** The run is interrupted from outside: the process ends, an awaited event has arrived, or the task is cancelled. */
  isStopping = false
  /** The handlers of the run are being removed from the worker. */
  isReleased = false
  /** The run has reached the point where it waits, or its end: all compensations are known. */
  reachedEnd = false
  /** Another process must continue the run. */
  isMoved = false
  /** Fibers run beside the root fiber. A branch that has not reached a part of the task yet is not known to the run. */
  hasBranches = false
  /** How many status messages the run has set outside of steps. */
  statusMessageCount = 0
  /** The fiber that was resumed last. */
  #lastResumed: Fiber.Fiber<unknown, unknown> | undefined = undefined
  readonly #locks = new Map<string, Semaphore.Semaphore>()
  #root: Fiber.Fiber<unknown, unknown> | undefined = undefined

  /** Whether an interruption comes from outside of the handler, as opposed to a race that was lost. */
  get isEnding(): boolean {
    return this.isStopping || this.isReleased || this.isMoved || this.instance.suspended || this.instance.interrupted
  }

  /**
   * Whether nothing new may start. The next run executes the parts that finalizers try to start now, if it reaches
   * them.
   */
  get #startsNothing(): boolean {
    return this.undoReason === undefined && (this.isStopping || this.instance.suspended)
  }

  /**
   * Whether the run continues although all of its known parts wait. The run of a cancelled task collects compensations,
   * so it must reach the end of each branch.
   */
  get runsToEnd(): boolean {
    return this.task.status === "cancelled" && this.hasBranches
  }

  /** Whether the workflow engine is looking up the result of a step, which may exist. */
  get isLookingUp(): boolean {
    return this.instance.activityState.count > this.executingSteps.size
  }

  /** Records that a fiber has reached a part of the task. */
  noteFiber(fiber: Fiber.Fiber<unknown, unknown>): void {
    if (fiber !== this.#root) this.hasBranches = true
  }

  /** Runs a part of the task as the root fiber, so that everything below it can be suspended. */
  supervise<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Exit.Exit<A, E>, never, R> {
    const rooted = Effect.withFiber<A, E, R>((fiber) => {
      this.#root = fiber
      return effect
    })
    return Effect.flatMap(
      Effect.forkChild(rooted, { startImmediately: true }),
      (fiber) =>
        Effect.onInterrupt(Fiber.await(fiber), () => {
          this.isStopping = true
          return this.interruptFiber(fiber)
        })
    )
  }

  /** Interrupts a fiber of the run from outside. */
  interruptFiber(fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> {
    return this.#engineCalls.interrupt(fiber, () => this.executingSteps.size > 0)
  }

  /** Interrupts the root fiber and the calling fiber. */
  readonly interruptSelf: Effect.Effect<never> = Effect.withFiber((fiber) => {
    this.#root?.interruptUnsafe()
    fiber.interruptUnsafe()
    return Effect.interrupt
  })

  /**
   * Suspends the run. It interrupts the root fiber as well as the waiting one: `catchCause` and the like are skipped
   * only in a fiber that is interrupted itself.
   */
  readonly suspend: Effect.Effect<never> = Effect.suspend(() => {
    this.instance.suspended = true
    return this.interruptSelf
  })

  /** Lets executing steps end, and a handler that is one step, and starts nothing new. */
  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    this.isReleased = true
    if (!this.isBusy) this.#root?.interruptUnsafe()
    return this.#awaitEnd
  })

  readonly evict: Effect.Effect<void> = Effect.suspend(() => {
    this.#root?.interruptUnsafe()
    return this.#awaitEnd
  })

  move(): void {
    if (!this.#belongsElsewhere) return
    this.isMoved = true
    const isActing = this.durable ? this.executingSteps.size > 0 : !this.suspension.isWaiting
    if (!isActing) this.#root?.interruptUnsafe()
  }

  /**
   * Whether another process must continue the execution. The workflow engine starts no step of it here, and the other
   * process waits until this run has ended. The compensations of a cancelled task check this themselves.
   */
  get #belongsElsewhere(): boolean {
    return this.undoReason !== "cancelled" && this.task.status !== "cancelled" &&
      !this.engine.ownsExecution(this.executionId)
  }

  readonly #awaitEnd: Effect.Effect<void> = Effect.suspend(() => {
    const root = this.#root
    return root === undefined
      ? Effect.void
      : Effect.asVoid(Fiber.awaitAll([root, ...this.executingSteps]))
  })

  /** Whether work is in progress that would have to run again after an interruption. */
  get isBusy(): boolean {
    return this.#recording > 0 || (!this.durable && !this.suspension.isWaiting)
  }

  /**
   * Whether the task was cancelled after the run began. A transaction that has lost its connection must not retry
   * forever.
   */
  #wasCancelled(transactional: boolean): Effect.Effect<boolean> {
    const load = this.engine.store.load(this.task.id)
    return Effect.map(transactional ? Effect.orDie(load) : awaitStore(load), (now) => now?.status === "cancelled")
  }

  /** Runs the effects with one key one after the other. */
  lock(key: string): <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> {
    const lock = this.#locks.get(key) ?? Semaphore.makeUnsafe(1)
    this.#locks.set(key, lock)
    return lock.withPermits(1)
  }

  /**
   * Waits until the handler has received every event that came before the end of a step, in an earlier run or just now
   * in another branch. A run without branches receives events in their order and does not wait.
   */
  #awaitTurn(step: string): Effect.Effect<void> {
    const { history, suspension } = this
    if (!this.hasBranches) return Effect.sync(() => history.markReached([step]))
    const resume = (fiber: Fiber.Fiber<unknown, unknown>) =>
      Effect.sync(() => {
        history.markReached([step])
        this.#lastResumed = fiber
        if (suspension.isWaiting) suspension.checkNow()
      })
    return Effect.andThen(
      this.preventSuspension(history.load),
      Effect.withFiber((fiber) => {
        const rank = history.rank(step)
        if (history.hasPendingBefore(rank) || (rank === lastRank && suspension.isWaiting)) {
          return suspension.wait({ events: [step], deferreds: [], check: reached, rank: Effect.succeed(rank) })
        }
        // A fiber that was resumed before continues first: it may interrupt this one.
        return !history.hasReplay || this.#lastResumed === fiber
          ? resume(fiber)
          : Effect.andThen(this.preventSuspension(yieldToResumed), resume(fiber))
      })
    )
  }

  /** Runs an effect during which no other fiber can suspend the run. */
  preventSuspension<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const counted = Workflow.wrapActivityResult(effect, () => false)
    return withoutEngineServices<A, E, R>(Effect.suspend((): Effect.Effect<A, E, R | EngineServices> => {
      if (this.#startsNothing) return this.interruptSelf
      this.suspension.noteActivity()
      return counted
    }))
  }

  /**
   * Executes an effect once, as an activity of the workflow engine, and records the text that it returns; later runs
   * return the recorded text. `decode` converts the text to the result. The effect is uninterruptible, except for the
   * parts that it restores. If the text of a transactional effect is not recorded, then its writes are rolled back as
   * well.
   */
  record<A, R>(
    { attempt, decode, name, transactional = false }: RecordOptions<A>,
    execute: (restore: Restore) => Effect.Effect<string, never, R>
  ): Effect.Effect<A, never, R> {
    const { executeActivity, unrecordedSteps } = this.engine
    const key = `${this.executionId} ${attempt} ${name}`
    const isForward = this.undoReason === undefined
    const isCancelled = this.task.status === "cancelled"
    const step = `${escape(name)}/${attempt}`
    const activity = {
      ...activityTemplate,
      // A name may contain arguments. The workflow engine stores escaped names as they are.
      name: escape(name),
      annotations: transactional ? withTransaction : Context.empty(),
      executeEncoded: Effect.uninterruptibleMask((restore): Effect.Effect<string, never, R | WorkflowInstance> => {
        const act = Effect.suspend(() => {
          // The step executes again: an end that an earlier run may have recorded no longer counts.
          this.history.markReached([step])
          const end = unrecordedSteps.begin(key)
          return Effect.onExit(
            execute(restore),
            (exit) =>
              Effect.map(Clock.currentTimeMillis, (now) => end(Exit.isSuccess(exit) ? exit.value : undefined, now))
          )
        })
        // The workflow engine may not have processed the cancellation yet, or may start the step while the run is
        // interrupted.
        if (isForward && isCancelled) return restore(suspendStep)
        if (!isForward || !this.isStopping) return act
        // After an interruption for another reason, the next run waits for the step that this one has begun.
        return Effect.flatMap(
          restore(this.#wasCancelled(transactional)),
          (cancelled): Effect.Effect<string, never, R | WorkflowInstance> => cancelled ? restore(suspendStep) : act
        )
      })
    } as unknown as Activity.Activity<typeof Schema.String, typeof Schema.Never, never>
    const executed: RecordedResult = Workflow.wrapActivityResult(
      this.#engineCalls.run(executeActivity(activity, attempt)),
      isSuspended
    )
    const interrupted = isCancelled ? unrecordedSteps.find(key) : undefined
    const ended: RecordedResult = interrupted === undefined
      ? executed
      : Effect.flatMap(interrupted, (text) => {
        if (text === undefined) return executed
        // A transactional step is committed together with its record, or not at all.
        return transactional
          ? Effect.repeat(executed, { while: isSuspended, ...commitRetries })
          : Effect.succeed(new Workflow.Complete({ exit: Exit.succeed(text) }))
      })
    return withoutEngineServices<A, never, R>(Effect.withFiber((fiber) => {
      this.noteFiber(fiber)
      if (this.#belongsElsewhere) this.isMoved = true
      if (this.isReleased || this.isMoved || this.#startsNothing) return this.interruptSelf
      this.suspension.noteActivity()
      this.#recording++
      return Effect.flatMap(
        Effect.ensuring(ended, Effect.sync(() => this.#recording--)),
        (result): Effect.Effect<A, never, R> => {
          this.knownResults++
          unrecordedSteps.delete(key)
          if (this.isReleased && !this.isBusy) return this.interruptSelf
          if (!isSuspended(result)) {
            const decoded = Effect.exit(this.preventSuspension(Effect.flatMap(result.exit, decode)))
            return Effect.flatMap(
              decoded,
              (exit) => this.undoReason === undefined ? Effect.andThen(this.#awaitTurn(step), exit) : exit
            )
          }
          // A cancelled task starts no step; but other branches may still have compensations.
          return isCancelled && isForward ? this.suspension.wait(neverEnds) : this.suspend
        }
      )
    }))
  }
}

/** How a step is recorded. */
export interface RecordOptions<A> {
  readonly name: string
  /** The number of the attempt, from 1. */
  readonly attempt: number
  readonly transactional?: boolean | undefined
  readonly decode: (text: string) => Effect.Effect<A>
}

/** Suspends the run of a step that must not execute. */
const suspendStep = Effect.flatMap(WorkflowInstance, Workflow.suspend)

/** The check of an event that has arrived. */
const reached = Effect.succeed(Effect.void)

const neverEnds: Wait<never, never> = {
  events: [],
  deferreds: [],
  check: Effect.undefined,
  rank: Effect.succeed(lastRank)
}

type RecordedResult = Effect.Effect<Workflow.Result<string, never>, never, EngineServices>

/** The retries while a transactional step is being committed. */
const commitRetries = { schedule: Schedule.spaced(10), times: 50 }

/** Makes an effect interruptible if its surroundings are. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const isSuspended = (result: Workflow.Result<unknown, unknown>): result is Workflow.Suspended =>
  result._tag === "Suspended"

/** Removes services from the requirements that the context of each fiber of a run has. */
const withoutEngineServices = <A, E, R>(effect: Effect.Effect<A, E, R | EngineServices>): Effect.Effect<A, E, R> =>
  effect as Effect.Effect<A, E, R>

/** The template of all steps, so that their one schema, a text, is compiled once. */
const activityTemplate = Activity.make({ name: "", success: Schema.String, execute: Effect.succeed("") })

const withTransaction = Context.empty().pipe(Context.add(ClusterSchema.WithTransaction, true))

/** A defect if the fiber runs in a step; `undefined` elsewhere. `part` names the part of the task that starts. */
export const misplacedInStep = (
  fiber: Fiber.Fiber<unknown, unknown>,
  part: string
): Effect.Effect<never> | undefined => {
  const step = fiber.getRef(CurrentStep)
  return step === undefined
    ? undefined
    : Effect.die(new Error(`${part} is not allowed inside step "${step}": move it before or after the step`))
}

/** Claims a name for the run; a defect if another part of this kind has it. */
export const claimName = (run: Run, kind: string, name: string): Effect.Effect<never> | undefined => {
  const key = `${kind}/${name}`
  if (run.names.has(key)) {
    return Effect.die(new Error(`duplicate ${kind} name "${name}" in this task: give each ${kind} its own name`))
  }
  run.names.add(key)
  return undefined
}
