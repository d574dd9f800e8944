/**
 * The task engine: a store of tasks, and one execution of one workflow for each task. The store decides the status of a
 * task; the workflow engine decides where and when its handler runs.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as EntityId from "effect/cluster/EntityId"
import { MessageStorage } from "effect/cluster/MessageStorage"
import { Sharding } from "effect/cluster/Sharding"
import { Digest } from "effect/crypto/Digest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { type Options as PublicOptions, TaskEngine } from "../../TaskEngine.ts"
import type { TaskError } from "../../TaskError.ts"
import { isFinal, type State } from "../../TaskState.ts"
import { indexMessages } from "../store/migrations.ts"
import * as sqlStore from "../store/sqlStore.ts"
import { TaskStore } from "../store/store.ts"
import { makeExecuteActivity, makeRank } from "./activities.ts"
import * as cluster from "./cluster.ts"
import { awaitStore, type EngineContext, moveCheckMs } from "./engineContext.ts"
import { runExecution } from "./execution.ts"
import { makeFindExecutions } from "./executionStates.ts"
import { makeReadHistory } from "./history.ts"
import { ensureInterrupted, interruptExecution } from "./interruptExecution.ts"
import { type Pools, singlePool } from "./pools.ts"
import { ExpiryAlarm, removeExpired, sweep } from "./sweeper.ts"
import { UnrecordedSteps } from "./unrecordedSteps.ts"
import { Workers } from "./workers.ts"
import { abandonRun, answerSignal, defaultShardGroup, shardGroupOf, TaskRun } from "./workflow.ts"

/** The options of an engine on a store and a cluster. Times are in milliseconds. */
export interface Options extends ReturnType<typeof resolveOptions> {
  /** The shard groups whose tasks this process runs; none for a process that runs no tasks. */
  readonly groups: ReadonlyArray<string>
  readonly pools: Pools
  /** Whether no other process uses the store. */
  readonly singleProcess: boolean
}

/** The public options with their defaults, in milliseconds. */
export const resolveOptions = (options: PublicOptions) => ({
  pollInterval: Duration.toMillis(options.pollInterval ?? 500),
  progressInterval: Duration.toMillis(options.progressInterval ?? 100),
  undoTimeout: Duration.toMillis(options.undoTimeout ?? "1 hour"),
  sweepInterval: Duration.toMillis(options.sweepInterval ?? "1 minute"),
  interruptTimeout: Duration.toMillis(options.interruptTimeout ?? "2 seconds")
})

/** Milliseconds until a task expires after `expireSoon`. */
const expireSoonMs = 10_000

/** Milliseconds for which ended executions are collected, to mark them in one statement. */
const settleDelayMs = 200

/**
 * Milliseconds between two checks for tasks that other processes left, at most: alone in the store, and with other
 * processes.
 */
const maxSweepPauseMs = { alone: 60_000, shared: 10_000 }

type TaskRef = Pick<State, "id" | "pool">

