/**
 * Signals between processes about the queue: a running task has an event, such as an answer or its cancellation; or a
 * pool has tasks that a worker may claim. A signal that is lost costs time and nothing else: the workers also look at
 * intervals.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { ListenForChanges, SendToOthers } from "./changeNotifier.ts"
import { type Database, numberOf, type Row, textOf } from "./database.ts"

/**
 * The PostgreSQL channel of signals. The payload is the id of a running task; or the name of a pool after a `!`, or after
 * a `#` if the tasks that may be claimed are gated.
 */
const channel = "skein_runs"
const prefix = { free: "!", gated: "#" }

/** The payload that announces a row of the queue. */
const poolPayload = (row: Row): string =>
  (numberOf(row, "gate") === 1 ? prefix.gated : prefix.free) + textOf(row, "pool")
const poolPayloadSql = `CASE WHEN gate = 1 THEN '${prefix.gated}' ELSE '${prefix.free}' END || pool`

/** Receives the signals of all processes. The functions must not throw. */
export interface SignalListener {
  /** A running task has an event. */
  readonly onSignal: (id: string) => void
  /** A pool has a task that may be claimed; `isGated`: if its tool has room. */
  readonly onReady: (pool: string, isGated: boolean) => void
  /** Signals may have been lost. */
  readonly onGap: () => void
}

/** The signals of a store. */
export type RunSignals = Effect.Success<ReturnType<typeof makeSignals>>

/** Makes the signals of a store. Without `listenForChanges`, only signals of this process are received. */
export const makeSignals = (
  database: Database,
  listenForChanges: ListenForChanges | undefined,
  sendToOthers?: SendToOthers
) =>
  Effect.gen(function*() {
    const listeners = new Set<SignalListener>()
    const usesDatabase = database.isPostgres && listenForChanges !== undefined
    /**
     * The query that sends the signals for the rows of `signalled`, or of another part, in a statement of PostgreSQL that
     * has changed rows of the queue.
     */
    const sendSignalled = (rows = "signalled") =>
      usesDatabase
        ? `SELECT pg_notify('${channel}', CASE WHEN state = 2 THEN task_id ELSE ${poolPayloadSql} END) FROM ${rows}`
        : `SELECT NULL FROM ${rows}`
    /** The query that announces the tasks in the rows of `queued`, in a statement of PostgreSQL that has queued them. */
    const announceQueued = usesDatabase
      ? `SELECT count(pg_notify('${channel}', ${poolPayloadSql})) FROM queued WHERE state = 0`
      : "SELECT NULL"
    const prepare = (assignments: string) => {
      const record = `UPDATE skein_task_queue SET ${assignments} WHERE task_id = ? RETURNING task_id, state, pool, gate`
      return database.prepare(usesDatabase ? `WITH signalled AS (${record}) ${sendSignalled()}` : record)
    }
    const record = { event: prepare(recordSignal("?")), cancellation: prepare(recordCancellation("?")) }

    const receive = (payload: string): void => {
      const isGated = payload.startsWith(prefix.gated)
      const isPool = isGated || payload.startsWith(prefix.free)
      for (const { onReady, onSignal } of listeners) {
        if (isPool) onReady(payload.slice(1), isGated)
        else onSignal(payload)
      }
    }
    /** Sends a signal after the current transaction. */
    const sendLocally = (payload: string) =>
      database.sql.afterCommit(Effect.sync(() => {
        receive(payload)
        sendToOthers?.(channel, payload)
      }))
    const sendToAll = database.prepare(`SELECT pg_notify('${channel}', ?)`)
    const send: (payload: string) => Effect.Effect<unknown, TaskError> = usesDatabase ? sendToAll : sendLocally

    if (listenForChanges !== undefined) {
      yield* listenForChanges(channel, receive, () => {
        for (const { onGap } of listeners) onGap()
      })
    }
    const select = database.prepare("SELECT task_id, state, pool, gate FROM skein_task_queue WHERE task_id = ?")
    const sendRow = (id: string, row: Row | undefined): Effect.Effect<void> =>
      usesDatabase || row === undefined
        ? Effect.void
        : sendLocally(numberOf(row, "state") === queuedRunning ? id : poolPayload(row))
    return {
      sendSignalled,
      announceQueued,
      /** Calls a listener until the scope closes. */
      listen: (listener: SignalListener): Effect.Effect<void, never, Scope.Scope> =>
        Effect.asVoid(Effect.acquireRelease(
          Effect.sync(() => void listeners.add(listener)),
          () => Effect.sync(() => void listeners.delete(listener))
        )),
      /** Records and sends the signal that a task has an event. A task that waits may be claimed then. */
      signal: (id: string, now: number, event: keyof typeof record = "event"): Effect.Effect<void, TaskError> =>
        Effect.flatMap(record[event](now, id), ([row]) => sendRow(id, row)),
      /** Sends a signal that a statement has recorded, unless the database has sent it. */
      send: (id: string): Effect.Effect<void, TaskError> =>
        usesDatabase ? Effect.void : Effect.flatMap(select(id), ([row]) => sendRow(id, row)),
      /** Announces that tasks may be claimed: rows of the queue with their `pool` and `gate`. */
      announce: (rows: ReadonlyArray<Row>): Effect.Effect<void, TaskError> =>
        Effect.forEach(new Set(rows.map(poolPayload)), (payload) => send(payload), { discard: true })
    }
  })

/** The state of a row of the queue whose task runs. */
const queuedRunning = 2

/** The assignments that record a signal for a row of the queue. */
export const recordSignal = (now: string): string =>
  `signals = skein_task_queue.signals + 1,
   wake_at = CASE skein_task_queue.state WHEN 1 THEN CAST(${now} AS BIGINT) ELSE skein_task_queue.wake_at END,
   state = CASE skein_task_queue.state WHEN 1 THEN 0 ELSE skein_task_queue.state END`

/** The assignments that record the cancellation of a task, which passes the gate of its tool: it only compensates. */
export const recordCancellation = (now: string): string => `${recordSignal(now)}, gate = 2`
