/**
 * The engine: the table, and beside it the executions of the one workflow.
 */
import * as EntityId from "effect/cluster/EntityId"
import { MessageStorage } from "effect/cluster/MessageStorage"
import { Sharding } from "effect/cluster/Sharding"
import { Digest } from "effect/crypto/Digest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { TaskEngine } from "../../TaskEngine.ts"
import { isFinal, type State } from "../../TaskState.ts"
import { Acted } from "./pendingCompensations.ts"
import * as activities from "./activities.ts"
import { body } from "./execution.ts"
import * as executions from "./executions.ts"
import * as history from "./history.ts"
import { type Host, moving, patiently } from "./engineContext.ts"
import { interrupt, seeThrough } from "./interrupting.ts"
import { indexMessages } from "../store/migrations.ts"
import type { Pools } from "./pools.ts"
import { TaskStore } from "../store/store.ts"
import { Alarm, forget, sweep } from "./sweeper.ts"
import { Workers } from "./workers.ts"
import { abandoned, answered, groupOf, TaskRun } from "./workflow.ts"

/** How an engine is made. */
export interface Options {
  /** The shard groups whose tasks this process runs; none where it does no work. */
  readonly groups: ReadonlyArray<string>
  readonly pools: Pools
  readonly progressInterval: number
  readonly pollInterval: number
  readonly sweepInterval: number
  readonly undoGrace: number
  /** Whether no other process has the store. */
  readonly alone: boolean
  readonly terminationTimeout: Duration.Input
}

/** Milliseconds that a task is kept that is to be forgotten. */
const lapsing = 10_000

/** Milliseconds for which ends are gathered that the sweep is told of together. */
const gathering = 200

