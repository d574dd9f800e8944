/**
 * What keeps the table and the engine together, and what forgets tasks whose time is over. Of all processes one does it, at a time.
 */
import * as McpError from "@skein/protocol/McpError"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { TaskError } from "../TaskError.ts"
import type { Host } from "./host.ts"
import { interrupt } from "./interrupting.ts"
import type { Swept } from "./store.ts"
import { addresses, TaskRun } from "./workflow.ts"

/** How it sweeps. */
export interface Sweeping {
  readonly host: Host
  readonly storage: MessageStorage["Service"]
  /** Milliseconds between two looks at what does not change, and until the first one. */
  readonly interval: number
}

/** Milliseconds without a change after which a task is looked at; tasks that are looked at together; between two looks at what is late. */
const quiet = 30_000
const page = 256
const soon = 1000
const longest = 60_000

type Pages = (after: Swept | undefined) => Effect.Effect<ReadonlyArray<Swept>, TaskError>

/** Every task of a listing that may grow and shrink meanwhile; one that fails is left to the next time. */
const each = (pages: Pages, visit: (swept: Swept) => Effect.Effect<void, TaskError>): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    let after: Swept | undefined
    while (true) {
      const found = yield* pages(after)
      for (const swept of found) {
        yield* Effect.catchCause(visit(swept), (cause) => Effect.logWarning("A task could not be swept", cause))
      }
      after = found.at(-1)
      if (found.length < page) return
    }
  })

const isLive = ({ status }: Swept): boolean => status === "working" || status === "input_required"

/** Brings a task and its execution together again. */
const reconcile = ({ host }: Sweeping, swept: Swept): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    const { engine, store } = host
    const execution = yield* host.pools.executionOf(swept)
    const run = engine.execute(TaskRun, { executionId: execution, payload: { taskId: swept.id }, discard: true })
    const result = Option.getOrUndefined(yield* engine.poll(TaskRun, execution))
    if (!isLive(swept)) {
      if (swept.status !== "cancelled" || result?._tag === "Complete") return host.settle(swept.id)
      if (result === undefined) yield* run
      return void (yield* interrupt(engine, execution))
    }
    // It runs now, or was never begun: of one that was, there is only one.
    if (result === undefined) return void (yield* run)
    if (result._tag === "Suspended") return
    const reference = globalThis.crypto.randomUUID()
    yield* Effect.logError(`A task's execution has ended without a result: ${reference}`, result.exit)
    const error = McpError.toErrorObject(McpError.internal(reference), "2025-11-25")
    const outcome = { _tag: "Error", error } as const
    yield* store.finish(swept.id, { status: "failed", outcome, message: error.message })
    return host.settle(swept.id)
  })

/** Ends what still runs, and forgets it when that is over and has undone what it has to undo. */
const expire = ({ host, storage }: Sweeping, swept: Swept): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    const { engine, store } = host
    const execution = yield* host.pools.executionOf(swept)
    if (isLive(swept)) {
      yield* store.finish(swept.id, { status: "cancelled", message: "Its time is over" })
      return void (yield* interrupt(engine, execution))
    }
    if (swept.status === "cancelled" && !(yield* interrupt(engine, execution))) return
    const clear = Effect.forEach(addresses(execution), (address) => storage.clearAddress(address), { discard: true })
    yield* Effect.catchTag(store.remove(swept.id, clear), "PersistenceError", (error) =>
      Effect.logWarning("A task could not be forgotten", error))
  })

const undying = (effect: Effect.Effect<void, TaskError>): Effect.Effect<void> =>
  Effect.catchCause(
    effect,
    (cause) => Effect.logWarning("The sweep of tasks has failed, and will be tried again", cause)
  )

/** Sweeps for ever. */
export const sweep = (sweeping: Sweeping): Effect.Effect<never> => {
  const { host: { store }, interval } = sweeping
  const settle = undying(each((after) => store.unsettled(quiet, page, after), (swept) => reconcile(sweeping, swept)))
  const forget = undying(each((after) => store.expired(page, after), (swept) => expire(sweeping, swept)))
  const nap = Effect.flatMap(
    Effect.all([Clock.currentTimeMillis, Effect.orElseSucceed(store.nextExpiry, () => undefined)]),
    ([now, next]) => Effect.sleep(Math.min(Math.max((next ?? Infinity) - now, soon), longest))
  )
  return Effect.raceFirst(
    Effect.forever(Effect.andThen(Effect.sleep(interval), settle)),
    Effect.forever(Effect.andThen(forget, nap))
  )
}
