/**
 * The order in which earlier runs received events: ended steps, ended sleeps, answered questions. A later run receives
 * them in the same order. Otherwise a branch could get ahead of another one that it came after, and win a race or
 * interrupt the others by its failure.
 *
 * A handler without concurrent branches receives its events in order anyway, and does not use this.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { TaskError } from "../../TaskError.ts"
import { Database } from "../store/database.ts"
import { entityType, interruptSignal } from "./workflow.ts"

/**
 * Reads the events of an execution: their names in order, each with its rank, a number that grows from event to event.
 */
export type ReadHistory = (execution: string) => Effect.Effect<ReadonlyMap<string, bigint>, TaskError>

/** The rank of events that have not happened: greater than all others. */
export const lastRank = 2n ** 64n

/** Whether only the engine waits for an event: an interruption, or the timer of a check for a handler. */
const isEngineEvent = (name: string): boolean =>
  name === interruptSignal.name || name.startsWith("DurableClock/handler/")

/**
 * Reads the tables of a cluster. A step ends with its reply; each other event is a message. `prefix` is that of the
 * tables.
 */
export const makeReadHistory = (sql: SqlClient.SqlClient, prefix = "cluster"): ReadHistory => {
  const database = new Database(sql)
  const result = database.resultTagOf("replies.payload")
  const read = database.prepare(
    `SELECT messages.message_id AS name, CAST(COALESCE(replies.id, messages.id) AS TEXT) AS rank
     FROM ${prefix}_messages AS messages
     LEFT JOIN ${prefix}_replies AS replies
       ON messages.tag = 'activity' AND replies.request_id = messages.id AND replies.kind = 0 AND ${result} = 'Complete'
     WHERE messages.entity_id = ? AND messages.entity_type = '${entityType}'
       AND (messages.tag = 'deferred' OR replies.id IS NOT NULL)`
  )
  return (execution) => {
    const start = `${entityType}/${execution}/`.length
    return Effect.map(read(execution), (rows) => {
      const events = rows.map(({ name, rank }) => {
        // The rest of a message id is a tag, a slash and the name.
        const path = (name as string).slice(start)
        return [path.slice(path.indexOf("/") + 1), BigInt(rank as string)] as const
      })
      return new Map(
        events.filter(([name]) => !isEngineEvent(name)).toSorted(([, a], [, b]) => a < b ? -1 : a > b ? 1 : 0)
      )
    })
  }
}

/** The events of earlier runs that a run has not reached yet. */
export class History {
  /** The events in order; `undefined` until `load`. */
  #pending: Map<string, bigint> | undefined = undefined
  /** Whether events were pending when they were read. */
  hasReplay = false
  /** The events that were reached before `load`. */
  readonly #reached = new Set<string>()
  readonly #read: Effect.Effect<ReadonlyMap<string, bigint>>

  constructor(read: Effect.Effect<ReadonlyMap<string, bigint>>) {
    this.#read = read
  }

  /** Reads the events, once. Only a run with concurrent branches needs it. */
  readonly load: Effect.Effect<void> = Effect.suspend(() =>
    this.#pending !== undefined ? Effect.void : Effect.map(this.#read, (events) => {
      if (this.#pending !== undefined) return
      this.#pending = new Map([...events].filter(([name]) => !this.#reached.has(name)))
      this.hasReplay = this.#pending.size > 0
    })
  )

  /** The rank of a pending event; `lastRank` for any other. */
  rank(name: string): bigint {
    return this.#pending?.get(name) ?? lastRank
  }

  /** Whether an event with a lower rank is pending. */
  hasPendingBefore(rank: bigint): boolean {
    for (const first of this.#pending?.values() ?? []) return first < rank
    return false
  }

  /** Records that the run has reached these events, or no longer waits for them. */
  markReached(names: ReadonlyArray<string>): void {
    for (const name of names) {
      if (this.#pending === undefined) this.#reached.add(name)
      else this.#pending.delete(name)
    }
  }

  /**
   * Drops pending events with a lower rank: the run does not reach them, because its code has changed or was
   * interrupted there.
   */
  skipBefore(rank: bigint): void {
    for (const [name, each] of this.#pending ?? []) {
      if (each >= rank) return
      this.#pending!.delete(name)
    }
  }
}
