/**
 * One run of a task's handler, from its beginning: what it has named, asked and said, and how it is suspended.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
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
import type { Undoing } from "../../CurrentTask.ts"
import type { Handlers } from "../../TaskEngine.ts"
import { History, last } from "./history.ts"
import { type Host, patiently } from "./engineContext.ts"
import { hops, makeParking, type Parking, type Wait } from "./suspension.ts"
import { Progressing } from "./progress.ts"
import type { Work } from "../store/store.ts"
import { escape } from "../store/stored.ts"
import { Waits } from "./engineCalls.ts"
import type { Tenant } from "./workers.ts"

/** The step that a fiber runs in. */
export const InStep = Context.Reference<string | undefined>("@skein/tasks/InStep", { defaultValue: () => undefined })

/** What a run's fibers have in their context. */
export type Within = WorkflowEngine | WorkflowInstance

/** See the module's text. */
export class Run implements Tenant {
  readonly host: Host
  readonly work: Work
  readonly executionId: string
  readonly instance: WorkflowInstance["Service"]
  /** What the run started with: no transaction, and no step. */
  readonly context: Context.Context<Within>
  /** Closes when the run ends or is suspended. */
  readonly scope: Scope.Scope
  readonly owner: Handlers
  readonly durable: boolean
  /** The names of the steps so far. */
  readonly names = new Set<string>()
  /** How often each question was asked, or each `once` tried. */
  readonly times = new Map<string, number>()
  readonly undos: Array<(why: Undoing) => Effect.Effect<unknown, unknown>> = []
  /** The steps that run now. */
  readonly executing = new Set<Fiber.Fiber<unknown, unknown>>()
  readonly #waits = new Waits()
  /** How many results of steps it has got to know. */
  known = 0
  #remembering = 0
  readonly history: History
  readonly parking: Parking
  readonly progressing: Progressing
  /** Why it undoes what it has done, once it does. */
  undoing: Undoing | undefined = undefined
  /** It is interrupted from outside: by the end of the process, the arrival of what it waits for, or a cancellation. */
  stopping = false
  /** Its handler goes away. */
  released = false
  /** It has come to where it waits, or to its end: it knows all that it has done. */
  whole = false
  /** Another process is to go on with it. */
  moved = false
  /** Something of it runs beside its root: a branch that nobody knows of may still be on its way to its next step. */
  forked = false
  /** The number of its last message. */
  said = 0
  /** Who was the last to be told of something. */
  #passed: Fiber.Fiber<unknown, unknown> | undefined = undefined
  readonly #locks = new Map<string, Semaphore.Semaphore>()
  #root: Fiber.Fiber<unknown, unknown> | undefined = undefined

  constructor(options: {
    readonly host: Host
    readonly work: Work
    readonly executionId: string
    readonly instance: WorkflowInstance["Service"]
    readonly context: Context.Context<Within>
    readonly scope: Scope.Scope
    readonly owner: Handlers
    readonly durable: boolean
  }) {
    this.host = options.host
    this.work = options.work
    this.executionId = options.executionId
    this.instance = options.instance
    this.context = options.context
    this.scope = options.scope
    this.owner = options.owner
    this.durable = options.durable
    this.history = new History(patiently(options.host.past(options.executionId)))
    this.parking = makeParking(this)
    this.progressing = new Progressing(this)
  }

  /** Whether an interruption comes from without: not from a race that was lost. */
  get leaving(): boolean {
    return this.stopping || this.released || this.moved || this.instance.suspended || this.instance.interrupted
  }

