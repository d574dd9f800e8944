/**
 * The task engine: a store of tasks, and a worker that runs them. The store decides the status of a task.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { resolve, type Resolved } from "@skein/runtime/Options"
import { Digest } from "effect/crypto/Digest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { TaskAdmin } from "../../TaskAdmin.ts"
import { TaskSchedules } from "../../TaskSchedules.ts"
import { type Options as PublicOptions, TaskEngine } from "../../TaskEngine.ts"
import type { TaskError } from "../../TaskError.ts"
import { isFinal, type NewTask, type Pace, type PaceLimits, type State } from "../../TaskState.ts"
import { TaskBounds, toPageSize } from "../base/bounds.ts"
import { invalidOption } from "../store/database.ts"
import * as sqlStore from "../store/sqlStore.ts"
import { CurrentTaskAlerts, makeQueueAlerts } from "../telemetry/alertSink.ts"
import { CurrentTaskObserver } from "../telemetry/taskObserver.ts"
import { TaskStore } from "../store/store.ts"
import { makeAdmin } from "./admin.ts"
import { Alarm } from "./alarm.ts"
import { ClockCheck } from "./clockCheck.ts"
import { checkAddedHandlers, checkCode } from "./codeCheck.ts"
import { CodeChanges } from "./codeChanges.ts"
import { type EngineContext, fingerprint } from "./engineContext.ts"
import { HandlerRegistry } from "./handlerRegistry.ts"
import { followOutput, readOutput } from "./output.ts"
import { checkDeployment, poolsOf } from "./pinning.ts"
import { queryTask } from "./queries.ts"
import { makeSchedules } from "./schedules.ts"
import { makeStoreOutage } from "./storeOutage.ts"
import { removeExpired } from "./sweeper.ts"
import { forkLoop, Worker, type WorkerOptions } from "./worker.ts"

/** The options of an engine on a store. Times are in milliseconds. */
export interface Options extends Resolved<PublicOptions>, WorkerOptions {
  /** Whether this process runs tasks. */
  readonly runsTasks: boolean
  /** The deployment of this worker: see `PostgresTasks.Options`. */
  readonly deployment?: string | undefined
}

/** Milliseconds of the longest timer of the runtime, 24 days. */
const maxTimerMs = 2 ** 31 - 1

/** The public options with their defaults, in milliseconds. */
export const resolveOptions = (options: PublicOptions): Resolved<PublicOptions> =>
  resolve(
    options,
    { concurrency: 1000, maxAttempts: 5, checkCode: true, application: "" },
    { pollInterval: "500 millis", undoTimeout: "1 hour", shutdownTimeout: "2 seconds" }
  )

/** The bounds of the options. Times are in milliseconds. */
const optionBounds: ReadonlyArray<readonly [option: keyof Options, name: string, least: number, most: number]> = [
  ["concurrency", "concurrency", 1, Infinity],
  ["maxAttempts", "maxAttempts", 1, Infinity],
  ["pollInterval", "pollInterval", 1, maxTimerMs],
  ["shutdownTimeout", "shutdownTimeout", 0, maxTimerMs],
  ["undoTimeout", "undoTimeout", 0, Infinity],
  ["leaseMs", "leaseTimeout", 100, maxTimerMs]
]

/** Fails with the first option outside its bounds. */
const checkOptions = (options: Options): Effect.Effect<void, TaskError> =>
  Effect.forEach(optionBounds, ([option, name, least, most]) => {
    const value = options[option] ?? least
    if (typeof value === "number" && value >= least && value <= most) return Effect.void
    const message = `${name} is ${String(value)}: it must be at least ${least}${
      most < Infinity ? `, and at most ${most}` : ""
    }`
    return Effect.fail(invalidOption(message))
  }, { discard: true })

/** Fails for limits of a tool out of bounds. */
const checkPace = (tool: string, pace: Pace = {}): Effect.Effect<void, TaskError> => {
  const numbersOf = (prefix: string, { concurrency = 1, rate }: PaceLimits = {}) =>
    [
      [`${prefix}concurrency`, concurrency],
      [`${prefix}rate.limit`, rate?.limit ?? 1],
      [`${prefix}rate.period`, Math.ceil(rate?.periodMs ?? 1)]
    ] as const
  const numbers = [...numbersOf("", pace), ...numbersOf("perKey.", pace.perKey)]
  const wrong = numbers.find(([, value]) => !Number.isSafeInteger(value) || value < 1 || value > maxTimerMs)
  if (wrong === undefined) return Effect.void
  const [name, value] = wrong
  const message = `${name} of ${tool} is ${value}: it must be a whole number from 1 to ${maxTimerMs}`
  return Effect.fail(invalidOption(message))
}

const isSameLimits = (some: PaceLimits = {}, other: PaceLimits = {}): boolean =>
  some.concurrency === other.concurrency && some.rate?.limit === other.rate?.limit &&
  some.rate?.periodMs === other.rate?.periodMs

