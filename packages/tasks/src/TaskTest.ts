/**
 * Tasks in tests: an engine in memory whose time skips. Days of sleeps, retries and schedules take milliseconds, a test begins
 * at a date of its choice, and the process of the tasks can be restarted.
 *
 * Time skips while an effect of `run` waits, and in `untilIdle`: to the next end of a sleep in a handler, in a step, or in
 * the test, and to the times of schedules and expiries before it. It stands still otherwise, and while a step waits
 * for something outside of the process. A timer of JavaScript (`setTimeout`) is outside: it takes its time.
 *
 * @example
 * it.live("the dough rests for two hours", () =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const test = yield* TaskTest.make(Bakery, { startAt: "2026-03-27T06:00:00Z" })
 *     const task = yield* test.run(Effect.flatMap(TaskEngine, (engine) => engine.submit(newTask)))
 *     yield* test.untilIdle
 *     const ended = yield* test.run(Effect.flatMap(TaskEngine, (engine) => engine.get(task.id)))
 *     expect(ended?.status).toBe("completed")
 *   })))
 */
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { readFileSync } from "node:fs"
import { readExported } from "./internal/base/exported.ts"
import { invalidOption } from "./internal/store/database.ts"
import { SkippingClock } from "./internal/testing/skippingClock.ts"
import { layerEngine, TaskProcess } from "./internal/testing/taskProcess.ts"
import { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import type { TaskError } from "./TaskError.ts"
import type { ExportedTask, Replay } from "./TaskExport.ts"
import type { TaskSchedules } from "./TaskSchedules.ts"

/** The services of the engine. */
export type Services = TaskEngine.TaskEngine | TaskAdmin | TaskSchedules | SqlClient

/** The options of a test, and those of its engine. */
export interface Options extends TaskEngine.Options {
  /** The time at which the test begins: 1970-01-01T00:00:00Z by default. */
  readonly startAt?: DateTime.DateTime.Input | undefined
  /**
   * Whether each handler starts from its beginning after each event that it stores, as if its process had ended there: after
   * each step, retry, sleep, answer and `once`. `false` by default. A handler that passes a test only without it does
   * something between two steps that belongs in a step. Steps that execute meanwhile run again, as after a crash.
   * Transactional steps are left out.
   */
  readonly replayAfterEachEvent?: boolean | undefined
}

/** A process with tasks, under test. */
export interface TaskTest<S, E = never> {
  /**
   * Runs an effect with the services of the process, and lets the time skip while it waits, whatever it waits for.
   * `Effect.sleep` is how a test lets some time pass.
   *
   * @example
   * yield* test.run(Effect.sleep("2 days"))
   */
  readonly run: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, Exclude<R, S>>
  /**
   * Lets the time skip until no task continues without an event from outside: each has ended, or waits for an answer, an
   * event, a paused tool, or a handler. The timeout of a question and the end of a sleep come; further times of a schedule and the
   * expiry of a task do not. Does not end while a handler waits for something outside of the process. A client that polls a
   * task does not hold it up, as it does in `run`: each poll is a skip.
   */
  readonly untilIdle: Effect.Effect<void>
  /**
   * Ends the process as SIGTERM does, and starts another one with the same tasks. Services and clients of the earlier
   * process are of no use afterwards. Fails if the layer of the server fails.
   */
  readonly restart: Effect.Effect<void, E | TaskError>
}

/**
 * Starts a process: a server with its handlers, or layers of a worker. It ends with the scope. Fails with `InvalidOption`
 * for an option out of bounds, and as the layer of the server fails.
 *
 * @example
 * const test = yield* TaskTest.make(Server, { replayAfterEachEvent: true })
 */
export const make = <S, E>(
  server: Layer.Layer<S, E, Services>,
  { replayAfterEachEvent = false, startAt = 0, ...options }: Options = {}
): Effect.Effect<TaskTest<S | Services, E>, E | TaskError, Scope.Scope> =>
  Effect.gen(function*() {
    const begin = DateTime.make(startAt)
    if (begin._tag === "None") {
      return yield* Effect.fail(invalidOption(`startAt is not a valid time: ${String(startAt)}`))
    }
    const now = DateTime.toEpochMillis(begin.value)
    const process = yield* startProcess(server, now, layerEngine(options, { replays: replayAfterEachEvent }))
    return {
      run: (effect) => process.run(effect),
      untilIdle: process.untilIdle,
      restart: Effect.andThen(process.stop, process.start)
    }
  })

/** Starts a process at a time. It ends with the scope. */
const startProcess = <S, E>(
  server: Layer.Layer<S, E, Services>,
  now: number,
  engine: ReturnType<typeof layerEngine>
): Effect.Effect<TaskProcess<S | Services, E | TaskError>, E | TaskError, Scope.Scope> =>
  Effect.gen(function*() {
    const sql = Context.get(yield* Effect.orDie(Layer.build(SqliteClient.layer({ filename: ":memory:" }))), SqlClient)
    const process = new TaskProcess<S | Services, E | TaskError>({
      clock: new SkippingClock(now),
      sql,
      layer: Layer.provideMerge(server, Layer.provideMerge(engine, Layer.succeed(SqlClient, sql)))
    })
    yield* Effect.acquireRelease(process.start, () => process.stop)
    return process
  })

/** The value of a JSON file. */
const readJson = (file: string): Effect.Effect<unknown, TaskError> =>
  Effect.try({
    try: () => JSON.parse(readFileSync(file, "utf8")) as unknown,
    catch: (cause) => invalidOption(`the exported task cannot be read: ${String(cause)}`)
  })

/**
 * Compares the code of a server with a task that was exported (`skein tasks export`, `TaskAdmin.exportTask`), or with the
 * file that has it: its log is replayed. No step, sleep or question starts, and only the code between them runs, at the time
 * at which the task changed last. So a test finds a change that tasks in progress would not survive, or that gives them
 * another result. The values of a redacted export may lead the code elsewhere. Fails with `InvalidOption` for another value,
 * with `UnknownTool` if the server does not have the tool, and as the layer of the server fails.
 *
 * @example
 * const replay = yield* TaskTest.replay(Bakery, "test/bake-4711.json")
 * expect(replay).toEqual({ _tag: "Matches", next: undefined })
 */
export const replay = <S, E>(
  server: Layer.Layer<S, E, Services>,
  exported: ExportedTask | string
): Effect.Effect<Replay, E | TaskError> =>
  Effect.scoped(Effect.gen(function*() {
    const value = yield* typeof exported === "string" ? readJson(exported) : Effect.succeed(exported)
    const { task } = yield* readExported(value)
    const process = yield* startProcess(server, task.updatedAt, layerEngine({}, { runsTasks: false }))
    return yield* process.run(Effect.flatMap(TaskAdmin, ({ replay }) => replay(value)))
  }))