  /** Whether it ends where it is: what begins now, in a finalizer, is for the run that comes to it when it does not. */
  get #away(): boolean {
    return this.undoing === undefined && (this.stopping || this.instance.suspended)
  }

  /**
   * Whether it is not left as soon as all that is known of it waits: one that finds out what there is to undo must come to the end of
   * each branch.
   */
  get lingers(): boolean {
    return this.work.status === "cancelled" && this.forked
  }

  /** Whether something is being looked for that may be there. */
  get finds(): boolean {
    return this.instance.activityState.count > this.executing.size
  }

  /** Takes notice of who comes to a part of the task. */
  meet(fiber: Fiber.Fiber<unknown, unknown>): void {
    if (fiber !== this.#root) this.forked = true
  }

  /** Runs a part of the task, of which everything below can be suspended. */
  supervise<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Exit.Exit<A, E>, never, R> {
    const rooted = Effect.withFiber<A, E, R>((fiber) => {
      this.#root = fiber
      return effect
    })
    return Effect.flatMap(
      Effect.forkChild(rooted, { startImmediately: true }),
      (fiber) =>
        Effect.onInterrupt(Fiber.await(fiber), () => {
          this.stopping = true
          return this.end(fiber)
        })
    )
  }

  /** Ends a part of the run from without. */
  end(fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> {
    return this.#waits.end(fiber, () => this.executing.size > 0)
  }

  /** Ends the run where it is. */
  readonly leave: Effect.Effect<never> = Effect.withFiber((fiber) => {
    this.#root?.interruptUnsafe()
    fiber.interruptUnsafe()
    return Effect.interrupt
  })

  /**
   * Suspends the run. The root is interrupted, not only who waits: what recovers from failures on the way up is skipped only in a
   * fiber that is interrupted itself.
   */
  readonly suspend: Effect.Effect<never> = Effect.suspend(() => {
    this.instance.suspended = true
    return this.leave
  })

  /** Steps that run now come to their end, and so does a handler that is one step; nothing begins any more. */
  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    this.released = true
    if (!this.busy) this.#root?.interruptUnsafe()
    return this.#over
  })

  readonly evict: Effect.Effect<void> = Effect.suspend(() => {
    this.#root?.interruptUnsafe()
    return this.#over
  })

  move(): void {
    if (!this.#lost) return
    this.moved = true
    const acts = this.durable ? this.executing.size > 0 : !this.parking.waiting
    if (!acts) this.#root?.interruptUnsafe()
  }

  /**
   * The engine begins no step of an execution that another process is to go on with, and that one waits until this one has left. What
   * undoes a cancelled task looks for itself.
   */
  get #lost(): boolean {
    return this.undoing !== "cancelled" && this.work.status !== "cancelled" && !this.host.holds(this.executionId)
  }

  readonly #over: Effect.Effect<void> = Effect.suspend(() => {
    const root = this.#root
    return root === undefined
      ? Effect.void
      : Effect.asVoid(Fiber.awaitAll([root, ...this.executing]))
  })

  /** Whether something runs that would have to run again. */
  get busy(): boolean {
    return this.#remembering > 0 || (!this.durable && !this.parking.waiting)
  }

  /** Whether it was cancelled since it began. A transaction that has lost its connection would ask for ever. */
  #cancelled(transactional: boolean): Effect.Effect<boolean> {
    const work = this.host.store.work(this.work.id)
    return Effect.map(transactional ? Effect.orDie(work) : patiently(work), (now) => now?.status === "cancelled")
  }

  /** What runs under one key runs one after the other. */
  lock(key: string): <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> {
    const lock = this.#locks.get(key) ?? Semaphore.makeUnsafe(1)
    this.#locks.set(key, lock)
    return lock.withPermits(1)
  }

  /**
   * Waits until all is told that has come before a step has ended: in an earlier run, or beside it just now. For what stands alone that
   * is so.
   */
  #turn(step: string): Effect.Effect<void> {
    const { history, parking } = this
    if (!this.forked) return Effect.sync(() => history.pass([step]))
    const passes = (fiber: Fiber.Fiber<unknown, unknown>) =>
      Effect.sync(() => {
        history.pass([step])
        this.#passed = fiber
        if (parking.waiting) parking.poke()
      })
    return Effect.andThen(
      this.hold(history.read),
      Effect.withFiber((fiber) => {
        const rank = history.rank(step)
        if (history.expects(rank) || (rank === last && parking.waiting)) {
          return parking.wait({ events: [step], awaits: [], look: told, rank: Effect.succeed(rank) })
        }
        // Who was told before is to go on before: it may cut this off.
        return !history.replays || this.#passed === fiber
          ? passes(fiber)
          : Effect.andThen(this.hold(hops), passes(fiber))
      })
    )
  }

  /** While this runs, nothing else suspends the run. */
  hold<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const held = Workflow.wrapActivityResult(effect, () => false)
    return within<A, E, R>(Effect.suspend((): Effect.Effect<A, E, R | Within> => {
      if (this.#away) return this.leave
      this.parking.stir()
      return held
    }))
  }

  /**
   * Runs what is remembered when it has ended: the text that it ends with; and gives what `open` makes of that. It is not interrupted,
   * but for what it restores. Of what is transactional nothing is left when it is not remembered.
   */
  remember<A, R>(
    { attempt, name, open, transactional = false }: Memory<A>,
    execute: (restore: Restore) => Effect.Effect<string, never, R>
  ): Effect.Effect<A, never, R> {
    const { acted, execute: executes } = this.host
    const key = `${this.executionId} ${attempt} ${name}`
    const forward = this.undoing === undefined
    const cancelled = this.work.status === "cancelled"
    const step = `${escape(name)}/${attempt}`
    const activity = {
      ...template,
      // Names come from arguments, too. The engine keeps each as it is, where it can.
      name: escape(name),
      annotations: transactional ? withTransaction : Context.empty(),
      executeEncoded: Effect.uninterruptibleMask((restore): Effect.Effect<string, never, R | WorkflowInstance> => {
        const act = Effect.suspend(() => {
          // What an earlier run may have ended with counts no more.
          this.history.pass([step])
          const end = acted.begin(key)
          return Effect.onExit(
            execute(restore),
            (exit) =>
              Effect.map(Clock.currentTimeMillis, (now) => end(Exit.isSuccess(exit) ? exit.value : undefined, now))
          )
        })
        // The engine may not have noticed yet that the task is cancelled, or come to this when the run was cut off.
        if (forward && cancelled) return restore(nothing)
        if (!forward || !this.stopping) return act
        // Cut off for another reason, the next run waits for the step that this one has begun.
        return Effect.flatMap(
          restore(this.#cancelled(transactional)),
          (cancelled): Effect.Effect<string, never, R | WorkflowInstance> => cancelled ? restore(nothing) : act
        )
      })
    } as unknown as Activity.Activity<typeof Schema.String, typeof Schema.Never, never>
    const executed: Remembering = Workflow.wrapActivityResult(this.#waits.on(executes(activity, attempt)), isSuspended)
    const cutOff = cancelled ? acted.find(key) : undefined
    const ended: Remembering = cutOff === undefined
      ? executed
      : Effect.flatMap(cutOff, (text) => {
        if (text === undefined) return executed
        // What is transactional is committed together with what it did, or not at all.
        return transactional
          ? Effect.repeat(executed, { while: isSuspended, ...committing })
          : Effect.succeed(new Workflow.Complete({ exit: Exit.succeed(text) }))
      })
    return within<A, never, R>(Effect.withFiber((fiber) => {
      this.meet(fiber)
      if (this.#lost) this.moved = true
      if (this.released || this.moved || this.#away) return this.leave
      this.parking.stir()
      this.#remembering++
      return Effect.flatMap(
        Effect.ensuring(ended, Effect.sync(() => this.#remembering--)),
        (result): Effect.Effect<A, never, R> => {
          this.known++
          acted.delete(key)
          if (this.released && !this.busy) return this.leave
          if (!isSuspended(result)) {
            const opened = Effect.exit(this.hold(Effect.flatMap(result.exit, open)))
            return Effect.flatMap(
              opened,
              (exit) => this.undoing === undefined ? Effect.andThen(this.#turn(step), exit) : exit
            )
          }
          // What has not run yet does not run; but there may be something to undo in what stands beside it.
          return cancelled && forward ? this.parking.wait(forEver) : this.suspend
        }
      )
    }))
  }
}

/** What is remembered. */
export interface Memory<A> {
  readonly name: string
  readonly attempt: number
  readonly transactional?: boolean | undefined
  readonly open: (text: string) => Effect.Effect<A>
}

/** A step that does not run: its run is suspended. */
const nothing = Effect.flatMap(WorkflowInstance, Workflow.suspend)

/** It has come. */
const told = Effect.succeed(Effect.void)

const forEver: Wait<never, never> = { events: [], awaits: [], look: Effect.undefined, rank: Effect.succeed(last) }

type Remembering = Effect.Effect<Workflow.Result<string, never>, never, Within>

/** How often, in what time, is looked for what is just being committed. */
const committing = { schedule: Schedule.spaced(10), times: 50 }

/** Lets an effect be interrupted as what is around it. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

const isSuspended = (result: Workflow.Result<unknown, unknown>): result is Workflow.Suspended =>
  result._tag === "Suspended"

/** What a run's fibers surely have in their context need not be asked of the caller. */
const within = <A, E, R>(effect: Effect.Effect<A, E, R | Within>): Effect.Effect<A, E, R> =>
  effect as Effect.Effect<A, E, R>

/** All steps have one schema, which is compiled once: the text of what they ended with. */
const template = Activity.make({ name: "", success: Schema.String, execute: Effect.succeed("") })

const withTransaction = Context.empty().pipe(Context.add(ClusterSchema.WithTransaction, true))
