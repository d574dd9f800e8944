/**
 * In which order a run comes again to what earlier ones have come to: steps that have ended, sleeps that are over, questions that are
 * answered. A branch must not get ahead of another one that it came after: where it fails, or wins, it cuts the others off.
 *
 * A body in which nothing stands beside anything else comes to all of it in its order by itself, and is not asked to.
 */
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { TaskError } from "../../TaskError.ts"
import { Database } from "../store/database.ts"
import { entityType, interruption } from "./workflow.ts"

/** What has come to an execution, by name, with a number that grows from one to the next, and in this order. */
export type Past = (execution: string) => Effect.Effect<ReadonlyMap<string, bigint>, TaskError>

/** Behind all that has come. */
export const last = 2n ** 64n

/** What nobody's body waits for: the engine's own, and times at which a handler is looked for. */
const isOther = (name: string): boolean => name === interruption.name || name.startsWith("DurableClock/handler/")

/** Reads the tables of the cluster, whose prefix it is: a step ends with its reply, and all else comes as a message. */
export const make = (sql: SqlClient.SqlClient, prefix = "cluster"): Past => {
  const database = new Database(sql)
  const result = database.resultOf("replies.payload")
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
        // The tag comes before the name.
        const path = (name as string).slice(start)
        return [path.slice(path.indexOf("/") + 1), BigInt(rank as string)] as const
      })
      return new Map(events.filter(([name]) => !isOther(name)).toSorted(([, a], [, b]) => a < b ? -1 : a > b ? 1 : 0))
    })
  }
}

/** What is left of it to a run. */
export class History {
  #left: Map<string, bigint> | undefined = undefined
  #replays = false
  readonly #known = new Set<string>()
  readonly #past: Effect.Effect<ReadonlyMap<string, bigint>>

  constructor(past: Effect.Effect<ReadonlyMap<string, bigint>>) {
    this.#past = past
  }

  /** Has it read: for a run in which something stands beside something else. */
  readonly read: Effect.Effect<void> = Effect.suspend(() =>
    this.#left !== undefined ? Effect.void : Effect.map(this.#past, (past) => {
      if (this.#left !== undefined) return
      this.#left = new Map([...past].filter(([name]) => !this.#known.has(name)))
      this.#replays = this.#left.size > 0
    })
  )

  /** Whether there was anything to come again when it was read. */
  get replays(): boolean {
    return this.#replays
  }

  /** Where something stands. */
  rank(name: string): bigint {
    return this.#left?.get(name) ?? last
  }

  /** Whether something is still to come that came before. */
  expects(rank: bigint): boolean {
    for (const first of this.#left?.values() ?? []) return first < rank
    return false
  }

  /** It has come to these, or nobody waits for them any more. */
  pass(names: ReadonlyArray<string>): void {
    for (const name of names) {
      if (this.#left === undefined) this.#known.add(name)
      else this.#left.delete(name)
    }
  }

  /** Nobody comes to what is before: the body is another one, or was interrupted there. */
  skip(rank: bigint): void {
    for (const [name, each] of this.#left ?? []) {
      if (each >= rank) return
      this.#left!.delete(name)
    }
  }
}
