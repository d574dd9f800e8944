/**
 * Stores the events of a run: each is appended to the log of its task, with the parts that were under way beside it. A
 * transactional step and its event are stored in one transaction.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Iterable from "effect/Iterable"
import { isSqlError } from "effect/sql/SqlError"
import type { UndoReason } from "../../CurrentTask.ts"
import { TaskError } from "../../TaskError.ts"
import type { LogEntry } from "../store/store.ts"
import type { RunTrace } from "../telemetry/taskObserver.ts"
import { messageOf } from "../base/text.ts"
import { isPermanent } from "../store/storedText.ts"
import { namesBeside } from "./codeChanges.ts"
import { awaitStore, type EngineContext, isTemporary, isTemporaryFailure, pauseForRetry } from "./engineContext.ts"
import type { Observations } from "./observations.ts"
import { type EventKey, isUnobserved, type TaskLog } from "./taskLog.ts"

/** The events of a task from which on its replays are worth a warning. */
const longLog = 10_000
const longLogMessage =
  `the log of this task has ${longLog} events, and each run reads all of them: split the task, or use Task.continueWith`

/** How often a transactional step is executed whose transaction fails for a reason that does not pass. */
const maxCommits = 10

/** The part of `Run` that this module needs. */
export interface WritingRun {
  readonly engine: Pick<EngineContext, "sql" | "store">
  readonly task: { readonly id: string }
  readonly log: TaskLog
  readonly observations: Observations
  readonly trace?: RunTrace | undefined
  /** Whether fibers run beside the root fiber. */
  readonly hasBranches: boolean
  /** Why the run compensates, once it does. */
  readonly undoReason: UndoReason | undefined
  /** How many events the run has received. */
  knownEvents: number
  /** Ends the run: the log does not end where it has ended. */
  readonly lose: Effect.Effect<never>
}

/** How an effect is recorded. */
export interface RecordOptions<A> {
  readonly kind: "step" | "once" | "fired" | "start" | "emit"
  readonly name: string
  /** The number of the attempt, from 1. */
  readonly attempt: number
  readonly transactional?: boolean | undefined
  readonly decode: (text: string) => Effect.Effect<A>
  /** The value of a part that does not start, if its real value cannot matter: see `Run.startNew`. */
  readonly passed?: Effect.Effect<A> | undefined
  /** The record of a part whose record can never be stored. */
  readonly encodeDefect?: ((message: string) => Effect.Effect<string>) | undefined
}

/** Stores the events of one run. */
export class EventWriter extends Data.Class<{ readonly run: WritingRun }> {
  /** The events of the steps and short sleeps that execute, or have ended and are not stored yet, as texts. */
  readonly underWay = new Set<string>()

  /** Appends an event. The run ends if the log does not end where it has ended: another worker has appended one. */
  store(event: Omit<LogEntry, "seq">): Effect.Effect<void> {
    const { engine: { store }, log, lose, task: { id } } = this.run
    return Effect.suspend(() => {
      const entry = { ...event, seq: log.nextSeq, beside: this.#besideOf(event) }
      const warned = log.size + 1 === longLog ? Effect.logWarning(longLogMessage) : Effect.void
      return Effect.andThen(
        warned,
        Effect.flatMap(
          awaitStore(store.append(id, entry, true, log.lastAt)),
          (result) => result === "appended" ? Effect.sync(() => this.#noteStored(entry)) : lose
        )
      )
    })
  }

  /**
   * Appends the end of a part, and returns its text. The effect of the part has happened: if the database refuses its
   * record, such as one that is too large, a defect is recorded in its place.
   */
  storeEnd(options: RecordOptions<unknown>, event: StepEnd): Effect.Effect<string> {
    return Effect.matchCauseEffect(this.store(event), {
      onSuccess: () => Effect.succeed(event.value),
      onFailure: (cause) => {
        const error = cause.reasons.map((reason) => reason._tag === "Die" ? reason.defect : undefined).find(isPermanent)
        if (error === undefined) return Effect.failCause(cause)
        return this.#recordDefect(options, `the database refuses the result of ${partOf(options)}`, error)
      }
    })
  }

  /** The parts that are under way while an event is stored. */
  #besideOf(event: EventKey): ReadonlyArray<string> | undefined {
    const { hasBranches, observations, undoReason } = this.run
    // An item of output wins no race.
    if (!hasBranches || undoReason !== undefined || isUnobserved(event) || event.kind === "emit") return undefined
    return namesBeside(event, Iterable.appendAll(this.underWay, observations.waitingFor()))
  }

  #noteStored(entry: LogEntry): void {
    const { log, trace } = this.run
    log.add(entry)
    this.run.knownEvents++
    if (trace !== undefined) traceEvent(trace, entry)
  }

