/**
 * What keeps the table and the engine together, and what forgets tasks whose time is over.
 *
 * Of all processes that work for a pool one sweeps, at a time. What forgets tasks runs in those too that do no work: there may be
 * nobody else.
 */
import * as McpError from "@skein/protocol/McpError"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import { Snowflake } from "effect/cluster/Snowflake"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import type { TaskError } from "../../TaskError.ts"
import type { Execution, Executions } from "./executions.ts"
import type { Host } from "./engineContext.ts"
import { interrupt } from "./interrupting.ts"
import { shortened } from "../text.ts"
import type { Swept } from "../store/store.ts"
import { addresses, groupOf, TaskRun } from "./workflow.ts"

/** How it sweeps. */
export interface Sweeping {
  readonly host: Host
  readonly storage: MessageStorage["Service"]
  readonly sharding: Sharding["Service"]
  readonly executions: Executions
  /** Milliseconds between two looks at what does not change, and until the first one. */
  readonly interval: number
  /** Milliseconds, at most, between two looks at what other processes may have left. */
  readonly longest: number
  readonly alarm: Alarm
  /** Milliseconds after which a task whose time is over is forgotten, whatever it has not undone. */
  readonly undoGrace: number
}

/** Milliseconds without a change after which a task is looked at. */
const quiet = 30_000

/** Tasks that are looked at together, and milliseconds for all else between two of such looks. */
const page = 500
const breath = 10

/** Milliseconds between two looks at what is late, or was not undone: they grow while nothing happens. */
const soon = { late: 1000, undone: 5000 }

/** Milliseconds, at most, in which what waits for a worker, and is to be forgotten, can take note of it. */
const leave = 60_000

/** Wakes what forgets tasks, where a new one is to expire before that would look. */
export class Alarm {
  #at = Infinity
  readonly #latch = Latch.makeUnsafe()

  /** Sleeps for so long, or until a task comes that is to expire earlier. */
  nap(milliseconds: number): Effect.Effect<void> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.#at = now + milliseconds
      const woken = Effect.sync(() => {
        // Who comes while nobody sleeps wakes the next one.
        this.#at = Infinity
        this.#latch.closeUnsafe()
      })
      return Effect.ensuring(Effect.raceFirst(Effect.sleep(milliseconds), this.#latch.await), woken)
    })
  }

  /** A new task is to expire then. */
  expires(at: number): void {
    if (at < this.#at) this.#latch.openUnsafe()
  }
}

type Pages = (after: Swept | undefined) => Effect.Effect<ReadonlyArray<Swept>, TaskError>
type Visit = (swept: Swept, id: string, execution: Execution | undefined) => Effect.Effect<unknown, TaskError>

/** Every task of a listing that may grow and shrink meanwhile, with its execution; one that fails is left to the next time. */
const each = ({ executions, host: { pools } }: Sweeping, pages: Pages, visit: Visit): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    let after: Swept | undefined
    while (true) {
      const found = yield* pages(after)
      const ids = yield* Effect.forEach(found, (swept) => pools.executionOf(swept))
      const begun = yield* executions(ids)
      for (const [index, swept] of found.entries()) {
        const id = ids[index]!
        yield* Effect.catchCause(
          visit(swept, id, begun.get(id)),
          (cause) => Effect.logWarning("A task could not be swept", cause)
        )
      }
      after = found.at(-1)
      if (found.length < page) return
      yield* Effect.sleep(breath)
    }
  })

const isLive = ({ status }: Swept): boolean => status === "working" || status === "input_required"

/** Brings a task and its execution together again. */
const reconcile = ({ host: { engine, settle, store } }: Sweeping): Visit => (swept, id, execution) =>
  Effect.gen(function*() {
    if (swept.status === "completed" || swept.status === "failed") return settle(swept.id)
    if (execution === undefined) {
      yield* engine.execute(TaskRun, { executionId: id, payload: { taskId: swept.id }, discard: true })
    }
    if (!isLive(swept)) {
      if (isAsleep(execution)) yield* interrupt(engine, id)
      return
    }
    if (standsStill(swept, execution)) {
      yield* Effect.annotateLogs(
        Effect.logWarning("A task stood still, with nothing to wait for, and goes on"),
        "task",
        shortened(swept.id)
      )
      return yield* engine.resume(TaskRun, id)
    }
    if (execution?.state !== "complete") return
    const result = Option.getOrUndefined(yield* engine.poll(TaskRun, id))
    if (result?._tag !== "Complete") return
    const reference = globalThis.crypto.randomUUID()
    yield* Effect.logError(`A task's execution has ended without a result: ${reference}`, result.exit)
    const error = McpError.toErrorObject(McpError.internal(reference), "2025-11-25")
    yield* store.finish(swept.id, { status: "failed", outcome: { _tag: "Error", error } })
    return settle(swept.id)
  })

