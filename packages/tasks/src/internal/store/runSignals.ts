/**
 * Signals between processes about the queue: a running task has an event, such as an answer or its cancellation; or a
 * pool has tasks that a worker may claim. A signal that is lost costs time and nothing else: the workers also look at
 * intervals.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { ListenForChanges } from "./changeNotifier.ts"
import type { Database, Statement } from "./database.ts"

/** The PostgreSQL channel of signals. The payload is the id of a running task, or a `!` and the name of a pool. */
const channel = "skein_runs"
const poolPrefix = "!"

/** Receives the signals of all processes. The functions must not throw. */
export interface SignalListener {
  /** A running task has an event. */
  readonly onSignal: (id: string) => void
  /** A pool has a task that may be claimed. */
  readonly onReady: (pool: string) => void
  /** Signals may have been lost. */
  readonly onGap: () => void
}

/** The signals of a store. */
export class RunSignals {
  readonly #listeners = new Set<SignalListener>()
  readonly #database: Database
  readonly #usesDatabase: boolean
  readonly #send: Statement
  readonly #record: Statement

  private constructor(database: Database, usesDatabase: boolean) {
    this.#database = database
    this.#usesDatabase = usesDatabase
    this.#send = database.prepare(`SELECT pg_notify('${channel}', ?)`)
    const record = `UPDATE skein_task_queue SET ${recordSignal("?")} WHERE task_id = ? RETURNING task_id, state, pool`
    this.#record = database.prepare(usesDatabase ? `WITH signalled AS (${record}) ${this.sendSignalled}` : record)
  }

  /** Without `listen`, only signals of this process are received. */
  static make(
    database: Database,
    listen: ListenForChanges | undefined
  ): Effect.Effect<RunSignals, TaskError, Scope.Scope> {
    const signals = new RunSignals(database, database.isPostgres && listen !== undefined)
    const received = listen?.(channel, (payload) => signals.#receive(payload), () => {
      for (const { onGap } of signals.#listeners) onGap()
    })
    return received === undefined ? Effect.succeed(signals) : Effect.as(received, signals)
  }

  /**
   * The query that sends the signals for the rows of `signalled`, in a statement of PostgreSQL that has changed rows of
   * the queue.
   */
  get sendSignalled(): string {
    return this.#usesDatabase
      ? `SELECT pg_notify('${channel}', CASE WHEN state = 2 THEN task_id ELSE '${poolPrefix}' || pool END) FROM signalled`
      : "SELECT NULL FROM signalled"
  }

  /** The query that announces the tasks in the rows of `queued`, in a statement of PostgreSQL that has queued them. */
  get announceQueued(): string {
    return this.#usesDatabase
      ? `SELECT count(pg_notify('${channel}', '${poolPrefix}' || pool)) FROM queued WHERE state = 0`
      : "SELECT NULL"
  }

  #receive(payload: string): void {
    const isPool = payload.startsWith(poolPrefix)
    for (const { onReady, onSignal } of this.#listeners) {
      if (isPool) onReady(payload.slice(poolPrefix.length))
      else onSignal(payload)
    }
  }

  /** Sends a signal after the current transaction. */
  #sendLocally(payload: string): Effect.Effect<void> {
    return this.#database.sql.afterCommit(Effect.sync(() => this.#receive(payload)))
  }

  /** Calls a listener until the scope closes. */
  listen(listener: SignalListener): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(Effect.acquireRelease(
      Effect.sync(() => void this.#listeners.add(listener)),
      () => Effect.sync(() => void this.#listeners.delete(listener))
    ))
  }

  /** Records and sends the signal that a task has an event. A task that waits may be claimed then. */
  signal(id: string, now: number): Effect.Effect<void, TaskError> {
    return Effect.flatMap(this.#record(now, id), ([row]) => {
      if (this.#usesDatabase || row === undefined) return Effect.void
      return this.#sendLocally(Number(row["state"]) === 2 ? id : poolPrefix + (row["pool"] as string))
    })
  }

  /** Announces that pools have tasks that may be claimed. */
  announce(pools: ReadonlyArray<string>): Effect.Effect<void, TaskError> {
    return Effect.forEach(
      pools,
      (pool): Effect.Effect<unknown, TaskError> =>
        this.#usesDatabase ? this.#send(poolPrefix + pool) : this.#sendLocally(poolPrefix + pool),
      { discard: true }
    )
  }
}

/** The assignments that record a signal for a row of the queue. */
export const recordSignal = (now: string): string =>
  `signals = skein_task_queue.signals + 1,
   wake_at = CASE skein_task_queue.state WHEN 1 THEN CAST(${now} AS BIGINT) ELSE skein_task_queue.wake_at END,
   state = CASE skein_task_queue.state WHEN 1 THEN 0 ELSE skein_task_queue.state END`
