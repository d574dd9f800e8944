/**
 * Statements that change a task, and tell of it once they are committed.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { Database, Parameter, Row } from "./database.ts"
import { Notices } from "./notices.ts"

/** What PostgreSQL's notices come on. The payload is a task's id. */
export const channel = "skein_tasks"

/**
 * How notices of all processes reach this one: calls `heard` with each payload on the channel, and `missed` when there may have been
 * others. It listens when it is done, and stops with the scope.
 */
export type Signals = (
  channel: string,
  heard: (payload: string) => void,
  missed: () => void
) => Effect.Effect<void, TaskError, Scope.Scope>

/** See the module's text. */
export class Changes {
  readonly #notices: Notices
  readonly #database: Database
  /** Whether the database carries the notices, those of this process too: then they come when, and only when, it committed. */
  readonly #carried: boolean

  private constructor(database: Database, notices: Notices, carried: boolean) {
    this.#database = database
    this.#notices = notices
    this.#carried = carried
  }

  /** Without signals only this process hears of its changes. */
  static make(database: Database, signals: Signals | undefined): Effect.Effect<Changes, TaskError, Scope.Scope> {
    return Effect.contextWith((context) => {
      const runFork = Effect.runForkWith(context)
      const notices = new Notices((error) => runFork(Effect.logError("A listener to a task failed", error)))
      const changes = new Changes(database, notices, database.pg && signals !== undefined)
      const listen = signals?.(channel, (id) => notices.tell(id), () => notices.tellAll())
      return listen === undefined ? Effect.succeed(changes) : Effect.as(listen, changes)
    })
  }

  /** Calls the listener after changes of the task, while the scope is open. */
  listen(id: string, listener: () => void): Effect.Effect<void, never, Scope.Scope> {
    const start = Effect.sync(() => this.#notices.listen(id, listener))
    return Effect.asVoid(Effect.acquireRelease(start, (stop) => Effect.sync(stop)))
  }

  /**
   * A statement that changes one task at most, and returns its `id` and maybe more. `also`: what PostgreSQL does in the same
   * statement, as further parts of its `WITH`, with `changed` as the changed row.
   */
  prepare(
    text: string,
    also = ""
  ): (...parameters: ReadonlyArray<Parameter>) => Effect.Effect<Row | undefined, TaskError> {
    const notices = this.#notices
    const { pg, sql } = this.#database
    const told = this.#carried ? `, pg_notify('${channel}', changed.id)` : ""
    const run = this.#database.prepare(
      pg ? `WITH changed AS (${text})${also} SELECT changed.*${told} FROM changed` : text
    )
    if (this.#carried) return (...parameters) => Effect.map(run(...parameters), (rows) => rows[0])
    return (...parameters) =>
      Effect.flatMap(run(...parameters), ([row]) => {
        if (row === undefined) return Effect.succeed(row)
        const id = row["id"] as string
        return Effect.as(sql.afterCommit(Effect.sync(() => notices.tell(id))), row)
      })
  }
}