  /**
   * Executes a step and appends its end in one transaction. A failed step is rolled back before its failure is
   * appended. When the transaction fails for a reason that may pass, the step runs again without end, unless its end is
   * in the log. For any other reason, such as a deferred constraint, it runs up to `maxCommits` times.
   */
  transact<A, E, R>(
    options: RecordOptions<A>,
    event: EventKey,
    execute: Effect.Effect<{ readonly event: StepEnd; readonly failed: boolean }, E, R>
  ): Effect.Effect<string, E, R> {
    const { engine: { sql, store }, log, lose, task: { id } } = this.run
    const once = Effect.suspend(() => {
      const { lastAt, nextSeq: seq } = log
      return sql.withTransaction(
        Effect.flatMap(execute, ({ event, failed }): Effect.Effect<StoredEnd, TaskError | RolledBack | OtherWorker> => {
          const entry = { ...event, seq, beside: this.#besideOf(event) }
          if (failed) return Effect.fail(new RolledBack({ event }))
          return Effect.flatMap(
            store.append(id, entry, false, lastAt),
            (result) => result === "appended" ? Effect.succeed(entry) : Effect.fail(otherWorker)
          )
        })
      )
    })
    const committed = Effect.map(
      awaitStore(store.readLog(id)),
      (entries) =>
        entries.find(({ attempt, kind, name, seq }) =>
          seq === log.nextSeq && attempt === event.attempt && kind === event.kind && name === event.name
        )
    )
    const retried = (attempt: number): Effect.Effect<string, E, R> =>
      Effect.matchCauseEffect(once, {
        onSuccess: (entry) =>
          Effect.sync(() => {
            this.#noteStored(entry)
            return entry.value
          }),
        onFailure: (cause): Effect.Effect<string, E, R> => {
          const error = cause.reasons.map((reason) =>
            reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
          ).find((error) => error !== undefined)
          if (error === otherWorker) return lose
          if (error instanceof RolledBack) return Effect.as(this.store(error.event), error.event.value)
          if (isPermanent(error)) {
            return this.#recordDefect(options, `the database refuses the result of ${partOf(options)}`, error)
          }
          if (!isSqlError(error) && !(error instanceof TaskError && isTemporary(error))) {
            return Effect.failCause(cause as never)
          }
          const isOutage = error instanceof TaskError || isTemporaryFailure(error)
          if (!isOutage && attempt + 1 >= maxCommits) {
            const message = `${partOf(options)} was not committed in ${maxCommits} executions`
            return this.#recordDefect(options, message, error)
          }
          const isRepeated = error instanceof TaskError || error.reason._tag === "ConnectionError" || attempt > 0
          const logged = isRepeated
            ? Effect.void
            : Effect.logWarning(`${partOf(options)} was not committed, and runs again`, error)
          const found = Effect.andThen(Effect.andThen(logged, pauseForRetry(attempt + 1)), committed)
          return Effect.flatMap(found, (entry) => {
            if (entry === undefined) return retried(attempt + 1)
            this.#noteStored(entry)
            return Effect.succeed(entry.value ?? "")
          })
        }
      })
    return retried(0)
  }

  /** Records the defect of a part that can never be recorded otherwise, so that each later run fails in the same way. */
  #recordDefect(options: RecordOptions<unknown>, problem: string, error: unknown): Effect.Effect<string> {
    const { attempt, encodeDefect, kind, name } = options
    const message = `${problem}: ${messageOf(error)}`
    if (encodeDefect === undefined) return Effect.die(error)
    return Effect.gen({ self: this }, function*() {
      const value = yield* encodeDefect(message)
      const at = yield* this.run.engine.store.clock.now
      yield* Effect.logError(message, error)
      yield* this.store({ kind, name, attempt, value, startedAt: undefined, at })
      return value
    })
  }
}

const partOf = ({ kind, name }: RecordOptions<unknown>): string => `${kind} "${name}"`

/** The names of the events of a span. The steps are spans of their own. */
const tracedEvents: Partial<Record<LogEntry["kind"], string>> = {
  once: "once recorded",
  timer: "timer set",
  fired: "timer ended",
  answer: "question answered",
  timeout: "question timed out",
  received: "event received",
  start: "child started",
  join: "child ended",
  undo: "compensations begun"
}

const traceEvent = (trace: RunTrace, { at, kind, name }: LogEntry): void => {
  const event = tracedEvents[kind]
  if (event !== undefined) trace.event(event, kind === "timer" ? { name, until: new Date(at).toISOString() } : { name })
}

/** The end of a step, before and after it is appended. */
interface StepEnd extends Omit<LogEntry, "seq"> {
  readonly value: string
}
type StoredEnd = StepEnd & LogEntry

/** A failed step, whose transaction is rolled back. */
class RolledBack extends Data.Class<{ readonly event: StepEnd }> {}

/** Another worker has appended an event. */
const otherWorker = { _tag: "OtherWorker" } as const
type OtherWorker = typeof otherWorker
