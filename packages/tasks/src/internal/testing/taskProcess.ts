/**
 * The process of a test: an engine in memory whose time skips. It can be restarted, and its tasks stay.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { CurrentRun } from "../engine/engineContext.ts"
import * as engine from "../engine/engine.ts"
import * as sqlStore from "../store/sqlStore.ts"
import { TaskStore } from "../store/store.ts"
import { maxTime } from "../store/database.ts"
import { queued } from "../store/rows.ts"
import type { Options as EngineOptions } from "../../TaskEngine.ts"
import type { SkippingClock } from "./skippingClock.ts"

/** Turns of the event loop without a change after which the time may skip. */
const quietTurns = 5

/** The run of the effects of a test. */
const ofTest = "test"

/** The fibers for whose sleeps the time skips: all, those of the test and of runs, or those of runs. */
const sleepers = {
  all: () => true,
  used: (run: string | undefined) => run !== undefined,
  ofTasks: (run: string | undefined) => run !== undefined && run !== ofTest
}
type Sleepers = keyof typeof sleepers

/**
 * A store in which the run of a task is lost after each event, as if its process had ended there: the event is stored, and
 * the handler starts again from its beginning.
 */
const replayingStore = (store: TaskStore["Service"]): TaskStore["Service"] =>
  TaskStore.of({
    ...store,
    append: (id, entry, isRepeated, lastAt) =>
      Effect.map(store.append(id, entry, isRepeated, lastAt), (result) =>
        // In a transaction the event would be rolled back.
        isRepeated === true && entry.kind !== "giveUp" && result === "appended" ? "refused" : result)
  })

/**
 * The engine on a database in memory that outlives it. `replays`: each run is lost after each event. `runsTasks`: `true` by
 * default.
 */
export const layerEngine = (
  options: EngineOptions,
  { replays = false, runsTasks = true }: { readonly replays?: boolean; readonly runsTasks?: boolean }
) => {
  const store = Layer.effect(TaskStore, Effect.map(sqlStore.make(), replays ? replayingStore : (store) => store))
  const single = {
    runsTasks,
    pools: undefined,
    host: "test",
    pid: process.pid,
    leaseMs: undefined,
    hasFile: false,
    skipsTime: true
  }
  return engine.layer({ ...single, ...engine.resolveOptions(options) }).pipe(
    Layer.provide([store, NodeCrypto.layerDigest])
  )
}

/** A turn of the event loop. */
const turn = Effect.promise(() => new Promise<void>((resolve) => void setImmediate(resolve)))

/** The parts of a process. `layer` is built at each start. */
interface Parts<S, E> {
  readonly clock: SkippingClock
  readonly sql: SqlClient
  readonly layer: Layer.Layer<S, E>
}

export class TaskProcess<S, E> extends Data.Class<Parts<S, E>> {
  #context: Context.Context<S> | undefined = undefined
  #scope: Scope.Closeable = Scope.makeUnsafe()

  #provide<A, E2, R>(effect: Effect.Effect<A, E2, R>): Effect.Effect<A, E2, R> {
    return Effect.provideService(effect, Clock.Clock, this.clock)
  }

  /** Starts the process. */
  readonly start: Effect.Effect<void, E> = Effect.suspend(() => {
    this.#scope = Scope.makeUnsafe()
    return Effect.map(this.#provide(Layer.buildWithScope(this.layer, this.#scope)), (context) => {
      this.#context = context
    })
  })

  /** Ends the process as SIGTERM does: its runs end without compensations, and continue at the next start. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() =>
    this.#drive(this.#provide(Scope.close(this.#scope, Exit.void)), "all")
  )

  /** Runs an effect of the test with the services of the process, and lets the time skip while it waits. */
  run<A, E2, R>(effect: Effect.Effect<A, E2, R>): Effect.Effect<A, E2, Exclude<R, S>> {
    return Effect.suspend(() =>
      this.#drive(
        Effect.provideService(
          Effect.provideContext(this.#provide(effect), this.#context!) as Effect.Effect<A, E2, Exclude<R, S>>,
          CurrentRun,
          ofTest
        ),
        "used"
      )
    )
  }

  /** Lets the time skip until no task continues without an event from outside. */
  readonly untilIdle: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    while ((yield* this.#skip("ofTasks")) !== "idle");
  })

  /** Runs an effect beside which the time skips. */
  #drive<A, E2, R>(effect: Effect.Effect<A, E2, R>, whose: Sleepers): Effect.Effect<A, E2, R> {
    return Effect.gen({ self: this }, function*() {
      const fiber = yield* Effect.forkChild(effect)
      const isOver = () => fiber.pollUnsafe() !== undefined
      while (!isOver()) yield* this.#skip(whose, isOver)
      return yield* Fiber.join(fiber)
    })
  }

  /** Waits until nothing happens, and skips to the next time at which something does. */
  #skip(whose: Sleepers, isOver: () => boolean = () => false): Effect.Effect<"skipped" | "idle" | "over"> {
    return Effect.gen({ self: this }, function*() {
      const { clock } = this
      let seen = ""
      let due = Infinity
      for (let turns = 0; turns < quietTurns; turns++) {
        yield* turn
        if (isOver()) return "over"
        const now = yield* this.#look()
        // A step that does not sleep may wait for something outside of the process.
        const isBusy = whose !== "all" && now.running.some((id) => !clock.isSleeping(id))
        const found = `${clock.changes} ${now.writes}`
        if (isBusy || found !== seen) turns = 0
        seen = found
        due = now.due
      }
      const now = clock.currentTimeMillisUnsafe()
      // The engine looks for tasks whose time has come when its own sleep ends.
      const ofLoops = whose === "all" || due <= now
      const next = ofLoops ? clock.nextEnd(sleepers.all) : Math.min(clock.nextEnd(sleepers[whose]), due)
      if (next === Infinity) return "idle"
      clock.skipTo(ofLoops ? next : Math.min(next, yield* this.#nextByItself(now)))
      return "skipped"
    })
  }

  /** The number of writes, when a task that does not run is due, and the tasks that run. */
  #look() {
    return Effect.map(
      Effect.orDie(this.sql<{ readonly writes: number; readonly due: number | null; readonly running: string }>`
        SELECT total_changes() AS writes, (
          SELECT MIN(queue.wake_at) FROM skein_task_queue AS queue
          JOIN skein_tasks AS task ON task.id = queue.task_id
          LEFT JOIN skein_task_tools AS tool ON tool.tool = queue.tool
          WHERE queue.state <> ${queued.running} AND queue.wake_at < ${maxTime}
            AND task.waits = 0 AND tool.paused_at IS NULL
        ) AS due, (
          SELECT json_group_array(task_id) FROM skein_task_queue WHERE state = ${queued.running}
        ) AS running`),
      ([row]) => ({
        writes: row!.writes,
        due: row!.due ?? Infinity,
        running: JSON.parse(row!.running) as ReadonlyArray<string>
      })
    )
  }

  /** The next time of a schedule, and of the expiry of a task: they come also if nothing waits for them. */
  #nextByItself(after: number): Effect.Effect<number> {
    return Effect.map(
      Effect.orDie(this.sql<{ readonly next: number | null }>`
        SELECT MIN(at) AS next FROM (
          SELECT next_at AS at FROM skein_task_schedules WHERE paused = 0
          UNION ALL SELECT expires_at FROM skein_tasks
        ) WHERE at > ${after}`),
      ([row]) => row?.next ?? Infinity
    )
  }
}
