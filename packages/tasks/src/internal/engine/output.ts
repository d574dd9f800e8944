/**
 * The output of tasks: `Task.emit`, and its readers.
 *
 * An item that the body emits is stored in one transaction with an event of the log, which has its offset. A later run that
 * reaches the event adds nothing. The events are numbered, as status messages are, so that an item whose value differs from
 * run to run is not added twice. An item of a step has no event of its own.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { TaskError, TooMuchOutput } from "../../TaskError.ts"
import { isFinal, type OutputItem, type OutputOptions, type OutputPage } from "../../TaskState.ts"
import { invalidOption } from "../store/database.ts"
import type { Store } from "../store/store.ts"
import { awaitStore, isTemporary } from "./engineContext.ts"
import { CurrentStep } from "./placement.ts"
import type { Executed, Run } from "./run.ts"

/** The largest offset. */
const maxOffset = 2 ** 31 - 1

/** Implements `Task.emit`. */
export const emit = (run: Run, value: unknown): Effect.Effect<void, TaskError> =>
  Effect.withFiber((fiber) => {
    if (run.undoReason !== undefined) return Effect.die(new Error("Task.emit is not allowed in a compensation"))
    const { engine: { sql, store: { output } }, task: { id } } = run
    const checked = output.check(value)
    if (fiber.getRef(CurrentStep) === undefined) return Effect.flatMap(checked, (text) => record(run, text))
    const added = Effect.flatMap(checked, (text) => Effect.asVoid(output.add(id, text)))
    // A transaction that has failed takes no further statements.
    return Context.getOption(fiber.context, sql.transactionService)._tag === "Some" ? added : retried(added)
  })

/** Retries while the store cannot be reached. */
const retried = (effect: Effect.Effect<void, TaskError>): Effect.Effect<void, TaskError> =>
  Effect.flatMap(
    awaitStore(Effect.matchEffect(effect, {
      onSuccess: () => Effect.succeed(Effect.void),
      onFailure: (error) => isTemporary(error) ? Effect.fail(error) : Effect.succeed(Effect.fail(error))
    })),
    (result): Effect.Effect<void, TaskError> => result
  )

/**
 * The record of an item: its offset, or the message of a refusal, so that each run fails in the same way. `{}`: the task had
 * ended.
 */
interface ItemRecord {
  readonly offset?: number | undefined
  readonly refused?: string | undefined
}

/** Reads a record. */
export const recordOf = (text: string): ItemRecord => JSON.parse(text) as ItemRecord

/** Adds an item and its event. */
const record = (run: Run, text: string): Effect.Effect<void, TaskError> =>
  Effect.suspend(() => {
    const { counts, engine: { store }, task: { id } } = run
    const attempt = (counts.get("emit") ?? 0) + 1
    counts.set("emit", attempt)
    const associatedData = `${id}/emit/${attempt}/`
    const added = Effect.map(store.output.add(id, text), (offset): ItemRecord => ({ offset }))
    const tried = Effect.catchIf(
      added,
      ({ reason }) => reason._tag === "TooMuchOutput",
      ({ message }) => Effect.succeed<ItemRecord>({ refused: message })
    )
    const executed = Effect.flatMap(tried, (item) =>
      Effect.map(
        awaitStore(store.encrypt(JSON.stringify(item), associatedData)),
        (text): Executed => ({ text, failed: item.refused !== undefined })
      ))
    const recorded = run.record<ItemRecord, TaskError, never>({
      ...{ kind: "emit", name: "", attempt, transactional: true, passed: Effect.succeed({}) },
      decode: (text) => Effect.map(awaitStore(store.decrypt(text, associatedData)), recordOf)
    }, () => executed)
    return Effect.flatMap(recorded, ({ refused: message }) =>
      message === undefined
        ? Effect.void
        : Effect.fail(new TaskError({ reason: new TooMuchOutput({ message }) })))
  })

/** Fails for an offset that is not a whole number from 0. */
const checkOffset = ({ from = 0 }: OutputOptions): Effect.Effect<number, TaskError> =>
  Number.isInteger(from) && from >= 0
    ? Effect.succeed(Math.min(from, maxOffset))
    : Effect.fail(invalidOption(`from is ${from}: it must be a whole number from 0`))

/** Implements `TaskEngine.readOutput`. */
export const readOutput = (
  store: Store,
  id: string,
  options: OutputOptions = {}
): Effect.Effect<OutputPage | undefined, TaskError> =>
  Effect.gen(function*() {
    const from = yield* checkOffset(options)
    // No item comes after the end of a task.
    const state = yield* store.get(id)
    if (state === undefined) return undefined
    const items = yield* store.output.read(id, from)
    const last = items.at(-1)
    const count = yield* store.output.count(id)
    return { items, next: last === undefined ? from : last.offset + 1, count, hasEnded: isFinal(state) }
  })

/**
 * Implements `TaskEngine.followOutput`. With `interval`, it also reads at this interval in milliseconds, in a process that is
 * not notified.
 */
export const followOutput = (
  store: Store,
  id: string,
  options: OutputOptions = {},
  interval?: number
): Stream.Stream<OutputItem, TaskError> =>
  Stream.unwrap(Effect.gen(function*() {
    const from = yield* checkOffset(options)
    const changed = Latch.makeUnsafe(true)
    yield* store.listen(id, () => changed.openUnsafe())
    yield* store.output.listen(id, () => changed.openUnsafe())
    const change = interval === undefined ? changed.await : Effect.raceFirst(changed.await, Effect.sleep(interval))
    const next = Effect.fnUntraced(function*(offset: number) {
      changed.closeUnsafe()
      const page = yield* readOutput(store, id, { from: offset })
      const hasItems = page !== undefined && page.items.length > 0
      if (page === undefined || (!hasItems && page.hasEnded)) return [[], Option.none<number>()] as const
      if (!hasItems) yield* change
      return [page.items, Option.some(page.next)] as const
    })
    return Stream.paginate(from, next)
  }))
