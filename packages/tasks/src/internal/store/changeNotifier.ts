/**
 * Notifications about changed tasks: statements that notify after their commit, and the listeners in this process.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { Database, Parameter, Row, Statement } from "./database.ts"

/** The PostgreSQL channel of notifications. The payload is the id of a task. */
export const channel = "skein_tasks"

/**
 * Listens for the notifications of all processes: calls `onPayload` for each payload on the channel, and `onGap` when
 * notifications may have been lost. It listens when the effect ends, and stops when the scope closes.
 */
export type ListenForChanges = (
  channel: string,
  onPayload: (payload: string) => void,
  onGap: () => void
) => Effect.Effect<void, TaskError, Scope.Scope>

/**
 * The listeners of this process. A listener is called once for all changes of one turn of the event loop, and never
 * within a transaction. A task without listeners costs nothing.
 */
export class ChangeListeners {
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #changed = new Set<string>()
  readonly #onError: (error: unknown) => void
  #isScheduled = false

  /** `onError` receives the errors that listeners throw; the other listeners are called nevertheless. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Adds a listener. Returns the function that removes it. */
  listen(id: string, listener: () => void): () => void {
    // A listener that is added twice is called twice.
    const entry = () => listener()
    const listeners = this.#listeners.get(id)
    if (listeners === undefined) this.#listeners.set(id, new Set([entry]))
    else listeners.add(entry)
    return () => {
      const listeners = this.#listeners.get(id)
      listeners?.delete(entry)
      if (listeners?.size === 0) this.#listeners.delete(id)
    }
  }

  /** Notifies the listeners of a task. */
  notify(id: string): void {
    if (!this.#listeners.has(id)) return
    this.#changed.add(id)
    this.#schedule()
  }

  /** Notifies all listeners: any task may have changed. */
  notifyAll(): void {
    for (const id of this.#listeners.keys()) this.#changed.add(id)
    if (this.#changed.size > 0) this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      const changed = [...this.#changed]
      this.#changed.clear()
      for (const id of changed) {
        for (const listener of this.#listeners.get(id) ?? []) {
          try {
            listener()
          } catch (error) {
            this.#onError(error)
          }
        }
      }
    })
  }

  /** The number of tasks with listeners. */
  get size(): number {
    return this.#listeners.size
  }
}

/** Makes statements that notify the listeners of the task they change, after their commit. */
export class ChangeNotifier {
  readonly #listeners: ChangeListeners
  readonly #database: Database
  /** Whether the database sends the notifications, to this process too. They arrive only after a commit. */
  readonly #usesDatabase: boolean

  private constructor(database: Database, listeners: ChangeListeners, usesDatabase: boolean) {
    this.#database = database
    this.#listeners = listeners
    this.#usesDatabase = usesDatabase
  }

  /** Without `listenForChanges`, only changes of this process are notified. */
  static make(
    database: Database,
    listenForChanges: ListenForChanges | undefined
  ): Effect.Effect<ChangeNotifier, TaskError, Scope.Scope> {
    return Effect.contextWith((context) => {
      const runFork = Effect.runForkWith(context)
      const listeners = new ChangeListeners((error) =>
        runFork(Effect.logError("a listener for changes of a task failed", error))
      )
      const notifier = new ChangeNotifier(database, listeners, database.isPostgres && listenForChanges !== undefined)
      const listen = listenForChanges?.(channel, (id) => listeners.notify(id), () => listeners.notifyAll())
      return listen === undefined ? Effect.succeed(notifier) : Effect.as(listen, notifier)
    })
  }

  /** Notifies all listeners of this process: any task may have changed. */
  notifyAll(): void {
    this.#listeners.notifyAll()
  }

  /** Calls the listener after changes of the task until the scope closes. */
  listen(id: string, listener: () => void): Effect.Effect<void, never, Scope.Scope> {
    const start = Effect.sync(() => this.#listeners.listen(id, listener))
    return Effect.asVoid(Effect.acquireRelease(start, (stop) => Effect.sync(stop)))
  }

  /**
   * Prepares a statement that changes at most one task, and returns its `id` and optionally more columns. `also`:
   * further parts of the statement's `WITH` on PostgreSQL, in which `changed` is the changed row. `columns`: further
   * columns of the result there.
   */
  prepare(
    text: string,
    also = "",
    columns = ""
  ): (...parameters: ReadonlyArray<Parameter>) => Effect.Effect<Row | undefined, TaskError> {
    const run = this.prepareMany(text, also, columns)
    return (...parameters) => Effect.map(run(...parameters), (rows) => rows[0])
  }

  /** Prepares a statement that changes any number of tasks: see `prepare`. */
  prepareMany(text: string, also = "", columns = ""): Statement {
    const listeners = this.#listeners
    const { isPostgres, sql } = this.#database
    const notify = this.#usesDatabase ? `, pg_notify('${channel}', changed.id)` : ""
    const run = this.#database.prepare(
      isPostgres ? `WITH changed AS (${text})${also} SELECT changed.*${notify}${columns} FROM changed` : text
    )
    if (this.#usesDatabase) return run
    return (...parameters) =>
      Effect.flatMap(run(...parameters), (rows) => {
        if (rows.length === 0) return Effect.succeed(rows)
        const notifyAll = () => {
          for (const { id } of rows) listeners.notify(id as string)
        }
        return Effect.as(sql.afterCommit(Effect.sync(notifyAll)), rows)
      })
  }
}
