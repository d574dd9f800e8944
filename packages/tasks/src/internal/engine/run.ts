/**
 * One run of a task's handler, from its beginning: the names it has claimed, the events it has observed, and why it
 * ends.
 */
import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { RunningStep } from "@skein/runtime/RequestContext"
import type { Compensation, UndoReason } from "../../CurrentTask.ts"
import type { Handlers } from "../../TaskEngine.ts"
import type { Lost, StoredTask, UnreceivedEvent } from "../store/store.ts"
import { awaitStore, type EngineContext } from "./engineContext.ts"
import type { RunTrace } from "../telemetry/taskObserver.ts"
import type { ActiveRun } from "./handlerRegistry.ts"
import { describeEvent, type MissingEvent, patienceMs } from "./codeChanges.ts"
import { EventWriter, type RecordOptions } from "./eventWriter.ts"
import { maxGapMs, type NewEvent, Observations, type ObservingRun, type Wait } from "./observations.ts"
import { makeHeartbeats } from "./heartbeats.ts"
import { makeProgressWriter } from "./progressWriter.ts"
import { OpenSections } from "./openSections.ts"
import { CurrentSection } from "./placement.ts"
import { type EventKey, type TaskLog, textOf } from "./taskLog.ts"

/** The parts of a run. */
export interface RunOptions {
  readonly engine: EngineContext
  readonly task: StoredTask
  /** The claim of the task. */
  readonly execution: { readonly workerId: string; signals: number }
  readonly log: TaskLog
  /** The answers to the questions of the task, by the keys of the questions. */
  readonly answers: Map<string, JsonObject | Lost | undefined>
  /** The keys of the questions of earlier runs that are open. */
  readonly openQuestions: ReadonlyArray<string>
  /** How often the task was stopped because its code has changed, since it has gone on. */
  readonly stops: number
  /** The context in which the run started: outside of transactions and steps. */
  readonly context: Context.Context<never>
  /** Closes when the run ends. */
  readonly scope: Scope.Scope
  readonly handlers: Handlers
  readonly durable: boolean
  /**
   * Whether the task is cancelled: the run replays the handler up to the point that it had reached, because only the
   * handler knows its compensations. No step starts.
   */
  readonly isCollecting: boolean
  /** Whether the run only compares the code with the log: it stores nothing, and does not compensate. */
  readonly isCheck?: boolean | undefined
  /** The span of the run. */
  readonly trace?: RunTrace | undefined
}

/** Why a run ends before its handler does. */
export type Ending =
  /** It is suspended until an event arrives. */
  | "suspended"
  /** The task was cancelled. */
  | "cancelled"
  /** Its code has changed, and cannot continue it. */
  | "changed"
  /** The task begins again with other arguments. */
  | "continued"
  /** Another worker has continued the task, it is deleted, or the database has lost its last events. */
  | "lost"
  /** Its handlers are removed. */
  | "released"
  /** The process ends. */
  | "stopped"

/** One run of a task's handler. */
export class Run extends Data.Class<RunOptions> implements ActiveRun, ObservingRun {
  /** The claimed names of steps, sleeps and questions. */
  readonly names = new Set<string>()
  /** How often each question was asked. */
  readonly counts = new Map<string, number>()
  readonly compensations: Array<Compensation> = []
  /** The compensations that cancelled branches have begun, with the names of their parts. */
  readonly begunUndos = new Map<Compensation, ReadonlySet<string>>()
  /** The functions that answer queries, by name (`Task.query`). */
  readonly queries = new Map<string, (args: JsonObject) => unknown>()
  readonly executingSteps = new Map<Fiber.Fiber<unknown, unknown>, RunningStep>()
  readonly observations = new Observations({ run: this })
  readonly progress = makeProgressWriter(this)
  readonly #events = new EventWriter({ run: this })
  readonly now = this.engine.store.clock.now
  readonly heartbeats = makeHeartbeats(this)
  /** How many events the run has received. */
  knownEvents = 0
  /** Why the run compensates, once it does. */
  undoReason: UndoReason | undefined = undefined
  ending: Ending | undefined = undefined
  hasBranches = false
  /** Whether the task may have children. */
  hasChildren = false
  /** How many status messages the run has set outside of steps. */
  statusMessageCount = 0
  executing = 0
  /** The events from outside that the task has not received, once the run waits for one. */
  #unreceived: ReadonlyArray<UnreceivedEvent> | undefined = undefined
  /** The parts that did not start because the run only replays. */
  readonly unstarted: Array<EventKey> = []
  /** In a check, the parts that are not recorded, with the position of the next recorded event, and whether they were passed. */
  readonly newParts: Array<{ readonly part: EventKey; readonly before: number; readonly isPassed: boolean }> = []
  /**
   * The new step that a run which only replays has passed, until it reaches a recorded event. A compensation that is
   * added after it may be that of this step, which has not happened.
   */
  passed: EventKey | undefined = undefined
  /** Why the task waits for other code; `undefined` while it does not. */
  stopReason: string | undefined = undefined
  #isStopped = this.stops > 0
  readonly sections = new OpenSections({
    onChange: () => this.observations.noteActivity(),
    onCancelled: () => this.end("cancelled")
  })
  #recording = 0
  readonly #locks = new Map<string, Semaphore.Semaphore>()
  #root: Fiber.Fiber<unknown, unknown> | undefined = undefined