const make = (options: Options) =>
  Effect.gen(function*() {
    const store = yield* TaskStore
    const workflowEngine = yield* WorkflowEngine
    const storage = yield* MessageStorage
    const sharding = yield* Sharding
    const sql = yield* SqlClient.SqlClient
    const digest = yield* Digest
    const scope = yield* Effect.scope

    const ended: Array<string> = []
    const hasEnded = Latch.makeUnsafe()
    const settle = Effect.suspend(() => {
      const ids = ended.splice(0)
      hasEnded.closeUnsafe()
      return ids.length === 0 ? Effect.void : awaitStore(store.settle(ids))
    })
    yield* Effect.addFinalizer(() => Effect.ignoreCause(Effect.timeout(settle, "1 second")))
    yield* Effect.forkScoped(Effect.forever(hasEnded.await.pipe(
      Effect.andThen(Effect.sleep(settleDelayMs)),
      Effect.andThen(settle)
    )))

    const closing = Latch.makeUnsafe()
    const engine: EngineContext = {
      store,
      workflowEngine,
      executeActivity: makeExecuteActivity(workflowEngine, storage, sharding),
      sql,
      digest,
      workers: new Workers(
        (execution) => Effect.asVoid(Effect.forkIn(workflowEngine.resume(TaskRun, execution), scope)),
        options.interruptTimeout
      ),
      unrecordedSteps: new UnrecordedSteps(),
      closing: Effect.andThen(closing.await, abandonOnShutdown(sharding)),
      ownsExecution: (execution) =>
        sharding.hasShardId(sharding.getShardId(EntityId.make(execution), shardGroupOf(execution))),
      readHistory: makeReadHistory(sql),
      rank: makeRank(storage),
      pools: options.pools,
      settleSoon: (id) => {
        ended.push(id)
        hasEnded.openUnsafe()
      },
      progressInterval: options.progressInterval,
      pollInterval: options.pollInterval
    }

    if (!options.singleProcess) {
      const moveRuns = Effect.sync(() => {
        for (const run of engine.workers.activeRuns) run.move()
      })
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(moveCheckMs), moveRuns)))
    }

    // A process that runs no tasks registers the workflow as well: without it, it could not address messages to
    // executions.
    yield* workflowEngine.register(TaskRun, ({ taskId }, execution) => runExecution(engine, taskId, execution))
    yield* indexMessages()
    // This finalizer runs just before the cluster interrupts the runs.
    yield* Effect.addFinalizer(() => closing.open)

    const { sweepInterval, undoTimeout } = options
    const expiryAlarm = new ExpiryAlarm()
    const sweeper = {
      engine,
      storage,
      sharding,
      findExecutions: makeFindExecutions(sql),
      interval: sweepInterval,
      maxInterval: options.singleProcess ? maxSweepPauseMs.alone : maxSweepPauseMs.shared,
      expiryAlarm,
      undoTimeout
    }
    for (const shardGroup of options.groups) {
      yield* sharding.registerSingleton(`skein/tasks/sweep/${shardGroup}`, sweep(sweeper, shardGroup), { shardGroup })
    }
    if (options.groups.length === 0) yield* Effect.forkScoped(removeExpired(sweeper, sweepInterval))

    /** Polls after the current transaction is committed: the messages that it writes are visible only then. */
    const pollAfterCommit = sql.afterCommit(sharding.pollStorage)
    const startExecution = (task: TaskRef) =>
      Effect.flatMap(options.pools.executionOf(task), (executionId) =>
        Effect.andThen(
          workflowEngine.execute(TaskRun, { executionId, payload: { taskId: task.id }, discard: true }),
          pollAfterCommit
        ))
    const signalAnswer = (task: TaskRef, key: string) =>
      Effect.flatMap(options.pools.executionOf(task), (executionId) => {
        const deferred = answerSignal(key)
        const { _tag: workflowName } = TaskRun
        return Effect.andThen(
          workflowEngine.deferredDone(deferred, {
            workflowName,
            executionId,
            deferredName: deferred.name,
            exit: Exit.void
          }),
          pollAfterCommit
        )
      })
    const interruptTask = (task: TaskRef) =>
      Effect.flatMap(options.pools.executionOf(task), (execution) =>
        Effect.andThen(
          interruptExecution(workflowEngine, execution),
          Effect.asVoid(Effect.forkIn(ensureInterrupted(workflowEngine, execution), scope))
        ))

    return TaskEngine.of({
      submit: (task) =>
        // Looks up the pool before the transaction of the insert, which a second transaction would have to wait for.
        Effect.andThen(options.pools.executionOf({ id: "", pool: task.pool }), store.insert(task, startExecution)).pipe(
          Effect.tap(({ createdAt, ttlMs }) =>
            Effect.sync(() => ttlMs === null ? undefined : expiryAlarm.wakeBefore(createdAt + ttlMs))
          )
        ),
      get: store.get,
      list: (owners, { after, limit }) => store.list(owners, after, limit),
      cancel: (id, statusMessage) =>
        Effect.gen(function*() {
          if (!(yield* store.finish(id, { status: "cancelled", statusMessage }))) return false
          const task = yield* store.load(id)
          if (task !== undefined) yield* interruptTask(task)
          return true
        }),
      answer: (id, key, answer) => store.answer(id, key, answer, (task) => signalAnswer(task, key)),
      expireSoon: (id) =>
        Effect.map(store.expireWithin(id, expireSoonMs), (expiresAt) => expiryAlarm.wakeBefore(expiresAt)),
      watch: (id) => watch(store, id),
      runTasks: (handlers) => options.groups.length > 0 ? engine.workers.add(handlers) : Effect.void
    })
  })

/**
 * Abandons a run once the cluster has begun to shut down, which follows immediately. Before that, the workflow engine would
 * take the run for interrupted.
 */
const abandonOnShutdown = (sharding: Sharding["Service"]): Effect.Effect<never> =>
  Effect.flatMap(
    sharding.isShutdown,
    (isShutdown) => isShutdown ? abandonRun : Effect.andThen(Effect.yieldNow, abandonOnShutdown(sharding))
  )

/** The engine on a store and a cluster. */
export const layer = (options: Options) => Layer.effect(TaskEngine, make(options))

/** The engine of a single process, on a database that no other process uses. */
export const layerSingle = (options: PublicOptions): Layer.Layer<TaskEngine, TaskError, SqlClient.SqlClient> => {
  const resolved = resolveOptions(options)
  return layer({ groups: [defaultShardGroup], pools: singlePool, singleProcess: true, ...resolved }).pipe(
    Layer.provide([sqlStore.layer(), cluster.layerSingle(resolved)]),
    Layer.provide(NodeCrypto.layerDigest)
  )
}

/**
 * The states of a task: the current one, and the latest after each notification, until a final one or until the task is
 * deleted.
 */
const watch = (store: TaskStore["Service"], id: string): Stream.Stream<State, TaskError> =>
  Stream.unwrap(Effect.gen(function*() {
    const changed = Latch.makeUnsafe(true)
    yield* store.listen(id, () => changed.openUnsafe())
    const current = Effect.suspend(() => {
      changed.closeUnsafe()
      return store.get(id)
    })
    /** The next state with another version. */
    const after = (version: number): Effect.Effect<State | undefined, TaskError> =>
      Effect.flatMap(
        Effect.andThen(changed.await, current),
        (state) => state?.version === version ? after(version) : Effect.succeed(state)
      )
    const states = Stream.unfold(
      -1,
      (version) =>
        Effect.map(after(version), (state) => state === undefined ? undefined : [state, state.version] as const)
    )
    return Stream.takeUntil(states, isFinal)
  }))