const make = (options: Options) =>
  Effect.gen(function*() {
    const store = yield* TaskStore
    const engine = yield* WorkflowEngine
    const storage = yield* MessageStorage
    const sharding = yield* Sharding
    const scope = yield* Effect.scope

    const over: Array<string> = []
    const told = Latch.makeUnsafe()
    const settle = Effect.suspend(() => {
      const ids = over.splice(0)
      told.closeUnsafe()
      return ids.length === 0 ? Effect.void : patiently(store.settle(ids))
    })
    yield* Effect.addFinalizer(() => Effect.ignoreCause(Effect.timeout(settle, "1 second")))
    yield* Effect.forkScoped(Effect.forever(told.await.pipe(
      Effect.andThen(Effect.sleep(gathering)),
      Effect.andThen(settle)
    )))

    const closing = Latch.makeUnsafe()
    const host: Host = {
      store,
      engine,
      execute: activities.make(engine, storage, sharding),
      sql: yield* SqlClient.SqlClient,
      digest: yield* Digest,
      workers: new Workers(
        (execution) => Effect.asVoid(Effect.forkIn(engine.resume(TaskRun, execution), scope)),
        options.terminationTimeout
      ),
      acted: new Acted(),
      closing: Effect.andThen(closing.await, abandon(sharding)),
      holds: (execution) => sharding.hasShardId(sharding.getShardId(EntityId.make(execution), groupOf(execution))),
      past: history.make(yield* SqlClient.SqlClient),
      rank: activities.rank(storage),
      pools: options.pools,
      settle: (id) => {
        over.push(id)
        told.openUnsafe()
      },
      progressInterval: options.progressInterval,
      pollInterval: options.pollInterval
    }

    const move = Effect.sync(() => {
      for (const tenant of host.workers.tenants) tenant.move()
    })
    if (!options.alone) yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(moving), move)))

    // A process that does no work knows the workflow as well: else it could not say where its messages go.
    yield* engine.register(TaskRun, ({ taskId }, execution) => body(host, taskId, execution))
    yield* indexMessages()
    // Runs just before the cluster begins to end what runs.
    yield* Effect.addFinalizer(() => closing.open)
    const { sweepInterval: interval, undoGrace } = options
    const longest = options.alone ? 60_000 : 10_000
    const alarm = new Alarm()
    const found = executions.make(host.sql)
    const sweeping = { host, storage, sharding, executions: found, interval, longest, alarm, undoGrace }
    for (const shardGroup of options.groups) {
      yield* sharding.registerSingleton(`skein/tasks/sweep/${shardGroup}`, sweep(sweeping, shardGroup), { shardGroup })
    }
    if (options.groups.length === 0) yield* Effect.forkScoped(forget(sweeping, interval))

    /** What is written in a transaction is there when it is committed: then the cluster looks. */
    const soon = host.sql.afterCommit(sharding.pollStorage)
    const begin = (task: { readonly id: string; readonly pool: string }) =>
      Effect.flatMap(host.pools.executionOf(task), (executionId) =>
        Effect.andThen(engine.execute(TaskRun, { executionId, payload: { taskId: task.id }, discard: true }), soon))
    const tell = (task: { readonly id: string; readonly pool: string }, key: string) =>
      Effect.flatMap(host.pools.executionOf(task), (executionId) => {
        const deferred = answered(key)
        const deferredName = deferred.name
        const { _tag: workflowName } = TaskRun
        const telling = engine.deferredDone(deferred, { workflowName, executionId, deferredName, exit: Exit.void })
        return Effect.andThen(telling, soon)
      })
    const interrupted = (task: { readonly id: string; readonly pool: string } | undefined) =>
      task === undefined
        ? Effect.void
        : Effect.flatMap(host.pools.executionOf(task), (execution) =>
          Effect.andThen(
            interrupt(engine, execution),
            Effect.asVoid(Effect.forkIn(seeThrough(engine, execution), scope))
          ))

    return TaskEngine.of({
      // The pool is known before the transaction begins, which would have to wait for another one otherwise.
      submit: (task) =>
        Effect.tap(
          Effect.andThen(host.pools.executionOf({ id: "", pool: task.pool }), store.insert(task, begin)),
          ({ createdAt, ttl }) =>
            Effect.sync(() =>
              ttl === null ? undefined : alarm.expires(createdAt + ttl)
            )
        ),
      get: store.state,
      list: (owners, { after, limit }) => store.list(owners, after, limit),
      cancel: (id, message) =>
        Effect.flatMap(store.finish(id, { status: "cancelled", message }), (done) =>
          done
            ? Effect.as(Effect.flatMap(store.work(id), interrupted), true)
            : Effect.succeed(false)),
      answer: (id, key, answer) => store.answer(id, key, answer, (task) => tell(task, key)),
      forget: (id) => Effect.flatMap(store.lapse(id, lapsing), (at) => Effect.sync(() => alarm.expires(at))),
      watch: (id) => watch(store, id),
      work: (handlers) => options.groups.length > 0 ? host.workers.add(handlers) : Effect.void
    })
  })

/** The engine takes a run for abandoned, and not for interrupted, once it shuts down: which is at once. */
const abandon = (sharding: Sharding["Service"]): Effect.Effect<never> =>
  Effect.flatMap(
    sharding.isShutdown,
    (gone) => gone ? abandoned : Effect.andThen(Effect.yieldNow, abandon(sharding))
  )

/** The engine on a store and a cluster. */
export const layer = (options: Options) => Layer.effect(TaskEngine, make(options))

const watch: (store: TaskStore["Service"], id: string) => ReturnType<TaskEngine["Service"]["watch"]> = (store, id) =>
  Stream.unwrap(Effect.gen(function*() {
    const changed = Latch.makeUnsafe(true)
    yield* store.listen(id, () => changed.openUnsafe())
    let version = -1
    let over = false
    const next: Effect.Effect<State | undefined, TaskErrorOf<typeof store>> = Effect.gen(function*() {
      while (!over) {
        yield* changed.await
        changed.closeUnsafe()
        const state = yield* store.state(id)
        if (state === undefined) return undefined
        if (state.version === version) continue
        version = state.version
        over = isFinal(state)
        return state
      }
      return undefined
    })
    return Stream.unfold(
      undefined,
      () => Effect.map(next, (state) => state === undefined ? undefined : [state, undefined] as const)
    )
  }))

type TaskErrorOf<S extends TaskStore["Service"]> = Effect.Error<ReturnType<S["state"]>>
