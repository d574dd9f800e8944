/**
 * A worker: claims tasks from the queue, runs each in a fiber, and keeps its lease.
 *
 * In a single process there is no lease: the process owns all tasks. Several processes share a database: each one that
 * runs tasks registers, and renews its registration three times per lease. The tasks of a worker whose lease is over go
 * back to the queue. A worker that was only slow notices that, and ends its runs; the end of a step that it was
 * executing is stored if no other worker has stored an event since.
 */
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Iterable from "effect/Iterable"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { State } from "../../TaskState.ts"
import type { Claim, StoredTask } from "../store/store.ts"
import { awaitStore, CurrentRun, type EngineContext, EngineStopped } from "./engineContext.ts"
import { type Execution, runExecution } from "./execution.ts"
import type { ClockCheck } from "./clockCheck.ts"
import { StepReport } from "./stepReport.ts"
import type { StoreOutage } from "./storeOutage.ts"

/** The options of a worker. Times are in milliseconds. */
export interface WorkerOptions {
  /** The pools whose tasks it runs; `undefined`: all. */
  readonly pools: ReadonlyArray<string> | undefined
  /** The name of the machine, for operators. */
  readonly host: string
  /** The id of the process, for operators. */
  readonly pid: number
  /** The name and version of its program, for operators, or `""`. */
  readonly application: string
  /** How long its tasks are kept for it without a renewal; `undefined`: it is the only worker. */
  readonly leaseMs: number | undefined
  /** Whether the store is a SQLite file, which programs beside its servers may change. */
  readonly hasFile: boolean
  /** Between two checks for tasks whose time has come. */
  readonly pollInterval: number
  /** How many tasks it runs at the same time. */
  readonly concurrency: number
  /** How long its runs may take to end when it stops. */
  readonly shutdownTimeout: number
  /** Whether its time skips, as in tests: then it does not report that the event loop was blocked. */
  readonly skipsTime?: boolean | undefined
}

/** Tasks that are claimed in one statement, at most: the others stay for other workers. */
const maxBatch = 20

/** Milliseconds between two comparisons of claims and runs in a single process. */
const checkIntervalMs = 60_000

/** Steps that a warning about a blocked event loop names, at most. */
const maxLateSteps = 10

/** Milliseconds that the event loop may be blocked without a warning. */
const maxStallMs = 1000

/** Milliseconds between two checks in a single process, while tasks run, whether the event loop was blocked. */
const stallCheckMs = 500

/** Milliseconds between two reports of the steps that run, of a worker without a lease. */
const reportIntervalMs = 2000

/** Milliseconds that the last statements of a worker may take when it stops. */
const farewellMs = 1000

/**
 * Repeats an effect until the scope closes. The scope does not wait longer than a second for a statement whose server
 * does not react.
 */
export const forkLoop = (effect: Effect.Effect<unknown>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.sync(() => Effect.runForkWith(context)(Effect.forever(effect)))
    ),
    (fiber) => Effect.ignoreCause(Effect.timeout(Effect.interruptible(Fiber.interrupt(fiber)), farewellMs))
  ))

/** A task that a worker runs, and the fiber, once it has started. */
interface Active {
  readonly execution: Execution
  fiber: Fiber.Fiber<void> | undefined
}

/** The parts of a process that a worker uses. */
interface WorkerParts {
  readonly engine: EngineContext
  readonly outage: StoreOutage
  readonly clockCheck: ClockCheck
  readonly options: WorkerOptions
}