/** Whether an execution that is to be interrupted has to be told, or woken. */
const isAsleep = (execution: Execution | undefined): boolean =>
  execution?.state !== "complete" && !(execution?.state === "open" && execution.signalled)

/** Whether nobody is going to wake a live task: no answer is open, and nothing else is to come. It must not be; to wake one does no harm. */
const standsStill = ({ status }: Swept, execution: Execution | undefined): boolean =>
  execution?.state === "suspended" && status === "working" && !execution.expects

/**
 * Begins an execution again that is over, while nothing says that what it has done is undone: the engine takes one for interrupted
 * that its worker has abandoned meanwhile, and leaves its compensations out. What is undone is known before the execution is over.
 */
const revive = ({ sharding }: Sweeping): Visit => (_swept, _id, execution) =>
  execution?.state === "complete"
    ? Effect.andThen(sharding.reset(Snowflake(execution.request)), sharding.pollStorage)
    : Effect.void

/** Ends what still runs, and forgets it when that is over and has undone what it has to undo; or when that takes too long. */
const expire =
  ({ host: { engine, store }, storage, undoGrace }: Sweeping, moved: () => void): Visit => (swept, id, execution) =>
    Effect.gen(function*() {
      if (isLive(swept)) {
        moved()
        yield* store.finish(swept.id, { status: "cancelled", message: "Its time is over" })
        return yield* interrupt(engine, id)
      }
      const late = (yield* Clock.currentTimeMillis) - (swept.expiresAt ?? Infinity) - undoGrace
      const undone = swept.status !== "cancelled" || execution === undefined ||
        (execution.state === "complete" && swept.settled)
      if (!undone && late < Math.min(leave, undoGrace)) {
        if (late >= 0 && !swept.settled) {
          moved()
          yield* Effect.logWarning(
            "A task is forgotten before it has undone what it has done: nobody ran it, or not to its end"
          )
          return yield* store.settle(swept.id)
        }
        if (isAsleep(execution)) yield* interrupt(engine, id)
        return
      }
      moved()
      const clear = Effect.forEach(addresses(id), (address) => storage.clearAddress(address), { discard: true })
      yield* Effect.catchTag(
        store.remove(swept.id, clear),
        "PersistenceError",
        (error) => Effect.logWarning("A task could not be forgotten", error)
      )
    })

const undying = (effect: Effect.Effect<void, TaskError>): Effect.Effect<void> =>
  Effect.catchCause(
    effect,
    (cause) => Effect.logWarning("The sweep of tasks has failed, and will be tried again", cause)
  )

/** Forgets tasks, for ever. Any number of processes may. `least` is the time between two looks, in milliseconds. */
export const forget = (sweeping: Sweeping, least = soon.late): Effect.Effect<never> => {
  const { alarm, host: { store }, longest } = sweeping
  return Effect.suspend(() => {
    let pause = least
    const visit = expire(sweeping, () => void (pause = least))
    const look = undying(each(sweeping, (after) => store.expired(page, after), visit))
    const nap = Effect.flatMap(
      Clock.currentTimeMillis,
      (now) =>
        Effect.flatMap(Effect.orElseSucceed(store.nextExpiry(now), () => undefined), (next = Infinity) => {
          const nap = alarm.nap(Math.max(Math.min(next - now, pause, longest), least))
          pause *= 2
          return nap
        })
    )
    return Effect.forever(Effect.andThen(look, nap))
  })
}

/** Sweeps the tasks of a shard group, for ever. */
export const sweep = (sweeping: Sweeping, shardGroup: string): Effect.Effect<never> => {
  const { host: { store }, interval, longest } = sweeping
  const own = (visit: Visit): Visit => (swept, id, execution) =>
    groupOf(id) === shardGroup ? visit(swept, id, execution) : Effect.void
  const settle = undying(each(sweeping, (after) => store.unsettled(quiet, page, after), own(reconcile(sweeping))))
  const undo = Effect.suspend(() => {
    let pause = soon.undone
    const visit: Visit = (...swept) => {
      pause = soon.undone
      return revive(sweeping)(...swept)
    }
    const look = undying(each(sweeping, (after) => store.undoing(page, after), own(visit)))
    const nap = Effect.suspend(() => Effect.sleep(Math.min(pause, longest)))
    return Effect.forever(Effect.andThen(Effect.andThen(look, nap), Effect.sync(() => void (pause *= 2))))
  })
  return Effect.raceFirst(
    Effect.raceFirst(
      Effect.forever(Effect.andThen(Effect.sleep(interval), settle)),
      undo
    ),
    forget(sweeping)
  )
}