const isSamePace = (some: Pace = {}, other: Pace = {}): boolean =>
  isSameLimits(some, other) && isSameLimits(some.perKey, other.perKey) &&
  (some.perKey === undefined) === (other.perKey === undefined)

/** Sets limits of tools, except those that are set already. */
const setPaces = Effect.fnUntraced(function*(
  { tools }: TaskStore["Service"],
  paces: ReadonlyMap<string, Pace | undefined>
): Effect.fn.Return<void, TaskError> {
  for (const [tool, pace] of paces) yield* checkPace(tool, pace)
  const known = new Map((yield* tools.list).map((state) => [state.tool, state]))
  for (const [tool, pace] of paces) if (!isSamePace(known.get(tool), pace)) yield* tools.pace(tool, pace)
})

/** Milliseconds until a task expires after `expireSoon`. */
const expireSoonMs = 10_000

/** Milliseconds between two checks for expired tasks, at most: alone in the store, and with other processes. */
const maxExpiryPauseMs = { alone: 60_000, shared: 10_000 }

const make = Effect.fnUntraced(function*(options: Options) {
  yield* checkOptions(options)
  yield* checkDeployment(options.deployment)
  const bounds = yield* TaskBounds
  const store = yield* TaskStore
  const sql = yield* SqlClient.SqlClient
  const digest = yield* Digest
  const observer = yield* CurrentTaskObserver
  const alerts = yield* CurrentTaskAlerts
  const metrics = observer?.metrics
  const engine: EngineContext = {
    observer,
    alerts,
    store,
    sql,
    digest,
    handlers: new HandlerRegistry({
      onAdded: Effect.fnUntraced(function*(waiting) {
        worker.lookForTasks(true)
        if (waiting.length === 0) return
        yield* Effect.ignoreCause(store.wakeTasks(waiting))
        worker.lookForTasks()
      }),
      shutdownTimeout: options.shutdownTimeout
    }),
    startChild: (link, task) => startChild(link, task),
    holdsLease: () => worker.holdsLease(),
    renewLease: Effect.suspend(() => worker.renewLease),
    noteStepEnd: (tool, step) => worker.noteStepEnd(tool, step),
    progressInterval: bounds.progressInterval,
    heartbeatInterval: bounds.heartbeatInterval,
    codeChanges: new CodeChanges(),
    deployment: options.pools === undefined ? undefined : options.deployment ?? null,
    maxAttempts: options.maxAttempts
  }
  const outage = makeStoreOutage(metrics)
  const clockCheck = new ClockCheck({ store })
  const worker = new Worker({ engine, outage, clockCheck, options })
  if (options.runsTasks) yield* worker.start
  const { pools } = options
  if (options.runsTasks && options.checkCode) {
    const { maxCheckedTasks: maxTasks, maxCheckedTasksPerTool: maxTasksPerTool } = bounds
    const createdBefore = yield* store.clock.now
    const checked = checkCode(store, engine, { pools, createdBefore, maxTasks, maxTasksPerTool })
    yield* forkLoop(checkAddedHandlers(engine.handlers, outage.guard(checked)))
  }

  if (metrics !== undefined) {
    metrics.begin()
    yield* metrics.reportRunning(() => worker.running)
    const read = Effect.suspend(() => metrics.isRead() ? outage.guard(store.admin.queueCounts) : Effect.undefined)
    const report = Effect.map(read, (counts) => counts && metrics.queue(counts))
    if (observer?.readsQueue === true) {
      yield* forkLoop(Effect.andThen(Effect.sleep(bounds.queueInterval), report))
    }
  }

  if (alerts?.queueOlderThan !== undefined) {
    const check = makeQueueAlerts(alerts, alerts.queueOlderThan)
    const counted = Effect.zip(outage.guard(store.admin.queueCounts), store.clock.now)
    const checked = Effect.map(counted, ([counts, now]) => counts && check(counts, now))
    yield* forkLoop(Effect.andThen(Effect.sleep(bounds.queueInterval), checked))
  }

  const expiryAlarm = new Alarm({ now: store.clock.now })
  const { leaseMs, undoTimeout } = options
  const maxInterval = leaseMs === undefined ? maxExpiryPauseMs.alone : maxExpiryPauseMs.shared
  yield* forkLoop(removeExpired({ store, expiryAlarm, outage, clockCheck, undoTimeout, maxInterval }))

  /** The worker that runs a new task at once, if this process can, and what follows its creation. */
  const beginning = ({ args, pool, tool }: NewTask) => {
    const workerId = options.runsTasks ? worker.reserve(tool, pool) : undefined
    const started = (state: State, isClaimed: boolean) =>
      workerId === undefined || !isClaimed
        ? Effect.void
        : sql.afterCommit(Effect.sync(() => worker.runNew(state, args, workerId)))
    return { workerId, started }
  }
  const noteExpiry = ({ createdAt, ttlMs }: State) =>
    Effect.sync(() => ttlMs === null ? undefined : expiryAlarm.wakeBefore(createdAt + ttlMs))
  const submit = (task: NewTask): Effect.Effect<State, TaskError> =>
    Effect.suspend(() => {
      const { started, workerId } = beginning(task)
      const { client, owner } = task
      const counted = owner !== null || client === undefined
        ? Effect.succeed(task)
        : Effect.map(fingerprint(engine, client), (digest) => ({ ...task, client: digest }))
      return Effect.tap(Effect.flatMap(counted, (task) => store.insert(task, workerId, started)), noteExpiry)
    })
  const startChild: EngineContext["startChild"] = (link, task) =>
    Effect.suspend(() => {
      const { started, workerId } = beginning(task)
      return store.insertChild(link, task, workerId, (state, isClaimed) =>
        Effect.andThen(started(state, isClaimed), noteExpiry(state)))
    })
  const schedules = makeSchedules({ store, outage, clockCheck, submit })
  yield* forkLoop(schedules.loop)

  const taskEngine = TaskEngine.of({
    submit,
    get: store.get,
    list: (owners, { after, limit }) => store.list(owners, after, limit),
    cancel: (id, statusMessage) => store.finish(id, { status: "cancelled", statusMessage }),
    answer: store.answer,
    questionsFor: (addresses, { limit } = {}) => store.findAddressed(addresses, toPageSize(limit)),
    send: store.send,
    sendAll: store.sendAll,
    query: (id, name, args) => queryTask(engine, id, name, args),
    expireSoon: (id) =>
      Effect.map(store.expireWithin(id, expireSoonMs), (expiresAt) => expiryAlarm.wakeBefore(expiresAt)),
    watch: (id) => watch(store, id),
    readOutput: (id, options) => readOutput(store, id, options),
    followOutput: (id, options) => followOutput(store, id, options),
    pace: (paces) => setPaces(store, paces),
    runTasks: (handlers, { tools } = {}) => {
      metrics?.begin(tools)
      return engine.handlers.add(handlers)
    }
  })
  return Context.make(TaskEngine, taskEngine).pipe(
    Context.add(TaskAdmin, makeAdmin(store, engine, pools)),
    Context.add(TaskSchedules, schedules.service)
  )
})