/** A worker of this process. */
export class Worker extends Data.Class<WorkerParts> {
  readonly #active = new Map<string, Active>()
  readonly #hasWork = Latch.makeUnsafe(true)
  #looksForGated = true
  readonly #stopped = Latch.makeUnsafe()
  /** Open while tasks run. */
  readonly #hasRuns = Latch.makeUnsafe()
  #fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void> = Effect.runFork
  #id = globalThis.crypto.randomUUID() as string
  #leaseEnd = Infinity
  /** Whether other workers were registered at the last renewal. */
  #hasOthers = false
  /** The tasks that were lost with their workers, and have not stored an event since. */
  readonly #lost = new Set<Execution>()
  /** How many such tasks have stored an event or ended here. */
  #recovered = 0
  /** When the event loop has to renew the lease; in a single process, when it has to notice that it runs. */
  #renewalDue = Infinity
  #clock: Clock.Clock | undefined = undefined
  /** The steps that ended since then. */
  readonly #lateSteps = new Set<string>()
  #isStopping = false
  /** Claims of the last check that no run belongs to. */
  #unknownClaims = new Set<string>()

  #steps = new StepReport()

  /** The number of tasks that it runs. */
  get running(): number {
    return this.#active.size
  }

  get #capacity(): number {
    return this.#isStopping || this.engine.handlers.isEmpty || !this.clockCheck.isRight
      ? 0
      : this.options.concurrency - this.#active.size
  }

  /** Whether the lease is valid. */
  holdsLease(): boolean {
    return performance.now() < this.#leaseEnd
  }

  /**
   * The id of this worker if it is to run a new task of a tool and a pool at once: it can run one more, and there is no
   * other worker that may have less to do.
   */
  reserve(tool: string, pool: string): string | undefined {
    const { pools } = this.options
    return !this.#hasOthers && this.#capacity > 0 && (pools === undefined || pools.includes(pool)) &&
        this.holdsLease() &&
        this.engine.handlers.find(tool) !== undefined
      ? this.#id
      : undefined
  }

  /** Runs a task that was created as claimed by this worker. */
  runNew(state: State, args: StoredTask["args"], workerId: string): void {
    const task: StoredTask = { ...state, args, statusMessageCount: 0, waitsForWorker: false }
    this.#run(
      { id: state.id, task: Effect.succeed(task), signals: 0, isFirst: true, attempts: 0, isGated: false },
      workerId
    )
  }

  #run(claim: Claim, workerId: string): void {
    const execution: Execution = { ...claim, workerId, hasSignal: false, run: undefined }
    const entry: Active = { execution, fiber: undefined }
    if (this.#clock !== undefined && this.#active.size === 0) {
      this.#expectTick(stallCheckMs)
      this.#hasRuns.openUnsafe()
    }
    // The run of a claim that was taken back, or that the database has lost.
    const previous = this.#active.get(claim.id)?.fiber
    this.#active.set(claim.id, entry)
    if (claim.attempts > 0) this.#lost.add(execution)
    const executed = Effect.catchCause(
      Effect.provideService(runExecution(this.engine, execution), CurrentRun, claim.id),
      (cause) => this.#isStopping ? Effect.void : Effect.logError("the run of a task has ended unexpectedly", cause)
    )
    const fiber = this.#fork(previous === undefined ? executed : Effect.andThen(Fiber.interrupt(previous), executed))
    entry.fiber = fiber
    fiber.addObserver(() => {
      if (this.#active.get(claim.id) === entry) this.#active.delete(claim.id)
      if (this.#active.size === 0) this.#hasRuns.closeUnsafe()
      if (claim.attempts > 0) this.#noteRecovered(execution)
      if (claim.isGated || claim.attempts > 0) this.lookForTasks(claim.isGated)
      else if (this.#capacity === 1) this.#hasWork.openUnsafe()
    })
  }

  /**
   * With how many lost workers a task may start now. A task that was lost twice may be the cause, and end this process
   * too. So it starts beside at most as many lost tasks as have recovered here, which lets the innocent tasks of a large
   * process recover soon. A task that was lost three times runs beside no lost task.
   */
  get #maxLost(): number {
    let most = 0
    for (const execution of this.#lost) {
      const { attempts, firstSeq = Infinity, run } = execution
      if (run !== undefined && run.log.nextSeq > firstSeq) this.#noteRecovered(execution)
      else most = Math.max(most, attempts)
    }
    if (most === 0) return Infinity
    if (most <= 2 && this.#lost.size <= this.#recovered) return 2
    return most === 1 ? 1 : 0
  }

  #noteRecovered(execution: Execution): void {
    if (this.#lost.delete(execution) && execution.workerId === this.#id) this.#recovered++
  }

  /** Looks for tasks now, also for those that wait for the limits of their tools. */
  lookForTasks(alsoGated = false): void {
    if (alsoGated) this.#looksForGated = true
    this.#hasWork.openUnsafe()
  }

  /** A task has an event. */
  readonly #onSignal = (id: string): void => {
    const execution = this.#active.get(id)?.execution
    if (execution === undefined) return
    execution.hasSignal = true
    if (execution.run !== undefined) this.#fork(execution.run.refresh)
  }

  /** Starts the worker. It stops when the scope closes. */
  readonly start = Effect.gen({ self: this }, function*() {
    const { hasFile, leaseMs, pollInterval, pools } = this.options
    const context = yield* Effect.context<never>()
    this.#fork = (effect) => Effect.runForkWith(context)(Effect.provideService(effect, EngineStopped, this.#stopped))
    yield* Effect.addFinalizer(() => this.#stop)
    yield* this.engine.store.listenForSignals({
      onSignal: this.#onSignal,
      onReady: (pool, isGated) => {
        if (pools === undefined || pools.includes(pool)) this.lookForTasks(isGated)
      },
      onGap: () => {
        this.lookForTasks(true)
        for (const id of this.#active.keys()) this.#onSignal(id)
      }
    })
    if (leaseMs === undefined) {
      yield* awaitStore(Effect.andThen(this.engine.store.takeBackAll, this.#register))
      yield* forkLoop(Effect.andThen(Effect.sleep(reportIntervalMs), this.outage.guard(this.#reportSteps)))
      yield* forkLoop(Effect.andThen(Effect.sleep(checkIntervalMs), this.outage.guard(this.#checkClaims)))
      if (this.options.skipsTime !== true) {
        this.#clock = yield* Clock.Clock
        yield* forkLoop(this.#watchEventLoop)
      }
    } else {
      yield* awaitStore(Effect.andThen(this.#register, this.#renewOnce))
      yield* forkLoop(this.#keepLease(leaseMs))
    }
    if (hasFile) yield* this.outage.guard(this.engine.store.findForeignChange)
    yield* forkLoop(Effect.andThen(this.#poll, Effect.sleep(pollInterval)))
    yield* forkLoop(Effect.andThen(
      this.#hasWork.await,
      Effect.andThen(Effect.sync(() => void this.#hasWork.closeUnsafe()), this.#claimAll)
    ))
  })

  /** Lets tasks whose time has come be claimed, and looks for tasks. */
  readonly #poll = Effect.suspend(() => {
    const wake = this.clockCheck.isRight ? this.engine.store.wake : Effect.undefined
    const due = this.options.hasFile ? Effect.andThen(this.#followForeignChange, wake) : wake
    return Effect.map(this.outage.guard(due), (found) => {
      if (this.#capacity > 0) this.lookForTasks(found?.hasGated)
    })
  })

  /** Another client of the file, such as `skein tasks`, may have cancelled a task or added one. */
  readonly #followForeignChange = Effect.suspend(() =>
    Effect.flatMap(this.engine.store.findForeignChange, (found) => found ? this.#checkClaims : Effect.void)
  )

  /** Claims tasks until there are none, or until this worker runs as many as it may. */
  readonly #claimAll: Effect.Effect<void> = Effect.suspend(() => {
    const limit = Math.min(this.#capacity, maxBatch)
    if (limit <= 0 || !this.holdsLease()) return Effect.void
    const workerId = this.#id
    const isGated = this.#looksForGated
    this.#looksForGated = false
    const claims = isGated ? this.engine.store.claimGated : this.engine.store.claim
    const claimed = Effect.map(claims(workerId, this.options.pools, limit, this.#maxLost), (claims) => {
      for (const claim of claims) this.#run(claim, workerId)
      // A rate may leave out tasks that are found first: the next claim finds those behind them.
      if (isGated && claims.length > 0) this.#looksForGated = true
      // Further tasks may start beside one that was lost, but not in the same claim.
      return claims.length === limit || claims.some(({ attempts }) => attempts > 1)
    })
    return Effect.flatMap(
      this.outage.guard(claimed),
      (hasMore) => isGated || hasMore === true ? Effect.andThen(Effect.yieldNow, this.#claimAll) : Effect.void
    )
  })

  readonly #register = Effect.suspend(() => {
    const { application, host, leaseMs, pid, pools = [] } = this.options
    const id = globalThis.crypto.randomUUID()
    const begin = performance.now()
    return Effect.map(this.engine.store.register(id, { application, host, leaseMs, pid, pools }), () => {
      this.#steps = new StepReport()
      this.#id = id
      this.#recovered = 0
      this.#leaseEnd = leaseMs === undefined ? Infinity : begin + leaseMs
    })
  })

  /** Renews the lease, however long the store cannot be reached. A single process has none. */
  readonly renewLease: Effect.Effect<void> = Effect.suspend(() =>
    this.options.leaseMs === undefined ? Effect.void : awaitStore(this.#renewOnce)
  )

  /** Milliseconds of a clock that never goes back. A single process has the clock of its timers, as in tests. */
  get #now(): number {
    return this.#clock === undefined ? performance.now() : Number(this.#clock.monotonicTimeNanosUnsafe()) / 1_000_000
  }

  /**
   * Reports that the event loop of a single process, which renews no lease, was blocked. It takes no time while no task
   * runs.
   */
  readonly #watchEventLoop: Effect.Effect<void> = Effect.andThen(
    Effect.suspend(() => this.#hasRuns.await),
    Effect.suspend(() =>
      Effect.andThen(
        Effect.sleep(Math.max(this.#renewalDue - this.#now, 0)),
        Effect.suspend(() => {
          const late = this.#now - this.#renewalDue
          const reported = late > maxStallMs ? this.#reportStall(late) : Effect.void
          this.#expectTick(stallCheckMs)
          return reported
        })
      )
    )
  )

  #expectTick(milliseconds: number): void {
    this.#renewalDue = this.#now + milliseconds
    this.#lateSteps.clear()
  }

  #keepLease(leaseMs: number): Effect.Effect<never> {
    const interval = leaseMs / 3
    this.#expectTick(interval)
    const renew = Effect.gen({ self: this }, function*() {
      const late = performance.now() - this.#renewalDue
      if (late > maxStallMs) yield* this.#reportStall(late)
      const begin = performance.now()
      yield* this.outage.guard(this.#renewOnce)
      // After an outage, or a long transaction in a SQLite file, all leases are over, and the other workers have not renewed
      // theirs yet.
      if (this.outage.sinceLast() > leaseMs && performance.now() - begin < interval) {
        yield* this.outage.guard(Effect.andThen(this.engine.store.removeLost, this.engine.store.takeBackLost))
      }
      yield* this.outage.guard(this.#checkClaims)
      this.#expectTick(interval)
    })
    return Effect.forever(Effect.andThen(Effect.sleep(interval), renew))
  }

  /** Renews the lease. Ends all runs and registers again if it was lost. */
  readonly #renewOnce: Effect.Effect<unknown, TaskError> = Effect.suspend(() => {
    const { leaseMs = 0 } = this.options
    const begin = performance.now()
    const steps = this.#steps
    const renewed = Effect.flatMap(
      this.#nextReport,
      (report) =>
        Effect.map(this.engine.store.renew(this.#id, leaseMs, report), (workers) => {
          if (workers > 0 && report !== undefined) steps.noteStored(report)
          return workers
        })
    )
    return Effect.flatMap(renewed, (workers) => {
      if (workers > 0) {
        this.#leaseEnd = begin + leaseMs
        this.#hasOthers = workers > 1
        return this.clockCheck.check
      }
      for (const { execution: { run, workerId } } of this.#active.values()) if (workerId === this.#id) run?.end("lost")
      this.engine.observer?.metrics?.leaseLost()
      return Effect.andThen(
        Effect.logWarning(`this worker lost its tasks: it did not renew its lease of ${leaseMs} ms in time`),
        awaitStore(this.#register)
      )
    })
  })

  /** The steps that run, if they have changed since the last report. */
  readonly #nextReport: Effect.Effect<string | undefined> = Effect.suspend(() =>
    Effect.map(this.engine.store.clock.now, (now) =>
      this.#steps.next(
        Iterable.map(
          this.#active,
          ([id, { execution: { run } }]) => ({ id, steps: run?.executingSteps.values() ?? [] })
        ),
        now
      ))
  )

  /** Stores the steps that run, if they have changed. With a lease, its renewal does. */
  readonly #reportSteps: Effect.Effect<void, TaskError> = Effect.flatMap(
    this.#nextReport,
    (report) =>
      report === undefined
        ? Effect.void
        : Effect.map(this.engine.store.reportSteps(this.#id, report), () => this.#steps.noteStored(report))
  )

  /** Records a step that has ended. One that has blocked the event loop ends before the event loop renews the lease. */
  noteStepEnd(tool: string, step: string): void {
    if (this.#now - this.#renewalDue > maxStallMs && this.#lateSteps.size < maxLateSteps) {
      this.#lateSteps.add(`${tool}: ${step}`)
    }
  }

  /** The event loop was blocked: other workers may have taken the tasks of this one. */
  #reportStall(milliseconds: number): Effect.Effect<void> {
    const executingNow = [...this.#active.values()].flatMap(({ execution: { run } }) =>
      run === undefined ? [] : [...run.executingSteps.values()].map(({ name }) => `${run.task.tool}: ${name}`)
    )
    const steps = [...this.#lateSteps, ...executingNow]
    this.engine.observer?.metrics?.stalled(milliseconds)
    const executing = steps.length === 0 ? "" : `; steps of this time: ${steps.slice(0, maxLateSteps).join(", ")}`
    return Effect.logWarning(`the event loop was blocked for ${Math.round(milliseconds)} ms${executing}`)
  }

  /**
   * Compares the claims of this worker with its runs. A signal may have been lost, and so may the response to a claim, or
   * in the database the claim itself.
   */
  readonly #checkClaims: Effect.Effect<void, TaskError> = Effect.suspend(() => {
    const workerId = this.#id
    return Effect.flatMap(this.engine.store.findSignals(workerId), (found) => {
      const unknown = new Set<string>()
      for (const [id, signals] of found) {
        const execution = this.#active.get(id)?.execution
        if (execution === undefined) unknown.add(id)
        else if (execution.signals !== signals) this.#onSignal(id)
      }
      for (const id of this.#active.keys()) if (!found.has(id)) this.#onSignal(id)
      const lost = [...unknown].filter((id) => this.#unknownClaims.has(id))
      this.#unknownClaims = unknown
      return Effect.forEach(lost, (id) => this.engine.store.release(id, workerId), { discard: true })
    })
  })

  /** Ends all runs, and lets other workers continue the tasks. */
  readonly #stop: Effect.Effect<void> = Effect.suspend(() => {
    this.#isStopping = true
    const { shutdownTimeout } = this.options
    const fibers = [...this.#active.values()].flatMap(({ execution, fiber }) => {
      execution.run?.end("stopped")
      return fiber === undefined ? [] : [fiber]
    })
    const ended = Effect.andThen(
      Effect.forEach(fibers, Fiber.interrupt, { concurrency: "unbounded", discard: true }),
      Fiber.awaitAll(fibers)
    )
    const farewell = Effect.andThen(
      this.engine.store.releaseAll(this.#id),
      this.engine.store.unregister(this.#id)
    )
    return Effect.ignoreCause(Effect.timeout(Effect.interruptible(ended), shutdownTimeout)).pipe(
      Effect.andThen(this.#stopped.open),
      Effect.andThen(Effect.ignoreCause(Effect.timeout(Effect.interruptible(farewell), farewellMs)))
    )
  })
}
