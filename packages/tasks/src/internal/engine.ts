/**
 * The engine: the table, and beside it the executions of the one workflow.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
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
import { TaskEngine } from "../TaskEngine.ts"
import { isFinal, type State } from "../TaskState.ts"
import { body } from "./body.ts"
import { type Host, patiently } from "./host.ts"
import { indexMessages } from "./migrations.ts"
import { TaskStore } from "./store.ts"
import { sweep } from "./sweep.ts"
import { Workers } from "./workers.ts"
import { answered, executionId, TaskRun } from "./workflow.ts"

/** How an engine is made. */
export interface Options {
  /** Whether this process runs tasks. */
  readonly work: boolean
  /** Whether other processes may run what this one submits: then they are told once more after the commit. */
  readonly shared: boolean
  readonly progressInterval: number
  readonly pollInterval: number
  readonly sweepInterval: number
  readonly terminationTimeout: Duration.Input
}

/** Milliseconds for which ends are gathered that the sweep is told of together. */
const gathering = 200

const make = (options: Options) =>
  Effect.gen(function*() {
    const store = yield* TaskStore
    const engine = yield* WorkflowEngine
    const storage = yield* MessageStorage
    const sharding = yield* Sharding
    const scope = yield* Effect.scope
    yield* indexMessages()

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
      sql: yield* SqlClient.SqlClient,
      digest: yield* Digest,
      workers: new Workers(
        (execution) => Effect.asVoid(Effect.forkIn(engine.resume(TaskRun, execution), scope)),
        options.terminationTimeout
      ),
      closing: Effect.andThen(closing.await, abandon(sharding)),
      settle: (id) => {
        over.push(id)
        told.openUnsafe()
      },
      progressInterval: options.progressInterval,
      pollInterval: options.pollInterval
    }

    // A process that does no work knows the workflow as well: else it could not say where its messages go.
    yield* engine.register(TaskRun, ({ taskId }, execution) => body(host, taskId, execution))
    // Runs just before the cluster begins to end what runs.
    yield* Effect.addFinalizer(() => closing.open)
    if (options.work) {
      const interval = options.sweepInterval
      yield* sharding.registerSingleton("skein/tasks/sweep", sweep({ host, storage, interval }))
    }

    const begin = (task: { readonly id: string; readonly pool: string }) =>
      engine.execute(TaskRun, { executionId: executionId(task), payload: { taskId: task.id }, discard: true })
    const tell = (task: { readonly id: string; readonly pool: string }, key: string) => {
      const deferred = answered(key)
      return engine.deferredDone(deferred, {
        workflowName: TaskRun._tag,
        executionId: executionId(task),
        deferredName: deferred.name,
        exit: Exit.void
      })
    }

    return TaskEngine.of({
      submit: (task) => {
        const inserted = store.insert(task, begin)
        return options.shared ? Effect.tap(inserted, begin) : inserted
      },
      get: store.state,
      list: (owners, { after, limit }) => store.list(owners, after, limit),
      cancel: (id, message) =>
        Effect.flatMap(store.finish(id, { status: "cancelled", message }), (done) =>
          done
            ? Effect.flatMap(store.work(id), (work) =>
              work === undefined
                ? Effect.succeed(true)
                : Effect.as(engine.interruptUnsafe(TaskRun, executionId(work)), true))
            : Effect.succeed(false)),
      answer: (id, key, answer) =>
        Effect.suspend(() => {
          let again: Effect.Effect<void> = Effect.void
          const then = (task: { readonly id: string; readonly pool: string }) => {
            const telling = tell(task, key)
            if (options.shared) again = telling
            return telling
          }
          return Effect.flatMap(
            store.answer(id, key, answer, then),
            (first) => first ? Effect.as(again, true) : Effect.succeed(false)
          )
        }),
      watch: (id) => watch(store, id),
      work: (handlers) => options.work ? host.workers.add(handlers) : Effect.void
    })
  })

/** The engine takes a run for abandoned, and not for interrupted, once it shuts down: which is at once. */
const abandon = (sharding: Sharding["Service"]): Effect.Effect<never> =>
  Effect.flatMap(
    sharding.isShutdown,
    (gone) => gone ? interrupted : Effect.andThen(Effect.yieldNow, abandon(sharding))
  )

const interrupted: Effect.Effect<never> = Effect.withFiber((fiber) => {
  fiber.interruptUnsafe(fiber.id, ClusterSchema.Abandon.annotation)
  return Effect.never
})

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