  get isEnding(): boolean {
    return this.ending !== undefined
  }

  /** Whether the run continues to its end while it collects compensations: a branch may reach a further one. */
  get runsToEnd(): boolean {
    return this.sections.isCancelled || (this.isCollecting && (this.hasBranches || this.isInSection))
  }

  /** Whether the run of a cancelled task goes on in a section that it had begun. */
  get isInSection(): boolean {
    return this.sections.isIn && this.#mayGoOn
  }

  /** A task that was given up may be the cause of the losses, and goes on nowhere. */
  get #mayGoOn(): boolean {
    return this.task.status === "cancelled" && this.log.givenUpAfter === undefined && this.isCheck !== true
  }

  /** Whether a fiber starts new parts, although the task is cancelled. */
  goesOnIn(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    return fiber.getRef(CurrentSection) && (this.sections.isCancelled || this.#mayGoOn)
  }

  /** Whether work is in progress that would have to run again after an interruption. */
  get isBusy(): boolean {
    return this.#recording > 0 || (!this.durable && !this.observations.isWaiting)
  }

  /** Whether the run may compensate: it goes on here, or the task was cancelled. */
  get mayUndo(): boolean {
    return this.ending === undefined || this.ending === "cancelled"
  }

  get gapMs(): number {
    return patienceMs(maxGapMs, this.stops)
  }

  stopWithout(missing: MissingEvent): boolean {
    if (this.isCollecting || this.undoReason !== undefined || this.ending !== undefined) return false
    this.stopReason = `its code has changed: it does not reach ${
      describeEvent(missing.event)
    }, which was recorded while ${describeEvent(missing.part)} was under way; it continues with code that reaches it`
    this.end("changed")
    return true
  }

  get hasUnaskedQuestions(): boolean {
    return this.openQuestions.some((key) => !this.names.has(`question/${key}`))
  }

  noteFiber(fiber: Fiber.Fiber<unknown, unknown>): void {
    if (fiber !== this.#root) this.hasBranches = true
  }

  fork(effect: Effect.Effect<void>): Effect.Effect<unknown> {
    return Effect.forkIn(Effect.setContext(effect, this.context), this.scope)
  }

  /** Runs a part of the task as the root fiber, so that everything below it can be ended. */
  supervise<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Exit.Exit<A, E>, never, R> {
    const rooted = Effect.withFiber<A, E, R>((fiber) => {
      this.#root = fiber
      return this.#startsNothing ? Effect.interrupt : effect
    })
    return Effect.flatMap(
      Effect.forkChild(rooted, { startImmediately: true }),
      (fiber) =>
        Effect.onInterrupt(Fiber.await(fiber), () => {
          this.end("stopped")
          return Fiber.interrupt(fiber)
        })
    )
  }

  /** Ends the run. It interrupts the root fiber: `catchCause` and the like are skipped only in an interrupted fiber. */
  end(ending: Ending): void {
    this.ending ??= ending
    this.#root?.interruptUnsafe()
    this.observations.interruptWaiters()
  }

  /** Ends the run: the log does not end where it has ended. */
  readonly lose: Effect.Effect<never> = Effect.suspend(() => {
    this.end("lost")
    return this.interruptSelf
  })

  readonly interruptSelf: Effect.Effect<never> = Effect.withFiber((fiber) => {
    // The fibers of a handler that has ended must not interrupt its compensations.
    if (this.ending !== undefined) this.#root?.interruptUnsafe()
    fiber.interruptUnsafe()
    return Effect.interrupt
  })

  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    if (this.isBusy) this.ending ??= "released"
    else this.end("released")
    return this.#awaitEnd
  })

  readonly evict: Effect.Effect<void> = Effect.suspend(() => {
    this.end("released")
    return this.#awaitEnd
  })

  readonly #awaitEnd: Effect.Effect<void> = Effect.suspend(() => {
    const root = this.#root
    return root === undefined
      ? Effect.void
      : Effect.asVoid(Fiber.awaitAll([root, ...this.executingSteps.keys()]))
  })

  /** Suspends the run in the store. Returns `false` if it has events to observe. */
  suspend(wakeAt: number): Effect.Effect<boolean> {
    if (this.isCollecting) return Effect.sync(() => (this.ending ??= "suspended", true))
    const { answers, engine: { store }, execution: { signals, workerId }, log, observations, task: { id } } = this
    const stored = Effect.suspend(() => {
      const open = observations.countOpenQuestions(answers)
      return awaitStore(store.suspend(id, workerId, signals, wakeAt, log, open, observations.awaitedEvents))
    })
    const suspended = Effect.flatMap(stored, (done) => {
      if (!done) return Effect.as(this.#refreshAfter(signals), false)
      this.ending ??= "suspended"
      return Effect.succeed(true)
    })
    return this.log.isReplay || this.#isStopped || this.openQuestions.length > 0
      ? Effect.andThen(this.#reportChanges, suspended)
      : suspended
  }

  /** Reports what the code of the task no longer reaches, and withdraws the questions that it no longer asks. */
  readonly #reportChanges: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    const { engine: { codeChanges, store }, log, openQuestions, task: { id } } = this
    yield* this.goOn
    yield* codeChanges.reportUnreached(id, log.unreached)
    for (const key of openQuestions) {
      if (this.names.has(`question/${key}`)) continue
      yield* awaitStore(store.removeQuestion(id, key, log.nextSeq - 1))
      yield* Effect.logWarning(
        `the code of a task has changed: it no longer asks the open question "${key}", which is withdrawn`
      )
    }
  })

  /** Removes the status message of a task that was stopped because its code has changed. */
  readonly goOn: Effect.Effect<void> = Effect.suspend(() => {
    if (!this.#isStopped) return Effect.void
    this.#isStopped = false
    this.engine.codeChanges.noteProgress(this.task.id)
    return awaitStore(this.engine.store.setWaitsForWorker(this.task.id, false))
  })

  /**
   * Reads the events that the task was signalled. `refused`: the number of signals with which the store has not suspended
   * the run. If it has not changed, the database has lost events or questions.
   */
  #refreshAfter(refused?: number): Effect.Effect<void> {
    const { engine: { store }, execution, log, task: { id } } = this
    const lastSeq = log.nextSeq - 1
    return Effect.flatMap(awaitStore(store.readSignals(id)), (state) => {
      if (state?.worker !== execution.workerId || state.lastSeq < lastSeq) {
        return Effect.sync(() => this.end("lost"))
      }
      if (state.isCancelled && !this.isCollecting) return Effect.sync(() => this.cancel())
      if (state.signals === refused) return Effect.sync(() => this.end("lost"))
      if (state.signals === execution.signals) return Effect.void
      return Effect.map(awaitStore(store.readAnswers(id)), (answers) => {
        for (const { answer, key } of answers) this.answers.set(key, answer)
        execution.signals = Math.max(execution.signals, state.signals)
        this.observations.noteActivity()
      }).pipe(Effect.andThen(this.#unreceived === undefined ? Effect.void : this.readEvents))
    })
  }

  /** The first event from outside with a name that the task has not received, as of the last `readEvents`. */
  findUnreceived(name: string): UnreceivedEvent | undefined {
    return this.#unreceived?.find((event) => event.name === name)
  }

  /** Reads the events from outside. */
  readonly readEvents: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(
      Effect.all([awaitStore(this.engine.store.readEvents(this.task.id)), this.now]),
      ([events, now]) => {
        // The clock of the sender may be ahead a little.
        this.#unreceived = events.map((event) => ({ ...event, at: Math.min(event.at, now) }))
        this.observations.noteActivity()
      }
    )
  )

  /** Reads the events that the task was signalled. */
  readonly refresh: Effect.Effect<void> = Effect.suspend(() => this.#refreshAfter())

  /** Interrupts the handler of a task that is cancelled. The next run collects its compensations. */
  cancel(): void {
    if (this.undoReason === undefined) this.sections.cancel()
  }

  /** Runs the effects with one key one after the other. */
  lock(key: string): <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> {
    const lock = this.#locks.get(key) ?? Semaphore.makeUnsafe(1)
    this.#locks.set(key, lock)
    return lock.withPermits(1)
  }

  /** Runs an effect during which no other fiber can suspend the run. */
  preventSuspension<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => this.#startsNothing ? this.interruptSelf : this.observations.busy(effect))
  }

  /**
   * Whether nothing new may start. The next run executes the parts that finalizers try to start now, if it reaches
   * them.
   */
  get #startsNothing(): boolean {
    return this.ending !== undefined && (this.undoReason === undefined || this.ending !== "cancelled")
  }

  /** Waits for an event: see `Observations`. */
  observe<A, E>(wait: Wait<A, E>): Effect.Effect<A, E> {
    return Effect.withFiber((fiber) => {
      this.noteFiber(fiber)
      if (this.#startsNothing) return this.interruptSelf
      const { log } = this
      // Only concurrent branches could observe events of earlier runs in another order.
      const isOrdered = this.hasBranches && this.undoReason === undefined
      // A fiber that has observed the event before observes the next one at once.
      const isNext = (seq: number) =>
        seq === Infinity || (seq === log.firstPending && this.observations.lastResumed === fiber)
      const known = wait.events.find((event) =>
        log.find(event) !== undefined && (!isOrdered || isNext(log.pendingSeq(event)))
      )
      const next = (event: EventKey) => {
        this.knownEvents++
        this.passed = undefined
        return wait.next(event)
      }
      if (known === undefined) return this.observations.wait({ ...wait, next })
      log.markReached(known)
      return next(known)
    })
  }

  /** Appends an event. It has no value by default. */
  append(event: NewEvent): Effect.Effect<void> {
    return Effect.flatMap(
      this.now,
      (at) =>
        Effect.map(this.#events.store({ value: null, startedAt: undefined, ...event, at }), () => {
          if (event.place === undefined) return
          this.#unreceived = this.#unreceived?.filter(({ place }) => place !== event.place)
        })
    )
  }

  #endedChildren: { readonly signals: number; readonly names: ReadonlySet<string> } | undefined

  /** The names of the children that have ended, read once after each signal. */
  readonly endedChildren: Effect.Effect<ReadonlySet<string>> = Effect.suspend(() => {
    const { engine: { store }, execution: { signals }, task: { id } } = this
    if (this.#endedChildren?.signals === signals) return Effect.succeed(this.#endedChildren.names)
    return Effect.map(awaitStore(store.children.findEnded(id)), (names) => {
      this.#endedChildren = { signals, names }
      return names
    })
  })

  /** Stores why the run compensates. Returns the reason of an earlier run, if there is one. */
  beginUndo(reason: UndoReason): Effect.Effect<UndoReason> {
    const known = this.log.undoReason
    return known === undefined
      ? Effect.as(Effect.uninterruptible(this.append({ kind: "undo", name: reason, attempt: 1 })), reason)
      : Effect.succeed(known)
  }

  /** Stores an event that handlers do not observe: a timer, with the time at which it ends, or the version of the code. */
  storeUnobserved(event: EventKey, at: number): Effect.Effect<void> {
    return Effect.uninterruptibleMask((restore) =>
      this.observations.inTurn(restore, this.#events.store({ ...event, value: null, startedAt: undefined, at }))
    )
  }

  /**
   * Executes an effect once and appends the text that it returns to the log; later runs return the recorded text.
   * `decode` converts the text to the result. The effect is uninterruptible, except for the parts that it restores.
   */
  record<A, E, R>(
    options: RecordOptions<A>,
    execute: (restore: Restore) => Effect.Effect<Executed, E, R>
  ): Effect.Effect<A, E, R> {
    const { attempt, decode, kind, name, passed } = options
    const event: EventKey = { kind, name, attempt }
    return Effect.withFiber((fiber) => {
      this.noteFiber(fiber)
      if (this.#startsNothing) return this.interruptSelf
      const known = this.log.find(event)
      if (known !== undefined) {
        const decoded = this.preventSuspension(decode(known.value ?? ""))
        const wait: Wait<A, never> = { events: [event], dueAt: unknown, arrive: Effect.undefined, next: () => decoded }
        return this.observe(wait)
      }
      const executed = this.#execute(options, event, execute)
      if (this.undoReason !== undefined) return executed
      return this.startNew(event, executed, passed)
    })
  }

  /**
   * Starts a part of the task that earlier runs have not recorded. A part that has lost a race in an earlier run must
   * not start again before it loses the race again, so it waits for the events that were recorded while it was under
   * way. In a run that only replays it never starts. There a part with a `passed` value is passed if further
   * events are recorded, because the code may have it in front of them since then. Beside branches it could win a race
   * that it has not won.
   */
  startNew<A, E, R>(
    event: EventKey,
    effect: Effect.Effect<A, E, R>,
    passed?: Effect.Effect<A>
  ): Effect.Effect<A, E, R> {
    if (this.isCollecting || this.sections.isCancelled) {
      return Effect.withFiber((fiber) =>
        this.goesOnIn(fiber) ? this.#start(event, effect) : this.#replayTo(event, passed)
      )
    }
    return this.#start(event, effect)
  }

  /** The place of a part that does not start in a run that only replays. */
  #replayTo<A>(event: EventKey, passed: Effect.Effect<A> | undefined): Effect.Effect<A> {
    const isPassed = passed !== undefined && !this.hasBranches && this.log.hasPending
    if (this.isCheck === true) this.newParts.push({ part: event, before: this.log.firstPending, isPassed })
    if (!isPassed) return this.stall(event)
    if (event.kind === "step") this.passed = event
    return passed
  }

  #start<A, E, R>(event: EventKey, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const started = this.#isStopped ? Effect.andThen(this.goOn, effect) : effect
    const { log } = this
    const mustWait = log.hasPending && (this.hasBranches || log.findBeside(event) !== undefined)
    return mustWait ? Effect.andThen(this.observe({ ...replayEnds, starts: event }), started) : started
  }

  /** Ends the progress of a fiber at a part of the task that does not start, in a run that only replays. */
  stall(event: EventKey): Effect.Effect<never> {
    this.unstarted.push(event)
    return this.observe(neverEnds)
  }

  #execute<A, E, R>(
    options: RecordOptions<A>,
    event: EventKey,
    execute: (restore: Restore) => Effect.Effect<Executed, E, R>
  ): Effect.Effect<A, E, R> {
    const { engine, observations } = this
    const { decode, transactional = false } = options
    const recorded = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(this.now, (startedAt) => {
        const execution = Effect.suspend(() => {
          this.executing++
          return Effect.ensuring(execute(restore), Effect.sync(() => this.executing--))
        })
        const ended = Effect.flatMap(execution, ({ failed, text }) =>
          Effect.map(this.now, (at) => ({ failed, event: { ...event, value: text, startedAt, at } })))
        // The next event waits until the handler has observed this one, which may take a decryption.
        return transactional
          ? observations.inTurn(restore, Effect.flatMap(this.#events.transact(options, event, ended), decode))
          : Effect.flatMap(ended, ({ event }) =>
            observations.inTurn(restore, Effect.flatMap(this.#events.storeEnd(options, event), decode)))
      })
    )
    const part = textOf(event)
    const counted = Effect.suspend(() => {
      this.#recording++
      this.#events.underWay.add(part)
      return Effect.ensuring(
        recorded,
        Effect.sync(() => {
          this.#recording--
          this.#events.underWay.delete(part)
        })
      )
    })
    const renewed = Effect.andThen(
      engine.renewLease,
      Effect.suspend(() => this.#startsNothing ? this.interruptSelf : counted)
    )
    const leased = Effect.suspend(() => engine.holdsLease() ? counted : renewed)
    return Effect.flatMap(observations.busy(leased), (value) => {
      if (this.ending === "released" && !this.isBusy) {
        this.end("released")
        return this.interruptSelf
      }
      return this.ending === "lost" ? this.interruptSelf : Effect.succeed(value)
    })
  }
}

const unknown = () => Infinity

/** Never ends: the part that the run of a cancelled task has not reached. */
export const neverEnds: Wait<never, never> = {
  events: [],
  dueAt: unknown,
  arrive: Effect.undefined,
  next: () => Effect.never
}

const nothing: EventKey = { kind: "step", name: "", attempt: 0 }

/** Ends when the run has reached the events of earlier runs. */
export const replayEnds: Wait<void, never> = {
  events: [],
  dueAt: () => -1,
  arrive: Effect.succeed(nothing),
  next: () => Effect.void
}

/** The end of an effect: the text to record, and whether it has failed, so that its transaction is rolled back. */
export interface Executed {
  readonly text: string
  readonly failed: boolean
}

/** Makes an effect interruptible if its surroundings are. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