/** The engine on a store, its schedules, and the service of an operator. */
export const layer = (options: Options) => Layer.effectContext(make(options))

/** The services of an operator beside the processes of a database: they run no tasks, and change no tables. */
export const layerAdmin: Layer.Layer<TaskAdmin | TaskSchedules, TaskError, SqlClient.SqlClient> = Layer.provide(
  Layer.effectContext(Effect.map(TaskStore, (store) => {
    const schedules = makeSchedules({
      store,
      outage: makeStoreOutage(),
      clockCheck: new ClockCheck({ store }),
      submit: (task) => store.insert(task, undefined, () => Effect.void)
    })
    return Context.make(TaskAdmin, makeAdmin(store)).pipe(Context.add(TaskSchedules, schedules.service))
  })),
  sqlStore.layerBeside
)

/** The options of an engine on PostgreSQL. */
interface SharedOptions extends PublicOptions, Pick<Options, "host" | "pid"> {
  readonly runTasks?: boolean | undefined
  readonly pools?: ReadonlyArray<string> | undefined
  readonly deployment?: string | undefined
  readonly migrate?: boolean | undefined
  readonly leaseMs: number
}

/** The engine of a process among others, on PostgreSQL. */
export const layerShared = (
  { deployment, host, leaseMs, migrate, pid, pools = ["default"], runTasks: runsTasks = true, ...options }:
    SharedOptions,
  client: sqlStore.ListeningClient
): Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, TaskError, SqlClient.SqlClient> =>
  layer({
    ...{ runsTasks, pools: poolsOf(pools, deployment), deployment, host, pid, leaseMs, hasFile: false },
    ...resolveOptions(options)
  }).pipe(
    Layer.provide([sqlStore.layerListening(client, migrate), NodeCrypto.layerDigest])
  )

/** The engine of a process that shares a SQLite file with others. Any of them runs the tasks of any pool. */
export const layerBetween = (
  { host, leaseMs, migrate, pid, ...options }:
    & PublicOptions
    & Pick<SharedOptions, "host" | "leaseMs" | "migrate" | "pid">,
  carrier: sqlStore.Carrier
): Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, TaskError, SqlClient.SqlClient> =>
  layer({ runsTasks: true, pools: undefined, host, pid, leaseMs, hasFile: true, ...resolveOptions(options) }).pipe(
    Layer.provide([sqlStore.layerBetween(carrier, migrate), NodeCrypto.layerDigest])
  )

/** The engine of a single process, on a database that no other process uses. */
export const layerSingle = (
  { host, pid, ...options }: PublicOptions & Pick<Options, "host" | "pid">,
  migrates = true
): Layer.Layer<TaskEngine | TaskAdmin | TaskSchedules, TaskError, SqlClient.SqlClient> =>
  layer({ runsTasks: true, pools: undefined, host, pid, leaseMs: undefined, hasFile: true, ...resolveOptions(options) })
    .pipe(
      Layer.provide([sqlStore.layer(migrates), NodeCrypto.layerDigest])
    )

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
